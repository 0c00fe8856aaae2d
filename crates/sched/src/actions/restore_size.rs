//! Restores the size of elastic work that was shrunk below its request, inside its project's quota,
//! from resources that other projects use above theirs. Owns: the possible victims, and the time.
//! Source: Run:ai reference D.3b and D.7.
//!
//! This cannot oscillate: the resources taken are above a quota and stay so, they become part of
//! one, and resources within a quota are not taken for others.

use model::{PodId, WorkloadId};
use units::{GPU_MILLIS, Kind, Resources};

use super::reclaim::Reclaim;
use super::sizes::{gpus_of, requested};
use crate::entitlement::{branches, deserved, lineage_below, within};
use crate::session::Session;
use crate::victims::{
    EvictionUnit, EvictionUnits, LargestWorkloads, Rule, freed, make_room_in_place,
};
use reasons::Cause;

struct RestoreSize {
    /// GPU thousandths it holds already, which are not counted in the queue while more is sought.
    held_millis: u64,
}

impl Rule for RestoreSize {
    fn may_evict(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> bool {
        let queue = s.queue_of(id);
        within(s, queue, asked, deserved(s, queue))
    }

    fn is_victim(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        Reclaim.is_victim(s, id, victim)
    }

    fn own_gives_way(&self, _: &Session<'_>, _: WorkloadId, _: WorkloadId) -> bool {
        false
    }

    fn spares_the_entitled(&self) -> bool {
        true
    }

    fn frees_at_most(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        largest_workloads: &mut LargestWorkloads,
    ) -> Resources {
        Reclaim.frees_at_most(s, id, asked, largest_workloads)
    }

    fn eviction_units(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> EvictionUnits {
        Reclaim.eviction_units(s, id, victim)
    }

    /// Every level of the taker's side stays within its quota, and every level of the other side
    /// keeps its own: the taker has a place already.
    fn just(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        victim: WorkloadId,
        eviction_unit: EvictionUnit,
    ) -> bool {
        let Some((taker, giver)) = branches(s, id, victim) else { return false };
        let freed_millis = freed(s, eviction_unit).gpu_millis;
        let keeps_quota = |queue| {
            let held_millis = s.cluster.queues()[queue].held().gpu_millis;
            held_millis >= deserved(s, queue).gpu_millis.saturating_add(freed_millis)
        };
        lineage_below(s, s.queue_of(id), taker)
            .all(|queue| within(s, queue, asked, deserved(s, queue)))
            && lineage_below(s, s.queue_of(victim), giver).all(keeps_quota)
    }

    fn cause(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        victim: WorkloadId,
    ) -> Cause {
        let mut cause = Reclaim.cause(s, id, asked, victim);
        if let Cause::Reclaimed { requested, winner, .. } = &mut cause
            && winner.kind == Kind::Gpu
        {
            winner.allocated += self.held_millis;
            *requested = requested.saturating_sub(self.held_millis);
        }
        cause
    }
}

/// Grows a pod that runs with less than its request, as far towards the request as possible. Others
/// are stopped for it, so it keeps its size, and its place, for a while before.
pub(super) fn restore_size(s: &mut Session<'_>, id: WorkloadId, pod: PodId) {
    let (size, request) = (gpus_of(s, id), requested(s, id));
    let before = s.cluster.original(pod);
    let Some(place) = before.current.as_ref().filter(|_| !before.releasing) else { return };
    let gpus_before = place.devices.len();
    let is_here = |to: &model::Placement| to.node == place.node;
    if size >= request || !s.cluster.pods()[pod].binding.effective().is_some_and(is_here) {
        return;
    }
    let row = &s.cluster.workloads()[id];
    let since = row.last_start.max(row.last_resize).unwrap_or_default();
    let due = since.plus_ms(s.policy.grow_interval_ms_min);
    if s.now < due {
        s.wake(due);
        return;
    }
    let sizes = std::iter::successors(Some(request), |gpus| Some(gpus / 2));
    let rule = RestoreSize { held_millis: u64::from(size) * GPU_MILLIS };
    for gpus in sizes.take_while(|&gpus| gpus > size) {
        if s.may_try() && make_room_in_place(s, &rule, pod, gpus) {
            let cause = Cause::GrownBack { gpus_before, gpus_after: gpus as usize };
            s.causes.insert(pod, cause);
            return;
        }
    }
}
