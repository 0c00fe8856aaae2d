//! Wire to command: what a creation of a workload asks for. Owns: the texts for values whose type is
//! right and sense is not.
//! Names, images, ranges and what needs the state are checked by `control`.

use std::collections::BTreeMap;

use access::Caller;
use api_types::{
    Compute, CreationRequest, EnvironmentVariable, GpuRequestType, NameValue, Preemptibility,
    RestartPolicy,
};
use axum::http::StatusCode;
use http_kit::ApiError;
use orchestrator::view::WorkloadKind;
use serde_json::Number;
use spec::{
    Bounds, GpuRequest, HOME_FOLDER, Mount, PodSpec, Priority, Restart, SharedGpus, WorkloadSpec,
};
use units::GPU_MILLIS;

use super::container::{container, limits};
use super::defaults::with_defaults;
use super::place::{mig, place};
use super::pods::{check_kind, pods};
use super::urls::{related, urls};

/// Who asks, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// Its name.
    pub subject: String,
    /// Which principal that is.
    pub principal: String,
    /// By what it asks, such as `CLI`.
    pub source: String,
    /// Whether it may have anything of the machine.
    pub administrator: bool,
    /// What the workload has mounted already, of one that is changed.
    pub has: Vec<Mount>,
}

impl Asker {
    /// A caller, and by what it asks.
    pub fn of(caller: &Caller, source: String) -> Self {
        let (subject, administrator) = (caller.subject.clone(), caller.administers());
        let principal = caller.principal.to_string();
        Self { subject, principal, source, administrator, has: Vec::new() }
    }

    /// A request without a caller.
    pub fn anonymous(source: &str) -> Self {
        let (subject, principal) = (String::new(), String::new());
        let source = source.to_owned();
        Self { subject, principal, source, administrator: false, has: Vec::new() }
    }

    /// Whether the workload has this mounted already, and not with fewer rights.
    pub fn had(&self, mount: &Mount) -> bool {
        self.has.iter().any(|had| had.from == mount.from && had.read_only <= mount.read_only)
    }
}

/// The project and the specification a creation asks for.
pub fn command(
    kind: WorkloadKind,
    request: CreationRequest,
    asker: Asker,
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
        Some(name) => {
            Priority::named(name).map_err(|why| ApiError::field("spec.priorityClass", why))?
        }
    };
    let (pods, more, together) = pods(kind, &request)?;
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
        groups: Vec::new(),
        children_min: None,
        gates: spec.scheduling_gates.unwrap_or_default(),
        preemption_delay_ms: millis(spec.preemption_delay_seconds).unwrap_or_default(),
        time_limit_ms: millis(spec.time_limit_seconds),
        manifest: None,
    };
    Ok((project_id, spec))
}

pub(super) fn millis(seconds: Option<u64>) -> Option<u64> {
    seconds.map(|seconds| seconds.saturating_mul(1000))
}

/// Refuses what is known and not done, by the field that asks for it, with what to do instead where
/// something can be done.
fn not_here(field: &str, what: &str) -> ApiError {
    let instead = match what {
        "dataVolume" => "there are no data volumes here; pvc keeps a volume in the project",
        "userCredential" => "credentials belong to scopes; use secret",
        _ => return ApiError::not_yet(field),
    };
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{field}: {instead}"))
}

/// What one pod is.
pub(super) fn pod(kind: WorkloadKind, spec: &api_types::WorkloadSpec) -> Result<PodSpec, ApiError> {
    if let Some(storage) = &spec.storage {
        // Those of a submission were taken out before.
        for (field, there) in [
            ("secretVolume", storage.secret_volume.is_some()),
            ("configMapVolume", storage.config_map_volume.is_some()),
        ] {
            if there {
                return Err(ApiError::not_yet(format!("spec.storage.{field}")));
            }
        }
    }
    let place = place(spec)?;
    let container = container(spec)?;
    let spec = with_defaults(kind, spec.clone());
    let compute = spec.compute.unwrap_or_default();
    let mut env = environment(spec.environment_variables.unwrap_or_default())?;
    if spec.create_home_dir == Some(true) {
        env.entry("HOME".to_owned()).or_insert_with(|| HOME_FOLDER.to_owned());
    }
    let grace_s = spec.termination_grace_period_seconds.unwrap_or_default();
    let pod = PodSpec {
        image: not_empty("spec.image", spec.image)?.unwrap_or_default(),
        command: words("spec.command", spec.command)?,
        args: words("spec.args", spec.args)?.unwrap_or_default(),
        env,
        secrets: Vec::new(),
        working_dir: not_empty("spec.workingDir", spec.working_dir)?,
        place,
        gpu: gpu(&compute)?,
        cpu_millis: cpu_millis(&compute)?,
        memory_bytes: memory_bytes(&compute)?,
        restart: match spec.restart_policy {
            Some(RestartPolicy::Always) => Restart::Always,
            Some(RestartPolicy::OnFailure) => Restart::OnFailure,
            Some(RestartPolicy::Never) | None => Restart::Never,
        },
        grace_ms: grace_s.saturating_mul(1000),
        stdin: spec.stdin == Some(true),
        tty: spec.tty == Some(true),
        container,
    };
    if pod.image.is_empty() && pod.command.is_none() {
        let why = "must be set; only with a command it may be left out";
        return Err(ApiError::field("spec.image", why));
    }
    Ok(pod)
}

