//! Conversion of Kubernetes manifests to submissions. Owns: the supported kinds, and the meaning of
//! a manifest as a whole. Does not know how a workload is run; a manifest is converted to an
//! equivalent creation.

mod expand;
mod fields;
mod kinds;
mod leader_worker;
mod operator;
mod pod;
mod screen;
mod volumes;

use spec::{Priority, WorkloadKind};
use std::collections::BTreeMap;

use api_types::{
    CreationRequest, EnvironmentVariable, NameValue, PodGroups, Preemptibility, RestartPolicy,
    WorkloadSpec, WorkloadV2MetadataCreateParams,
};
use engine::environment::COMPLETION_INDEX_VARIABLE;
use http_kit::{ApiError, read_part};
use serde_json::Value;

use self::fields::Field;
use self::kinds::{CompletionMode, Job, Manifest, Meta, Pod, Replicated, Template};
use self::operator::{OPERATORS, distributed};
use self::pod::{pairs, pod};
use self::screen::Screened;

/// Kinds of several pods with restart policy `Always`.
const REPLICATED: [&str; 2] = ["Deployment", "StatefulSet"];
/// JSON pointers to the fields that suspend a manifest.
const SUSPEND: [&str; 2] = ["/spec/suspend", "/spec/runPolicy/suspend"];
/// Published labels with the meaning of flags.
const PRIORITY: &str = "priorityClassName";
const PREEMPTIBILITY: &str = "kai.scheduler/preemptibility";
const NODE_POOL: &str = "kai.scheduler/node-pool";
/// Separator before the five characters of a generated name.
const SUFFIX: char = '-';

/// The creation that is equivalent to a manifest.
#[derive(Debug)]
pub struct ManifestCreation {
    /// The kind of workload.
    pub kind: WorkloadKind,
    /// Body of the creation.
    pub request: CreationRequest,
    /// Note that names all fields without effect.
    pub note: Option<String>,
}

/// Converts a manifest to a creation.
pub fn creation(
    asked: WorkloadV2MetadataCreateParams,
    manifest: &Value,
) -> Result<ManifestCreation, ApiError> {
    if is_suspended(manifest) {
        let why = "cannot be true from the start; submit it, then suspend it";
        return Err(ApiError::field("manifest.spec.suspend", why));
    }
    let fields = fields_of_kind(manifest)?;
    let (mut manifest, mut screened) = (manifest.clone(), Screened::default());
    screened.screen("manifest", &mut manifest, fields::MANIFEST);
    if let (Some(known), Some(spec)) = (fields, manifest.get_mut("spec")) {
        screened.screen("manifest.spec", spec, known);
    }
    screened.check()?;
    let head: Manifest = read_part("manifest", manifest)?;
    let Means { kind, spec, master, groups } =
        to_wire(&head, asked.category.as_deref(), &mut screened)?;
    let meta = head.metadata;
    let labels = over(meta.labels.clone(), spec.labels);
    let says = |name: &str| {
        let label = labels.iter().flatten().find(|label| label.name == name)?;
        Some(label.value.clone()).filter(|value| !value.is_empty())
    };
    let spec = WorkloadSpec {
        priority_class: asked.priority.or_else(|| says(PRIORITY)).or(spec.priority_class),
        preemptibility: match asked.preemptibility {
            None => says(PREEMPTIBILITY).as_deref().map(preemptibility).transpose()?,
            asked => asked,
        },
        node_pools: says(NODE_POOL).map(|pool| vec![pool]),
        labels,
        annotations: over(meta.annotations.clone(), spec.annotations),
        category: asked.category,
        ..spec
    };
    let missing = |field| ApiError::field(field, "is required");
    let (name, is_prefix) = name_of(asked.name, asked.use_given_name_as_prefix, &meta)?;
    let request = CreationRequest {
        name,
        use_given_name_as_prefix: is_prefix,
        project_id: asked.project_id.ok_or_else(|| missing("metadata.projectId"))?,
        cluster_id: asked.cluster_id,
        spec: Some(spec),
        // If groups have a single template, it is that of the leaders as well.
        master_spec_same_as_worker: (kind == WorkloadKind::Distributed
            && master.is_none()
            && groups.is_none())
        .then_some(false),
        master_spec_is_whole: master.is_some(),
        master_spec: master,
        pod_groups: groups,
        strict: asked.strict,
        ..CreationRequest::default()
    };
    Ok(ManifestCreation { kind, request, note: screened.into_note() })
}

