//! Which workloads of one queue others may preempt. Owns: that one comparison.

use model::WorkloadId;

use crate::session::Session;

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
