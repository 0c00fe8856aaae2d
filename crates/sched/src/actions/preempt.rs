//! Takes from lower priorities of the same queue. Source: Run:ai reference D.4 and D.5,
//! scheduling reference §16.

use model::WorkloadId;
use units::{Kind, Resources};

use crate::Cause;
use crate::session::Session;
use crate::victims::{Lumps, Rule, Takings, above_minimum_while_safe};

pub(crate) struct Preempt;

impl Rule for Preempt {
    fn may_be_asked(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        gives_way_to(s, id, victim)
    }

    /// Preemption changes who in the queue runs, not how much the queue may hold: it does not end
    /// above both its fair share and what it held before. Growing further is for what is free;
    /// without this, two queues can take turns for ever (found by review).
    fn fair_outcome(&self, s: &Session<'_>, id: WorkloadId, held_before: Resources) -> bool {
        let queue = s.queue_of(id);
        let most = held_before.max(s.fair()[&queue]);
        let asked = s.cluster.workloads()[id].demand();
        let held = s.cluster.queues()[queue].held();
        Kind::ALL.into_iter().all(|kind| asked[kind] == 0 || held[kind] <= most[kind])
    }

    fn frees_at_most(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        _: Resources,
        _: &mut Lumps,
    ) -> Resources {
        let spec = &s.cluster.workloads()[id].spec;
        let queue = &s.cluster.queues()[s.queue_of(id)];
        let least = queue.preemptible.keys().next();
        let below = |least: &u32| least < &spec.priority || !spec.preemptible;
        if least.is_some_and(below) { queue.preemptible_held() } else { Resources::ZERO }
    }

    fn takings(&self, s: &Session<'_>, victim: WorkloadId) -> Takings {
        above_minimum_while_safe(s, victim, |share| share.preempt_min_runtime_ms)
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: Resources, victim: WorkloadId) -> Cause {
        preempted(s, id, victim)
    }
}

/// Whether `victim` runs for the same queue and may be stopped for `id`: it is less important,
/// or as important and `id`, which is not preemptible, has a right to its quota.
pub(crate) fn gives_way_to(s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
    s.can_give_way(victim) && is_below(s, id, victim)
}

/// Whether `other`, of the same queue, is there to be stopped for `id`, running or not.
pub(crate) fn is_below(s: &Session<'_>, id: WorkloadId, other: WorkloadId) -> bool {
    let spec = |id: WorkloadId| &s.cluster.workloads()[id].spec;
    let (own, theirs) = (spec(id), spec(other));
    let below =
        theirs.priority < own.priority || (theirs.priority == own.priority && !own.preemptible);
    theirs.preemptible && theirs.queue == own.queue && below && other != id
}

/// What a workload is told that gives way to `id` in its own queue.
pub(crate) fn preempted(s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> Cause {
    let priority = |id: WorkloadId| s.cluster.workloads()[id].spec.priority;
    Cause::Preempted {
        beneficiary: s.reference(id),
        priority: priority(victim),
        beneficiary_priority: priority(id),
        lost: s.lost(victim),
    }
}
