//! Precedence of the workloads of one queue in preemption. Owns: that one comparison.

use model::WorkloadId;
use units::Resources;

use crate::session::Session;

/// `true` if `victim` runs for the same queue and may be stopped for `id`: it is less important, or
/// as important and `id`, which is not preemptible, has a right to its quota.
pub(crate) fn gives_way_to(s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
    s.can_give_way(victim) && is_below(s, id, victim)
}

/// Maximum amount that could be preempted for a workload in its queue; `None` if there is no such
/// work.
pub(crate) fn held_below_it(s: &Session<'_>, id: WorkloadId) -> Option<Resources> {
    let workload = &s.cluster.workloads()[id];
    let as_important = u32::from(!workload.spec.preemptible);
    let end = workload.next_priority().saturating_add(as_important);
    let mut tiers = s.cluster.queues()[s.queue_of(id)].preemptible.range(..end).peekable();
    tiers.peek()?;
    Some(tiers.map(|(_, tier)| tier.held).sum())
}

/// `true` if `other`, of the same queue, may be preempted for `id`, running or not; or at least its
/// pods above the minimum, if these have a priority of their own.
pub(crate) fn is_below(s: &Session<'_>, id: WorkloadId, other: WorkloadId) -> bool {
    is_below_with(s, id, other, s.cluster.workloads()[other].least_priority())
}

/// `true` if the pods that `other` waits to place could be preempted for `id`.
pub(crate) fn is_next_below(s: &Session<'_>, id: WorkloadId, other: WorkloadId) -> bool {
    is_below_with(s, id, other, s.cluster.workloads()[other].next_priority())
}

/// `true` if all of `other` may be preempted for `id`, not only its pods above the minimum.
pub(crate) fn is_all_below(s: &Session<'_>, id: WorkloadId, other: WorkloadId) -> bool {
    is_below_with(s, id, other, s.cluster.workloads()[other].spec.priority)
}

fn is_below_with(s: &Session<'_>, id: WorkloadId, other: WorkloadId, theirs: u32) -> bool {
    let workload = |id: WorkloadId| &s.cluster.workloads()[id];
    let own = workload(id).next_priority();
    let (spec, their) = (&workload(id).spec, workload(other));
    let below = theirs < own || (theirs == own && !spec.preemptible);
    their.gives_way() && their.spec.queue == spec.queue && below && other != id
}
