//! What may be asked for. Owns: the check of every value, with the one text that names the field
//! and says what is allowed. What is well-formed but does not fit any machine is accepted: it
//! waits, and says why.

mod container;

use std::collections::BTreeMap;

use engine::{Engine, RunKey, RunSpec, SecretPlace};
use units::{Kind, Resources};
use uuid::Uuid;

use crate::Error;
use crate::command::WorkloadSpec;
use crate::spec::{GpuSpec, PodSet, PodSpec};
use crate::view::{Share, WorkloadKind};

/// Longest time between SIGTERM and SIGKILL (reference D.9: 0 to 300 s).
const GRACE_MS_MAX: u64 = 300_000;
/// Most departments or projects.
const ORG_UNITS_MAX: usize = 10_000;
/// Most devices, cores or bytes a workload can ask for: far beyond any machine.
const DEVICES_MAX: u32 = 100_000;
const CPU_MILLIS_MAX: u64 = 1_000_000_000;
const MEMORY_BYTES_MAX: u64 = 1 << 44;
/// Most pods of a workload; all of them are written when one changes.
const PODS_MAX: u32 = 1000;
/// Largest quota or limit, in thousandths of GPUs or cores, and in bytes.
const QUOTA_MILLIS_MAX: u64 = 1_000_000_000_000;
const QUOTA_BYTES_MAX: u64 = 1 << 50;
/// The accounts are sums over all workloads and all projects. A sum at the end of 64 bits would
/// stop there, and go below zero when its parts are taken out again: the workloads of a department
/// ask for no more than this.
const ASKED_MAX: u64 = u64::MAX / 2;
const _: () = {
    assert!(MEMORY_BYTES_MAX < ASKED_MAX);
    assert!(CPU_MILLIS_MAX < ASKED_MAX);
    assert!(DEVICES_MAX as u64 * units::GPU_MILLIS < ASKED_MAX);
    assert!(QUOTA_MILLIS_MAX.checked_mul(ORG_UNITS_MAX as u64).is_some());
    assert!(QUOTA_BYTES_MAX.checked_mul(ORG_UNITS_MAX as u64).is_some());
};
/// Largest weight.
const WEIGHT_MAX: u64 = 1_000_000;
/// Most retries.
const BACKOFF_LIMIT_MAX: u32 = 1000;
/// Longest description, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// Checks that one more department or project may come beside so many.
pub(crate) fn one_more(what: &str, count: usize) -> Result<(), Error> {
    if count < ORG_UNITS_MAX {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "there are {count} {what}, and no more than {ORG_UNITS_MAX} are allowed; delete some that \
         are not used"
    )))
}

/// The first name that comes twice.
pub(crate) fn twice(names: &[String]) -> Option<&String> {
    let again = (1..).zip(names).find(|(next, name)| names[*next..].contains(name));
    again.map(|(_, name)| name)
}

/// The first few of some names, for a message.
pub(crate) fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    let mut some: Vec<_> = names.take(SHOWN + 1).collect();
    if let Some(more) = some.get_mut(SHOWN) {
        *more = "…";
    }
    some.join(", ")
}

/// Checks that one more workload can be counted beside those that ask for so much together.
pub(crate) fn countable(asked: Resources) -> Result<(), Error> {
    match Kind::ALL.into_iter().find(|&kind| asked[kind] >= ASKED_MAX) {
        None => Ok(()),
        Some(kind) => Err(Error::conflict(format!(
            "the workloads of the department ask for {} together, which is as much as can be \
             counted; delete some, or submit to a project of another department",
            match kind {
                Kind::Gpu => format!("{} GPUs", units::format_millis(asked[kind])),
                Kind::Cpu => format!("{} cores", units::format_millis(asked[kind])),
                Kind::Memory => format!("{} of memory", units::format_bytes(asked[kind])),
            }
        ))),
    }
}

/// Checks the values of a project or a department.
pub(crate) fn org_unit(
    name: &str,
    description: &str,
    mut shares: impl Iterator<Item = Share>,
) -> Result<(), Error> {
    units::check_name(name).map_err(|error| Error::invalid("name", error.to_string()))?;
    let ensure = |ok: bool, field, text: String| {
        if ok { Ok(()) } else { Err(Error::invalid(field, text)) }
    };
    ensure(
        description.len() <= DESCRIPTION_BYTES_MAX,
        "description",
        format!("the description is longer than the {DESCRIPTION_BYTES_MAX} bytes allowed"),
    )?;
    shares.try_for_each(|given| share(&given))
}

