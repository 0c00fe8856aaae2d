//! Conversion of a creation of a workload from the wire. Names, images, ranges and values that
//! depend on the state are checked by `control`.

use std::collections::BTreeMap;

use access::Caller;
use api_types::{CreationRequest, NameValue, Preemptibility};
use axum::http::StatusCode;
use http_kit::ApiError;
use spec::{Mount, Priority, WorkloadKind, WorkloadSpec};

use super::compute::{cpu_millis, gpu, memory_bytes};
use super::container::container;
use super::defaults::with_defaults;
use super::node_constraints::place;
use super::pod_spec::{not_empty, words};
use super::pods::{check_kind, parts, pods};
use super::urls::{related, urls};

/// Sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitter {
    /// Name of the sender.
    pub subject: String,
    /// Its principal.
    pub principal: String,
    /// Client program, such as `CLI`.
    pub source: String,
    /// True if it may use any folder of the machine.
    pub administrator: bool,
    /// Existing mounts of the workload, if it is changed.
    pub has: Vec<Mount>,
}

impl Submitter {
    /// The submitter of a request from this client program.
    pub fn of(caller: &Caller, source: String) -> Self {
        let (subject, administrator) = (caller.subject.clone(), caller.administers());
        let principal = caller.principal.to_string();
        Self { subject, principal, source, administrator, has: Vec::new() }
    }

    /// The submitter of a request without a caller.
    pub fn anonymous(source: &str) -> Self {
        let (subject, principal) = (String::new(), String::new());
        let source = source.to_owned();
        Self { subject, principal, source, administrator: false, has: Vec::new() }
    }

    /// True if the workload has this mount already, with at least these rights.
    pub fn had(&self, mount: &Mount) -> bool {
        self.has.iter().any(|had| had.from == mount.from && had.read_only <= mount.read_only)
    }
}

/// The project and the specification of a creation.
pub fn command(
    kind: WorkloadKind,
    request: CreationRequest,
    asker: Submitter,
) -> Result<(u64, WorkloadSpec), ApiError> {
    if let Some(field) = request.not_yet().into_iter().next() {
        let what = field.rsplit('.').next().unwrap_or_default();
        return Err(not_here(&field, what));
    }
    let project_id = access::project_id("projectId", &request.project_id)?;
    check_kind(kind, &request)?;
    let spec = with_defaults(kind, request.spec.clone().unwrap_or_default());
    check_spec(&spec)?;
    let category = super::workload::category(kind);
    if let Some(other) = spec.category.as_deref().filter(|said| *said != category) {
        let why = format!("`{}` is not {category}, which is that of its kind", units::shown(other));
        return Err(ApiError::field("spec.category", why));
    }
    let priority = match spec.priority_class.as_deref() {
        None => Priority::default_of(kind),
        Some(name) => priority_named("spec.priorityClass", name)?,
    };
    let spare_priority = spare_priority(&spec)?;
    let (pods, more, together) = pods(kind, &request)?;
    let (groups, children_min) = parts(&request)?;
    let serving = match kind {
        WorkloadKind::Inference => Some(super::serving::serving(&spec)?),
        _ => None,
    };
    let spec = WorkloadSpec {
        name: request.name,
        kind,
        submitted_by: asker.subject,
        submitter_id: asker.principal,
        source: asker.source,
        pods,
        more,
        distributed: together,
        serving,
        urls: urls(&spec)?,
        related_urls: related(&spec)?,
        revision: None,
        elastic: spec.elastic.unwrap_or(false),
        priority,
        spare_priority,
        preemptible: spec.preemptibility == Some(Preemptibility::Preemptible),
        backoff_limit: spec.backoff_limit.unwrap_or_default(),
        delete_after_ms: millis(spec.auto_deletion_time_after_completion_seconds),
        delete_when_preempted: spec.terminate_after_preemption == Some(true),
        command_line: spec.command_line,
        uses: Vec::new(),
        labels: labels(spec.labels)?,
        annotations: pairs("spec.annotations", spec.annotations.unwrap_or_default())?,
        node_pools: spec.node_pools.unwrap_or_default(),
        node_types: not_empty("spec.nodeType", spec.node_type)?.into_iter().collect(),
        topology: None,
        groups,
        children_min,
        gates: spec.scheduling_gates.unwrap_or_default(),
        preemption_delay_ms: millis(spec.preemption_delay_seconds).unwrap_or_default(),
        time_limit_ms: millis(spec.time_limit_seconds),
        manifest: None,
    };
    Ok((project_id, spec))
}

