//! The order of evictions on the taker's side where its own queue is the obstacle. Owns: that
//! order.

use std::cmp::Reverse;

use model::WorkloadId;

use super::eviction_units::gives_in_parts;
use super::{EvictionUnit, eviction_cost, unit_priority};
use crate::session::Session;

/// Workloads of the taker's queue before others and of those from the most saturated first; of one
/// queue the least important first, of them optional pods (`true`) before complete workloads, then
/// the cheapest and youngest. Optional pods can be less important than their workload.
pub(super) fn ordered(
    s: &Session<'_>,
    id: WorkloadId,
    own: &[WorkloadId],
) -> Vec<(WorkloadId, bool)> {
    let spec = |victim: WorkloadId| &s.cluster.workloads()[victim].spec;
    let parts = |&victim: &WorkloadId| {
        let (own, spare) = (spec(victim).priority, spec(victim).priority_of_spare());
        let spare = Some((victim, spare, true)).filter(|_| gives_in_parts(s, victim));
        spare.into_iter().chain([(victim, own, false)])
    };
    let mut own: Vec<_> = own.iter().flat_map(parts).collect();
    own.sort_by_cached_key(|&(victim, priority, is_spare)| {
        let lost = eviction_cost::lost(s, victim, &[EvictionUnit::All(victim)]);
        let queue = s.queue_of(victim);
        let foreign = queue != s.queue_of(id);
        let rank = foreign.then(|| (!s.shares().over_share(queue), Reverse(s.saturation(queue))));
        (rank, priority, !is_spare, lost, Reverse(spec(victim).seq))
    });
    own.into_iter().map(|(victim, _, is_spare)| (victim, is_spare)).collect()
}

/// `true` if a unit is optional for a workload, and no more important than its other such units.
pub(super) fn is_spare(s: &Session<'_>, victim: WorkloadId, unit: EvictionUnit) -> bool {
    let least = s.cluster.workloads()[victim].spec.priority_of_spare();
    !matches!(unit, EvictionUnit::All(_)) && unit_priority(s, victim, unit) <= least
}
