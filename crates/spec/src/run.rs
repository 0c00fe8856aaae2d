//! A run of a pod: its specification, and its observed state.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;
use units::Instant;
use uuid::Uuid;

use crate::{Bounds, Container, Gang, PoolFractions, RegistryLogin, SecretPlace, TimeSlicing};

/// Error of an invalid run key.
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
    /// Index of the GPU on its node.
    pub index: u32,
    /// UUID that the driver gives the GPU (NVML), or a `GPU-sim-…` name for a simulated one.
    pub uuid: String,
    /// True if the GPU exists only in the scheduler.
    pub simulated: bool,
    /// Share granted, in thousandths of the device.
    pub millis: u64,
    /// Memory of the whole device, in bytes.
    pub memory_bytes: u64,
    /// Its part of this memory, in bytes.
    pub memory: Bounds,
}

/// Label of a workload that decides whether simulated GPUs have a driver for it: `true` or `false`.
pub const SIMULATED_DRIVER_LABEL: &str = "elastane/simulated-driver";

/// Label of a workload whose part of a GPU needs a limit that its user cannot work around.
pub const GPU_LIMIT_LABEL: &str = "elastane/gpu-limit";
/// Its only value.
pub const GPU_LIMIT_HARD: &str = "hard";

/// Everything an engine needs to start a run; complete, so that starting needs no other source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpec {
    /// Key of the run.
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
    /// Name of the submitter of the workload, as the control plane records it.
    pub submitted_by: String,
    /// Permanent id of this principal; empty where it is not known.
    pub submitter_id: String,
    /// Number of the pod among the workload's pods; the same after a restart.
    pub pod_index: u32,
    /// Node it is placed on.
    pub node_name: String,
    /// GPUs granted; empty for CPU-only work.
    pub devices: Vec<Device>,
    /// Share of the run before, in thousandths of a GPU, if the scheduler has changed it since.
    pub resized_from: Option<u64>,
    /// True if simulated GPUs have a driver that programs find; `None` if the image decides.
    pub simulated_driver: Option<bool>,
    /// True if it starts with a part of a GPU only where its user cannot work around the limit.
    pub hard_limit: bool,
    /// Time slicing of GPUs in its node pool; `None` for the default of the engine.
    pub time_slicing: Option<TimeSlicing>,
    /// Enforcement of its parts of GPUs; `None` for the default of the server.
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
    /// Working directory; `None` for the engine's choice.
    pub working_dir: Option<PathBuf>,
    /// Maximum time between SIGTERM and SIGKILL, in milliseconds.
    pub grace_ms: u64,
    /// CPU request in thousandths of a core.
    pub cpu_millis: u64,
    /// Memory request in bytes.
    pub memory_bytes: u64,
    /// The pods it works together with; `None` for a pod on its own.
    pub gang: Option<Gang>,
    /// True if the main process reads the input of an attached terminal; else it has no input.
    pub stdin: bool,
    /// True if the main process has a terminal.
    pub tty: bool,
    /// Its container settings.
    pub container: Container,
    /// Login to pull its image; `None` for a pull without login.
    pub registry: Option<RegistryLogin>,
}

/// A secret value and its location in the run.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Location in the run.
    pub to: SecretPlace,
    /// The value.
    pub value: String,
}

/// Leaves out the value.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({:?})", self.to)
    }
}

/// An amount of disk space.
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

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// The main process returned this code.
    Code(i32),
    /// The main process was killed by this signal.
    Signal(i32),
    /// The run could not be started; the text is the cause.
    CannotRun(String),
    /// The machine could not start the run at this moment, and perhaps can soon; the text is the
    /// cause.
    NotStarted(String),
    /// It was not started because its part of a GPU would not be enforced; the text is the cause.
    NotKept(String),
    /// The kernel killed its main process because the run used more memory than its limit.
    OutOfMemory,
    /// It was killed because the disk of the state was almost full and it had grown the most of all
    /// runs: by this space.
    OutOfDisk(DiskRoom),
    /// The fate of the run is unknown: its supervisor vanished (a crash, a reboot).
    Lost,
}

/// Kind of an [`Exit`]: the part that decisions depend on, without the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
    /// Its process ended by itself, or was killed.
    Ended,
    /// It could not be started.
    CannotRun,
    /// The machine could not start it at this moment.
    NotStarted,
    /// Its part of a GPU would not be enforced.
    NotKept,
    /// It used more memory than its limit.
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

/// State of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// Accepted, no main process yet.
    Starting,
    /// The main process runs.
    Running {
        /// Process id of the main process on this machine, if there is one.
        pid: Option<u32>,
        /// When it started.
        started_at: Instant,
    },
    /// Every process of the run is gone.
    Exited {
        /// How it ended.
        exit: Exit,
        /// When it ended.
        at: Instant,
    },
}

/// Event of a run, which does not change its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEvent {
    /// The image or data of a starting run is being fetched. The text describes the progress for
    /// users.
    Preparing(String),
    /// The image of a starting run cannot be pulled now, and the pull is retried.
    PullFailed(PullFailure),
    /// The kernel has killed this number of processes beside the main one since the last
    /// observation, because the run used more memory than its limit.
    Struck(u64),
    /// The run holds more memory of a GPU than it may.
    GpuOver(GpuOver),
    /// The enforcement of its part of a GPU does not reach its program; the text is the cause.
    GpuUnlimited(String),
    /// The run has reported about its checkpoints.
    Checkpoint(CheckpointNews),
    /// True: the run has met the others of its workload at the server. False: it no longer needs
    /// that.
    Meets(bool),
}

