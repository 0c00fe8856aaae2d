//! Checks of requests that need no other state. Owns: the check of every value, with the one text
//! that names the field and says what is allowed. A well-formed request that fits no machine is
//! accepted: it waits, and its reasons say why.

mod container;
mod group;
mod simulated;

use std::collections::BTreeMap;

use units::GPU_MILLIS;

pub use group::GROUPS_MAX;

use crate::invalid::Invalid;
use crate::{
    Bounds, GPU_LIMIT_HARD, GPU_LIMIT_LABEL, GpuRequest, PodSet, PodSpec, SecretPlace, Share,
    SharedGpus, WorkloadKind, WorkloadSpec,
};

/// Maximum time between SIGTERM and SIGKILL (reference D.9: 0 to 300 s).
const GRACE_MS_MAX: u64 = 300_000;
/// Maximum number of devices of a workload: far beyond any machine.
pub const DEVICES_MAX: u32 = 100_000;
/// Maximum CPU request of a workload, in thousandths of a core.
pub const CPU_MILLIS_MAX: u64 = 1_000_000_000;
/// Maximum memory request of a workload, in bytes.
pub const MEMORY_BYTES_MAX: u64 = 1 << 44;
/// Maximum number of pods of a workload; all of them are written when one changes.
const PODS_MAX: u32 = 1000;
/// Largest quota or limit, in thousandths of GPUs or cores.
pub const QUOTA_MILLIS_MAX: u64 = 1_000_000_000_000;
/// Largest quota or limit, in bytes.
pub const QUOTA_BYTES_MAX: u64 = 1 << 50;
/// Largest over-quota weight.
const WEIGHT_MAX: u64 = 1_000_000;
/// Largest back-off limit.
const BACKOFF_LIMIT_MAX: u32 = 1000;
/// Checks the share of a project or a department.
///
/// # Errors
/// A value that is not allowed.
pub fn check_share(share: &Share) -> Result<(), Invalid> {
    let ensure = |ok: bool, field, text: String| {
        if ok { Ok(()) } else { Err(Invalid::new(field, text)) }
    };
    for (field, millis) in [
        ("gpu quota", Some(share.gpu_quota_millis)),
        ("gpu limit", share.gpu_limit_millis),
        ("cpu quota", share.cpu_quota_millis),
        ("cpu limit", share.cpu_limit_millis),
    ] {
        let millis = millis.unwrap_or(0);
        let text =
            format!("the {field} is too large; at most {} are allowed", QUOTA_MILLIS_MAX / 1000);
        ensure(millis <= QUOTA_MILLIS_MAX, field, text)?;
    }
    for (field, bytes) in
        [("memory quota", share.memory_quota_bytes), ("memory limit", share.memory_limit_bytes)]
    {
        let most = units::format_bytes(QUOTA_BYTES_MAX);
        let text = format!("the {field} is too large; at most {most} are allowed");
        ensure(bytes.unwrap_or(0) <= QUOTA_BYTES_MAX, field, text)?;
    }
    for weight in [Some(share.over_quota_weight), share.cpu_weight, share.memory_weight] {
        let text = format!("the over-quota weight is too large; 0 to {WEIGHT_MAX} are allowed");
        ensure(weight.unwrap_or(0) <= WEIGHT_MAX, "over-quota weight", text)?;
    }
    let gpu_quota = Some(share.gpu_quota_millis);
    for (field, what, quota, limit, text) in [
        (
            "gpu limit",
            "GPU",
            gpu_quota,
            share.gpu_limit_millis,
            units::format_millis as fn(u64) -> _,
        ),
        ("cpu limit", "CPU", share.cpu_quota_millis, share.cpu_limit_millis, units::format_millis),
        (
            "memory limit",
            "memory",
            share.memory_quota_bytes,
            share.memory_limit_bytes,
            units::format_bytes,
        ),
    ] {
        // No quota means all capacity up to the limit.
        let (Some(quota), Some(limit)) = (quota, limit) else { continue };
        let why = format!(
            "the {what} limit ({}) is below the {what} quota ({}); raise the limit or lower the quota",
            text(limit),
            text(quota)
        );
        ensure(quota <= limit, field, why)?;
    }
    Ok(())
}

