//! The seam between deciding and doing: the operations and reports of every engine.
//!
//! Owns: the [`Engine`] trait, its data, what a run needs around it ([`Container`]), copies of
//! repositories and buckets ([`copy`]), and the variables of pods about themselves
//! ([`environment`]) and of their gang ([`Gang`]). `engine-conformance` has the suite every engine
//! passes. Does not know about scheduling, storage, and how a pod is made to run.

mod base_path;
mod bucket;
mod capabilities;
pub mod copy;
mod disk_space;
pub mod environment;
mod feed;
mod fetch_job;
pub mod image;
mod installation;
mod keyed_lock;
mod observations;
mod repository;
mod session;
mod timestamps;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

pub use base_path::{BasePath, fill_base_path};
pub use capabilities::{
    Capabilities, Enforcement, FractionLimit, Fractions, Isolation, IsolationKind, Mechanism,
    Outage,
};
pub use disk_space::{DiskSpace, SharedDisk};
pub use feed::{FEED_CHANGES_MAX, PodFeed};
pub use installation::Installation;
pub use keyed_lock::KeyedLock;
pub use observations::Observations;
pub use session::{Duplex, ExecSpec, Input, Output, Session, TerminalSize};
pub use spec::{
    BadRunKey, Bounds, Bucket, CheckpointNews, Container, Device, DiskRoom, Exit, ForeignProcess,
    Framework, Gang, GpuHealth, GpuOver, HOME_FOLDER, JOB_PROGRAM, JOB_TOKEN_FILE,
    JOB_TOKEN_VARIABLE, Limits, LimitsKept, ListedRun, Login, MASTER, Member, Mount, MountSource,
    Observation, PoolFractions, Port, Propagation, PullFailure, PullPolicy, RegistryLogin,
    Repository, RunEvent, RunKey, RunNews, RunPlace, RunSpec, RunState, Seccomp, Secret,
    SecretPlace, Security, TASKS_MAX, TimeSlicing, User, WORKER,
};
pub use timestamps::Timestamps;

pub use trees::Leftover;

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::mpsc;
use units::Instant;
use uuid::Uuid;

/// Part of a run's output to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRange {
    /// Number of lines from the end; `None` for all.
    pub tail_lines: Option<u64>,
    /// Number of bytes to skip from the start; applied before `tail_lines` and `since`.
    pub from_byte: Option<u64>,
    /// Only lines written at or after this moment, and lines without a time to the millisecond.
    pub since: Option<Instant>,
    /// Prefix each line with its time in RFC 3339 and a space.
    pub timestamps: bool,
    /// Keep reading until the run ends.
    pub follow: bool,
}

/// Resource use of runs and GPUs at one moment, without values that cannot be measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// Runs that have processes.
    pub runs: Vec<RunUse>,
    /// Whole devices, as the driver reports them.
    pub gpus: Vec<GpuUse>,
}

/// Resource use of the processes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUse {
    /// Key of the run.
    pub key: RunKey,
    /// CPU time since the run began, in milliseconds, including ended processes.
    pub cpu_time_ms: u64,
    /// Main memory in bytes; memory shared between processes counts once where the system reports
    /// it.
    pub memory_bytes: u64,
    /// The run's own use of GPUs, where the driver distinguishes processes.
    pub gpus: Vec<GpuUse>,
}

/// Use of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuUse {
    /// UUID that the driver gives the GPU.
    pub uuid: String,
    /// Share of recent time in which the GPU computed, in thousandths; `None` if unknown.
    pub busy_millis: Option<u64>,
    /// Memory in use, in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
}

