//! Takes from lower priorities of the same queue. Source: Run:ai reference D.4 and D.5,
//! scheduling reference §16.

use model::WorkloadId;
use units::{Kind, Resources};

use crate::Cause;
use crate::precedence::gives_way_to;
use crate::session::Session;
use crate::victims::{EvictionUnits, LargestWorkloads, Rule, above_minimum_while_safe};

pub(crate) struct Preempt;

impl Rule for Preempt {
    fn is_victim(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
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
        _: &mut LargestWorkloads,
    ) -> Resources {
        let spec = &s.cluster.workloads()[id].spec;
        let queue = &s.cluster.queues()[s.queue_of(id)];
        let least = queue.preemptible.keys().next();
        let below = |least: &u32| least < &spec.priority || !spec.preemptible;
        if least.is_some_and(below) { queue.preemptible_held() } else { Resources::ZERO }
    }

    fn eviction_units(&self, s: &Session<'_>, victim: WorkloadId) -> EvictionUnits {
        above_minimum_while_safe(s, victim, |share| share.preempt_min_runtime_ms)
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: Resources, victim: WorkloadId) -> Cause {
        preempted(s, id, victim)
    }
}

/// The cause given to a workload preempted for `id` in its own queue.
pub(crate) fn preempted(s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> Cause {
    let priority = |id: WorkloadId| s.cluster.workloads()[id].spec.priority;
    Cause::Preempted {
        beneficiary: s.reference(id),
        priority: priority(victim),
        beneficiary_priority: priority(id),
        lost: s.lost(victim),
    }
}
