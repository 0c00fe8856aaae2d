//! Conversion of a pod of a manifest to a specification. Owns: the meaning of its supported fields.

use std::collections::BTreeMap;

use api_types::{
    Compute, EnvironmentVariable, ExtendedResource, GpuRequestType, MatchExpression,
    MatchExpressionOperator, NameValue, NodeAffinityRequired, NodeSelectorTerm, Security,
    Toleration, WorkloadSpec, number_from_millis,
};
use http_kit::ApiError;
use serde_json::Number;

use super::expand::{EXPANDED_BYTES_MAX, Refused, VariableValue, Variables, expand};
use super::kinds::{Amount, Container, Meta, Resources, SecurityContext, Template, Variable};
use super::volumes::storage;

/// Annotations of pods for GPU fractions: the share of each GPU, the memory of each in MiB, and the
/// number of GPUs.
const FRACTION: &str = "gpu-fraction";
const MEMORY: &str = "gpu-memory";
const DEVICES: &str = "gpu-fraction-num-devices";
const GPU: &str = "nvidia.com/gpu";
const MIG: &str = "nvidia.com/mig-";
/// Label of nodes with their hostnames.
const HOST_NAME: &str = "kubernetes.io/hostname";

/// Converts a pod, which has one container.
pub(super) fn pod(at: &str, template: Template) -> Result<WorkloadSpec, ApiError> {
    let Template { metadata: meta, spec: mut pod } = template;
    let containers = std::mem::take(&mut pod.containers);
    let [container] = <[Container; 1]>::try_from(containers).map_err(|all| {
        let why = format!("has {}; a pod here is one process, so write one", all.len());
        ApiError::field(&format!("{at}.containers"), why)
    })?;
    let at = format!("{at}.containers[0]");
    let (environment, variables) = environment(&at, container.env)?;
    let words = |field: &str, words: Vec<String>| {
        let each = words.iter().enumerate().map(|(number, word)| {
            let at = format!("{at}.{field}[{number}]");
            expand(word, &variables).map_err(|refused| not_expanded(&at, refused))
        });
        let words = each.collect::<Result<Vec<_>, _>>()?;
        Ok::<_, ApiError>((!words.is_empty()).then(|| shell_words::join(words)))
    };
    let (storage, large_shm) = storage(&at, &pod.volumes, container.volume_mounts)?;
    let compute = compute(&at, container.resources, &meta)?;
    let gates: Vec<_> = pod.scheduling_gates.into_iter().map(|gate| gate.name).collect();
    Ok(WorkloadSpec {
        image: container.image,
        command: words("command", container.command)?,
        args: words("args", container.args)?,
        working_dir: container.working_dir,
        stdin: container.stdin,
        tty: container.tty,
        environment_variables: Some(environment),
        compute: Some(Compute { large_shm_request: large_shm.then_some(true), ..compute }),
        image_pull_policy: container.image_pull_policy,
        storage: Some(storage),
        security: Some(Security {
            host_network: pod.host_network,
            host_ipc: pod.host_ipc,
            ..security(pod.security_context, container.security_context)
        }),
        labels: Some(pairs(meta.labels)),
        annotations: Some(pairs(meta.annotations)),
        restart_policy: pod.restart_policy,
        termination_grace_period_seconds: pod.termination_grace_period_seconds,
        time_limit_seconds: pod.active_deadline_seconds,
        priority_class: pod.priority_class_name,
        node_affinity_required: affinity(
            pod.affinity.node_affinity.required,
            pod.node_selector.into_iter().chain(pod.node_name.map(|name| (HOST_NAME.into(), name))),
        ),
        tolerations: Some(pod.tolerations).filter(|all: &Vec<Toleration>| !all.is_empty()),
        scheduling_gates: (!gates.is_empty()).then_some(gates),
        ..WorkloadSpec::default()
    })
}