/// The priority of workers beyond the minimum.
fn spare_priority(spec: &api_types::WorkloadSpec) -> Result<Option<Priority>, ApiError> {
    const FIELD: &str = "spec.sparePriorityClass";
    let Some(name) = &spec.spare_priority_class else { return Ok(None) };
    if spec.min_replicas.is_none() {
        return Err(ApiError::field(
            FIELD,
            "is that of workers beyond minReplicas; give minReplicas",
        ));
    }
    if spec.preemptibility != Some(Preemptibility::Preemptible) {
        let why =
            "is of workers that are stopped for others; with it preemptibility is preemptible";
        return Err(ApiError::field(FIELD, why));
    }
    priority_named(FIELD, name).map(Some)
}

/// The priority class of this name.
pub(super) fn priority_named(field: &str, name: &str) -> Result<Priority, ApiError> {
    Priority::named(name).map_err(|_| {
        let known: Vec<Priority> = Priority::all().collect();
        let known = known.iter().map(|one| one.class.as_str());
        ApiError::unknown_name(field, "priority class", name, known)
    })
}

pub(super) fn millis(seconds: Option<u64>) -> Option<u64> {
    seconds.map(|seconds| seconds.saturating_mul(1000))
}

/// The error for a known field that is not supported, with what to do instead if there is
/// something.
fn not_here(field: &str, what: &str) -> ApiError {
    let instead = match what {
        "dataVolume" => "there are no data volumes here; pvc keeps a volume in the project",
        "userCredential" => "credentials belong to scopes; use secret",
        _ => return ApiError::not_yet(field),
    };
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{field}: {instead}"))
}

pub(super) fn pairs(
    field: &str,
    pairs: Vec<NameValue>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let kept = pairs.into_iter().filter(|pair| pair.exclude != Some(true));
    kept.map(|pair| match pair.name.chars().count() {
        1..=63 => Ok((pair.name, pair.value)),
        _ => Err(ApiError::field(field, format!("name `{}` is not 1 to 63 characters", pair.name))),
    })
    .collect()
}

pub(super) fn labels(given: Option<Vec<NameValue>>) -> Result<BTreeMap<String, String>, ApiError> {
    const FIELD: &str = "spec.labels";
    let labels = pairs(FIELD, given.unwrap_or_default())?;
    for (key, value) in &labels {
        units::check_label(key, value).map_err(|why| ApiError::field(FIELD, why))?;
    }
    Ok(labels)
}

/// Validates a specification that may be incomplete.
pub fn check_spec(spec: &api_types::WorkloadSpec) -> Result<(), ApiError> {
    let compute = spec.compute.clone().unwrap_or_default();
    gpu(&compute)?;
    container(spec)?;
    urls(spec)?;
    related(spec)?;
    place(spec)?;
    cpu_millis(&compute)?;
    memory_bytes(&compute)?;
    words("spec.command", spec.command.clone())?;
    words("spec.args", spec.args.clone())?;
    labels(spec.labels.clone())?;
    pairs("spec.annotations", spec.annotations.clone().unwrap_or_default())?;
    let priority = spec.priority_class.as_deref();
    priority.map_or(Ok(()), |name| priority_named("spec.priorityClass", name).map(drop))
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod tests;