fn not_empty(field: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
    match text {
        Some(text) if text.is_empty() => {
            Err(ApiError::field(field, "is empty; leave it out instead"))
        }
        other => Ok(other),
    }
}

/// Splits a string by the rules of the shell.
pub fn words(field: &str, text: Option<String>) -> Result<Option<Vec<String>>, ApiError> {
    let Some(text) = not_empty(field, text)? else { return Ok(None) };
    let words = shell_words::split(&text)
        .map_err(|_| ApiError::field(field, format!("`{text}` has a quote that is not closed")))?;
    if words.is_empty() {
        return Err(ApiError::field(field, "is blank; leave it out instead"));
    }
    Ok(Some(words))
}

/// The plain variables. Those with values of credentials and config maps were taken out before.
fn environment(variables: Vec<EnvironmentVariable>) -> Result<BTreeMap<String, String>, ApiError> {
    let kept = |one: &EnvironmentVariable| one.secret.is_some() || one.config_map.is_some();
    if let Some(at) = variables.iter().position(kept) {
        let what = format!("spec.environmentVariables[{at}]: a value that is kept elsewhere");
        return Err(ApiError::not_yet(what));
    }
    let pair = |variable: EnvironmentVariable| {
        let name = variable.name.unwrap_or_default();
        check_variable(&name)?;
        Ok((name, variable.value.unwrap_or_default()))
    };
    variables.into_iter().filter(|v| v.exclude != Some(true)).map(pair).collect()
}

/// As in Kubernetes, so that a workload runs there too.
fn check_variable(name: &str) -> Result<(), ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(plain) {
        return Ok(());
    }
    let why = format!(
        "`{}` is no name of a variable; letters, digits, `-`, `.` and `_`, not a digit first",
        units::shown(name)
    );
    Err(ApiError::field("spec.environmentVariables", why))
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

/// Refuses what can never be right in a specification that is not complete.
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
    match spec.priority_class.as_deref().map(Priority::named) {
        Some(Err(why)) => Err(ApiError::field("spec.priorityClass", why)),
        _ => Ok(()),
    }
}

/// Refuses resources that can never be right, where they are all of a specification.
pub fn check_compute(compute: &Compute) -> Result<(), ApiError> {
    let checked = gpu(compute)
        .and_then(|_| cpu_millis(compute))
        .and_then(|_| memory_bytes(compute))
        .and_then(|_| limits(Some(compute)));
    checked.map(|_| ()).map_err(|error| ApiError {
        message: error.message.replacen("spec.compute.", "spec.", 1),
        ..error
    })
}

fn cpu_millis(compute: &Compute) -> Result<u64, ApiError> {
    let Some(cores) = &compute.cpu_core_request else { return Ok(0) };
    units::parse_cpu_millis(&super::decimal(cores))
        .map_err(|why| ApiError::field("spec.compute.cpuCoreRequest", why))
}

fn memory_bytes(compute: &Compute) -> Result<u64, ApiError> {
    let Some(size) = &compute.cpu_memory_request else { return Ok(0) };
    units::parse_bytes(size).map_err(|why| ApiError::field("spec.compute.cpuMemoryRequest", why))
}

/// The devices asked for; none if it is not said.
fn devices(compute: &Compute) -> Result<Option<u32>, ApiError> {
    const FIELD: &str = "spec.compute.gpuDevicesRequest";
    let Some(number) = &compute.gpu_devices_request else { return Ok(None) };
    let text = super::decimal(number);
    let millis = units::parse_gpu_millis(&text).map_err(|why| ApiError::field(FIELD, why))?;
    if !millis.is_multiple_of(GPU_MILLIS) {
        let why = format!(
            "`{text}` is not a whole number; for a share of a GPU use 1 with gpuRequestType \
             portion and gpuPortionRequest {text}"
        );
        return Err(ApiError::field(FIELD, why));
    }
    let devices = u32::try_from(millis / GPU_MILLIS);
    devices.map(Some).map_err(|_| ApiError::field(FIELD, format!("`{text}` is too large")))
}

