//! Conversion of an update of a workload from the wire. Owns: which fields can change, and the
//! error for one that cannot. The time of a change is decided by `control`.

use spec::GpuRequest;
use std::collections::BTreeMap;

use api_types::{Compute, NameValue, Preemptibility, WorkloadSpec};
use axum::http::StatusCode;
use http_kit::ApiError;
use orchestrator::WorkloadChange;
use serde_json::Value;

use super::submit::{labels, millis, pairs};
use super::wire;

/// Fields of `compute` that can change: the others determine the placement of pods.
const CHANGEABLE_COMPUTE: [&str; 2] = ["gpuPortionLimit", "gpuMemoryLimit"];

/// Fields of a workload that can change while it exists. For a workload from a manifest only the
/// first two can.
const CHANGEABLE: [&str; 8] = [
    "priorityClass",
    "schedulingGates",
    "preemptibility",
    "backoffLimit",
    "labels",
    "annotations",
    "autoDeletionTimeAfterCompletionSeconds",
    "terminateAfterPreemption",
];

/// Refuses a change from one specification to another if it concerns a field that cannot change.
/// Setting a field to its current value is not a change. `name` is for the error.
pub fn check_changeable(
    name: &str,
    of_manifest: bool,
    now: &WorkloadSpec,
    after: &WorkloadSpec,
) -> Result<(), ApiError> {
    let changeable_too = if of_manifest { &[][..] } else { &CHANGEABLE_COMPUTE[..] };
    let [now, after] = [now, after].map(|spec| {
        let mut spec = wire(spec);
        if let Some(Value::Object(compute)) = spec.get_mut("compute") {
            compute.retain(|field, _| !changeable_too.contains(&field.as_str()));
        }
        spec
    });
    let changeable = if of_manifest { &CHANGEABLE[..2] } else { &CHANGEABLE[..] };
    let fields = after.as_object().into_iter().flatten();
    let differs = |field: &String, value: &Value| now.get(field).unwrap_or(&Value::Null) != value;
    let mut fixed = fields
        .filter(|(field, value)| !changeable.contains(&field.as_str()) && differs(field, value));
    let Some((field, _)) = fixed.next() else { return Ok(()) };
    let why = format!(
        "spec.{field}: cannot change while `{name}` exists; {} can. Delete `{name}` and submit it \
         again with another value",
        changeable.iter().chain(changeable_too).copied().collect::<Vec<_>>().join(", ")
    );
    Err(ApiError::new(StatusCode::CONFLICT, why))
}

/// Converts an update to changes of fields; `after` is the workload with the update applied.
pub fn change(asked: WorkloadSpec, after: &WorkloadSpec) -> Result<WorkloadChange, ApiError> {
    let named = |name: &str| super::submit::priority_named("spec.priorityClass", name);
    let priority = asked.priority_class.as_deref().map(named).transpose()?;
    let given = asked.labels.unwrap_or_default();
    labels(Some(given.clone()))?;
    let annotations = asked.annotations.unwrap_or_default();
    pairs("spec.annotations", annotations.clone())?;
    let limits = |compute: &Compute| {
        compute.gpu_portion_limit.is_some() || compute.gpu_memory_limit.is_some()
    };
    let gpu = after.compute.as_ref().filter(|_| asked.compute.as_ref().is_some_and(limits));
    let gpu_limit = gpu.map(super::compute::gpu).transpose()?.and_then(GpuRequest::limit);
    Ok(WorkloadChange {
        priority,
        preemptible: asked.preemptibility.map(|one| one == Preemptibility::Preemptible),
        backoff_limit: asked.backoff_limit,
        delete_after_ms: millis(asked.auto_deletion_time_after_completion_seconds),
        delete_when_preempted: asked.terminate_after_preemption,
        gates: asked.scheduling_gates,
        gpu_limit,
        labels: set_or_taken_away(given),
        annotations: set_or_taken_away(annotations),
    })
}

fn set_or_taken_away(pairs: Vec<NameValue>) -> BTreeMap<String, Option<String>> {
    let one = |pair: NameValue| (pair.name, (pair.exclude != Some(true)).then_some(pair.value));
    pairs.into_iter().map(one).collect()
}
