//! Admission checks of requests. Owns: the checks that depend on the present number of objects and
//! the sum of requests, with the one text of each refusal. A well-formed request that fits no
//! machine is accepted: it waits, and its reasons say why.

use std::collections::BTreeMap;

use spec::{
    CPU_MILLIS_MAX, DEVICES_MAX, MEMORY_BYTES_MAX, QUOTA_BYTES_MAX, QUOTA_MILLIS_MAX, Share,
};
use units::{Kind, Resources};
use uuid::Uuid;

use crate::Error;

/// Maximum number of departments, and of projects.
const ORG_UNITS_MAX: usize = 10_000;
/// Maximum request of all workloads of a department, for each resource. Accounts are sums over all
/// workloads and projects; a sum that saturated at 64 bits would go below zero when its parts are
/// subtracted.
const ASKED_MAX: u64 = u64::MAX / 2;
const _: () = {
    assert!(MEMORY_BYTES_MAX < ASKED_MAX);
    assert!(CPU_MILLIS_MAX < ASKED_MAX);
    assert!(DEVICES_MAX as u64 * units::GPU_MILLIS < ASKED_MAX);
    assert!(QUOTA_MILLIS_MAX.checked_mul(ORG_UNITS_MAX as u64).is_some());
    assert!(QUOTA_BYTES_MAX.checked_mul(ORG_UNITS_MAX as u64).is_some());
};
/// Maximum length of a description, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// Checks that one more department or project is allowed beside `count`.
///
/// # Errors
/// There are as many as allowed.
pub fn one_more(what: &str, count: usize) -> Result<(), Error> {
    if count < ORG_UNITS_MAX {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "there are {count} {what}, and no more than {ORG_UNITS_MAX} are allowed; delete some that \
         are not used"
    )))
}

/// The first duplicate name.
#[must_use]
pub fn twice(names: &[String]) -> Option<&String> {
    let again = (1..).zip(names).find(|(next, name)| names[*next..].contains(name));
    again.map(|(_, name)| name)
}

/// The first few of some names, for a message.
pub fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    let mut some: Vec<_> = names.take(SHOWN + 1).collect();
    if let Some(more) = some.get_mut(SHOWN) {
        *more = "…";
    }
    some.join(", ")
}

/// Checks that one more workload can be counted beside those with these requests.
///
/// # Errors
/// Their sum is as large as can be counted.
pub fn countable(asked: Resources) -> Result<(), Error> {
    match Kind::ALL.into_iter().find(|&kind| asked[kind] >= ASKED_MAX) {
        None => Ok(()),
        Some(kind) => Err(Error::conflict(format!(
            "the workloads of the department ask for {} together, which is as much as can be \
             counted; delete some, or submit to a project of another department",
            match kind {
                Kind::Gpu => units::gpus(asked[kind]),
                Kind::Cpu => format!("{} cores", units::format_millis(asked[kind])),
                Kind::Memory => format!("{} of memory", units::format_bytes(asked[kind])),
            }
        ))),
    }
}

/// Checks the values of a project or a department.
///
/// # Errors
/// Names the field and what is allowed.
pub fn org_unit(
    name: &str,
    description: &str,
    mut shares: impl Iterator<Item = Share>,
) -> Result<(), Error> {
    units::check_name(name).map_err(|error| Error::invalid("name", error.to_string()))?;
    let ensure = |ok: bool, field, text: String| {
        if ok { Ok(()) } else { Err(Error::invalid(field, text)) }
    };
    ensure(
        description.len() <= DESCRIPTION_BYTES_MAX,
        "description",
        format!("the description is longer than the {DESCRIPTION_BYTES_MAX} bytes allowed"),
    )?;
    Ok(shares.try_for_each(|given| spec::check_share(&given))?)
}

/// Checks the further namespaces of a project.
///
/// # Errors
/// Names the first that is no name of a namespace, or that is there twice.
pub fn namespaces(all: &[String]) -> Result<(), Error> {
    const MAX: usize = 100;
    let wrong = |why: String| Err(Error::invalid("namespaces", why));
    if all.len() > MAX {
        return wrong(format!("has {} namespaces; write at most {MAX}", all.len()));
    }
    if let Some(again) = twice(all) {
        return wrong(format!("has namespace {again} twice; write it once"));
    }
    let is_name = |name: &str| {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (1..=63).contains(&name.len())
            && name.chars().all(is_inner)
            && !name.starts_with('-')
            && !name.ends_with('-')
    };
    match all.iter().find(|name| !is_name(name)) {
        None => Ok(()),
        Some(name) => wrong(format!(
            "`{}` is not the name of a namespace; write 1 to 63 of a-z, 0-9 and -, with a letter or \
             a digit at both ends",
            units::shown(name)
        )),
    }
}

/// Checks that a name is free among the living workloads of a project.
///
/// # Errors
/// A workload has the name, or is being deleted.
pub fn name_is_free(
    names: &BTreeMap<String, Uuid>,
    name: &str,
    project: &str,
    being_deleted: impl Fn(Uuid) -> bool,
) -> Result<(), Error> {
    match names.get(name) {
        None => Ok(()),
        Some(&id) if being_deleted(id) => Err(Error::conflict(format!(
            "workload `{name}` of project `{project}` is still being deleted; \
             try again when `runai list` no longer shows it, or choose another name"
        ))),
        Some(_) => Err(name_is_taken(name, project)),
    }
}

/// Error that a workload of a project already has the name.
#[must_use]
pub fn name_is_taken(name: &str, project: &str) -> Error {
    Error::conflict(format!(
        "workload `{name}` already exists in project `{project}`; \
         delete it first with `runai delete {name} -p {project}`, or choose another name"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_how_many_there_can_be() {
        let asked = |memory_bytes| Resources { memory_bytes, ..Resources::ZERO };
        assert!(countable(asked(ASKED_MAX - 1)).is_ok());
        let full = countable(asked(ASKED_MAX)).unwrap_err().to_string();
        assert!(full.contains("delete some"), "{full}");
        assert!(one_more("projects", ORG_UNITS_MAX - 1).is_ok());
        let full = one_more("projects", ORG_UNITS_MAX).unwrap_err().to_string();
        assert!(full.contains("10000") && full.contains("delete"), "{full}");
    }
}
