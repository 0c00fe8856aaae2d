//! Questions about one job and its tasks. Owns: what is pending, what comes next, what goes
//! first. Source: scheduling reference §3, §6.3, §6.4, §10, §14.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{GpuRequest, Occupancy, PodId, PodRequest, WorkloadId};
use units::{Ratio, Resources};

use crate::session::Session;

/// GPU memory that counts as one GPU in the demand of pending tasks: the least of any node, which
/// the described revision always takes to be this (§26.16).
const GPU_MEMORY_BYTES_MIN: u64 = 100 << 20;

/// Tasks that a scenario has stopped, and that may be placed again in it; and where they were.
pub(super) type Evicted = BTreeMap<PodId, Occupancy>;

/// Whether a task needs a place and may get one now. What is being stopped may not, unless the
/// present scenario stopped it.
pub(super) fn is_pending(s: &Session<'_>, pod: PodId, evicted: &Evicted) -> bool {
    let row = &s.cluster.pods()[pod];
    row.waits() && (row.occupancy.current.is_none() || evicted.contains_key(&pod))
}

/// Pending tasks of a pod set, in order.
fn pending(s: &Session<'_>, id: WorkloadId, set: usize, evicted: &Evicted) -> Vec<PodId> {
    let pods = s.cluster.workloads()[id].pods_of(set).iter().copied();
    pods.filter(|&pod| is_pending(s, pod, evicted)).collect()
}

/// Whether every pod set can still reach its minimum.
pub(super) fn is_ready(s: &Session<'_>, id: WorkloadId) -> bool {
    let workload = &s.cluster.workloads()[id];
    let none = Evicted::new();
    workload.enough(|set| {
        let pending = pending(s, id, set, &none).len();
        workload.pod_sets[set].placed + u32::try_from(pending).unwrap_or(u32::MAX)
    })
}

/// The tasks to place next: of each pod set below its minimum what it lacks; or else one task of
/// the first set that has one.
pub(super) fn next_tasks(s: &Session<'_>, id: WorkloadId, evicted: &Evicted) -> Vec<PodId> {
    let workload = &s.cluster.workloads()[id];
    let lacks = |set: usize| {
        workload.spec.pod_sets[set].pods_min.saturating_sub(workload.pod_sets[set].placed) as usize
    };
    let mut sets: Vec<usize> = (0..workload.pod_sets.len()).collect();
    sets.sort_by_key(|&set| Reverse(workload.spec.pod_sets[set].task_priority));
    let below: Vec<_> = sets.iter().copied().filter(|&set| lacks(set) > 0).collect();
    if !below.is_empty() {
        let lacking = |set| pending(s, id, set, evicted).into_iter().take(lacks(set));
        return below.into_iter().flat_map(lacking).collect();
    }
    sets.sort_by_key(|&set| set_rank(s, id, set));
    sets.into_iter().flat_map(|set| pending(s, id, set, evicted)).take(1).collect()
}

/// Order of pod sets that have their minimum: the one with fewer tasks for it first, then by name.
fn set_rank<'a>(s: &'a Session<'_>, id: WorkloadId, set: usize) -> (Ratio, &'a str) {
    let workload = &s.cluster.workloads()[id];
    let spec = &workload.spec.pod_sets[set];
    let active = u64::from(workload.pod_sets[set].placed);
    (Ratio::new(active, u64::from(spec.pods_min)), &spec.name)
}

/// Tasks that run, or have a place reserved, and are not being stopped, in order.
pub(super) fn active(s: &Session<'_>, id: WorkloadId) -> Vec<PodId> {
    let pods = s.cluster.workloads()[id].pods.iter().copied();
    pods.filter(|&pod| s.cluster.pods()[pod].occupancy.effective().is_some()).collect()
}

