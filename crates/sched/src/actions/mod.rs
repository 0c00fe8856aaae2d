//! The actions of a cycle, one file each, in order of rising disruption.

pub(crate) mod allocate;
pub(crate) mod bind_reserved;
pub(crate) mod consolidate;
pub(crate) mod drain;
pub(crate) mod elastic;
pub(crate) mod explain;
pub(crate) mod preempt;
pub(crate) mod reclaim;
mod restore_size;
mod sizes;
pub(crate) mod stale;

use consolidate::Consolidation;
use preempt::Preempt;
use reclaim::Reclaim;

use crate::Action;
use crate::session::Session;
use crate::victims::NodeCostCache;

/// Carries out an action of the default profile. `costs`: node costs known since the last change.
pub(crate) fn run(s: &mut Session<'_>, action: Action, costs: &mut NodeCostCache) {
    match action {
        Action::Promote => bind_reserved::run(s),
        Action::Allocate => allocate::run(s),
        Action::GiveBack => elastic::give_back(s, costs),
        Action::Consolidate => allocate::by_rule(s, costs, &Consolidation),
        Action::Reclaim => allocate::by_rule(s, costs, &Reclaim),
        Action::Preempt => allocate::by_rule(s, costs, &Preempt),
        Action::Stale => stale::run(s),
        Action::Fit => elastic::fit(s),
        Action::Grow => elastic::grow(s),
    }
}
