//! The seam between deciding and doing: the operations and reports of every engine.
//!
//! Owns: the [`Engine`] trait, its data, what a run needs around it ([`Container`]), copies of
//! repositories and buckets ([`copy`]), and the variables of pods about themselves ([`environment`]) and of
//! their gang ([`Gang`]). `engine-conformance` has the suite every engine passes.
//! Does not know about scheduling, storage, and how a pod is made to run.

mod base_path;
mod bucket;
mod capabilities;
pub mod copy;
pub mod environment;
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

pub use base_path::{BasePath, fill_base_path};
pub use capabilities::{
    Capabilities, Enforcement, FractionLimit, Fractions, Isolation, IsolationKind, Mechanism,
    Outage,
};
pub use installation::Installation;
pub use keyed_lock::KeyedLock;
pub use observations::Observations;
pub use session::{Duplex, ExecSpec, Input, Output, Session, TerminalSize};
pub use spec::{
    BadRunKey, Bounds, Bucket, CheckpointNews, Container, Device, DiskRoom, Exit, ForeignProcess,
    Framework, Gang, GpuHealth, GpuOver, HOME_FOLDER, JOB_PROGRAM, JOB_TOKEN_FILE,
    JOB_TOKEN_VARIABLE, Limits, LimitsKept, ListedRun, Login, MASTER, Member, Mount, MountSource,
    Observation, PoolFractions, Port, Propagation, PullFailure, PullPolicy, RegistryLogin,
    Repository, RunKey, RunPlace, RunSpec, RunState, Seccomp, Secret, SecretPlace, Security,
    TASKS_MAX, TimeSlicing, User, WORKER,
};
pub use timestamps::Timestamps;

pub use trees::Leftover;

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::mpsc;
use units::Instant;
use uuid::Uuid;

/// Which part of a run's output to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRange {
    /// Only the last so many lines.
    pub tail_lines: Option<u64>,
    /// Without the first so many bytes; goes before `tail_lines` and `since`.
    pub from_byte: Option<u64>,
    /// Only lines that were written at this moment or later; those of which that is not known to the
    /// millisecond as well.
    pub since: Option<Instant>,
    /// With the time before each line, in RFC 3339 and a space.
    pub timestamps: bool,
    /// Keep reading until the run ends.
    pub follow: bool,
}

/// What runs and GPUs use at one moment. What cannot be measured is not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// Runs that have processes.
    pub runs: Vec<RunUse>,
    /// GPUs that exist, by what the driver says of the whole device.
    pub gpus: Vec<GpuUse>,
}

/// What the processes of a run use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUse {
    /// Which run.
    pub key: RunKey,
    /// CPU time since it began, in milliseconds; processes that have ended are part of it.
    pub cpu_time_ms: u64,
    /// Main memory; what processes share counts once, where the system tells.
    pub memory_bytes: u64,
    /// Its own part of GPUs, where the driver tells processes apart.
    pub gpus: Vec<GpuUse>,
}

/// What is used of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuUse {
    /// What the driver calls it.
    pub uuid: String,
    /// Thousandths of the time in which it computed recently.
    pub busy_millis: Option<u64>,
    /// Its memory that is in use.
    pub memory_bytes: Option<u64>,
}