/// The name, and true if it is a prefix.
fn name_of(
    asked: Option<String>,
    is_prefix: Option<bool>,
    meta: &Meta,
) -> Result<(String, Option<bool>), ApiError> {
    match (asked.or_else(|| meta.name.clone()), &meta.generate_name) {
        (Some(name), _) => Ok((name, is_prefix)),
        (None, Some(prefix)) => {
            Ok((prefix.strip_suffix(SUFFIX).unwrap_or(prefix).to_owned(), Some(true)))
        }
        (None, None) => Err(ApiError::field("manifest.metadata.name", "is required")),
    }
}

fn preemptibility(label: &str) -> Result<Preemptibility, ApiError> {
    match label {
        "preemptible" => Ok(Preemptibility::Preemptible),
        "non-preemptible" => Ok(Preemptibility::NonPreemptible),
        other => {
            let why =
                format!("`{}` is not allowed; preemptible or non-preemptible", units::shown(other));
            Err(ApiError::field(&format!("manifest.metadata.labels.{PREEMPTIBILITY}"), why))
        }
    }
}

/// Specification of a manifest.
struct Means {
    kind: WorkloadKind,
    spec: WorkloadSpec,
    /// Master pod, if it differs from the workers.
    master: Option<WorkloadSpec>,
    groups: Option<PodGroups>,
}

impl Means {
    const fn of(kind: WorkloadKind, spec: WorkloadSpec) -> Self {
        Self { kind, spec, master: None, groups: None }
    }
}

fn to_wire(
    head: &Manifest,
    category: Option<&str>,
    screened: &mut Screened,
) -> Result<Means, ApiError> {
    let spec = head.spec.clone();
    let (group, version) = head.api_version.rsplit_once('/').unwrap_or(("", &head.api_version));
    let alone = match category {
        Some("Build") => WorkloadKind::Workspace,
        _ => WorkloadKind::Training,
    };
    match (group, head.kind.as_str()) {
        ("", "Pod") => {
            let template = Template {
                metadata: head.metadata.clone(),
                spec: read_part::<Pod>("manifest.spec", spec)?,
            };
            // As published, it is restarted unless the restart policy forbids it.
            let restart = template.spec.restart_policy.or(Some(RestartPolicy::Always));
            let spec = WorkloadSpec { restart_policy: restart, ..pod("manifest.spec", template)? };
            Ok(Means::of(alone, spec))
        }
        ("batch", "Job") => {
            Ok(Means::of(WorkloadKind::Training, job(read_part("manifest.spec", spec)?)?))
        }
        ("apps", kind) if REPLICATED.contains(&kind) => {
            let all: Replicated = read_part("manifest.spec", spec)?;
            let several = all.replicas.filter(|replicas| *replicas != 1);
            let spec = WorkloadSpec {
                parallelism: several,
                restart_policy: Some(RestartPolicy::Always),
                ..pod("manifest.spec.template.spec", all.template)?
            };
            Ok(Means::of(if several.is_some() { WorkloadKind::Training } else { alone }, spec))
        }
        ("kubeflow.org", kind) if OPERATORS.iter().any(|(known, ..)| *known == kind) => {
            let (spec, master) = distributed((version, kind), spec, screened)?;
            Ok(Means { master, ..Means::of(WorkloadKind::Distributed, spec) })
        }
        leader_worker::KIND => {
            let (spec, master, groups) = leader_worker::groups(&head.metadata, spec)?;
            let groups = Some(groups);
            Ok(Means { master, groups, ..Means::of(WorkloadKind::Distributed, spec) })
        }
        _ => Err(unknown_kind(&head.kind, &head.api_version)),
    }
}