fn not_expanded(at: &str, refused: Refused) -> ApiError {
    let why = match refused {
        Refused::Elsewhere(name) => {
            let name = units::shown(&name);
            format!(
                "`$({name})` is the value of a credential or a config map, which only the pod can \
                 read; have a shell read `${name}` there"
            )
        }
        Refused::TooLong => format!(
            "the words and variables of the container come to more than {} with `$(NAME)` replaced; \
             write `$$(NAME)` where a shell is to read it, or put the text into a config map",
            units::format_bytes(EXPANDED_BYTES_MAX as u64)
        ),
    };
    ApiError::field(at, why)
}

/// Converts the variables, each expanded by the ones before it. Returns also the values for the
/// expansion of words.
fn environment(
    at: &str,
    all: Vec<Variable>,
) -> Result<(Vec<EnvironmentVariable>, Variables), ApiError> {
    let mut known = Variables::default();
    let mut variables = Vec::with_capacity(all.len());
    for (number, variable) in all.into_iter().enumerate() {
        let Variable { name, value, value_from: from } = variable;
        let in_it = |refused: Refused| not_expanded(&format!("{at}.env[{number}].value"), refused);
        let is_here = from.secret_key_ref.is_none() && from.config_map_key_ref.is_none();
        let value = value.map(|text| expand(&text, &known)).transpose().map_err(in_it)?;
        // In Kubernetes, a variable without a value is empty.
        let value = value.or_else(|| is_here.then(String::new));
        let says = match &value {
            Some(text) if is_here => VariableValue::Text(text.clone()),
            _ => VariableValue::Elsewhere,
        };
        known.known.insert(name.clone(), says);
        variables.push(EnvironmentVariable {
            name: Some(name),
            value,
            secret: from.secret_key_ref,
            config_map: from.config_map_key_ref,
            ..EnvironmentVariable::default()
        });
    }
    Ok((variables, known))
}

/// Security settings: those of the container, else of the pod.
fn security(pod: SecurityContext, own: SecurityContext) -> Security {
    let groups: Vec<_> = pod.supplemental_groups.iter().map(i64::to_string).collect();
    Security {
        run_as_uid: own.run_as_user.or(pod.run_as_user),
        run_as_gid: own.run_as_group.or(pod.run_as_group),
        run_as_non_root: own.run_as_non_root.or(pod.run_as_non_root),
        supplemental_groups: (!groups.is_empty()).then(|| groups.join(",")),
        seccomp_profile_type: own.seccomp_profile.kind.or(pod.seccomp_profile.kind),
        allow_privilege_escalation: own.allow_privilege_escalation,
        privileged: own.privileged,
        read_only_root_filesystem: own.read_only_root_filesystem,
        capabilities: Some(own.capabilities.add).filter(|all| !all.is_empty()),
        ..Security::default()
    }
}

/// Node affinity with the labels of the node selector added to each of its terms.
fn affinity(
    required: NodeAffinityRequired,
    labels: impl Iterator<Item = (String, String)>,
) -> Option<NodeAffinityRequired> {
    let expression = |(key, value): (String, String)| MatchExpression {
        key,
        operator: MatchExpressionOperator::In,
        values: Some(vec![value]),
    };
    let selected: Vec<_> = labels.map(expression).collect();
    let mut terms = required.node_selector_terms;
    if terms.is_empty() && !selected.is_empty() {
        terms.push(NodeSelectorTerm { match_expressions: Vec::new() });
    }
    for term in &mut terms {
        term.match_expressions.extend(selected.iter().cloned());
    }
    (!terms.is_empty()).then_some(NodeAffinityRequired { node_selector_terms: terms })
}

