//! Permission to change the limits of a project or a department: it needs the right one level up.
//! No caller raises its own quota or lengthens its own time limits.

use access::{Caller, in_words};
use auth::Action::Update;
use auth::Resource;
use http_kit::ApiError;
use orchestrator::OrgChange;
use view::{OrgUnit, Scope};

/// True if a change leaves the bounds as they are.
fn unbound(now: &OrgUnit, change: &OrgChange) -> bool {
    // Every field, so that a new one has to be classified. Which pools are tried first
    // is no limit.
    let OrgChange {
        name: _,
        description: _,
        shares,
        replaces_shares,
        rules,
        default_pools: _,
        node_types,
        namespaces,
    } = change;
    let kept = now.pools.iter().all(|pool| {
        let before = if *replaces_shares { pool.usual } else { pool.share };
        let given = shares.get(&*pool.id).copied().unwrap_or_default();
        given.summed.is_none() && given.made_to(before) == pool.share
    });
    // The pods of a namespace take the quota of the project.
    kept && namespaces.is_none()
        && rules.is_none_or(|new| new == now.rules)
        && node_types.as_ref().is_none_or(|new| *new == now.node_types)
}

/// Refuses a change of limits by a caller with rights in this scope only: `around` is the scope
/// one level up.
pub(crate) fn check_bounds(
    caller: &Caller,
    (what, resource): (&str, Resource),
    (now, around): (&OrgUnit, Scope),
    change: &OrgChange,
) -> Result<(), ApiError> {
    if unbound(now, change) || caller.may(Update, resource, around) {
        return Ok(());
    }
    let (who, around) = (&caller.subject, in_words(around));
    let why = format!(
        "the shares and time limits of a {what} are changed by a caller that may change all of them \
         in {around}"
    );
    Err(ApiError::forbidden(format!("{who} may not do this: {why}")))
}