/// Why an engine could not do what it was asked.
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
    /// This engine does not do what a field asks for; another may.
    #[error("{field}: {why}")]
    NotHere {
        /// What asks for it, in the words of the interface: `storage.nfs`.
        field: &'static str,
        /// Why it cannot be done, and what to do.
        why: String,
    },
    /// Its part of a GPU would not be kept as the administrator wants it.
    #[error("its part of the GPU would not be kept: {0}")]
    NotKept(String),
    /// The operating system or a daemon refused.
    #[error("failed to {what}")]
    Io {
        /// What was tried, as a phrase after "failed to".
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
    /// What this engine can do.
    fn capabilities(&self) -> Capabilities;

    /// Since when what runs pods does not answer; none while it does.
    fn outage(&self) -> Option<Outage> {
        None
    }

    /// What is still to be deleted of what runs and pods left that are forgotten, by folder.
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

    /// Where the ports of a run are reached from this machine; none while that is not known.
    fn address(&self, _key: RunKey) -> Option<IpAddr> {
        Some(Ipv4Addr::LOCALHOST.into())
    }

    /// Every run this engine knows, dead ones included until they are removed: the truth after a
    /// restart. A run whose start was cut short by a crash is in the list, or was never prepared
    /// and does not exist; starting it again is right either way. Of each that has not ended it says where
    /// it is and which GPUs it has: the server may know nothing else of it.
    ///
    /// # Errors
    /// The engine's records cannot be read.
    async fn list(&self) -> Result<Vec<ListedRun>, Error>;

    /// Starts a run. Returns once the start is on its way and will survive the server.
    ///
    /// # Errors
    /// The run could not even be prepared; nothing of it is left behind.
    async fn start(&self, spec: RunSpec) -> Result<(), Error>;

    /// Changes the most that a run may use of its GPUs' memory (`most`, in bytes, by what the driver
    /// calls them) while it runs. It keeps what it holds. A run that is unknown or has ended, and a
    /// GPU that it does not have or whose memory is not limited, are no error.
    ///
    /// # Errors
    /// It cannot be changed.
    async fn limit_gpus(&self, _key: RunKey, _most: BTreeMap<String, u64>) -> Result<(), Error> {
        Ok(())
    }

    /// Waits for the next checkpoint of a run that has announced one to come within `most_ms`; returns at
    /// once in every other case.
    async fn await_checkpoint(&self, _key: RunKey, _most_ms: u64) {}

    /// Asks a run to end: SIGTERM, its grace, then SIGKILL to all its processes. A run that is
    /// unknown or has ended is no error.
    ///
    /// # Errors
    /// The signal could not be sent.
    async fn stop(&self, key: RunKey, grace_ms: u64) -> Result<(), Error>;

    /// Forgets an ended run and deletes what it left. An unknown run is no error.
    ///
    /// # Errors
    /// The run still has processes, or its files cannot be deleted.
    async fn remove(&self, key: RunKey) -> Result<(), Error>;

    /// Deletes what a pod kept from one run to the next (checkpoints, its working directory).
    /// To be called when the workload is gone for good; an unknown pod is no error.
    ///
    /// # Errors
    /// The files cannot be deleted.
    async fn forget_pod(&self, _pod: Uuid) -> Result<(), Error> {
        Ok(())
    }

    /// The pods of which something is kept from one run to the next, of this installation alone. What a
    /// server was about to forget when it was killed is found by it.
    ///
    /// # Errors
    /// The engine's records cannot be read.
    async fn kept_pods(&self) -> Result<Vec<Uuid>, Error> {
        Ok(Vec::new())
    }

    /// Deletes a volume that outlives pods ([`MountSource::Volume`]) with all in it; an unknown one is
    /// no error.
    ///
    /// # Errors
    /// A run uses it, or it cannot be deleted.
    async fn remove_volume(&self, _name: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Releases what is kept around runs and recreated for the next one, such as networks. What a run has
    /// stays.
    ///
    /// # Errors
    /// It cannot be given back.
    async fn tidy(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The name of the pod of a run, for a message; none where it is not known.
    async fn pod_name(&self, _key: RunKey) -> Option<String> {
        None
    }

    /// A stream of observations from now on. The stream before it ends, and what ends this one is
    /// followed by another stream and a [`list`](Engine::list).
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

    /// How many bytes of a run's output are before this part of it, so that a reader can go on
    /// there; none from an engine that cannot tell.
    ///
    /// # Errors
    /// No such run, or its output cannot be read.
    async fn bytes_before(&self, _key: RunKey, _range: &LogRange) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// What runs and GPUs use now; none from an engine that cannot measure.
    ///
    /// # Errors
    /// What the machine shows cannot be read.
    async fn measure(&self) -> Result<Option<Measured>, Error> {
        Ok(None)
    }

    /// How each of these GPUs is, by what the driver calls them; none from an engine that cannot see any.
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
    /// `stdin`, hands on what is typed. Several may be attached at a time; all see the same.
    ///
    /// # Errors
    /// The run does not run, or was started without the input or terminal that is asked for.
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
