//! Elastic workloads: give back lent GPUs, start smaller than requested, grow into idle GPUs. Owns:
//! the ladder of sizes, request · 2^k. Source: Run:ai reference D.7.

use model::{PodId, WorkloadId};
use units::Resources;

use super::allocate::{by_rule, each_in_order};
use super::consolidate::Consolidation;
use super::preempt::Preempt;
use super::reclaim::Reclaim;
use super::restore_size::restore_size;
use super::sizes::{gpus_of, requested};
use crate::candidates::InfeasiblePools;
use crate::place;
use crate::session::Session;
use crate::victims::{EvictionUnits, LargestWorkloads, NodeCostCache, Rule, halvings, make_room};
use model::equivalence_class::is_elastic;
use reasons::Cause;

/// GPUs beyond the request are lent; workloads that may start reclaim them before any others.
pub(crate) struct GiveBack;

/// Reclaims lent GPUs.
pub(crate) fn give_back(s: &mut Session<'_>, costs: &mut NodeCostCache) {
    // This action takes nothing else.
    let is_lent = s.cluster.queues().iter().any(|(_, queue)| queue.lent_gpu_millis > 0);
    if is_lent {
        by_rule(s, costs, &GiveBack);
    }
}

impl Rule for GiveBack {
    fn is_victim(&self, s: &Session<'_>, _: WorkloadId, victim: WorkloadId) -> bool {
        !halvings(s, victim, requested(s, victim)).is_empty()
    }

    fn eviction_units(&self, s: &Session<'_>, _: WorkloadId, victim: WorkloadId) -> EvictionUnits {
        halvings(s, victim, requested(s, victim))
    }

    fn frees_at_most(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        _: Resources,
        _: &mut LargestWorkloads,
    ) -> Resources {
        s.lent(id)
    }

    fn disrupts(&self) -> bool {
        false
    }

    fn cause(&self, s: &Session<'_>, id: WorkloadId, _: Resources, victim: WorkloadId) -> Cause {
        Cause::Resized {
            gpus_before: gpus_of(s, victim) as usize,
            gpus_after: requested(s, victim) as usize,
            beneficiary: Some(s.reference(id)),
        }
    }
}

/// Starts elastic workloads with half of their request, a quarter, and so on, by the means and in
/// the order in which full sizes were tried.
pub(crate) fn fit(s: &mut Session<'_>) {
    let rules: [&dyn Rule; 4] = [&GiveBack, &Consolidation, &Reclaim, &Preempt];
    let mut cost_cache: [NodeCostCache; 4] = Default::default();
    s.follow();
    // The action affects no other workloads.
    if !s.known.rows().any(|(_, row)| row.class.is_elastic()) {
        return;
    }
    each_in_order(s, InfeasiblePools::new(), |s, id| {
        if !is_elastic(&s.cluster.workloads()[id].spec) {
            return false;
        }
        let mut gpus = requested(s, id) / 2;
        while gpus >= 1 {
            let size = Some(gpus);
            let mut means = rules.iter().zip(&mut cost_cache);
            if s.place(id, size).is_ok()
                || means.any(|(rule, cost_cache)| make_room(s, *rule, cost_cache, id, size))
            {
                return true;
            }
            gpus /= 2;
        }
        false
    });
}

/// Doubles elastic pods into idle GPUs: those below their request first, then the older. Limits
/// hold; quota does not, since GPUs above the request are given back on demand. GPUs up to the
/// request are also taken from queues that hold more than their quota.
pub(crate) fn grow(s: &mut Session<'_>) {
    let mut order: Vec<_> = s.cluster.elastic().iter().copied().collect();
    order.retain(|&id| is_elastic(&s.cluster.workloads()[id].spec));
    order.sort_by_key(|&id| {
        let full = gpus_of(s, id) >= requested(s, id);
        (full, crate::rank::by_rank(s.cluster, id))
    });
    for id in order {
        for pod in s.cluster.workloads()[id].pods.clone() {
            grow_pod(s, id, pod);
            restore_size(s, id, pod);
        }
    }
}

fn grow_pod(s: &mut Session<'_>, id: WorkloadId, pod: PodId) {
    let binding = s.cluster.pods()[pod].binding.clone();
    let original = s.cluster.original(pod).clone();
    let Some(place) = binding.current.clone().filter(|_| !binding.releasing) else { return };
    let mut larger = None;
    while let Some(next) = next_size(s, id, larger.as_ref().unwrap_or(&place)) {
        larger = Some(next);
    }
    let Some(mut larger) = larger else { return };
    let running = original.current.as_ref() == Some(&place);
    if running && let Some(last) = s.cluster.workloads()[id].last_resize {
        let due = last.plus_ms(s.policy.grow_interval_ms_min);
        if s.now < due {
            s.wake(due);
            return;
        }
    }
    let request = requested(s, id);
    if running && larger.devices.len() > request as usize {
        // Growth up to the request does not wait.
        let due = s.cluster.workloads()[id].shrinks.grows_at(s.policy.restart_ms);
        if let Some(due) = due.filter(|due| s.now < *due) {
            s.wake(due);
            match place::resized(s.cluster, &place, request as usize) {
                Some(back) if place.devices.len() < request as usize => larger = back,
                _ => return,
            }
        }
    }
    let (gpus_before, gpus_after) = (place.devices.len(), larger.devices.len());
    s.set_target(pod, Some(larger), true);
    s.causes.entry(pod).or_insert(Cause::Resized { gpus_before, gpus_after, beneficiary: None });
}

/// The next size on the ladder, if the node and the limits of the queues allow it.
fn next_size(
    s: &Session<'_>,
    id: WorkloadId,
    place: &model::Placement,
) -> Option<model::Placement> {
    let size = u32::try_from(place.devices.len()).ok()?;
    let next = step_up(requested(s, id), size)?;
    // Growth beyond the request is given back on demand, so reservations do not forbid it.
    if size < requested(s, id) && !s.may_clear(id, place.node) {
        return None;
    }
    let larger = place::resized(s.cluster, place, next as usize)?;
    let extra_millis = larger.gpu_millis() - place.gpu_millis();
    let held = gpus_of(s, id);
    let spec = &s.cluster.workloads()[id].spec;
    let preemptible = spec.preemptible;
    let allowed = s.cluster.lineage(s.queue_of(id)).all(|queue| {
        let queue = &s.cluster.queues()[queue];
        // The growth that this workload already attempts is not yet counted in the queue.
        let pending_millis = u64::from(size.saturating_sub(held)) * units::GPU_MILLIS;
        let after = queue.allocated.gpu_millis + pending_millis + extra_millis;
        // Work that cannot be preempted must stay within the quota.
        let most = if preemptible { queue.share.limit } else { queue.share.quota };
        after <= most.gpu_millis
    });
    allowed.then_some(larger)
}

/// The size above `size` on the ladder of a request: …, request/2, request, 2·request, ….
fn step_up(request: u32, size: u32) -> Option<u32> {
    if size >= request {
        return size.checked_mul(2);
    }
    (1..32)
        .map(|k| (request >> k, request >> (k - 1)))
        .find(|&(low, _)| low <= size)
        .map(|(_, up)| up)
}

#[cfg(test)]
mod tests {
    use super::step_up;

    #[test]
    fn the_ladder_passes_through_the_request() {
        for (request, size, next) in
            [(1, 1, 2), (2, 1, 2), (4, 1, 2), (4, 2, 4), (2, 2, 4), (3, 1, 3), (6, 1, 3), (6, 3, 6)]
        {
            assert_eq!(step_up(request, size), Some(next), "{request} at {size}");
        }
    }
}
