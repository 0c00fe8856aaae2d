//! What a specification is taken to say where it says nothing. Owns: those values, for whoever
//! converts it and for policies, which judge what will run.

use api_types::{Compute, Preemptibility, RestartPolicy, WorkloadSpec};
use control::view::WorkloadKind;
use serde_json::Number;

use super::priority::Class;

/// Cores of a pod that asks for none (reference Z.9).
const CPU_CORES_DEFAULT: f64 = 0.1;
/// Memory of a pod that asks for none.
const MEMORY_DEFAULT: &str = "100M";
/// How often a failed training is started again when it does not say.
const BACKOFF_LIMIT_DEFAULT: u32 = 6;
/// SIGTERM to SIGKILL when it is not said, as in Kubernetes.
const GRACE_S_DEFAULT: u64 = 30;

/// A specification with everything said that has a default.
pub(crate) fn with_defaults(kind: WorkloadKind, spec: WorkloadSpec) -> WorkloadSpec {
    // An interactive workload holds its place and is tried again (reference A.5).
    let (restart, backoff_limit) = match kind {
        WorkloadKind::Workspace => (RestartPolicy::OnFailure, 0),
        _ => (RestartPolicy::Never, BACKOFF_LIMIT_DEFAULT),
    };
    let priority_class =
        spec.priority_class.unwrap_or_else(|| Class::default_of(kind).name.to_owned());
    // A class that is not known is refused where it is read.
    let preemptibility =
        Class::named(&priority_class).ok().map(|class| match class.preemptible() {
            true => Preemptibility::Preemptible,
            false => Preemptibility::NonPreemptible,
        });
    WorkloadSpec {
        preemptibility: spec.preemptibility.or(preemptibility),
        priority_class: Some(priority_class),
        restart_policy: spec.restart_policy.or(Some(restart)),
        backoff_limit: spec.backoff_limit.or(Some(backoff_limit)),
        termination_grace_period_seconds: spec
            .termination_grace_period_seconds
            .or(Some(GRACE_S_DEFAULT)),
        elastic: spec.elastic.or(Some(false)),
        compute: Some(compute(spec.compute.unwrap_or_default())),
        ..spec
    }
}

fn compute(asked: Compute) -> Compute {
    let devices = u32::from(asked.gpu_request_type.is_some());
    Compute {
        gpu_devices_request: asked.gpu_devices_request.or_else(|| Some(devices.into())),
        cpu_core_request: asked.cpu_core_request.or_else(|| Number::from_f64(CPU_CORES_DEFAULT)),
        cpu_memory_request: asked.cpu_memory_request.or_else(|| Some(MEMORY_DEFAULT.to_owned())),
        ..asked
    }
}
