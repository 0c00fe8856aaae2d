//! A run of a pod: what it is started from, and what is seen of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::Instant;
use uuid::Uuid;

use crate::{Bounds, Container, Gang, PoolFractions, RegistryLogin, SecretPlace, TimeSlicing};

/// Not a run key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a run key (<pod uuid>.<generation>)")]
pub struct BadRunKey(String);

/// One run of one pod. A pod that is evicted and started again is a new generation, so that a
/// late message about the old run can never be taken for the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// The pod.
    pub pod: Uuid,
    /// Counts the runs of this pod from 1.
    pub generation: u32,
}

impl std::fmt::Display for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.pod, self.generation)
    }
}

impl std::str::FromStr for RunKey {
    type Err = BadRunKey;
    fn from_str(text: &str) -> Result<Self, BadRunKey> {
        let parse = || {
            let (pod, generation) = text.rsplit_once('.')?;
            Some(Self { pod: pod.parse().ok()?, generation: generation.parse().ok()? })
        };
        parse().ok_or_else(|| BadRunKey(text.to_owned()))
    }
}

/// A share of one GPU of the node the run is placed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Index of the GPU on its node, as the node counts them.
    pub index: u32,
    /// What the driver calls it (NVML UUID), or a `GPU-sim-…` name for a simulated one.
    pub uuid: String,
    /// True if the GPU exists only in the scheduler's books.
    pub simulated: bool,
    /// Share granted, in thousandths of the device.
    pub millis: u64,
    /// Memory of the whole device, in bytes.
    pub memory_bytes: u64,
    /// Its part of that, in bytes.
    pub memory: Bounds,
}

/// The label of a workload that says whether simulated GPUs have a driver for it: `true` or `false`.
pub const SIMULATED_DRIVER_LABEL: &str = "elastane/simulated-driver";

/// The label of a workload whose part of a GPU has to have a limit that its user cannot work around.
pub const GPU_LIMIT_LABEL: &str = "elastane/gpu-limit";
/// Its one value.
pub const GPU_LIMIT_HARD: &str = "hard";

/// Everything an engine needs to start a run; complete, so that starting needs no other source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpec {
    /// Which run.
    pub key: RunKey,
    /// Name of the pod, unique in the project: `<workload>-<index>-<generation>`, or
    /// `<workload>-<role>-<index>` where pods have roles.
    pub pod_name: String,
    /// Name of the workload.
    pub workload_name: String,
    /// Id of the workload.
    pub workload_id: Uuid,
    /// Name of the project.
    pub project_name: String,
    /// Who submitted the workload, as the control plane records it.
    pub submitted_by: String,
    /// Which principal that was, for good; empty where it is not known.
    pub submitter_id: String,
    /// Number of the pod among the workload's pods; the same after a restart.
    pub pod_index: u32,
    /// Node it is placed on.
    pub node_name: String,
    /// GPUs granted; empty for CPU-only work.
    pub devices: Vec<Device>,
    /// What the run before it had, in thousandths of a GPU, if the scheduler changed that since.
    pub resized_from: Option<u64>,
    /// True if simulated GPUs have a driver that programs find; none: as the image needs it.
    pub simulated_driver: Option<bool>,
    /// True if it starts with a part of a GPU only where its user cannot work around the limit.
    pub hard_limit: bool,
    /// How its node pool divides the compute time of GPUs; none: as the engine was opened.
    pub time_slicing: Option<TimeSlicing>,
    /// How its parts of GPUs are kept; none: as the server was started.
    pub fractions: Option<PoolFractions>,
    /// Container image, as the user named it.
    pub image: String,
    /// Replaces the image's entrypoint.
    pub command: Option<Vec<String>>,
    /// Arguments, appended to the command or entrypoint.
    pub args: Vec<String>,
    /// The user's environment variables; the engine adds the platform's own.
    pub env: BTreeMap<String, String>,
    /// Secret values. An engine keeps them no longer than the run needs.
    pub secrets: Vec<Secret>,
    /// Working directory; none means the engine's choice.
    pub working_dir: Option<PathBuf>,
    /// How long a stopped run may take between SIGTERM and SIGKILL.
    pub grace_ms: u64,
    /// CPU request in thousandths of a core.
    pub cpu_millis: u64,
    /// Memory request in bytes.
    pub memory_bytes: u64,
    /// The pods it works together with; none where it is on its own.
    pub gang: Option<Gang>,
    /// True if the main process reads what an attached terminal sends; else it finds no input.
    pub stdin: bool,
    /// True if the main process has a terminal.
    pub tty: bool,
    /// What it needs around it.
    pub container: Container,
    /// Who pulls its image; none = without a login.
    pub registry: Option<RegistryLogin>,
}