fn share(share: &Share) -> Result<(), Error> {
    let ensure = |ok: bool, field, text: String| {
        if ok { Ok(()) } else { Err(Error::invalid(field, text)) }
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
        // No quota is all there is, up to the limit.
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

/// Checks how often a failed pod is started again.
pub(crate) fn backoff_limit(limit: u32) -> Result<(), Error> {
    if limit <= BACKOFF_LIMIT_MAX {
        return Ok(());
    }
    let text = format!("the back-off limit is too large; 0 to {BACKOFF_LIMIT_MAX} are allowed");
    Err(Error::invalid("backoff limit", text))
}

/// Checks whether an engine could run the pods of a workload: asked before the command is queued, because
/// the engine may look at the machine.
pub(crate) fn runs_on(engine: &dyn Engine, spec: &WorkloadSpec) -> Result<(), Error> {
    spec.sets().try_for_each(|set| {
        engine.check(&without_place(spec, set)).map_err(|error| match error {
            engine::Error::NotHere { field, .. } => Error::invalid(field, error.to_string()),
            _ => Error::invalid("image", error.to_string()),
        })
    })
}

/// Checks the values of a workload.
pub(crate) fn workload(spec: &WorkloadSpec) -> Result<(), Error> {
    units::check_name(&spec.name).map_err(|error| Error::invalid("name", error.to_string()))?;
    amounts(spec)?;
    elastic(spec)?;
    spec.serving.as_ref().map_or(Ok(()), crate::serving::Serving::check)?;
    backoff_limit(spec.backoff_limit)?;
    spec.sets().try_for_each(|set| pod(&set.pod))
}

fn pod(spec: &PodSpec) -> Result<(), Error> {
    gpus(spec)?;
    container::check(spec)?;
    let ensure = |ok: bool, field, text: String| {
        if ok { Ok(()) } else { Err(Error::invalid(field, text)) }
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
            "`{key}` is not a name of an environment variable; it may not be empty or contain `=`"
        );
        return Err(Error::invalid("environment", text));
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

/// What all pods of a workload ask for together is bounded, as one pod is.
fn amounts(spec: &WorkloadSpec) -> Result<(), Error> {
    let pods = spec.pod_count();
    if pods == 0 || pods > PODS_MAX {
        let text = format!("a workload has 1 to {PODS_MAX} pods, not {pods}");
        return Err(Error::invalid("pods", text));
    }
    for set in spec.sets() {
        if set.pods == 0 || !(1..=set.pods).contains(&set.pods_min) || set.at_once == Some(0) {
            let text = format!(
                "of {} pods at least {} cannot be the least that make sense",
                set.pods, set.pods_min
            );
            return Err(Error::invalid("pods", text));
        }
    }
    let sum = |of: fn(&PodSpec) -> u64| {
        let all = spec.sets().map(|set| of(&set.pod).saturating_mul(set.pods.into()));
        all.fold(0, u64::saturating_add)
    };
    let too_much = |field, what: &str, most: String| {
        let text = format!("the {what} request is too large; at most {most} are allowed");
        Err(Error::invalid(field, text))
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
        return Err(Error::invalid("gpu", text));
    }
    Ok(())
}

fn gpus(spec: &PodSpec) -> Result<(), Error> {
    let bad = |text: String| Err(Error::invalid("gpu", text));
    let devices = match spec.gpu {
        GpuSpec::Whole(devices) => devices,
        GpuSpec::Share { devices, millis } => {
            if !(1..=999).contains(&millis) {
                let text = "the GPU fraction must be between 0.001 and 0.999; ask for whole GPUs otherwise";
                return bad(text.to_owned());
            }
            devices
        }
        GpuSpec::Memory { devices, bytes } => {
            if bytes == 0 || bytes > MEMORY_BYTES_MAX {
                let most = units::format_bytes(MEMORY_BYTES_MAX);
                return bad(format!(
                    "the GPU memory must be above 0 and at most {most}, such as 8G"
                ));
            }
            devices
        }
        GpuSpec::Mig(instances) => instances.instances(),
    };
    if devices == 0 && !matches!(spec.gpu, GpuSpec::Whole(_)) {
        return bad("a part of a GPU needs at least one device".to_owned());
    }
    Ok(())
}

fn elastic(spec: &WorkloadSpec) -> Result<(), Error> {
    if !spec.elastic {
        return Ok(());
    }
    if spec.kind != WorkloadKind::Training {
        let text = "only trainings can be elastic; leave out --elastic or --interactive";
        return Err(Error::invalid("elastic", text));
    }
    if spec.pod_count() > 1 {
        return Err(Error::invalid("elastic", "only a workload of one pod can be elastic"));
    }
    match spec.pods.pod.gpu {
        GpuSpec::Whole(1..) => Ok(()),
        _ => Err(Error::invalid("elastic", "an elastic training needs at least one whole GPU")),
    }
}

/// The specification as the engine would get it, without a place.
pub(crate) fn without_place(spec: &WorkloadSpec, set: &PodSet) -> RunSpec {
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

/// Checks that a name is free among the living workloads of a project.
pub(crate) fn name_is_free(
    names: &BTreeMap<String, Uuid>,
    name: &str,
    project: &str,
    being_deleted: impl Fn(Uuid) -> bool,
) -> Result<(), Error> {
    let Some(&id) = names.get(name) else { return Ok(()) };
    Err(Error::conflict(if being_deleted(id) {
        format!(
            "workload `{name}` of project `{project}` is still being deleted; \
             try again when `runai list` no longer shows it, or choose another name"
        )
    } else {
        format!(
            "workload `{name}` already exists in project `{project}`; \
             delete it first with `runai delete {name} -p {project}`, or choose another name"
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_how_many_there_can_be() {
        let asked = |memory_bytes| Resources { memory_bytes, ..Resources::ZERO };
        assert!(countable(asked(ASKED_MAX - 1)).is_ok());
        let full = countable(asked(ASKED_MAX)).unwrap_err().to_string();
        assert!(full.contains("delete some"), "{full}");
        assert!(one_more("projects", ORG_UNITS_MAX - 1).is_ok());
        let full = one_more("projects", ORG_UNITS_MAX).unwrap_err().to_string();
        assert!(full.contains("10000") && full.contains("delete"), "{full}");
    }
}
