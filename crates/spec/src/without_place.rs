//! The specification of a run before its pod has a place.

use uuid::Uuid;

use crate::{GPU_LIMIT_LABEL, PodSet, RunKey, RunSpec, SIMULATED_DRIVER_LABEL, WorkloadSpec};

/// The specification as the engine gets it, without a place.
#[must_use]
pub fn without_place(spec: &WorkloadSpec, set: &PodSet) -> RunSpec {
    let pod = &set.pod;
    RunSpec {
        key: RunKey { pod: Uuid::nil(), generation: 1 },
        pod_name: spec.name.clone(),
        workload_name: spec.name.clone(),
        workload_id: Uuid::nil(),
        project_name: String::new(),
        submitted_by: spec.submitted_by.clone(),
        submitter_id: spec.submitter_id.clone(),
        pod_index: 0,
        node_name: String::new(),
        devices: Vec::new(),
        resized_from: None,
        simulated_driver: spec.labels.get(SIMULATED_DRIVER_LABEL).map(|value| value == "true"),
        hard_limit: spec.labels.contains_key(GPU_LIMIT_LABEL),
        time_slicing: None,
        fractions: None,
        image: pod.image.clone(),
        command: pod.command.clone(),
        args: pod.args.clone(),
        env: pod.env.clone(),
        secrets: Vec::new(),
        working_dir: pod.working_dir.clone().map(Into::into),
        grace_ms: pod.grace_ms,
        cpu_millis: pod.cpu_millis,
        memory_bytes: pod.memory_bytes,
        gang: None,
        stdin: pod.stdin,
        tty: pod.tty,
        container: pod.container.clone(),
        registry: None,
    }
}