/// The next step of taking a job's `left` tasks: the last task of the pod set that is furthest
/// above its minimum, or else all.
pub(super) fn next_to_evict(s: &Session<'_>, id: WorkloadId, left: &[PodId]) -> Vec<PodId> {
    let workload = &s.cluster.workloads()[id];
    let of =
        |set: usize| left.iter().filter(move |&&pod| s.cluster.pods()[pod].set as usize == set);
    let above = (0..workload.pod_sets.len())
        .filter(|&set| of(set).count() > workload.spec.pod_sets[set].pods_min as usize);
    let rank = |&set: &usize| {
        let spec = &workload.spec.pod_sets[set];
        (Ratio::new(of(set).count() as u64, u64::from(spec.pods_min)), spec.name.as_str())
    };
    let last = above.max_by_key(rank).and_then(|set| of(set).next_back());
    last.map_or_else(|| left.to_vec(), |&pod| vec![pod])
}

/// Whether it can run with fewer tasks than it has.
pub(super) fn is_elastic(s: &Session<'_>, id: WorkloadId) -> bool {
    s.cluster.workloads()[id].spec.pod_sets.iter().any(|set| set.pods_min < set.pods)
}

/// 0 for a job with a pod set below its minimum, 1 for one exactly at it, 2 for one above.
pub(super) fn fullness(s: &Session<'_>, id: WorkloadId, active: impl Fn(usize) -> u32) -> u32 {
    let sets = &s.cluster.workloads()[id].spec.pod_sets;
    let any = |test: fn(u32, u32) -> bool| {
        (0..).zip(sets).any(|(at, set)| test(active(at), set.pods_min))
    };
    match (any(|active, min| active < min), any(|active, min| active > min)) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    }
}

/// Whether every task needs GPUs.
pub(super) fn all_need_gpus(s: &Session<'_>, id: WorkloadId) -> bool {
    s.cluster.workloads()[id].spec.pod_sets.iter().all(|set| set.request.gpu.devices() > 0)
}

/// What a task asks for.
pub(super) fn request(s: &Session<'_>, pod: PodId) -> PodRequest {
    let set = s.cluster.pods()[pod].set as usize;
    s.cluster.workload_of(pod).spec.pod_sets[set].request
}

/// The amounts a pending task counts with: GPU memory counts as no GPU before it is placed.
pub(super) fn amounts(request: PodRequest) -> Resources {
    let gpu_millis = match request.gpu {
        GpuRequest::Memory { .. } => 0,
        GpuRequest::Whole(_) | GpuRequest::Share { .. } | GpuRequest::Mig(_) => {
            request.resources(1).gpu_millis
        }
    };
    Resources { gpu_millis, cpu_millis: request.cpu_millis, memory_bytes: request.memory_bytes }
}

/// What tasks ask for together.
pub(super) fn asked(s: &Session<'_>, pods: &[PodId]) -> Resources {
    pods.iter().map(|&pod| amounts(request(s, pod))).sum()
}

/// The amounts a pending task counts with in the demand of its queue.
pub(super) fn demand(request: PodRequest) -> Resources {
    let GpuRequest::Memory { devices, bytes } = request.gpu else { return amounts(request) };
    let millis = u128::from(devices) * u128::from(bytes) * u128::from(units::GPU_MILLIS)
        / u128::from(GPU_MEMORY_BYTES_MIN);
    Resources { gpu_millis: u64::try_from(millis).unwrap_or(u64::MAX), ..amounts(request) }
}

/// Amounts of a task without its MIG instances: these do not count where reclaim keeps the balance
/// between queues (§15).
pub(super) fn without_mig(s: &Session<'_>, pod: PodId, amounts: Resources) -> Resources {
    match request(s, pod).gpu {
        GpuRequest::Mig(_) => Resources { gpu_millis: 0, ..amounts },
        _ => amounts,
    }
}

/// What tasks ask for together, MIG instances left out.
pub(super) fn involved(s: &Session<'_>, pods: &[PodId]) -> Resources {
    pods.iter().map(|&pod| without_mig(s, pod, amounts(request(s, pod)))).sum()
}

/// What tasks hold together.
pub(super) fn held(s: &Session<'_>, pods: &[PodId]) -> Resources {
    let of = |&pod: &PodId| {
        let place = s.cluster.pods()[pod].occupancy.effective();
        place.map_or(Resources::ZERO, |place| s.cluster.amounts(pod, place))
    };
    pods.iter().map(of).sum()
}
