//! Profile `kai`: the decisions of KAI-Scheduler, as the scheduling reference describes them,
//! weaknesses included. Owns: everything in which they differ from ours – shares, order, places,
//! the victim search, its rules. Shares with ours: the model, the transaction, limits and quotas,
//! reasons. Where the description leaves something open, the simplest reading is taken;
//! docs/reference/profile-kai.md lists them.
//!
//! Speed is not a goal here: a search tries scenario after scenario, each by placing all jobs
//! involved. [`Policy::trials_max`](crate::Policy::trials_max) bounds it.

mod allocate;
mod amounts;
mod explain;
mod fair_share;
mod jobs;
mod order;
mod place;
mod rules;
mod shards;
mod signature;
mod solver;
mod stale;
mod topology;

use std::collections::BTreeMap;

use model::{PodBinding, PodId, WorkloadId};

use crate::session::Session;
use crate::victims::NodeCostCache;
use crate::{Action, actions};

pub(crate) use explain::{searches, standing};
pub(crate) use fair_share::kai_fair_shares;

/// Drops the places reserved by earlier cycles: each cycle recomputes them, in the same pool.
pub(crate) fn begin(s: &mut Session<'_>) {
    for pod in s.cluster.reserved().clone() {
        shards::stay(s, s.cluster.pods()[pod].workload);
        let binding = PodBinding { next: None, ..s.cluster.pods()[pod].binding.clone() };
        s.cluster.set_binding(pod, binding);
    }
}

/// Jobs that started in this cycle and lost a part again to a later job wait with that part: a gang
/// never starts in part.
pub(crate) fn end(s: &mut Session<'_>) {
    let mut started: BTreeMap<WorkloadId, Vec<PodId>> = BTreeMap::new();
    for change in s.cluster.proposed() {
        let row = &s.cluster.pods()[change.pod];
        if change.before.current.is_none() && row.runs() {
            started.entry(row.workload).or_default().push(change.pod);
        }
    }
    for (id, tasks) in started {
        allocate::reserve_together(s, id, &tasks);
    }
}

/// Carries out an action. The actions for elastic GPUs are those of the default profile.
pub(crate) fn run(s: &mut Session<'_>, action: Action, costs: &mut NodeCostCache) {
    match action {
        Action::Allocate => shards::each(s, allocate::run),
        Action::Consolidate => shards::each(s, |s| solver::run(s, &rules::Consolidation)),
        Action::Reclaim => shards::each(s, |s| solver::run(s, &rules::Reclaim)),
        Action::Preempt => shards::each(s, |s| solver::run(s, &rules::Preempt)),
        Action::Stale => stale::run(s),
        Action::Promote => {}
        Action::GiveBack | Action::Fit | Action::Grow => actions::run(s, action, costs),
    }
}
