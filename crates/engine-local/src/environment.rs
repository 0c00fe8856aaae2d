//! What a run sees in its environment. Owns: every variable the platform sets, and who wins.
//!
//! Three layers, later ones win: a few variables of the server's own environment (`INHERITED`;
//! nothing else of it leaks), the user's variables, the platform's. The platform wins because
//! its variables say what was granted: a run that named its own GPUs would take another's.
//! `PATH` and `HOME` are not the platform's; a user may set them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::{Device, Error, Framework, Gang, Member, RunSpec, Secret, SecretPlace};
use serde::{Deserialize, Serialize};
use units::{GPU_MILLIS, format_millis};

use crate::container;
use crate::process::RUN_VARIABLE;
use crate::secrets::FOLDER_VARIABLE;

/// The granted devices as JSON, for tools that run inside.
pub(crate) const DEVICES_VARIABLE: &str = "ELASTANE_DEVICES";
/// What of the server's environment a run may see.
const INHERITED: [&str; 9] =
    ["PATH", "LANG", "LC_ALL", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "HOME"];
/// Where programs are looked for if the server was started without a `PATH`.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A granted device, as told to the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantedDevice {
    /// Index on the node.
    pub(crate) index: u32,
    /// UUID.
    pub(crate) uuid: String,
    /// Whether it is only in the books.
    pub(crate) simulated: bool,
    /// Bytes granted.
    pub(crate) memory_bytes: u64,
}

impl From<&Device> for GrantedDevice {
    fn from(device: &Device) -> Self {
        let Device { index, simulated, .. } = *device;
        Self { index, uuid: device.uuid.clone(), simulated, memory_bytes: granted_bytes(device) }
    }
}

/// The folders a run is told about.
#[derive(Debug, Clone)]
pub(crate) struct Folders<'a> {
    /// Where it may leave what a later generation should find.
    pub(crate) checkpoint: PathBuf,
    /// Programs that stand in for the driver's on simulated devices.
    pub(crate) shims: &'a Path,
    /// Where its secret files are.
    pub(crate) secrets: PathBuf,
    /// Where the hostfile of MPI is, for those that need one.
    pub(crate) hostfile: PathBuf,
}

/// The part of this process's environment that runs may see.
pub(crate) fn inherited() -> BTreeMap<String, String> {
    let mut kept: BTreeMap<String, String> = INHERITED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .collect();
    kept.entry("PATH".to_owned()).or_insert_with(|| PATH_DEFAULT.to_owned());
    kept
}

/// Checks what cannot be handed to a process.
///
/// # Errors
/// Names the variable, the argument or the field.
pub(crate) fn check(spec: &RunSpec, argv: &[String]) -> Result<(), Error> {
    container::check(&spec.container)?;
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

/// The complete environment of a run.
pub(crate) fn environment(
    inherited: &BTreeMap<String, String>,
    spec: &RunSpec,
    folders: &Folders<'_>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut env = inherited.clone();
    env.extend(spec.env.clone());
    for (name, value) in identity(spec) {
        env.insert(name.to_owned(), value);
    }
    env.insert("ELASTANE_CHECKPOINT_DIR".into(), folders.checkpoint.display().to_string());
    let in_file = |secret: &Secret| matches!(secret.to, SecretPlace::File { .. });
    if spec.secrets.iter().any(in_file) {
        env.insert(FOLDER_VARIABLE.into(), folders.secrets.display().to_string());
    }
    if let Some(gang) = &spec.gang {
        let told = gang.environment(&address, spec.devices.len());
        env.extend(told.into_iter().map(|(name, value)| (name.to_owned(), value)));
        if gang.framework == Framework::Mpi {
            let path = folders.hostfile.display().to_string();
            env.extend(Gang::HOSTFILE_NAMES.map(|name| (name.to_owned(), path.clone())));
        }
    }
    devices(&mut env, spec)?;
    if spec.devices.iter().any(|device| device.simulated) {
        let path = env.get("PATH").map_or(PATH_DEFAULT, String::as_str);
        let path = format!("{}:{path}", folders.shims.display());
        env.insert("PATH".into(), path);
        env.insert("ELASTANE_SIMULATED_GPUS".into(), "1".into());
    } else {
        env.remove("ELASTANE_SIMULATED_GPUS");
    }
    Ok(env)
}

/// Where the pods of a gang reach each other: all nodes of this engine are one machine.
pub(crate) fn address(_: &Member) -> String {
    "127.0.0.1".to_owned()
}

/// Reference E.1. `POD_UUID` is the pod's id in the API, the same for all its runs; what changes
/// with each run is `ELASTANE_RUN`.
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
        ("NODE_NAME", spec.node_name.clone()),
        ("RUNAI_PROJECT", spec.project_name.clone()),
        ("RUNAI_JOB_NAME", spec.workload_name.clone()),
        ("RUNAI_JOB_UUID", workload_id.clone()),
        ("RUNAI_JOB_ID", workload_id),
        ("RUNAI_NUM_OF_GPUS", format_millis(spec.devices.iter().map(|d| d.millis).sum())),
        ("GPU_PORTION", format_millis(spec.devices.first().map_or(0, |d| d.millis))),
    ]
}