/// A secret value and where a run finds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Where.
    pub to: SecretPlace,
    /// The value.
    pub value: String,
}

/// Without the value.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({:?})", self.to)
    }
}

/// A part of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskRoom {
    /// Bytes.
    pub bytes: u64,
    /// Files and folders (inodes).
    pub files: u64,
}

impl DiskRoom {
    /// `true` if it has fewer bytes or fewer files than the other.
    #[must_use]
    pub const fn is_less_than(self, other: Self) -> bool {
        self.bytes < other.bytes || self.files < other.files
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// The main process returned this code.
    Code(i32),
    /// The main process was killed by this signal.
    Signal(i32),
    /// The run could not be started; the text says why.
    CannotRun(String),
    /// The machine could not start it at this moment, and perhaps can soon; the text says why.
    NotStarted(String),
    /// It was not started because its part of a GPU would not be kept; the text says why.
    NotKept(String),
    /// The kernel killed its main process because the run had more memory than it may.
    OutOfMemory,
    /// It was killed because the disk of the state was almost full, and of all runs it had grown most:
    /// by so many bytes and files.
    OutOfDisk(DiskRoom),
    /// The run's fate is unknown: its supervisor vanished (a crash, a reboot).
    Lost,
}

/// The kind of an [`Exit`]: what is kept of it to decide by, beside words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
    /// Its process ended by itself, or was killed.
    Ended,
    /// It could not be started.
    CannotRun,
    /// The machine could not start it at this moment.
    NotStarted,
    /// Its part of a GPU would not be kept.
    NotKept,
    /// It had more memory than it may.
    OutOfMemory,
    /// The disk was almost full.
    OutOfDisk,
    /// Its fate is unknown.
    Lost,
}

impl ExitKind {
    /// `true` for an end by the machine's fault, which is no failure of the run.
    #[must_use]
    pub const fn is_of_machine(self) -> bool {
        matches!(self, Self::NotStarted | Self::Lost)
    }
}

impl Exit {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ExitKind {
        match self {
            Self::Code(_) | Self::Signal(_) => ExitKind::Ended,
            Self::CannotRun(_) => ExitKind::CannotRun,
            Self::NotStarted(_) => ExitKind::NotStarted,
            Self::NotKept(_) => ExitKind::NotKept,
            Self::OutOfMemory => ExitKind::OutOfMemory,
            Self::OutOfDisk(_) => ExitKind::OutOfDisk,
            Self::Lost => ExitKind::Lost,
        }
    }

    /// True if the main process returned zero.
    #[must_use]
    pub const fn success(&self) -> bool {
        matches!(self, Self::Code(0))
    }
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// Accepted, no main process yet.
    Starting,
    /// Accepted, and what it needs is being fetched: what, and how far, for people.
    Preparing(String),
    /// Accepted, and its image cannot be pulled now: it is pulled again.
    PullFailed(PullFailure),
    /// The main process runs.
    Running {
        /// Process id of the main process on this machine, if there is one.
        pid: Option<u32>,
        /// When it started.
        started_at: Instant,
    },
    /// The main process runs on, and so many others were killed since it was seen last, because the
    /// run had more memory than its limit.
    Struck(u64),
    /// It runs on, and holds more memory of a GPU than it may.
    GpuOver(GpuOver),
    /// It runs on, and what keeps its part of a GPU does not reach its program: why.
    GpuUnlimited(String),
    /// It runs on, and there is news of its checkpoints.
    Checkpoint(CheckpointNews),
    /// Every process of the run is gone.
    Exited {
        /// How.
        exit: Exit,
        /// When.
        at: Instant,
    },
}