fn job(job: Job) -> Result<WorkloadSpec, ApiError> {
    let mut spec = pod("manifest.spec.template.spec", job.template)?;
    if job.completion_mode == Some(CompletionMode::Indexed) {
        // The value is the index of each pod.
        let variable = EnvironmentVariable {
            name: Some(COMPLETION_INDEX_VARIABLE.to_owned()),
            value: Some(String::new()),
            ..EnvironmentVariable::default()
        };
        spec.environment_variables.get_or_insert_default().push(variable);
    }
    Ok(WorkloadSpec {
        parallelism: job.parallelism,
        completions: job.completions,
        backoff_limit: job.backoff_limit,
        time_limit_seconds: job.active_deadline_seconds.or(spec.time_limit_seconds),
        auto_deletion_time_after_completion_seconds: job.ttl_seconds_after_finished,
        ..spec
    })
}

/// The fields of the specification of a kind, read first, as other objects have other fields.
/// `None` if the manifest does not give its kind.
fn fields_of_kind(manifest: &Value) -> Result<Option<&'static [Field]>, ApiError> {
    let text = |field: &str| manifest.get(field).and_then(Value::as_str);
    let (Some(kind), Some(version)) = (text("kind"), text("apiVersion")) else { return Ok(None) };
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let is_operator = || OPERATORS.iter().any(|(known, ..)| *known == kind);
    match (group, kind) {
        ("", "Pod") => Ok(Some(fields::POD)),
        ("batch", "Job") => Ok(Some(fields::JOB)),
        ("apps", kind) if REPLICATED.contains(&kind) => Ok(Some(fields::REPLICATED)),
        ("kubeflow.org", _) if is_operator() => Ok(Some(fields::OPERATOR)),
        leader_worker::KIND => Ok(Some(fields::LEADER_WORKER_SET)),
        _ => Err(unknown_kind(kind, version)),
    }
}

fn unknown_kind(kind: &str, version: &str) -> ApiError {
    let classes: Vec<_> = Priority::all().map(|one| one.class).collect();
    let operators: Vec<_> = OPERATORS.iter().map(|(kind, ..)| *kind).collect();
    let why = match kind {
        "PriorityClass" => format!(
            "a PriorityClass is not submitted: the classes are fixed, and are {}; name one of \
             them with `--priority` or as `priorityClassName` of the pod",
            classes.join(", ")
        ),
        _ => format!(
            "`{}` of `{}` is not known; Pod of v1, Job of batch/v1, {} of apps/v1, \
             LeaderWorkerSet of leaderworkerset.x-k8s.io/v1, and of kubeflow.org {} are",
            units::shown(kind),
            units::shown(version),
            REPLICATED.join(" and "),
            operators.join(", ")
        ),
    };
    ApiError::field("manifest.kind", why)
}

/// Labels or annotations of the manifest, and those of its pods with other names.
fn over(own: BTreeMap<String, String>, pods: Option<Vec<NameValue>>) -> Option<Vec<NameValue>> {
    let mut all: Vec<_> = pods.unwrap_or_default();
    all.retain(|pair| !own.contains_key(&pair.name));
    all.extend(pairs(own));
    Some(all).filter(|all| !all.is_empty())
}

/// True if a manifest is suspended.
pub fn is_suspended(manifest: &Value) -> bool {
    SUSPEND.iter().any(|at| manifest.pointer(at) == Some(&Value::Bool(true)))
}

/// Sets the suspension of a manifest.
pub fn suspended(manifest: &Value, suspend: bool) -> Value {
    let mut manifest = manifest.clone();
    let place = match manifest.pointer_mut("/spec/runPolicy") {
        Some(policy) => Some(policy),
        None => manifest.pointer_mut("/spec"),
    };
    if let Some(place) = place.and_then(Value::as_object_mut) {
        place.remove("suspend");
        if suspend {
            place.insert("suspend".to_owned(), Value::Bool(true));
        }
    }
    manifest
}

/// Path of the first difference between two manifests.
pub fn difference(before: &Value, after: &Value, at: &str) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let names: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
            names.into_iter().find_map(|name| {
                let of = |side: &serde_json::Map<String, Value>| {
                    side.get(name).cloned().unwrap_or(Value::Null)
                };
                difference(&of(before), &of(after), &format!("{at}.{name}"))
            })
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let pairs = before.iter().zip(after).enumerate();
            pairs.into_iter().find_map(|(n, (a, b))| difference(a, b, &format!("{at}[{n}]")))
        }
        _ => (before != after).then(|| at.to_owned()),
    }
}
