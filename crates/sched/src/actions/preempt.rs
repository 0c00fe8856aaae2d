//! Takes from lower priorities of the same queue. Source: Run:ai reference D.4 and D.5,
//! scheduling reference §16.

use model::WorkloadId;
use units::Resources;

use crate::precedence::{gives_way_to, is_all_below};
use crate::session::Session;
use crate::victims::{
    EvictionUnit, EvictionUnits, LargestWorkloads, Rule, above_minimum_while_safe,
};
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
        let workload = &s.cluster.workloads()[id];
        let (own, preemptible) = (workload.next_priority(), workload.spec.preemptible);
        let queue = &s.cluster.queues()[s.queue_of(id)];
        let least = queue.preemptible.keys().next();
        let below = |least: &u32| *least < own || !preemptible;
        if least.is_some_and(below) { queue.preemptible_held() } else { Resources::ZERO }
    }

    fn eviction_units(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> EvictionUnits {
        let mut units = above_minimum_while_safe(s, victim, |share| share.preempt_min_runtime_ms);
        if !is_all_below(s, id, victim) {
            units.retain(|unit| matches!(unit, EvictionUnit::One(_)));
        }
        units
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: Resources, victim: WorkloadId) -> Cause {
        preempted(s, id, victim)
    }
}

/// The cause given to a workload preempted for `id` in its own queue.
pub(crate) fn preempted(s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> Cause {
    let workload = |id: WorkloadId| &s.cluster.workloads()[id];
    // What is as important as the beneficiary stays.
    let all = is_all_below(s, id, victim);
    let spec = &workload(victim).spec;
    Cause::Preempted {
        beneficiary: s.reference(id),
        priority: if all { spec.priority } else { spec.priority_of_spare() },
        beneficiary_priority: workload(id).next_priority(),
        lost: s.lost(victim),
    }
}