/// Converts the resources of a container. Devices are taken from the limits, as published; other
/// requests default to the limits.
fn compute(at: &str, all: Resources, meta: &Meta) -> Result<Compute, ApiError> {
    let at = format!("{at}.resources");
    let mut compute = Compute::default();
    for (name, amount) in &all.limits {
        let field = format!("{at}.limits.{name}");
        let text = amount.text();
        match name.as_str() {
            GPU => compute.gpu_devices_request = Some(whole(&field, &text)?.into()),
            "cpu" => compute.cpu_core_limit = Some(cores(&field, amount)?),
            "memory" => compute.cpu_memory_limit = Some(text),
            _ if name.starts_with(MIG) => {
                compute.extended_resources.get_or_insert_default().push(ExtendedResource {
                    resource: name.clone(),
                    quantity: Some(text),
                    exclude: None,
                });
            }
            _ => return Err(ApiError::field(&field, "no node has it; leave it out")),
        }
    }
    compute.cpu_core_request = compute.cpu_core_limit.clone();
    compute.cpu_memory_request = compute.cpu_memory_limit.clone();
    for (name, amount) in &all.requests {
        let field = format!("{at}.requests.{name}");
        let text = amount.text();
        match name.as_str() {
            "cpu" => compute.cpu_core_request = Some(cores(&field, amount)?),
            "memory" => compute.cpu_memory_request = Some(text),
            _ if all.limits.get(name).is_some_and(|limit| limit.text() == text) => {}
            _ => return Err(ApiError::field(&field, "must be the same under limits")),
        }
    }
    shares(meta, &mut compute)?;
    Ok(compute)
}

fn whole(field: &str, text: &str) -> Result<u32, ApiError> {
    text.parse().map_err(|_| {
        let why = format!("`{}` is not a whole number; write one such as 1", units::shown(text));
        ApiError::field(field, why)
    })
}

fn cores(field: &str, amount: &Amount) -> Result<Number, ApiError> {
    let millis = units::parse_cpu_millis(&amount.text());
    millis.map(number_from_millis).map_err(|why| ApiError::field(field, why))
}

/// Adds the GPU fractions that annotations request.
fn shares(meta: &Meta, compute: &mut Compute) -> Result<(), ApiError> {
    let said = |name: &str| {
        let text = meta.annotations.get(name)?;
        Some((format!("annotation {name}"), text))
    };
    let (kind, field) = match (said(FRACTION), said(MEMORY)) {
        (None, None) => return Ok(()),
        (Some(_), Some((field, _))) => {
            return Err(ApiError::field(&field, format!("goes without {FRACTION}; leave one out")));
        }
        (Some((field, text)), None) => {
            let portion = text.parse().map_err(|_| {
                let why =
                    format!("`{}` is not a number; write one such as 0.5", units::shown(text));
                ApiError::field(&field, why)
            })?;
            compute.gpu_portion_request = Some(portion);
            (GpuRequestType::Portion, field)
        }
        (None, Some((field, text))) => {
            compute.gpu_memory_request = Some(format!("{}Mi", whole(&field, text)?));
            (GpuRequestType::Memory, field)
        }
    };
    if compute.gpu_devices_request.is_some() {
        return Err(ApiError::field(&field, format!("goes without {GPU}; leave one out")));
    }
    let devices = said(DEVICES).map(|(field, text)| whole(&field, text)).transpose()?;
    compute.gpu_devices_request = Some(devices.unwrap_or(1).into());
    compute.gpu_request_type = Some(kind);
    Ok(())
}

/// Merges the values that a workload has only once: the workers' values, else the leader's. Labels
/// and annotations are those of the workers.
pub(super) fn of_the_whole(
    mut workers: WorkloadSpec,
    leader: WorkloadSpec,
) -> (WorkloadSpec, WorkloadSpec) {
    workers.priority_class = workers.priority_class.or(leader.priority_class);
    workers.time_limit_seconds = workers.time_limit_seconds.or(leader.time_limit_seconds);
    workers.scheduling_gates = workers.scheduling_gates.or(leader.scheduling_gates);
    let leader = WorkloadSpec {
        labels: None,
        annotations: None,
        priority_class: None,
        time_limit_seconds: None,
        scheduling_gates: None,
        ..leader
    };
    (workers, leader)
}

/// Labels or annotations of a workload.
pub(super) fn pairs(map: BTreeMap<String, String>) -> Vec<NameValue> {
    let pair = |(name, value)| NameValue { name, value, exclude: None };
    map.into_iter().map(pair).collect()
}
