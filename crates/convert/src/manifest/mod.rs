//! Manifests of Kubernetes as submissions. Owns: which kinds there are and which of their fields
//! mean something here; the others are refused by name. Does not know what becomes of a
//! workload; a manifest is turned into the creation that says the same.

mod kinds;
mod leader_worker;

use spec::{Priority, WorkloadKind};
use std::collections::BTreeMap;

use api_types::{
    Compute, CreationRequest, EnvironmentVariable, EnvironmentVariableSecret, ExtendedResource,
    GpuRequestType, MatchExpression, MatchExpressionOperator, NameValue, NodeAffinityRequired,
    NodeSelectorTerm, PodGroups, RestartPolicy, Toleration, WorkloadSpec,
    WorkloadV2MetadataCreateParams, number_from_millis,
};
use http_kit::{ApiError, read_part};
use serde_json::Value;

use self::kinds::{Container, Job, Manifest, Operator, Pod, Replicas, Resources, Template};

/// Kinds of training operators: where their replicas are, and by whose rules they work together.
const OPERATORS: [(&str, &str, api_types::DistributedFramework); 5] = [
    ("PyTorchJob", "pytorchReplicaSpecs", api_types::DistributedFramework::PyTorch),
    ("TFJob", "tfReplicaSpecs", api_types::DistributedFramework::TF),
    ("XGBoostJob", "xgbReplicaSpecs", api_types::DistributedFramework::XGBoost),
    ("MPIJob", "mpiReplicaSpecs", api_types::DistributedFramework::MPI),
    ("JAXJob", "jaxReplicaSpecs", api_types::DistributedFramework::JAX),
];
/// What the replica that leads the workers is called.
const LEADERS: [&str; 3] = ["Master", "Chief", "Launcher"];
/// Schedulers that a manifest may name: this one goes by their names.
const SCHEDULERS: [&str; 2] = ["runai-scheduler", "kai-scheduler"];
/// Annotation of pods with the share of a GPU they ask for.
const FRACTION: &str = "gpu-fraction";
const GPU: &str = "nvidia.com/gpu";
const MIG: &str = "nvidia.com/mig-";
/// Where manifests say that nothing is to run.
const SUSPEND: [&str; 2] = ["/spec/suspend", "/spec/runPolicy/suspend"];