/// Report of a run about its checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointNews {
    /// A verified checkpoint was written.
    Saved {
        /// Age of the checkpoint, in milliseconds.
        ago_ms: u64,
    },
    /// The newest checkpoint no longer exists.
    Gone,
    /// The run is to stop, and its next checkpoint is awaited.
    Awaited {
        /// Maximum wait, in milliseconds.
        within_ms: u64,
    },
}

/// A run holds more memory of a GPU than it may: its limit was lowered below that, or the driver
/// shows more than was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuOver {
    /// UUID that the driver gives the GPU.
    pub gpu: String,
    /// Bytes that it holds.
    pub held_bytes: u64,
    /// Bytes that it may hold.
    pub limit_bytes: u64,
    /// Id of the process that was killed for it; `None` if none was.
    #[serde(default)]
    pub ended: Option<u32>,
}

/// A failed pull of an image that is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullFailure {
    /// The image, and the error of the registry or the daemon.
    pub why: String,
    /// Number of failed pulls.
    pub tries: u32,
    /// Time until the next pull, in milliseconds.
    pub again_in_ms: u64,
}

impl PullFailure {
    /// Number of failed pulls, in words.
    #[must_use]
    pub fn times(&self) -> String {
        if self.tries == 1 { "once".to_owned() } else { format!("{} times", self.tries) }
    }
}

/// News of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunNews {
    /// Its newest state.
    State(RunState),
    /// An event that leaves its state as it is.
    Event(RunEvent),
}

impl From<RunState> for RunNews {
    fn from(state: RunState) -> Self {
        Self::State(state)
    }
}

impl From<RunEvent> for RunNews {
    fn from(event: RunEvent) -> Self {
        Self::Event(event)
    }
}

/// An observation of an engine: news of one run. May arrive late, twice and out of order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Key of the run.
    pub key: RunKey,
    /// Its news. Recordings call it `state`.
    #[serde(rename = "state")]
    pub news: RunNews,
}

impl Observation {
    /// News of a run.
    pub fn new(key: RunKey, news: impl Into<RunNews>) -> Self {
        Self { key, news: news.into() }
    }
}

/// The node of a run, and its GPU shares there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlace {
    /// Name of its node.
    pub node: String,
    /// Its share of each of its GPUs, in thousandths, by the UUID that the driver gives the GPU;
    /// `None` where it is not known.
    pub devices: Option<BTreeMap<String, u64>>,
}

impl RunPlace {
    /// Place of a run with this specification.
    #[must_use]
    pub fn of(spec: &RunSpec) -> Self {
        let shares = spec.devices.iter().map(|device| (device.uuid.clone(), device.millis));
        Self { node: spec.node_name.clone(), devices: Some(shares.collect()) }
    }
}

/// A run in the list of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRun {
    /// Key of the run.
    pub key: RunKey,
    /// Its state.
    #[serde(deserialize_with = "listed_state")]
    pub state: RunState,
    /// Its place; `None` where it is not known, or the run has ended.
    #[serde(default)]
    pub place: Option<RunPlace>,
}

/// Recordings of earlier versions list some events of starting runs as their states.
fn listed_state<'de, D: Deserializer<'de>>(from: D) -> Result<RunState, D::Error> {
    Ok(match RunNews::deserialize(from)? {
        RunNews::State(state) => state,
        RunNews::Event(_) => RunState::Starting,
    })
}

/// The [`Limits`] of a run that an engine enforces. A limit that it cannot enforce does not stop
/// the run: it starts, with a warning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsKept {
    /// CPU time.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
    /// Cause of the missing limit, and the remedy; empty where all are enforced.
    pub why: String,
}

impl LimitsKept {
    /// All limits are enforced.
    pub const ALL: Self = Self { cpu: true, memory: true, why: String::new() };

    /// Resources without an enforced limit, in words; `None` where all are enforced.
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

/// Health of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuHealth {
    /// Cause why it cannot be used; `None` if it can.
    pub fault: Option<String>,
    /// Processes of no run that compute on it and hold its memory, by process id; `None` where they
    /// are not known now.
    pub foreign: Option<BTreeMap<u32, ForeignProcess>>,
}

/// A process that belongs to no run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignProcess {
    /// The name of its program. Its arguments may hold secrets and are left out.
    pub name: String,
    /// Its user.
    pub user: String,
    /// Memory of the GPU that it holds, in bytes.
    pub memory_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_read_as_earlier_versions_wrote_them() {
        let key = RunKey { pod: Uuid::nil(), generation: 1 };
        let read = |state: &str| {
            let text = format!("{{\"key\": {}, \"state\": {state}}}", serde_json::json!(key));
            let seen: Observation = serde_json::from_str(&text).expect("an observation");
            let listed: ListedRun = serde_json::from_str(&text).expect("a listed run");
            (seen.news, listed.state)
        };
        let failure = PullFailure { why: "no such image".to_owned(), tries: 2, again_in_ms: 400 };
        let json = serde_json::json!({"PullFailed": failure}).to_string();
        assert_eq!(read(&json), (RunEvent::PullFailed(failure).into(), RunState::Starting));
        assert_eq!(read("{\"Struck\": 3}").0, RunEvent::Struck(3).into());
        assert_eq!(read("\"Starting\"").0, RunState::Starting.into());
        let runs = RunState::Running { pid: Some(7), started_at: Instant(5) };
        let json = serde_json::to_string(&runs).expect("text");
        assert_eq!(read(&json), (runs.clone().into(), runs));
    }
}