/// Checks a back-off limit.
///
/// # Errors
/// It is too large.
pub fn check_backoff_limit(limit: u32) -> Result<(), Invalid> {
    if limit <= BACKOFF_LIMIT_MAX {
        return Ok(());
    }
    let text = format!("the back-off limit is too large; 0 to {BACKOFF_LIMIT_MAX} are allowed");
    Err(Invalid::new("backoff limit", text))
}

/// Checks the values of a workload.
///
/// # Errors
/// The first value that is not allowed.
pub fn check_workload(spec: &WorkloadSpec) -> Result<(), Invalid> {
    units::check_name(&spec.name).map_err(|error| Invalid::new("name", error.to_string()))?;
    amounts(spec)?;
    elastic(spec)?;
    group::check(spec)?;
    spec.serving.as_ref().map_or(Ok(()), crate::Serving::check)?;
    check_backoff_limit(spec.backoff_limit)?;
    check_labels(&spec.labels)?;
    spec.sets().try_for_each(pod_names)?;
    spec.sets().try_for_each(|set| pod(&set.pod))
}

/// Checks the labels that the server interprets.
///
/// # Errors
/// The value of one is not known.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Invalid> {
    simulated::check_label(labels)?;
    match labels.get(GPU_LIMIT_LABEL) {
        Some(other) if other != GPU_LIMIT_HARD => Err(Invalid::new(
            "labels",
            format!(
                "the label {GPU_LIMIT_LABEL} cannot be `{}`; write {GPU_LIMIT_HARD}, or leave it out",
                units::shown(other)
            ),
        )),
        _ => Ok(()),
    }
}

/// Checks the name pattern of the pods: valid, and with `{}` where there are several pods.
fn pod_names(set: &PodSet) -> Result<(), Invalid> {
    let Some(names) = &set.pod_names else { return Ok(()) };
    let wrong =
        |why: String| Invalid::new("pod names", format!("the names of pods `{names}`: {why}"));
    units::check_name(&names.replace("{}", "0")).map_err(|error| wrong(error.to_string()))?;
    if set.pods > 1 && !names.contains("{}") {
        return Err(wrong(format!("{} pods need a number; write {{}} where it is", set.pods)));
    }
    Ok(())
}

fn pod(spec: &PodSpec) -> Result<(), Invalid> {
    check_gpu(spec.gpu)?;
    container::check(spec)?;
    simulated::check_environment(&spec.env)?;
    let ensure = |ok: bool, field, text: String| {
        if ok { Ok(()) } else { Err(Invalid::new(field, text)) }
    };
    ensure(
        spec.grace_ms <= GRACE_MS_MAX,
        "grace period",
        format!("the grace period is too long; 0 to {} seconds are allowed", GRACE_MS_MAX / 1000),
    )?;
    let secret_names = spec.secrets.iter().filter_map(|secret| match secret.to.place() {
        Some(SecretPlace::Variable(name)) => Some(name),
        _ => None,
    });
    let bad_key =
        spec.env.keys().chain(secret_names).find(|key| key.is_empty() || key.contains(['=', '\0']));
    if let Some(key) = bad_key {
        let text = format!(
            "`{key}` is not a valid name of an environment variable; it may not be empty or contain `=`"
        );
        return Err(Invalid::new("environment", text));
    }
    let words = spec.command.iter().flatten().chain(&spec.args).chain(spec.env.values());
    ensure(
        words.chain(&spec.working_dir).all(|word| !word.contains('\0')),
        "command",
        "a NUL character is not allowed in commands, arguments and environment".to_owned(),
    )?;
    ensure(
        spec.working_dir.as_ref().is_none_or(|dir| dir.starts_with('/')),
        "working directory",
        "the working directory is not an absolute path; begin it with `/`".to_owned(),
    )
}

