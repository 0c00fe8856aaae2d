//! Environment variables of every run, on any engine. Owns: the run's identity and its grants, by
//! the names of reference E.1. Does not know which variables an engine adds, and where files are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{GPU_MILLIS, format_millis};

use crate::{Device, Error, RunPlace, RunSpec};

/// The key of the run.
pub const RUN_VARIABLE: &str = "ELASTANE_RUN";
/// The granted devices as JSON, for tools that run inside.
pub const DEVICES_VARIABLE: &str = "ELASTANE_DEVICES";
/// The number of a pod of an indexed job of Kubernetes: a workload that has this variable has the
/// number of each pod as its value.
pub const COMPLETION_INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
const NODE_VARIABLE: &str = "NODE_NAME";
const SHARE_VARIABLE: &str = "GPU_PORTION";
/// Set if the GPUs of the run are simulated.
const SIMULATED_VARIABLE: &str = "ELASTANE_SIMULATED_GPUS";
/// Number of GPUs of the previous run of the pod, if the scheduler has changed it since.
const RESIZED_VARIABLE: &str = "ELASTANE_RESIZED_FROM";

/// A granted device, as the run sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedDevice {
    /// Index on the node.
    pub index: u32,
    /// UUID.
    pub uuid: String,
    /// True if it is simulated.
    pub simulated: bool,
    /// Bytes granted.
    pub memory_bytes: u64,
}

impl From<&Device> for GrantedDevice {
    fn from(device: &Device) -> Self {
        let Device { index, simulated, .. } = *device;
        Self { index, uuid: device.uuid.clone(), simulated, memory_bytes: device.memory.request }
    }
}

/// Checks for names and values that no process can receive.
///
/// # Errors
/// Names the variable or argument.
pub fn check(spec: &RunSpec, argv: &[String]) -> Result<(), Error> {
    for name in spec.env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Error::Invalid(format!(
                "environment variable name `{}` is not allowed; it must not be empty nor hold `=`",
                name.escape_debug()
            )));
        }
    }
    let mut words = argv.iter().chain(spec.env.values());
    match words.find(|word| word.contains('\0')) {
        None => Ok(()),
        Some(word) => Err(Error::Invalid(format!(
            "`{}` holds a zero byte, which no command line or variable can",
            word.escape_debug()
        ))),
    }
}

/// Adds the run's identity and its grants, over variables that the user set: a run that named its
/// own GPUs would take another's.
///
/// # Errors
/// The devices cannot be written down.
pub fn complete(env: &mut BTreeMap<String, String>, spec: &RunSpec) -> Result<(), Error> {
    env.extend(identity(spec).map(|(name, value)| (name.to_owned(), value)));
    // An empty value belongs to an indexed job; another value is the submitter's own.
    if let Some(index) = env.get_mut(COMPLETION_INDEX_VARIABLE).filter(|own| own.is_empty()) {
        *index = spec.pod_index.to_string();
    }
    let simulated = spec.devices.iter().any(|device| device.simulated);
    let sometimes = [
        (SIMULATED_VARIABLE, simulated.then(|| "1".to_owned())),
        (RESIZED_VARIABLE, spec.resized_from.map(format_millis)),
    ];
    for (name, value) in sometimes {
        match value {
            Some(value) => env.insert(name.to_owned(), value),
            None => env.remove(name),
        };
    }
    devices(env, spec)
}

/// Replaces `$(JOB_COMPLETION_INDEX)` in the words of a command, as Kubernetes does for indexed
/// jobs.
pub fn fill_completion_index<'w>(words: impl IntoIterator<Item = &'w mut String>, spec: &RunSpec) {
    if spec.env.get(COMPLETION_INDEX_VARIABLE).is_some_and(String::is_empty) {
        let (name, index) = (format!("$({COMPLETION_INDEX_VARIABLE})"), spec.pod_index.to_string());
        words.into_iter().for_each(|word| *word = word.replace(&name, &index));
    }
}

