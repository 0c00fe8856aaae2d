//! Names and counts of the objects of a scenario. Owns: the names and counts that are allowed.

use model::POOL_DEFAULT;
use orchestrator::POOL_DEFAULT_ID;

/// Maximum number of nodes of a scenario.
pub const NODES_MAX: usize = 100_000;
/// Maximum number of queues of a scenario.
pub const QUEUES_MAX: usize = 100_000;
/// Maximum number of GPUs of one node.
pub const GPUS_PER_NODE_MAX: u32 = 1024;

/// Checks that a name has no whitespace, control characters or `/`, and is of allowed length.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    if name.is_empty() || name.chars().count() > 253 || name.contains(bad) {
        return Err(format!(
            "name `{name}` is not allowed; a name is 1 to 253 characters, none of them a blank or `/`"
        ));
    }
    Ok(())
}

/// Names of an object, or of several equal objects.
pub(crate) fn names(name: &str, count: Option<u32>) -> impl Iterator<Item = String> {
    let one = count.is_none().then(|| name.to_owned());
    let name = name.to_owned();
    let several = (1..=count.unwrap_or(0)).map(move |number| format!("{name}{number}"));
    one.into_iter().chain(several)
}

pub(super) fn check_count(count: Option<u32>, max: u64) -> Result<(), String> {
    match count {
        Some(0) => Err("`count` is 0; at least 1 is allowed".into()),
        Some(count) if u64::from(count) > max => {
            Err(format!("`count` is {count}; at most {max} are allowed"))
        }
        _ => Ok(()),
    }
}

/// The id of a node pool of a scenario.
pub(super) fn pool_id(name: &str) -> String {
    if name == POOL_DEFAULT { POOL_DEFAULT_ID.to_owned() } else { format!("pool-{name}") }
}
