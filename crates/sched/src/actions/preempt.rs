//! Preempts lower priorities of the queue. Source: Run:ai reference D.4 and D.5, scheduling
//! reference §16.

use std::collections::BTreeSet;

use model::{QueueId, WorkloadId};
use units::Resources;

use crate::precedence::{gives_way_to, held_below_it, is_all_below};
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
        let Some(most) = held_below_it(s, id) else { return Resources::ZERO };
        // Elastic work also gives up its lent GPUs.
        let lent_millis = s.cluster.queues()[s.queue_of(id)].lent_gpu_millis;
        most + Resources { gpu_millis: lent_millis, ..Resources::ZERO }
    }

    fn givers(&self, s: &Session<'_>, id: WorkloadId, _: Resources) -> Option<BTreeSet<QueueId>> {
        // The queues of the project in other node pools.
        let own = s.queue_of(id);
        let all = s.cluster.queues_of(s.cluster.project_of(own));
        Some(all.filter(|queue| *queue != own).collect())
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
    // Pods as important as the beneficiary stay.
    let all = is_all_below(s, id, victim);
    let spec = &workload(victim).spec;
    Cause::Preempted {
        beneficiary: s.reference(id),
        priority: if all { spec.priority } else { spec.priority_of_spare() },
        beneficiary_priority: workload(id).next_priority(),
        lost: s.lost(victim),
    }
}
