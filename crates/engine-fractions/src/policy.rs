//! Settings of an administrator for GPU fractions. Owns: the choices. Does not know about: how
//! limits are enforced.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use engine::{Error, PoolFractions, RunSpec, TimeSlicing};
#[cfg(target_arch = "x86_64")]
use fraction_agent::Way;
use gpu::MigInstance;

/// Which limits of GPU fractions are relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FractionPolicy {
    /// The best that is safe here.
    Best,
    /// No limits: fractions are only counted.
    Counted,
    /// Only limits that a user cannot circumvent; other fractions do not start.
    HardOnly,
    /// NVIDIA's MPS, for real GPUs.
    Mps,
    /// Control groups, for real GPUs.
    Dmem,
    /// MIG instances, for real GPUs.
    Mig,
}

impl FractionPolicy {
    /// The one of this name.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn named(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Best),
            "hard" => Ok(Self::HardOnly),
            "mps" => Ok(Self::Mps),
            "dmem" => Ok(Self::Dmem),
            "mig" => Ok(Self::Mig),
            "none" => Ok(Self::Counted),
            other => Err(format!(
                "`{}` is not a policy; write auto, hard, mig, mps, dmem or none",
                units::shown(other)
            )),
        }
    }

    /// Checks that a run may have a part of a GPU whose limit its user can circumvent.
    ///
    /// # Errors
    /// The run may not.
    pub(crate) fn allow_soft(self, spec: &RunSpec) -> Result<(), Error> {
        let who = match (self, spec.fractions) {
            (Self::HardOnly, None) => "the server gives out a part of a GPU (`--fractions hard`)",
            (_, Some(PoolFractions::HardOnly)) => {
                "the node pool gives out a part of a GPU (`gpuFractions` hard)"
            }
            _ if spec.hard_limit => {
                "the workload takes a part of a GPU (label elastane/gpu-limit=hard)"
            }
            _ => return Ok(()),
        };
        Err(Error::NotKept(format!(
            "{who} only where its user cannot work around the limit, and nothing on this machine keeps \
             it so; {}",
            match self {
                Self::Mig if spec.devices.iter().all(|one| !one.simulated) =>
                    "a server with `--runtime docker` keeps MIG instances so",
                _ => "ask for whole GPUs",
            }
        )))
    }
}

/// True if a container could undo its mounts, and open devices that it was not given.
#[cfg(target_arch = "x86_64")]
fn lifts(spec: &RunSpec, way: Way) -> bool {
    let security = &spec.container.security;
    let mounts = |capability: &String| ["ALL", "SYS_ADMIN"].contains(&capability.as_str());
    way == Way::Containers && (security.privileged || security.capabilities.iter().any(mounts))
}

/// Rejects a container that could lift the limit of its part of a GPU.
///
/// # Errors
/// It could.
#[cfg(target_arch = "x86_64")]
pub(crate) fn refuse_lifting(spec: &RunSpec, way: Way) -> Result<(), Error> {
    if !lifts(spec, way) || spec.devices.is_empty() {
        return Ok(());
    }
    Err(Error::NotHere {
        field: "security",
        why: "a container that is privileged or has SYS_ADMIN could lift the limit of its part of a GPU; \
              ask for whole GPUs, or start the server with `--fractions none`"
            .to_owned(),
    })
}

/// Rejects a container that could use the MIG instances of others, whatever GPU it asks for: it
/// reaches all devices of the machine.
///
/// # Errors
/// It could.
#[cfg(target_arch = "x86_64")]
pub(crate) fn refuse_all_instances(spec: &RunSpec, way: Way) -> Result<(), Error> {
    if !lifts(spec, way) {
        return Ok(());
    }
    Err(Error::NotHere {
        field: "security",
        why: "a container that is privileged or has SYS_ADMIN could use the MIG instances of others, \
              also with a whole GPU or without one; submit it without these rights, or have a GPU that \
              is not in MIG mode and a server with another value of `--fractions` than mig"
            .to_owned(),
    })
}

/// The specification with whole GPUs in place of parts, which nothing limits.
#[cfg(target_arch = "x86_64")]
pub(crate) fn with_whole_gpus(spec: &RunSpec) -> RunSpec {
    let whole =
        |device: &engine::Device| engine::Device { millis: units::GPU_MILLIS, ..device.clone() };
    RunSpec { devices: spec.devices.iter().map(whole).collect(), ..spec.clone() }
}

/// The control groups of runs that limit memory of GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceGroups {
    /// The folder in which each run gets one.
    pub folder: PathBuf,
    /// The kernel's list of memory regions: a name and bytes in each line.
    pub regions: String,
}

/// Where MPS of this machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpsPlace {
    /// The folder of the pipes of its control daemon.
    pub pipes: PathBuf,
    /// The program that asks the daemon.
    pub control: PathBuf,
}

impl Default for MpsPlace {
    /// As NVIDIA's programs have it without settings.
    fn default() -> Self {
        Self { pipes: "/tmp/nvidia-mps".into(), control: "nvidia-cuda-mps-control".into() }
    }
}

/// Action on a run that holds memory beyond its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOver {
    /// Report an event.
    Report,
    /// Report an event and end the run's newest process on the GPU.
    End,
}

/// Options for the enforcement of GPU fractions.
#[derive(Debug, Clone)]
pub struct FractionOptions {
    /// Limits that the server relies on.
    pub policy: FractionPolicy,
    /// The real GPUs of this machine that are not in MIG mode, by UUID.
    pub gpus: Vec<String>,
    /// Time limit for the check before a run, in milliseconds.
    pub look_ms_max: u64,
    /// Action on memory beyond a limit.
    pub over: MemoryOver,
    /// Division of compute time.
    pub time_slicing: TimeSlicing,
    /// Folders of MPS.
    pub mps: MpsPlace,
    /// Control groups that limit memory of GPUs, or the reason why there are none.
    pub groups: Result<DeviceGroups, String>,
    /// The MIG instances of GPUs in MIG mode, by UUID of the GPU.
    pub instances: BTreeMap<String, Vec<MigInstance>>,
    /// Where NVIDIA's driver shows a folder for each GPU, by its place on the bus.
    pub driver_gpus: PathBuf,
}

impl Default for FractionOptions {
    fn default() -> Self {
        Self {
            policy: FractionPolicy::Best,
            gpus: Vec::new(),
            look_ms_max: crate::fraction::LOOK_MS_MAX,
            over: MemoryOver::Report,
            time_slicing: TimeSlicing::None,
            mps: MpsPlace::default(),
            groups: Err("this engine makes none".to_owned()),
            instances: BTreeMap::new(),
            driver_gpus: "/proc/driver/nvidia/gpus".into(),
        }
    }
}

/// Start of a run: its user and group, and a function that makes a command start with them and with
/// these mounts (source, and mount point).
pub type Place<'a> =
    ((u32, u32), &'a dyn Fn(&mut Command, Vec<(PathBuf, PathBuf)>) -> io::Result<()>);

/// Kind of the runs of an engine.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a function has no form to show")]
pub enum Runs<'a> {
    /// Processes of this machine; with a place, if root gives them accounts and mounts.
    Processes(Option<Place<'a>>),
    /// Containers.
    Containers,
}
