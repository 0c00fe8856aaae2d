//! Queries on one job and its tasks. Owns: the pending tasks, the next tasks, and the order of
//! eviction. Source: scheduling reference §3, §6.3, §6.4, §10, §14.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{GpuRequest, PodBinding, PodId, PodRequest, PodSetSpec, WorkloadId, next_pods_among};
use units::Resources;

use super::amounts::{amounts, expected_millis};
use crate::session::Session;
use model::spare::{Spare, holds, next_spare, spare_part};

/// Tasks that a scenario has stopped, and that may be placed again in it, with their earlier
/// places.
pub(super) type Evicted = BTreeMap<PodId, PodBinding>;

/// `true` if a task needs a place and may get one now. A task being stopped may not, unless the
/// present scenario stopped it.
pub(super) fn is_pending(s: &Session<'_>, pod: PodId, evicted: &Evicted) -> bool {
    let row = &s.cluster.pods()[pod];
    row.waits() && (row.binding.current.is_none() || evicted.contains_key(&pod))
}

/// Pending tasks of a pod set, in order.
fn pending(s: &Session<'_>, id: WorkloadId, set: usize, evicted: &Evicted) -> Vec<PodId> {
    let pods = s.cluster.workloads()[id].pods_of(set).iter().copied();
    pods.filter(|&pod| is_pending(s, pod, evicted)).collect()
}

/// `true` if every pod set can still reach its minimum.
pub(super) fn is_ready(s: &Session<'_>, id: WorkloadId) -> bool {
    let workload = &s.cluster.workloads()[id];
    let none = Evicted::new();
    workload.enough(|set| {
        let pending = pending(s, id, set, &none).len();
        workload.pod_sets[set].placed + u32::try_from(pending).unwrap_or(u32::MAX)
    })
}

/// The tasks to place next: the missing tasks of each part below its minimum; or else one task of
/// the pod set with the fewest for its minimum, or the missing tasks of an optional part. Pod sets
/// in order of their names.
pub(super) fn next_tasks(s: &Session<'_>, id: WorkloadId, evicted: &Evicted) -> Vec<PodId> {
    let mut tasks = next_pods_among(s.cluster, id, &[], |pod| is_pending(s, pod, evicted));
    let spec = &s.cluster.workloads()[id].spec;
    tasks.sort_by_key(|&pod| {
        let set = &spec.pod_sets[s.cluster.pods()[pod].set as usize];
        (Reverse(set.task_priority), set.name.as_str())
    });
    tasks
}

/// Tasks that run, or have a place reserved, and are not being stopped, in order.
pub(super) fn active(s: &Session<'_>, id: WorkloadId) -> Vec<PodId> {
    let pods = s.cluster.workloads()[id].pods.iter().copied();
    pods.filter(|&pod| s.cluster.pods()[pod].binding.effective().is_some()).collect()
}

/// The next step of evicting a job's `left` tasks: the last task of the pod set that is furthest
/// above its minimum; or else all of an optional part; or else all.
pub(super) fn next_to_evict(s: &Session<'_>, id: WorkloadId, left: &[PodId]) -> Vec<PodId> {
    let spec = &s.cluster.workloads()[id].spec;
    let set_of = |pod: PodId| s.cluster.pods()[pod].set as usize;
    let of = |set: usize| left.iter().copied().filter(move |&pod| set_of(pod) == set);
    let active = |set: usize| u32::try_from(of(set).count()).unwrap_or(u32::MAX);
    match next_spare(spec, &active) {
        Some(Spare::PodOf(set)) => of(set).next_back().into_iter().collect(),
        Some(Spare::Part(part)) => {
            left.iter().copied().filter(|&pod| holds(spec, part, set_of(pod))).collect()
        }
        None => left.to_vec(),
    }
}

/// `true` if it can run with fewer tasks than it has.
pub(super) fn is_elastic(s: &Session<'_>, id: WorkloadId) -> bool {
    let spec = &s.cluster.workloads()[id].spec;
    let mut groups = std::iter::once(None).chain((0..spec.groups.len()).map(Some));
    spec.pod_sets.iter().any(|set| set.pods_min < set.pods)
        || groups.any(|group| spec.children_min_of(group) < spec.children(group).count())
}

/// 0 for a job with a part below its minimum, 1 for one exactly at it, 2 for one above.
pub(super) fn fullness(s: &Session<'_>, id: WorkloadId, active: impl Fn(usize) -> u32) -> u32 {
    let spec = &s.cluster.workloads()[id].spec;
    let above = |(at, set): (usize, &PodSetSpec)| active(at) > set.pods_min;
    if !spec.is_whole(&active) {
        return 0;
    }
    let more = (0..).zip(&spec.pod_sets).any(above) || spare_part(spec, &active).is_some();
    1 + u32::from(more)
}

/// `true` if every task needs GPUs.
pub(super) fn all_need_gpus(s: &Session<'_>, id: WorkloadId) -> bool {
    s.cluster.workloads()[id].spec.pod_sets.iter().all(|set| set.request.gpu.devices() > 0)
}

/// Resource request of a task.
pub(super) fn request(s: &Session<'_>, pod: PodId) -> PodRequest {
    let set = s.cluster.pods()[pod].set as usize;
    s.cluster.workload_of(pod).spec.pod_sets[set].request
}

/// Sum of the requests of tasks.
pub(super) fn asked(s: &Session<'_>, pods: &[PodId]) -> Resources {
    pods.iter().map(|&pod| amounts(request(s, pod))).sum()
}

/// Sum of the requests of tasks with the expected value of GPU memory, which decides the turns of
/// queues.
pub(super) fn expected(s: &Session<'_>, pods: &[PodId]) -> Resources {
    let gpu_millis = pods.iter().map(|&pod| expected_millis(s.cluster, request(s, pod))).sum();
    asked(s, pods) + Resources { gpu_millis, ..Resources::ZERO }
}

/// Amounts of a task without its MIG instances, which do not count in the balance that reclaim
/// keeps between queues (§15).
pub(super) fn without_mig(s: &Session<'_>, pod: PodId, amounts: Resources) -> Resources {
    match request(s, pod).gpu {
        GpuRequest::Mig(_) => Resources { gpu_millis: 0, ..amounts },
        _ => amounts,
    }
}

/// Sum of the requests of tasks without MIG instances.
pub(super) fn involved(s: &Session<'_>, pods: &[PodId]) -> Resources {
    pods.iter().map(|&pod| without_mig(s, pod, amounts(request(s, pod)))).sum()
}

/// Sum of the resources that tasks hold.
pub(super) fn held(s: &Session<'_>, pods: &[PodId]) -> Resources {
    let of = |&pod: &PodId| {
        let place = s.cluster.pods()[pod].binding.effective();
        place.map_or(Resources::ZERO, |place| s.cluster.amounts(pod, place))
    };
    pods.iter().map(of).sum()
}