/// The creation that says what a manifest says.
pub fn creation(
    asked: WorkloadV2MetadataCreateParams,
    manifest: &Value,
) -> Result<(WorkloadKind, CreationRequest), ApiError> {
    if is_suspended(manifest) {
        let why = "cannot be true from the start; submit it, then suspend it";
        return Err(ApiError::field("manifest.spec.suspend", why));
    }
    check_kind(manifest)?;
    let head: Manifest = read_part("manifest", manifest.clone())?;
    let Means { kind, spec, master, groups } = to_wire(&head, asked.category.as_deref())?;
    let meta = head.metadata;
    let spec = WorkloadSpec {
        labels: over(meta.labels, spec.labels),
        annotations: over(meta.annotations, spec.annotations),
        priority_class: asked.priority.or(spec.priority_class),
        preemptibility: asked.preemptibility,
        category: asked.category,
        ..spec
    };
    let missing = |field| ApiError::field(field, "is required");
    let request = CreationRequest {
        name: asked.name.or(meta.name).ok_or_else(|| missing("manifest.metadata.name"))?,
        use_given_name_as_prefix: asked.use_given_name_as_prefix,
        project_id: asked.project_id.ok_or_else(|| missing("metadata.projectId"))?,
        cluster_id: asked.cluster_id,
        spec: Some(spec),
        // Where groups have one template, their leaders are as the workers are.
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
    Ok((kind, request))
}

/// What a manifest says.
struct Means {
    kind: WorkloadKind,
    spec: WorkloadSpec,
    /// The one that leads the others, where it is another.
    master: Option<WorkloadSpec>,
    groups: Option<PodGroups>,
}

impl Means {
    const fn of(kind: WorkloadKind, spec: WorkloadSpec) -> Self {
        Self { kind, spec, master: None, groups: None }
    }
}

fn to_wire(head: &Manifest, category: Option<&str>) -> Result<Means, ApiError> {
    let spec = head.spec.clone();
    let group = head.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    match (group, head.kind.as_str()) {
        ("", "Pod") => {
            let template = Template {
                metadata: Some(head.metadata.clone()),
                spec: read_part::<Pod>("manifest.spec", spec)?,
            };
            // Restarts unless the restart policy forbids it, as published.
            let restart = template.spec.restart_policy.or(Some(RestartPolicy::Always));
            let spec = WorkloadSpec { restart_policy: restart, ..pod("manifest.spec", template)? };
            let kind = match category {
                Some("Build") => WorkloadKind::Workspace,
                _ => WorkloadKind::Training,
            };
            Ok(Means::of(kind, spec))
        }
        ("batch", "Job") => {
            let job: Job = read_part("manifest.spec", spec)?;
            let spec = WorkloadSpec {
                parallelism: job.parallelism,
                completions: job.completions,
                backoff_limit: job.backoff_limit,
                ..pod("manifest.spec.template.spec", job.template)?
            };
            Ok(Means::of(WorkloadKind::Training, spec))
        }
        ("kubeflow.org", kind) if OPERATORS.iter().any(|(known, ..)| *known == kind) => {
            let (spec, master) = distributed(kind, spec)?;
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

/// Refuses what is no workload by its kind, before anything else of it: it has fields of its own.
fn check_kind(manifest: &Value) -> Result<(), ApiError> {
    let text = |field: &str| manifest.get(field).and_then(Value::as_str);
    let (Some(kind), Some(version)) = (text("kind"), text("apiVersion")) else { return Ok(()) };
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let is_operator = || OPERATORS.iter().any(|(known, ..)| *known == kind);
    match (group, kind) {
        ("", "Pod") | ("batch", "Job") | leader_worker::KIND => Ok(()),
        ("kubeflow.org", _) if is_operator() => Ok(()),
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
            "`{}` of `{}` is not known; Pod of v1, Job of batch/v1, LeaderWorkerSet of \
             leaderworkerset.x-k8s.io/v1, and of kubeflow.org {} are",
            units::shown(kind),
            units::shown(version),
            operators.join(", ")
        ),
    };
    ApiError::field("manifest.kind", why)
}

/// The workers of a training operator, and the one that leads them.
fn distributed(
    kind: &str,
    mut spec: Value,
) -> Result<(WorkloadSpec, Option<WorkloadSpec>), ApiError> {
    let known = OPERATORS.iter().find(|(known, ..)| *known == kind).copied();
    let (_, field, framework) = known.ok_or_else(|| ApiError::field("manifest.kind", "unknown"))?;
    let at = format!("manifest.spec.{field}");
    let replicas = spec.as_object_mut().and_then(|spec| spec.remove(field));
    let replicas = replicas.ok_or_else(|| ApiError::field(&at, "is required"))?;
    let mut replicas: BTreeMap<String, Replicas> = read_part(&at, replicas)?;
    let rest: Operator = read_part("manifest.spec", spec)?;
    let leader = LEADERS.iter().find_map(|name| Some((*name, replicas.remove(*name)?)));
    let worker = replicas.remove("Worker");
    let worker = worker.ok_or_else(|| ApiError::field(&format!("{at}.Worker"), "is required"))?;
    if let Some(other) = replicas.keys().next() {
        let why = format!("is not known; Worker, and one of {} are", LEADERS.join(", "));
        return Err(ApiError::field(&format!("{at}.{}", units::shown(other)), why));
    }
    let master = match leader {
        None => None,
        Some((name, leader)) if leader.replicas.unwrap_or(1) == 1 => {
            // What is kept and shown is that of the workers.
            let spec = replica(&format!("{at}.{name}"), leader)?;
            Some(WorkloadSpec { labels: None, annotations: None, ..spec })
        }
        Some((name, _)) => {
            return Err(ApiError::field(&format!("{at}.{name}.replicas"), "must be 1"));
        }
    };
    let policy = rest.run_policy.unwrap_or_default();
    let spec = WorkloadSpec {
        distributed_framework: Some(framework),
        num_workers: Some(worker.replicas.unwrap_or(1)),
        slots_per_worker: rest.slots_per_worker,
        clean_pod_policy: policy.clean_pod_policy,
        backoff_limit: policy.backoff_limit,
        ..replica(&format!("{at}.Worker"), worker)?
    };
    Ok((spec, master))
}

fn replica(at: &str, replicas: Replicas) -> Result<WorkloadSpec, ApiError> {
    let own = replicas.restart_policy;
    let spec = pod(&format!("{at}.template.spec"), replicas.template)?;
    Ok(WorkloadSpec { restart_policy: own.or(spec.restart_policy), ..spec })
}

/// What a pod says; a pod here is one process.
fn pod(at: &str, template: Template) -> Result<WorkloadSpec, ApiError> {
    let (meta, spec) = (template.metadata.unwrap_or_default(), template.spec);
    let [container] = <[Container; 1]>::try_from(spec.containers).map_err(|all| {
        let why = format!("has {}; a pod here is one process, so write one", all.len());
        ApiError::field(&format!("{at}.containers"), why)
    })?;
    if let Some(other) = spec.scheduler_name.filter(|name| !SCHEDULERS.contains(&name.as_str())) {
        let why = format!("`{}` is not here; {} is", units::shown(&other), SCHEDULERS.join(" or "));
        return Err(ApiError::field(&format!("{at}.schedulerName"), why));
    }
    let at = format!("{at}.containers[0]");
    let words = |words: Vec<String>| (!words.is_empty()).then(|| shell_words::join(words));
    let compute = compute(&at, container.resources, meta.annotations.get(FRACTION))?;
    Ok(WorkloadSpec {
        image: container.image,
        command: words(container.command),
        args: words(container.args),
        working_dir: container.working_dir,
        stdin: container.stdin,
        tty: container.tty,
        environment_variables: Some(container.env.into_iter().map(variable).collect()),
        compute: Some(compute),
        labels: Some(pairs(meta.labels)),
        annotations: Some(pairs(meta.annotations)),
        restart_policy: spec.restart_policy,
        termination_grace_period_seconds: spec.termination_grace_period_seconds,
        priority_class: spec.priority_class_name,
        node_affinity_required: selector(spec.node_selector),
        tolerations: Some(spec.tolerations).filter(|all: &Vec<Toleration>| !all.is_empty()),
        ..WorkloadSpec::default()
    })
}

fn variable(variable: kinds::Variable) -> EnvironmentVariable {
    let secret = variable.value_from.map(|from| EnvironmentVariableSecret {
        name: Some(from.secret_key_ref.name),
        key: Some(from.secret_key_ref.key),
    });
    EnvironmentVariable {
        name: Some(variable.name),
        // A variable without a value is empty there.
        value: variable.value.or_else(|| secret.is_none().then(String::new)),
        secret,
        ..EnvironmentVariable::default()
    }
}

fn selector(labels: BTreeMap<String, String>) -> Option<NodeAffinityRequired> {
    let expression = |(key, value): (String, String)| MatchExpression {
        key,
        operator: MatchExpressionOperator::In,
        values: Some(vec![value]),
    };
    let match_expressions: Vec<_> = labels.into_iter().map(expression).collect();
    let term = NodeSelectorTerm { match_expressions };
    (!term.match_expressions.is_empty())
        .then(|| NodeAffinityRequired { node_selector_terms: vec![term] })
}

/// What a container asks for. Devices count where they are limited, as published; the rest is
/// asked for and not limited.
fn compute(at: &str, all: Resources, fraction: Option<&String>) -> Result<Compute, ApiError> {
    let at = format!("{at}.resources");
    let mut compute = Compute::default();
    for (name, amount) in &all.limits {
        let field = format!("{at}.limits.{name}");
        let text = amount.text();
        if name == GPU {
            let count =
                text.parse::<u32>().map_err(|_| ApiError::field(&field, "is not a number"))?;
            compute.gpu_devices_request = Some(count.into());
        } else if name.starts_with(MIG) {
            compute.extended_resources.get_or_insert_default().push(ExtendedResource {
                resource: name.clone(),
                quantity: Some(text),
                exclude: None,
            });
        } else {
            let why = "is refused: a process is not limited; ask for it under requests";
            return Err(ApiError::field(&field, why));
        }
    }
    for (name, amount) in &all.requests {
        let field = format!("{at}.requests.{name}");
        let text = amount.text();
        match name.as_str() {
            "cpu" => {
                let millis = units::parse_cpu_millis(&text);
                let millis = millis.map_err(|why| ApiError::field(&field, why))?;
                compute.cpu_core_request = Some(number_from_millis(millis));
            }
            "memory" => compute.cpu_memory_request = Some(text),
            _ if all.limits.get(name).is_some_and(|limit| limit.text() == text) => {}
            _ => return Err(ApiError::field(&field, "must be the same under limits")),
        }
    }
    if let Some(fraction) = fraction {
        let field = format!("annotation {FRACTION}");
        if compute.gpu_devices_request.is_some() {
            return Err(ApiError::field(&field, format!("goes without {GPU}; leave one out")));
        }
        let portion = fraction.parse().map_err(|_| ApiError::field(&field, "is not a number"))?;
        compute.gpu_devices_request = Some(1.into());
        compute.gpu_request_type = Some(GpuRequestType::Portion);
        compute.gpu_portion_request = Some(portion);
    }
    Ok(compute)
}

/// What is said of the whole, and of its pods where that says nothing.
fn over(own: BTreeMap<String, String>, pods: Option<Vec<NameValue>>) -> Option<Vec<NameValue>> {
    let mut all: Vec<_> = pods.unwrap_or_default();
    all.retain(|pair| !own.contains_key(&pair.name));
    all.extend(pairs(own));
    Some(all).filter(|all| !all.is_empty())
}

fn pairs(map: BTreeMap<String, String>) -> Vec<NameValue> {
    let pair = |(name, value)| NameValue { name, value, exclude: None };
    map.into_iter().map(pair).collect()
}

/// Whether nothing of it is to run.
pub fn is_suspended(manifest: &Value) -> bool {
    SUSPEND.iter().any(|at| manifest.pointer(at) == Some(&Value::Bool(true)))
}

/// A manifest that is the same, and says whether nothing of it is to run.
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

/// Where two manifests differ first.
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