fn gpu(compute: &Compute) -> Result<GpuRequest, ApiError> {
    let whole = devices(compute)?;
    let (portion, memory) = (&compute.gpu_portion_request, &compute.gpu_memory_request);
    if let Some(instances) = mig(compute.extended_resources.as_deref().unwrap_or_default())? {
        let others = whole.is_some_and(|devices| devices > 0) || compute.gpu_request_type.is_some();
        if others || portion.is_some() || memory.is_some() {
            let why = "MIG instances go without other GPUs; leave out gpuDevicesRequest and the \
                       like";
            return Err(ApiError::field("spec.compute.extendedResources", why));
        }
        return Ok(GpuRequest::Mig(instances));
    }
    let most = (&compute.gpu_portion_limit, &compute.gpu_memory_limit);
    let of_type = |kind: Option<GpuRequestType>| match kind {
        _ if portion.is_some() && kind != Some(GpuRequestType::Portion) => {
            Err(needs("gpuPortionRequest", "portion"))
        }
        _ if memory.is_some() && kind != Some(GpuRequestType::Memory) => {
            Err(needs("gpuMemoryRequest", "memory"))
        }
        _ if most.0.is_some() && kind != Some(GpuRequestType::Portion) => {
            Err(needs("gpuPortionLimit", "portion"))
        }
        _ if most.1.is_some() && kind != Some(GpuRequestType::Memory) => {
            Err(needs("gpuMemoryLimit", "memory"))
        }
        kind => Ok(kind),
    };
    let shares = SharedGpus::default();
    match of_type(compute.gpu_request_type)? {
        None => Ok(GpuRequest::Whole(whole.unwrap_or(0))),
        Some(GpuRequestType::Portion) => {
            let asked = portion.as_ref().ok_or_else(|| missing("portion", "gpuPortionRequest"))?;
            let compute = Some(bounds(asked, most.0.as_ref(), &PORTION)?);
            Ok(GpuRequest::Shared(SharedGpus { devices: shared(whole)?, compute, ..shares }))
        }
        Some(GpuRequestType::Memory) => {
            let asked = memory.as_ref().ok_or_else(|| missing("memory", "gpuMemoryRequest"))?;
            let memory = Some(bounds(asked, most.1.as_ref(), &MEMORY)?);
            Ok(GpuRequest::Shared(SharedGpus { devices: shared(whole)?, memory, ..shares }))
        }
    }
}

/// How an amount of a device is asked for.
struct Amount<T> {
    request: &'static str,
    limit: &'static str,
    read: fn(&str, &T) -> Result<u64, ApiError>,
}

const PORTION: Amount<Number> = Amount {
    request: "spec.compute.gpuPortionRequest",
    limit: "spec.compute.gpuPortionLimit",
    read: share,
};

const MEMORY: Amount<String> = Amount {
    request: "spec.compute.gpuMemoryRequest",
    limit: "spec.compute.gpuMemoryLimit",
    read: of_memory,
};

fn bounds<T: std::fmt::Display>(
    request: &T,
    limit: Option<&T>,
    amount: &Amount<T>,
) -> Result<Bounds, ApiError> {
    let asked = (amount.read)(amount.request, request)?;
    let most = limit.map(|limit| (amount.read)(amount.limit, limit)).transpose()?;
    match limit {
        Some(limit) if most < Some(asked) => {
            let why = format!("{limit} is less than the {request} that is asked for; raise it");
            Err(ApiError::field(amount.limit, why))
        }
        _ => Ok(Bounds { request: asked, limit: most }),
    }
}

fn needs(field: &str, kind: &str) -> ApiError {
    ApiError::field(
        &format!("spec.compute.{field}"),
        format!("goes with gpuRequestType {kind} only"),
    )
}

fn missing(kind: &str, field: &str) -> ApiError {
    ApiError::field("spec.compute.gpuRequestType", format!("{kind} needs {field}"))
}

/// The devices of which a share is asked: one unless it is said.
fn shared(devices: Option<u32>) -> Result<u32, ApiError> {
    match devices.unwrap_or(1) {
        0 => Err(ApiError::field(
            "spec.compute.gpuDevicesRequest",
            "a share of 0 GPUs is nothing; use 1 or more, or leave gpuRequestType out",
        )),
        devices => Ok(devices),
    }
}

fn share(field: &str, portion: &Number) -> Result<u64, ApiError> {
    let portion = super::decimal(portion);
    match units::parse_gpu_millis(&portion).map_err(|why| ApiError::field(field, why))? {
        millis @ 1..=GPU_MILLIS => Ok(millis),
        _ => Err(ApiError::field(field, format!("`{portion}` is not a share; use 0.001 to 1"))),
    }
}

/// Least memory of a GPU that is asked for (reference A.3).
const GPU_MEMORY_BYTES_MIN: u64 = 100_000_000;

fn of_memory(field: &str, size: &String) -> Result<u64, ApiError> {
    match units::parse_bytes(size).map_err(|why| ApiError::field(field, why))? {
        0..GPU_MEMORY_BYTES_MIN => {
            let why = format!("`{size}` is too little; use 100M or more, such as 8G");
            Err(ApiError::field(field, why))
        }
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod tests;