/// Reason why an engine could not carry out a request.
#[derive(Debug, Error)]
pub enum Error {
    /// The engine knows no such run.
    #[error("no run {0}")]
    NoSuchRun(RunKey),
    /// A run that was to be entered has not begun, or has ended.
    #[error("run {0} does not run now")]
    NotRunning(RunKey),
    /// A run that was to be removed still has processes.
    #[error("run {0} still has processes; stop it and wait for its end")]
    StillRunning(RunKey),
    /// The specification cannot be run by this engine; trying again does not help.
    #[error("{0}")]
    Invalid(String),
    /// This engine does not support the value of a field; another may.
    #[error("{field}: {why}")]
    NotHere {
        /// Field of the interface, such as `storage.nfs`.
        field: &'static str,
        /// Reason, and what to do.
        why: String,
    },
    /// The part of a GPU would not be limited as the administrator wants.
    #[error("its part of the GPU would not be kept: {0}")]
    NotKept(String),
    /// The operating system or a daemon refused.
    #[error("failed to {what}")]
    Io {
        /// Attempted action, as a phrase after "failed to".
        what: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// This engine cannot do it at all.
    #[error("the {0} runtime cannot do this")]
    Unsupported(&'static str),
}

impl Error {
    /// The operating system refused. `what`: a phrase after "failed to".
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }
}

/// A machine, or a cluster of them, that runs pods.
///
/// Every verb is idempotent by [`RunKey`]: asking twice is as good as asking once, before and
/// after a restart of the server. State changes are reported through [`Engine::observations`].
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Capabilities of this engine.
    fn capabilities(&self) -> Capabilities;

    /// The feed of the pods that exist elsewhere; `None` for an engine that makes all its pods.
    fn feed(&self) -> Option<Arc<dyn PodFeed>> {
        None
    }

    /// The disk of the state, if runs fill it as well; `None` if they have another.
    fn shared_disk(&self) -> Option<SharedDisk> {
        None
    }

    /// The current outage; `None` while the engine works.
    fn outage(&self) -> Option<Outage> {
        None
    }

    /// Remainders of forgotten runs and pods that are still to be deleted, by folder.
    fn leftovers(&self) -> Vec<Leftover> {
        Vec::new()
    }

    /// Checks a specification before it is accepted: image known or command given.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong and what to do.
    fn check(&self, spec: &RunSpec) -> Result<(), Error>;

    /// True if a pod could listen on this port, wherever it will be. Nothing is reserved.
    fn port_is_free(&self, _port: u16) -> bool {
        true
    }

    /// Address at which this machine reaches the ports of a run; `None` while it is not known.
    fn address(&self, _key: RunKey) -> Option<IpAddr> {
        Some(Ipv4Addr::LOCALHOST.into())
    }

    /// Every run this engine knows, dead ones included until they are removed: the truth after a
    /// restart. A run whose start was cut short by a crash is in the list, or was never prepared
    /// and does not exist; starting it again is right either way. A run that has not ended is
    /// listed with its node and GPUs: the server may have no other record of it.
    ///
    /// # Errors
    /// The engine's records cannot be read.
    async fn list(&self) -> Result<Vec<ListedRun>, Error>;

    /// Starts a run. Returns once the start is on its way and will survive the server.
    ///
    /// # Errors
    /// The run could not even be prepared; nothing of it is left behind.
    async fn start(&self, spec: RunSpec) -> Result<(), Error>;

    /// Changes a running run's limits on GPU memory (`most`, in bytes, by UUID of the GPU). It
    /// keeps what it holds. A run that is unknown or has ended, and a GPU that it does not have or
    /// whose memory is not limited, are no error.
    ///
    /// # Errors
    /// The limit cannot be changed.
    async fn limit_gpus(&self, _key: RunKey, _most: BTreeMap<String, u64>) -> Result<(), Error> {
        Ok(())
    }

    /// Waits up to `most_ms` for the next checkpoint of a run that has announced one; returns at
    /// once in every other case.
    async fn await_checkpoint(&self, _key: RunKey, _most_ms: u64) {}

    /// Asks a run to end: SIGTERM, its grace, then SIGKILL to all its processes. A run that is
    /// unknown or has ended is no error.
    ///
    /// # Errors
    /// The signal could not be sent.
    async fn stop(&self, key: RunKey, grace_ms: u64) -> Result<(), Error>;

