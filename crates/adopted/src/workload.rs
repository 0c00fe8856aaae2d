//! The specification of adopted pods as a workload: of one pod, or of a gang.

use std::collections::{BTreeMap, BTreeSet};

use spec::{
    AdoptedPod, CPU_MILLIS_MAX, Container, DEVICES_MAX, GpuRequest, MEMORY_BYTES_MAX, Place,
    PodSet, PodSpec, Priority, Restart, WorkloadKind, WorkloadSpec,
};

/// True if two states of a pod differ in more than its progress.
#[must_use]
pub fn differs(before: &AdoptedPod, now: &AdoptedPod) -> bool {
    let progress = now.clone();
    let AdoptedPod { node, protected, phase, started_at, deleting, .. } = progress;
    AdoptedPod { node, protected, phase, started_at, deleting, ..before.clone() } != *now
}

/// The specification of a pod in its workload. Larger requests than any node has are cut to the
/// maximum, so that accounts stay exact. It ends when the pod ends: restarts are up to the node.
fn pod_of(pod: &AdoptedPod) -> PodSpec {
    PodSpec {
        image: String::new(),
        command: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        working_dir: None,
        place: pod.place.clone(),
        gpu: GpuRequest::Whole(pod.gpus.min(DEVICES_MAX)),
        cpu_millis: pod.cpu_millis.min(CPU_MILLIS_MAX),
        memory_bytes: pod.memory_bytes.min(MEMORY_BYTES_MAX),
        restart: Restart::Never,
        grace_ms: pod.grace_ms,
        stdin: false,
        tty: false,
        container: Container::default(),
    }
}

/// The specification of a pod of a gang: without its labels, which tell each pod of an owner from
/// the others.
#[must_use]
pub fn member_of(pod: &AdoptedPod) -> PodSpec {
    let of = pod_of(pod);
    PodSpec { place: Place { labels: BTreeMap::new(), ..of.place }, ..of }
}

/// The workload of a pod by itself. Its name is `NAMESPACE.NAME`, unique in its project, since a
/// namespace has no dot in its name.
#[must_use]
pub fn workload_of(pod: &AdoptedPod) -> WorkloadSpec {
    let name = format!("{}.{}", pod.namespace, pod.name);
    workload(pod, name, PodSet::one(pod_of(pod)), Vec::new())
}

/// The workload of pods that start together, and the number of each of them there. Pods that are
/// still to be made count as pods like the first. Its first pod decides about its priority.
///
/// Returns `None` for no pods.
#[must_use]
pub fn gang_of(pods: &[&AdoptedPod], pods_min: u32) -> Option<(WorkloadSpec, Vec<u32>)> {
    let first = pods.first()?;
    let mut sets: Vec<(PodSpec, Vec<usize>)> = Vec::new();
    for (at, pod) in pods.iter().enumerate() {
        let of = member_of(pod);
        match sets.iter_mut().find(|(known, _)| *known == of) {
            Some((_, members)) => members.push(at),
            None => sets.push((of, vec![at])),
        }
    }
    let count = |members: &[usize]| u32::try_from(members.len()).unwrap_or(u32::MAX);
    let missing = pods_min.saturating_sub(u32::try_from(pods.len()).unwrap_or(u32::MAX));
    let (mut next, mut numbers) = (0, vec![0; pods.len()]);
    let mut made: Vec<PodSet> = Vec::new();
    for (of, members) in sets {
        for (number, at) in (next..).zip(&members) {
            numbers[*at] = number;
        }
        let pods = count(&members) + if made.is_empty() { missing } else { 0 };
        next += pods;
        made.push(PodSet { pods, pods_min: pods, ..PodSet::one(of) });
    }
    let mut made = made.into_iter();
    let set = made.next()?;
    let name = first.gang.as_ref().map_or(&first.name, |gang| &gang.name);
    let name = format!("{}.{name}", first.namespace);
    let gates: BTreeSet<_> = pods.iter().flat_map(|pod| &pod.gates).cloned().collect();
    let gates = gates.into_iter().collect();
    let preemptible = is_preemptible(pods.iter().copied());
    let spec = WorkloadSpec { gates, preemptible, ..workload(first, name, set, made.collect()) };
    Some((spec, numbers))
}

/// True if the pods of a workload may be evicted for others. Its first pod decides, unless their
/// cluster refuses to evict one of them.
#[must_use]
pub fn is_preemptible<'a>(pods: impl IntoIterator<Item = &'a AdoptedPod>) -> bool {
    let mut pods = pods.into_iter().peekable();
    let by_itself = pods.peek().is_some_and(|first| {
        first.preemptible.unwrap_or_else(|| priority_of(first).is_preemptible())
    });
    by_itself && pods.all(|pod| pod.protected.is_none())
}

fn priority_of(pod: &AdoptedPod) -> Priority {
    Priority::named(&pod.priority_class)
        .unwrap_or_else(|_| Priority::default_of(WorkloadKind::Training))
}

/// A workload of pods like this one. It is deleted when it is evicted, because an evicted pod does
/// not come back; its controller makes another.
fn workload(pod: &AdoptedPod, name: String, pods: PodSet, more: Vec<PodSet>) -> WorkloadSpec {
    let owner = pod.owner.as_ref().map(|(kind, name)| format!("{kind} {}/{name}", pod.namespace));
    WorkloadSpec {
        submitted_by: owner.unwrap_or_else(|| format!("namespace {}", pod.namespace)),
        preemptible: is_preemptible([pod]),
        priority: priority_of(pod),
        backoff_limit: 0,
        delete_when_preempted: true,
        gates: pod.gates.clone(),
        more,
        ..WorkloadSpec::new(name, WorkloadKind::Training, pods)
    }
}