/// Reference E.1. `POD_UUID` is the pod's id in the API, equal for all its runs; `ELASTANE_RUN`
/// differs for each run.
fn identity(spec: &RunSpec) -> [(&'static str, String); 15] {
    let workload_id = spec.workload_id.to_string();
    let pod_id = spec.key.pod.to_string();
    [
        (RUN_VARIABLE, spec.key.to_string()),
        ("JOB_NAME", spec.workload_name.clone()),
        ("JOB_UUID", workload_id.clone()),
        ("jobUUID", workload_id.clone()),
        ("POD_INDEX", spec.pod_index.to_string()),
        ("POD_NAME", spec.pod_name.clone()),
        ("POD_UUID", pod_id.clone()),
        ("podUUID", pod_id),
        (NODE_VARIABLE, spec.node_name.clone()),
        ("RUNAI_PROJECT", spec.project_name.clone()),
        ("RUNAI_JOB_NAME", spec.workload_name.clone()),
        ("RUNAI_JOB_UUID", workload_id.clone()),
        ("RUNAI_JOB_ID", workload_id),
        ("RUNAI_NUM_OF_GPUS", format_millis(spec.devices.iter().map(|d| d.millis).sum())),
        (SHARE_VARIABLE, format_millis(spec.devices.first().map_or(0, |d| d.millis))),
    ]
}

fn devices(env: &mut BTreeMap<String, String>, spec: &RunSpec) -> Result<(), Error> {
    let list = |each: &dyn Fn(&Device) -> String, none: &str| {
        let all: Vec<String> = spec.devices.iter().map(each).collect();
        if all.is_empty() { none.to_owned() } else { all.join(",") }
    };
    // NVML counts GPUs in bus order; CUDA does so only with this variable.
    env.insert("CUDA_DEVICE_ORDER".into(), "PCI_BUS_ID".into());
    env.insert("CUDA_VISIBLE_DEVICES".into(), list(&|d| d.index.to_string(), ""));
    // `void` is how the container toolkit spells "no GPU, and do not look for one".
    env.insert("NVIDIA_VISIBLE_DEVICES".into(), list(&|d| d.uuid.clone(), "void"));
    let granted: Vec<GrantedDevice> = spec.devices.iter().map(Into::into).collect();
    let granted = serde_json::to_string(&granted)
        .map_err(|error| Error::Invalid(format!("the devices cannot be written down: {error}")))?;
    env.insert(DEVICES_VARIABLE.into(), granted);
    // Shares are equal on every device of a run, and so is the memory of the devices.
    let shared = spec.devices.first().filter(|device| device.millis < GPU_MILLIS);
    for name in ["CUDA_DEVICE_MEMORY_LIMIT", "GPU_MEMORY_LIMIT"] {
        match shared {
            Some(device) => env.insert(name.into(), device.memory.most().to_string()),
            None => env.remove(name),
        };
    }
    Ok(())
}

/// Node of a run with this environment, and its grants there, also if an earlier version started
/// it; `None` if the environment names no node.
pub fn place<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Option<RunPlace> {
    let node = variable(NODE_VARIABLE)?.to_owned();
    let granted = || {
        let granted: Vec<GrantedDevice> = serde_json::from_str(variable(DEVICES_VARIABLE)?).ok()?;
        let share = |device: GrantedDevice| {
            Some((device.uuid, units::parse_gpu_millis(variable(SHARE_VARIABLE)?).ok()?))
        };
        granted.into_iter().map(share).collect()
    };
    Some(RunPlace { node, devices: granted() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_an_earlier_version_tells_its_node_and_its_gpus_as_far_as_they_are_there() {
        let granted = r#"[{"index":2,"uuid":"GPU-2","simulated":true,"memory_bytes":512}]"#;
        let of = |variables: &[(&str, &str)]| {
            let all: BTreeMap<_, _> = variables.iter().copied().collect();
            place(|name| all.get(name).copied()).map(|place| (place.node, place.devices))
        };
        let (node, devices) = (("NODE_NAME", "n1"), ("ELASTANE_DEVICES", granted));
        let known = Some(BTreeMap::from([("GPU-2".to_owned(), 500)]));
        assert_eq!(of(&[node, devices, ("GPU_PORTION", "0.5")]), Some(("n1".to_owned(), known)));
        let none = ("ELASTANE_DEVICES", "[]");
        assert_eq!(of(&[node, none]), Some(("n1".to_owned(), Some(BTreeMap::new()))));
        assert_eq!(of(&[node, devices]), Some(("n1".to_owned(), None)), "the share is not known");
        assert_eq!(of(&[node]), Some(("n1".to_owned(), None)));
        assert_eq!(of(&[devices]), None);
    }
}
