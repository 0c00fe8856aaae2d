//! Who may change what binds a project or a department: whoever has the right one level up. Nobody
//! raises the quota, or lengthens the time limits, that bind nobody but itself.

use access::{Caller, in_words};
use auth::Action::Update;
use auth::Resource;
use control::view::OrgUnit;
use control::{OrgChange, Scope};
use http_kit::ApiError;

/// Whether a change leaves the bounds as they are.
fn unbound(now: &OrgUnit, change: &OrgChange) -> bool {
    // All of it, so that whoever adds a field has to say what it is. Which pools are tried first
    // binds nobody.
    let OrgChange {
        name: _,
        description: _,
        shares,
        replaces_shares,
        rules,
        default_pools: _,
        node_types,
    } = change;
    let kept = now.pools.iter().all(|pool| {
        let before = if *replaces_shares { pool.usual } else { pool.share };
        shares.get(&pool.id).copied().unwrap_or_default().made_to(before) == pool.share
    });
    kept && rules.is_none_or(|new| new == now.rules)
        && node_types.as_ref().is_none_or(|new| *new == now.node_types)
}

/// Refuses a change of the bounds of something by whoever is only this one's: `around` is the scope
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
        "the shares and time limits of a {what} are changed by whoever may change all of them in \
         {around}"
    );
    Err(ApiError::forbidden(format!("{who} may not do this: {why}")))
}