    /// Removes an ended run and deletes its remaining files. An unknown run is no error.
    ///
    /// # Errors
    /// The run still has processes, or its files cannot be deleted.
    async fn remove(&self, key: RunKey) -> Result<(), Error>;

    /// Deletes data that a pod keeps between runs (checkpoints, its working directory). The caller
    /// does so once the workload is deleted; an unknown pod is no error.
    ///
    /// # Errors
    /// The files cannot be deleted.
    async fn forget_pod(&self, _pod: Uuid) -> Result<(), Error> {
        Ok(())
    }

    /// Pods of this installation with data kept between runs, including pods whose deletion a crash
    /// of the server interrupted.
    ///
    /// # Errors
    /// The engine's records cannot be read.
    async fn kept_pods(&self) -> Result<Vec<Uuid>, Error> {
        Ok(Vec::new())
    }

    /// Deletes a volume that outlives pods ([`MountSource::Volume`]) and its contents; an unknown
    /// one is no error.
    ///
    /// # Errors
    /// A run uses it, or it cannot be deleted.
    async fn remove_volume(&self, _name: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Releases resources that runs share and that the next run recreates, such as networks.
    /// Resources of existing runs stay.
    ///
    /// # Errors
    /// A resource cannot be released.
    async fn tidy(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Name of the pod of a run, for a message; `None` if unknown.
    async fn pod_name(&self, _key: RunKey) -> Option<String> {
        None
    }

    /// A stream of observations from now on; an earlier stream ends. When this stream ends, the
    /// caller opens another and calls [`list`](Engine::list).
    fn observations(&self) -> mpsc::UnboundedReceiver<Observation>;

    /// Reads a run's output (stdout and stderr together), in chunks, in order.
    ///
    /// # Errors
    /// No such run, or its output cannot be read.
    async fn logs(
        &self,
        key: RunKey,
        range: LogRange,
    ) -> Result<mpsc::Receiver<std::io::Result<Vec<u8>>>, Error>;

    /// Number of bytes of a run's output before this range, so that a reader can continue there;
    /// `None` if the engine cannot determine it.
    ///
    /// # Errors
    /// No such run, or its output cannot be read.
    async fn bytes_before(&self, _key: RunKey, _range: &LogRange) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Current resource use of runs and GPUs; `None` from an engine that cannot measure.
    ///
    /// # Errors
    /// The machine's counters cannot be read.
    async fn measure(&self) -> Result<Option<Measured>, Error> {
        Ok(None)
    }

    /// Health of each of these GPUs, by UUID; `None` from an engine that cannot see any GPU.
    ///
    /// # Errors
    /// The driver does not answer, or the machine does not show its processes.
    async fn gpu_health(
        &self,
        _uuids: Vec<String>,
    ) -> Result<Option<BTreeMap<String, GpuHealth>>, Error> {
        Ok(None)
    }

    /// Runs a command inside a run, with its environment, folder and limits.
    ///
    /// # Errors
    /// The run does not run. That there is no such program is how the session ends
    /// ([`Exit::CannotRun`]).
    async fn exec(&self, _key: RunKey, _what: ExecSpec) -> Result<Session, Error> {
        Err(Error::Unsupported("present"))
    }

    /// Shows what the main process of a run prints from now on, and, if it was started with
    /// `stdin`, passes typed input to it. Several clients may be attached at a time; all see the
    /// same output.
    ///
    /// # Errors
    /// The run does not run, or was started without the input or terminal that the caller requests.
    async fn attach(
        &self,
        _key: RunKey,
        _stdin: bool,
        _terminal: Option<TerminalSize>,
    ) -> Result<Session, Error> {
        Err(Error::Unsupported("present"))
    }

    /// Connects to a TCP port that a process of this run listens on, and to no other's.
    ///
    /// # Errors
    /// The run does not run, or none of its processes listens there.
    async fn connect(&self, _key: RunKey, _port: u16) -> Result<Box<dyn Duplex>, Error> {
        Err(Error::Unsupported("present"))
    }
}
