//! The specification of an adopted pod as a workload of one pod.

use std::collections::BTreeMap;

use spec::{
    AdoptedPod, CPU_MILLIS_MAX, Container, DEVICES_MAX, GpuRequest, MEMORY_BYTES_MAX, PodSet,
    PodSpec, Priority, Restart, WorkloadKind, WorkloadSpec,
};

/// Name of the workload of a pod: `NAMESPACE.NAME`, unique in its project, since a namespace has no
/// dot in its name.
#[must_use]
pub fn name_of(pod: &AdoptedPod) -> String {
    format!("{}.{}", pod.namespace, pod.name)
}

/// True if two states of a pod differ in more than its progress.
#[must_use]
pub fn differs(before: &AdoptedPod, now: &AdoptedPod) -> bool {
    let AdoptedPod { node, phase, deleting, .. } = now;
    let (node, phase, deleting) = (node.clone(), *phase, *deleting);
    AdoptedPod { node, phase, deleting, ..before.clone() } != *now
}

/// The workload of a pod. Larger requests than any node has are cut to the maximum, so that accounts
/// stay exact. It ends when its pod ends: restarts are up to the node. It is deleted
/// when it is evicted, because an evicted pod does not come back; its controller makes another.
#[must_use]
pub fn workload_of(pod: &AdoptedPod) -> WorkloadSpec {
    let kind = WorkloadKind::Training;
    let priority =
        Priority::named(&pod.priority_class).unwrap_or_else(|_| Priority::default_of(kind));
    let of = PodSpec {
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
    };
    let pods = PodSet { pod_names: Some(pod.name.clone()), ..PodSet::one(of) };
    let owner = pod.owner.as_ref().map(|(kind, name)| format!("{kind} {}/{name}", pod.namespace));
    WorkloadSpec {
        submitted_by: owner.unwrap_or_else(|| format!("namespace {}", pod.namespace)),
        preemptible: pod.preemptible.unwrap_or_else(|| priority.is_preemptible()),
        priority,
        backoff_limit: 0,
        delete_when_preempted: true,
        gates: pod.gates.clone(),
        ..WorkloadSpec::new(name_of(pod), kind, pods)
    }
}
