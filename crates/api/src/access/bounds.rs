//! Who may change what binds a project or a department: whoever has the right one level up. Nobody
//! raises the quota, or lengthens the time limits, that bind nobody but itself.

use auth::Action::Update;
use auth::Resource;
use control::view::{DepartmentView, NodeTypes, PoolShare, ProjectView, Rules, Share};
use control::{OrgChange, POOL_DEFAULT_ID, Scope};

use crate::edge::{Caller, Fault};

/// Whether a change leaves the bounds as they are.
fn unbound(
    change: &OrgChange,
    (share, rules): (Share, Rules),
    (pools, types): (&[PoolShare], &NodeTypes),
) -> bool {
    // All of it, so that whoever adds a field has to say what it is. Which pools are tried first
    // binds nobody.
    let OrgChange {
        name: _,
        description: _,
        share: new,
        pool_shares,
        pools_anew,
        rules: new_rules,
        default_pools: _,
        node_types,
    } = change;
    let others = pools.iter().filter(|pool| pool.id != POOL_DEFAULT_ID);
    let mut others = others.map(|pool| match pool_shares.get(&pool.id) {
        Some(new) => new.made_to(pool.share) == pool.share,
        None => !pools_anew || pool.share == Share::USUAL,
    });
    new.made_to(share) == share
        && others.all(|kept| kept)
        && new_rules.is_none_or(|new| new == rules)
        && node_types.as_ref().is_none_or(|new| new == types)
}

/// Refuses a change of a project's bounds by whoever is only this project's.
pub(crate) fn check_project(
    caller: &Caller,
    now: &ProjectView,
    change: &OrgChange,
) -> Result<(), Fault> {
    if unbound(change, (now.share, now.rules), (&now.pools, &now.node_types)) {
        return Ok(());
    }
    let around = Scope::Department(now.department_id);
    refuse(caller, Resource::Project, around, "the shares and time limits of a project")
}

/// Refuses a change of a department's bounds by whoever is only this department's.
pub(crate) fn check_department(
    caller: &Caller,
    now: &DepartmentView,
    change: &OrgChange,
) -> Result<(), Fault> {
    if unbound(change, (now.share, now.rules), (&now.pools, &now.node_types)) {
        return Ok(());
    }
    let what = "the shares and time limits of a department";
    refuse(caller, Resource::Department, Scope::Cluster, what)
}

fn refuse(caller: &Caller, resource: Resource, around: Scope, what: &str) -> Result<(), Fault> {
    if caller.may(Update, resource, around) {
        return Ok(());
    }
    let (who, around) = (&caller.subject, super::in_words(around));
    let why = format!("{what} are changed by whoever may change all of them in {around}");
    Err(Fault::forbidden(format!("{who} may not do this: {why}")))
}
