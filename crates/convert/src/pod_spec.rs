//! Conversion of a pod from the wire: image, command, variables and container options.

use std::collections::BTreeMap;

use api_types::{EnvironmentVariable, RestartPolicy};
use http_kit::ApiError;
use spec::{HOME_FOLDER, PodSpec, Restart, WorkloadKind};

use super::compute::{cpu_millis, gpu, memory_bytes};
use super::container::container;
use super::defaults::with_defaults;
use super::node_constraints::place;

/// Converts the specification of a pod.
pub(super) fn pod(kind: WorkloadKind, spec: &api_types::WorkloadSpec) -> Result<PodSpec, ApiError> {
    if let Some(storage) = &spec.storage {
        // The volumes of a submission have been removed before.
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

pub(super) fn not_empty(field: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
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

/// Converts the plain variables. Variables with values of credentials and config maps have been
/// removed before.
fn environment(variables: Vec<EnvironmentVariable>) -> Result<BTreeMap<String, String>, ApiError> {
    let kept = |one: &EnvironmentVariable| one.secret.is_some() || one.config_map.is_some();
    if let Some(at) = variables.iter().position(kept) {
        let field = format!("spec.environmentVariables[{at}]");
        return Err(ApiError::value_not_yet(&field, "a value that is kept elsewhere"));
    }
    let pair = |variable: EnvironmentVariable| {
        let name = variable.name.unwrap_or_default();
        check_variable(&name)?;
        Ok((name, variable.value.unwrap_or_default()))
    };
    variables.into_iter().filter(|v| v.exclude != Some(true)).map(pair).collect()
}

/// Validates a variable's name as Kubernetes does, so that a workload runs there too.
fn check_variable(name: &str) -> Result<(), ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(plain) {
        return Ok(());
    }
    let why = format!(
        "`{}` is not a valid name of a variable; letters, digits, `-`, `.` and `_`, not a digit first",
        units::shown(name)
    );
    Err(ApiError::field("spec.environmentVariables", why))
}
