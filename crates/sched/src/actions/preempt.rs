//! Takes from lower priorities of the same queue. Source: Run:ai reference D.4 and D.5,
//! scheduling reference §16.

use model::WorkloadId;
use units::Resources;

use crate::precedence::gives_way_to;
use crate::session::Session;
use crate::victims::{EvictionUnits, LargestWorkloads, Rule, above_minimum_while_safe};
use reasons::Cause;

pub(crate) struct Preempt;

impl Rule for Preempt {
    fn is_victim(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        gives_way_to(s, id, victim)
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

    fn eviction_units(&self, s: &Session<'_>, _: WorkloadId, victim: WorkloadId) -> EvictionUnits {
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