/// What a run has reported of its checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointNews {
    /// One that was verified was written so many milliseconds ago.
    Saved {
        /// How long ago.
        ago_ms: u64,
    },
    /// The newest one is there no more.
    Gone,
    /// The run is to stop, and its next one is waited for, so many milliseconds at most.
    Awaited {
        /// How long at most.
        within_ms: u64,
    },
}

/// A run holds more memory of a GPU than it may: its limit was lowered below that, or the driver shows
/// more than what was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuOver {
    /// What the driver calls the GPU.
    pub gpu: String,
    /// Bytes that it holds.
    pub held_bytes: u64,
    /// Bytes that it may hold.
    pub limit_bytes: u64,
    /// The process that was ended for it, if one was.
    #[serde(default)]
    pub ended: Option<u32>,
}

/// A pull of an image that failed, and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullFailure {
    /// Which image, and what the registry or the daemon said.
    pub why: String,
    /// How many pulls have failed.
    pub tries: u32,
    /// How long until the next one.
    pub again_in_ms: u64,
}

/// What an engine saw: the newest state of one run. May come late, twice and out of order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Which run.
    pub key: RunKey,
    /// Its state.
    pub state: RunState,
}

/// Where a run is, and what it was given there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlace {
    /// Name of its node.
    pub node: String,
    /// Its share of each of its GPUs, in thousandths, by what the driver calls them; none where
    /// that is not known.
    pub devices: Option<BTreeMap<String, u64>>,
}

impl RunPlace {
    /// Where a run with this specification is.
    #[must_use]
    pub fn of(spec: &RunSpec) -> Self {
        let shares = spec.devices.iter().map(|device| (device.uuid.clone(), device.millis));
        Self { node: spec.node_name.clone(), devices: Some(shares.collect()) }
    }
}

/// A run in the list of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRun {
    /// Which run.
    pub key: RunKey,
    /// Its state.
    pub state: RunState,
    /// Where it is; none where that is not known, or it has ended.
    #[serde(default)]
    pub place: Option<RunPlace>,
}

/// Which of the [`Limits`] of a run an engine keeps it to. One that it does not keep is no reason
/// to refuse the run: it starts, with a warning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsKept {
    /// CPU time.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
    /// Why one is not, and what to do; empty where all are.
    pub why: String,
}

impl LimitsKept {
    /// All of them.
    pub const ALL: Self = Self { cpu: true, memory: true, why: String::new() };

    /// What of it is not limited, in words; none where all is.
    #[must_use]
    pub const fn missing(&self) -> Option<&'static str> {
        match (self.cpu, self.memory) {
            (true, true) => None,
            (false, true) => Some("CPU time"),
            (true, false) => Some("memory"),
            (false, false) => Some("CPU time and memory"),
        }
    }
}

/// How a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuHealth {
    /// Why it cannot be used; none if it can.
    pub fault: Option<String>,
    /// Processes of no run that compute on it and hold memory there, by process id; none where that
    /// is not known now.
    pub foreign: Option<BTreeMap<u32, ForeignProcess>>,
}

/// A process that is none of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignProcess {
    /// The name of its program. Its arguments may hold secrets and are left out.
    pub name: String,
    /// Its user.
    pub user: String,
    /// Memory of the GPU that it holds, in bytes.
    pub memory_bytes: u64,
}