fn devices(env: &mut BTreeMap<String, String>, spec: &RunSpec) -> Result<(), Error> {
    let list = |each: &dyn Fn(&Device) -> String, none: &str| {
        let all: Vec<String> = spec.devices.iter().map(each).collect();
        if all.is_empty() { none.to_owned() } else { all.join(",") }
    };
    // NVML counts GPUs in bus order; CUDA does so only when told to.
    env.insert("CUDA_DEVICE_ORDER".into(), "PCI_BUS_ID".into());
    env.insert("CUDA_VISIBLE_DEVICES".into(), list(&|d| d.index.to_string(), ""));
    // `void` is how the container toolkit spells "no GPU, and do not look for one".
    env.insert("NVIDIA_VISIBLE_DEVICES".into(), list(&|d| d.uuid.clone(), "void"));
    let granted: Vec<GrantedDevice> = spec.devices.iter().map(Into::into).collect();
    let granted = serde_json::to_string(&granted)
        .map_err(|error| Error::Invalid(format!("the devices cannot be written down: {error}")))?;
    env.insert(DEVICES_VARIABLE.into(), granted);
    // Shares are the same on every device of a run, and so is the memory of the devices.
    let shared = spec.devices.first().filter(|device| device.millis < GPU_MILLIS);
    for name in ["CUDA_DEVICE_MEMORY_LIMIT", "GPU_MEMORY_LIMIT"] {
        match shared {
            Some(device) => env.insert(name.into(), granted_bytes(device).to_string()),
            None => env.remove(name),
        };
    }
    Ok(())
}

/// The share in bytes, rounded down.
fn granted_bytes(device: &Device) -> u64 {
    let bytes = u128::from(device.memory_bytes) * u128::from(device.millis.min(GPU_MILLIS));
    u64::try_from(bytes / u128::from(GPU_MILLIS)).unwrap_or(device.memory_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use engine::RunKey;
    use uuid::Uuid;

    pub(crate) fn spec() -> RunSpec {
        RunSpec {
            key: RunKey { pod: Uuid::from_u128(7), generation: 2 },
            pod_name: "train-0-2".into(),
            workload_name: "train".into(),
            workload_id: Uuid::from_u128(3),
            project_name: "team-a".into(),
            pod_index: 0,
            node_name: "node-1".into(),
            devices: vec![],
            image: "ubuntu".into(),
            command: None,
            args: vec![],
            env: BTreeMap::new(),
            secrets: vec![],
            working_dir: None,
            grace_ms: 1000,
            cpu_millis: 100,
            memory_bytes: 1 << 20,
            gang: None,
            stdin: false,
            tty: false,
            container: engine::Container::default(),
            registry: None,
        }
    }

    fn device(index: u32, millis: u64, simulated: bool) -> Device {
        let uuid = format!("GPU-{index}");
        Device { index, uuid, simulated, millis, memory_bytes: 16 << 30 }
    }

    fn seen(spec: &RunSpec) -> BTreeMap<String, String> {
        let inherited = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        let folders = Folders {
            checkpoint: "/c".into(),
            shims: Path::new("/shims"),
            secrets: "/s".into(),
            hostfile: "/hosts".into(),
        };
        environment(&inherited, spec, &folders).expect("an environment")
    }

    #[test]
    fn a_run_knows_who_it_is_and_what_it_was_granted() {
        let mut spec = spec();
        spec.devices = vec![device(2, 1000, false), device(3, 1000, false)];
        let env = seen(&spec);
        for (name, value) in [
            ("RUNAI_PROJECT", "team-a"),
            ("JOB_NAME", "train"),
            ("POD_INDEX", "0"),
            ("RUNAI_NUM_OF_GPUS", "2"),
            ("GPU_PORTION", "1"),
            ("CUDA_VISIBLE_DEVICES", "2,3"),
            ("NVIDIA_VISIBLE_DEVICES", "GPU-2,GPU-3"),
            ("PATH", "/bin"),
            ("ELASTANE_RUN", "00000000-0000-0000-0000-000000000007.2"),
        ] {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(
            !env.contains_key("GPU_MEMORY_LIMIT") && !env.contains_key("ELASTANE_SIMULATED_GPUS")
        );
    }

    #[test]
    fn half_a_simulated_gpu_is_told_its_half() {
        let mut spec = spec();
        spec.devices = vec![device(0, 500, true)];
        let env = seen(&spec);
        assert_eq!(env["GPU_MEMORY_LIMIT"], (8_u64 << 30).to_string());
        assert_eq!(env["RUNAI_NUM_OF_GPUS"], "0.5");
        assert_eq!(env["ELASTANE_SIMULATED_GPUS"], "1");
        assert_eq!(env["PATH"], "/shims:/bin");
    }

    #[test]
    fn the_user_wins_over_the_machine_and_the_platform_over_the_user() {
        let mut spec = spec();
        spec.env = BTreeMap::from(
            [("PATH", "/mine"), ("CUDA_VISIBLE_DEVICES", "0,1,2,3"), ("ELASTANE_RUN", "x")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let env = seen(&spec);
        assert_eq!(env["PATH"], "/mine");
        assert_eq!(env["CUDA_VISIBLE_DEVICES"], "");
        assert_eq!(env["NVIDIA_VISIBLE_DEVICES"], "void");
        assert_ne!(env["ELASTANE_RUN"], "x");
    }

    #[test]
    fn what_no_process_can_be_given_is_refused() {
        let mut spec = spec();
        spec.env = BTreeMap::from([("A=B".to_owned(), String::new())]);
        assert!(check(&spec, &[]).is_err());
        spec.env = BTreeMap::from([("A".to_owned(), "a\0b".to_owned())]);
        assert!(check(&spec, &[]).is_err());
        spec.env.clear();
        assert!(check(&spec, &["a\0".to_owned()]).is_err());
        assert!(check(&spec, &["a".to_owned()]).is_ok());
    }
}