/// Checks the number of pods and the sum of their requests against the maxima of a workload.
fn amounts(spec: &WorkloadSpec) -> Result<(), Invalid> {
    let pods = spec.pod_count();
    if pods == 0 || pods > PODS_MAX {
        let text = format!("a workload has 1 to {PODS_MAX} pods, not {pods}");
        return Err(Invalid::new("pods", text));
    }
    // A set among several may be optional for the others.
    let least = u32::from(spec.sets().all(|set| set.pods_min == 0) || spec.more.is_empty());
    for set in spec.sets() {
        let parallelism = set.parallelism;
        if set.pods == 0 || !(least..=set.pods).contains(&set.pods_min) || parallelism == Some(0) {
            let text = format!(
                "of {} pods at least {} cannot be the least that make sense",
                set.pods, set.pods_min
            );
            return Err(Invalid::new("pods", text));
        }
    }
    let sum = |of: fn(&PodSpec) -> u64| {
        let all = spec.sets().map(|set| of(&set.pod).saturating_mul(set.pods.into()));
        all.fold(0, u64::saturating_add)
    };
    let too_much = |field, what: &str, most: String| {
        let text = format!("the {what} request is too large; at most {most} are allowed");
        Err(Invalid::new(field, text))
    };
    if sum(|pod| pod.cpu_millis) > CPU_MILLIS_MAX {
        return too_much("cpu", "CPU", format!("{} cores", CPU_MILLIS_MAX / 1000));
    }
    if sum(|pod| pod.memory_bytes) > MEMORY_BYTES_MAX {
        return too_much("memory", "memory", units::format_bytes(MEMORY_BYTES_MAX));
    }
    let devices = sum(|pod| u64::from(pod.gpu.devices()));
    if devices > DEVICES_MAX.into() {
        let text = format!("{devices} GPUs are more than the {DEVICES_MAX} allowed");
        return Err(Invalid::new("gpu", text));
    }
    Ok(())
}

/// Checks the part of a GPU that a pod requests, and its limit.
///
/// # Errors
/// The invalid value, and the values that are allowed.
pub fn check_gpu(gpu: GpuRequest) -> Result<(), Invalid> {
    let bad = |text: String| Err(Invalid::new("gpu", text));
    let GpuRequest::Shared(SharedGpus { devices, compute, memory }) = gpu else {
        return Ok(());
    };
    if devices == 0 {
        return bad("a part of a GPU needs at least one device".to_owned());
    }
    let (Bounds { request, limit }, most, wrong) = match (compute, memory) {
        (Some(compute), None) => (
            compute,
            GPU_MILLIS,
            "the GPU fraction must be between 0.001 and 1; ask for whole GPUs otherwise".to_owned(),
        ),
        (None, Some(memory)) => {
            let most = units::format_bytes(MEMORY_BYTES_MAX);
            let text = format!("the GPU memory must be above 0 and at most {most}, such as 8G");
            (memory, MEMORY_BYTES_MAX, text)
        }
        (None, None) => return bad("a part of a GPU needs a fraction or memory".to_owned()),
        (Some(_), Some(_)) => {
            let text =
                "a fraction and memory of a GPU cannot be asked for together yet; leave out one";
            return bad(text.to_owned());
        }
    };
    let limit = limit.unwrap_or(request);
    if request == 0 || limit > most {
        return bad(wrong);
    }
    if limit < request {
        let text = "the GPU limit is below what is asked for; raise it or leave it out";
        return bad(text.to_owned());
    }
    Ok(())
}

fn elastic(spec: &WorkloadSpec) -> Result<(), Invalid> {
    if !spec.elastic {
        return Ok(());
    }
    if spec.kind != WorkloadKind::Training {
        let text = "only trainings can be elastic; leave out --elastic or --interactive";
        return Err(Invalid::new("elastic", text));
    }
    if spec.pod_count() > 1 {
        return Err(Invalid::new("elastic", "only a workload of one pod can be elastic"));
    }
    match spec.pods.pod.gpu.counted() {
        model::GpuRequest::Whole(1..) => Ok(()),
        _ => Err(Invalid::new("elastic", "an elastic training needs at least one whole GPU")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_gpu_is_hard_or_left_out() {
        let labels = |value: &str| BTreeMap::from([(GPU_LIMIT_LABEL.to_owned(), value.to_owned())]);
        check_labels(&labels("hard")).expect("a value");
        check_labels(&BTreeMap::new()).expect("none");
        let why = check_labels(&labels("soft")).expect_err("no value").to_string();
        assert!(why.contains("cannot be `soft`; write hard, or leave it out"), "{why}");
    }
}
