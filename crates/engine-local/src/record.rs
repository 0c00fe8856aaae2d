//! The files of one run. Owns: the run directory, the formats, and the two rules that make a run
//! start at most once: the lock, and the exclusive creation of `state.json`.
//!
//! ```text
//! spec.json     what to run; written once, before any supervisor is spawned
//! lock          locked by the supervisor for its life (a POSIX record lock: it names its holder,
//!               is not inherited by children, and cannot outlive the process)
//! state.json    created by the first of: its supervisor, or a stop that came before it;
//!               replaced by rename afterwards
//! *.room        disk space reserved for what is written later, before anything is started
//! grace_ms      least grace of all stops so far
//! secrets.*     values of credentials, while they are needed (`secrets`)
//! mounts/       copies of repositories and buckets, below the path they would be mounted at
//! fraction/     what it may have of shared GPUs, and what it says that it holds
//! hostfile      the hosts of an MPI launcher
//! output.log    stdout and stderr of the run; a hole at the start if too long (`log_retention`)
//! output.times  when it was written (`times`)
//! grown.json    by how much, where it is killed for that (`disk`)
//! session.sock  the socket for sessions (`session_server`)
//! session.key   the secret that a client sends first
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use engine::{DiskRoom, Exit, Limits, RunKey, RunPlace, RunState, environment};
use engine_fractions::{Fraction, Refusal, RefusalKind};
use rustix::fs::FlockOperation;
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use serde::{Deserialize, Serialize};
use units::Instant;

use crate::cgroup::Group;
use crate::isolation::Boundary;
use crate::memory::Memory;
use crate::secrets::{self, Secrets};

/// Size of a reserved state file: one block on usual file systems; a state fits in it.
const ROOM_BYTES: usize = 4096;
/// Disk space that is reserved before anything is started.
const RUNNING_ROOM: &str = "state.running.room";
const EXITED_ROOM: &str = "state.exited.room";
const GRACE_ROOM: &str = "grace.room";
const GROWN_ROOM: &str = "grown.room";
const ROOMS: [&str; 4] = [RUNNING_ROOM, EXITED_ROOM, GRACE_ROOM, GROWN_ROOM];
/// Output of the run.
pub(crate) const OUTPUT: &str = "output.log";
/// Longest error text that is recorded, in characters; at four bytes each it still fits.
const FAULT_CHARS_MAX: usize = 800;

/// `spec.json`: everything the supervisor needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SpecFile {
    /// The run key, as text.
    pub(crate) key: String,
    /// SIGTERM to SIGKILL, in milliseconds.
    pub(crate) grace_ms: u64,
    /// True if it needs what lies in `secrets.json`.
    #[serde(default)]
    pub(crate) secrets: bool,
    /// How it is run. An older supervisor rejects an unknown runtime.
    pub(crate) runtime: Runtime,
}

/// The ways of running a pod on this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Runtime {
    /// A process tree on the host itself.
    Process(ProcessSpec),
}

/// A command with its environment, complete.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProcessSpec {
    /// Program and arguments; never empty.
    pub(crate) argv: Vec<String>,
    /// The whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Working directory.
    pub(crate) working_dir: PathBuf,
    /// Umask; `None` for the supervisor's.
    #[serde(default)]
    pub(crate) umask: Option<u32>,
    /// True if an attached client may send input.
    #[serde(default)]
    pub(crate) stdin: bool,
    /// True if it has a terminal.
    #[serde(default)]
    pub(crate) tty: bool,
    /// Control group; `None` if unavailable: then resources have no limits.
    #[serde(default)]
    pub(crate) group: Option<Group>,
    /// Resource limits.
    #[serde(default)]
    pub(crate) limits: Limits,
    /// Maximum stored output, in bytes; `None` for all.
    #[serde(default)]
    pub(crate) output_bytes_max: Option<u64>,
    /// Isolation; `None` for none.
    #[serde(default)]
    pub(crate) boundary: Option<Boundary>,
    /// True if its programs may gain privileges, as `sudo` does.
    #[serde(default)]
    pub(crate) more_rights: bool,
    /// GPU fraction of the run; `None` if the engine adds nothing for GPUs.
    #[serde(default)]
    pub(crate) fraction: Option<Fraction>,
    /// The port of its image, and the one assigned instead.
    #[serde(default)]
    pub(crate) port: Option<(u16, u16)>,
    /// Memory for copies of its checkpoints; `None` if this machine has none.
    #[serde(default)]
    pub(crate) memory: Option<Memory>,
}

/// `state.json`, and one line on the pipe to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub(crate) enum StateFile {
    /// Claimed; no main process yet.
    Starting,
    /// The main process runs.
    Running {
        /// Id of the process.
        pid: u32,
        /// When it started, milliseconds since the epoch.
        started_at_ms: u64,
    },
    /// Every process is gone.
    Exited {
        /// How.
        exit: ExitFile,
        /// When, milliseconds since the epoch.
        at_ms: u64,
    },
}

/// How a run ended, on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ExitFile {
    /// Exit code.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
    /// Could not be started.
    CannotRun(String),
    /// Not started because its part of a GPU would not be kept.
    NotKept(String),
    /// Not started because the machine could not just then.
    NotStarted(String),
    /// Killed because it exceeded its memory limit.
    OutOfMemory,
    /// Killed because the disk was almost full; with its growth, which was the largest.
    OutOfDisk(DiskRoom),
    /// Unknown.
    Lost,
}

impl StateFile {
    /// The end, now.
    pub(crate) fn exited(exit: ExitFile) -> Self {
        Self::Exited { exit, at_ms: now_ms() }
    }

    /// The run could not be started; long texts are cut so that the state fits its reserved file.
    pub(crate) fn cannot_run(fault: &str) -> Self {
        Self::exited(ExitFile::CannotRun(cut(fault)))
    }

    /// The look before the run refused it.
    pub(crate) fn refused(Refusal { kind, why }: Refusal) -> Self {
        let why = cut(&why);
        Self::exited(match kind {
            RefusalKind::NotKept => ExitFile::NotKept(why),
            RefusalKind::DriverSilent => ExitFile::NotStarted(why),
            RefusalKind::CannotRun => ExitFile::CannotRun(why),
        })
    }
}

fn cut(fault: &str) -> String {
    fault.chars().take(FAULT_CHARS_MAX).collect()
}

impl From<ExitFile> for Exit {
    fn from(exit: ExitFile) -> Self {
        match exit {
            ExitFile::Code(code) => Self::Code(code),
            ExitFile::Signal(signal) => Self::Signal(signal),
            ExitFile::CannotRun(fault) => Self::CannotRun(fault),
            ExitFile::NotKept(why) => Self::NotKept(why),
            ExitFile::NotStarted(why) => Self::NotStarted(why),
            ExitFile::OutOfMemory => Self::OutOfMemory,
            ExitFile::OutOfDisk(grown) => Self::OutOfDisk(grown),
            ExitFile::Lost => Self::Lost,
        }
    }
}

impl From<StateFile> for RunState {
    fn from(state: StateFile) -> Self {
        match state {
            StateFile::Starting => Self::Starting,
            StateFile::Running { pid, started_at_ms } => {
                Self::Running { pid: Some(pid), started_at: Instant(started_at_ms) }
            }
            StateFile::Exited { exit, at_ms } => {
                Self::Exited { exit: exit.into(), at: Instant(at_ms) }
            }
        }
    }
}

/// Milliseconds since the epoch; 0 on a clock set before it.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The lock of a run directory, held until dropped. The file is opened once per process: closing
/// any other handle to it would release the lock.
#[derive(Debug)]
pub(crate) struct RunLock(#[expect(dead_code, reason = "held for its lock")] File);

/// One run's directory.
#[derive(Debug, Clone)]
pub(crate) struct RunDir(PathBuf);

impl RunDir {
    /// The directory of `key` under `runs`.
    pub(crate) fn new(runs: &Path, key: RunKey) -> Self {
        Self(runs.join(key.to_string()))
    }

    /// An existing directory, from the supervisor's arguments.
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of its pages of GPU fractions.
    pub(crate) fn fraction(&self) -> PathBuf {
        self.0.join("fraction")
    }

    /// The folder of the socket of its channel.
    pub(crate) fn channel(&self) -> PathBuf {
        self.0.join("channel")
    }

    /// The hosts that an MPI launcher starts its ranks on.
    pub(crate) fn hostfile(&self) -> PathBuf {
        self.0.join("hostfile")
    }

    /// The copies of repositories and buckets.
    pub(crate) fn copies(&self) -> PathBuf {
        self.0.join("mounts")
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.0.join(OUTPUT)
    }

    pub(crate) fn exists(&self) -> bool {
        self.0.is_dir()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Opens a file of the run for appending, readable by its owner only.
    pub(crate) fn append(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(self.file(name))
    }

    /// True if the run was prepared.
    pub(crate) fn has_spec(&self) -> bool {
        self.file("spec.json").exists()
    }

    /// Writes the specification unless an earlier attempt already did.
    pub(crate) fn write_spec_once(&self, spec: &SpecFile) -> io::Result<()> {
        if self.has_spec() {
            return Ok(());
        }
        self.replace("spec.json", &to_json(spec)?)
    }

    /// Passes the secret values to the supervisor. Call it before the specification is written.
    pub(crate) fn write_secrets(&self, secrets: &Secrets) -> io::Result<()> {
        if self.has_spec() { Ok(()) } else { self.replace(secrets::FILE, &to_json(secrets)?) }
    }

    /// Reads the secret values and deletes the file.
    pub(crate) fn take_secrets(&self) -> io::Result<Secrets> {
        let path = self.file(secrets::FILE);
        let found = serde_json::from_slice(&fs::read(&path)?)?;
        fs::remove_file(path).map(|()| found)
    }

    /// The folder of the secret files.
    pub(crate) fn secrets_folder(&self) -> PathBuf {
        self.file(secrets::FOLDER)
    }

    /// Deletes the secrets of an ended run. A failure does not change how the run ended; the files
    /// are deleted with the directory.
    fn forget_secrets(&self, state: &StateFile) {
        let StateFile::Exited { .. } = state else { return };
        for gone in [
            secrets::forget(&self.file(secrets::FILE)),
            secrets::forget_folder(&self.secrets_folder()),
        ] {
            if let Err(error) = gone {
                // Goes to the log of the supervisor or of the server.
                log_line(&format!("failed to delete its secrets: {error}"));
            }
        }
    }

    /// Reads the specification.
    pub(crate) fn read_spec(&self) -> io::Result<SpecFile> {
        serde_json::from_slice(&fs::read(self.file("spec.json"))?).map_err(io::Error::from)
    }

    /// Control group of the run; `None` without one, or if the run is not prepared.
    pub(crate) fn group(&self) -> Option<Group> {
        let Runtime::Process(process) = self.read_spec().ok()?.runtime;
        process.group
    }

    /// Node and GPUs of the run; `None` if they cannot be read.
    pub(crate) fn place(&self) -> Option<RunPlace> {
        let Runtime::Process(process) = self.read_spec().ok()?.runtime;
        environment::place(|name| process.env.get(name).map(String::as_str))
    }

    /// Reads the state. None: the run is not claimed. If the file cannot be parsed, its writer
    /// crashed while creating it, so the run was claimed but not started.
    pub(crate) fn read_state(&self) -> io::Result<Option<StateFile>> {
        match fs::read(self.file("state.json")) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text).unwrap_or(StateFile::Starting))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Claims the run with its first state. False: it was claimed before.
    pub(crate) fn claim(&self, state: &StateFile) -> io::Result<bool> {
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.file("state.json"));
        match created {
            Ok(mut file) => {
                file.write_all(&to_json(state)?)?;
                self.forget_secrets(state);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reserves disk space for what is written later, so that a full disk prevents neither stopping
    /// nor recording an exit.
    pub(crate) fn reserve_room(&self) -> io::Result<()> {
        let blank = [b' '; ROOM_BYTES];
        ROOMS.iter().try_for_each(|room| private(&self.file(room))?.write_all(&blank))
    }

    /// Replaces a file, using the reserved space. Falls back to new space without one.
    fn write_in_room(&self, room: &str, name: &str, mut text: Vec<u8>) -> io::Result<()> {
        // Overwritten in place without truncation: blanks after a value are ignored.
        text.resize(text.len().max(ROOM_BYTES), b' ');
        match OpenOptions::new().write(true).open(self.file(room)) {
            Ok(mut file) => file.write_all(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private(&self.file(room))?.write_all(&text)?;
            }
            Err(error) => return Err(error),
        }
        fs::rename(self.file(room), self.file(name))
    }

    /// Replaces the state, within the reserved space.
    pub(crate) fn write_state(&self, state: &StateFile) -> io::Result<()> {
        let room = match state {
            StateFile::Exited { .. } => EXITED_ROOM,
            StateFile::Starting | StateFile::Running { .. } => RUNNING_ROOM,
        };
        self.write_in_room(room, "state.json", to_json(state)?)?;
        self.forget_secrets(state);
        Ok(())
    }

    /// Records the grace period of a stop, which the supervisor reads when it is signalled.
    /// Signals may merge, so the least of all stops is kept.
    pub(crate) fn write_grace(&self, grace_ms: u64) -> io::Result<()> {
        let least = self.read_grace().map_or(grace_ms, |before| before.min(grace_ms));
        self.write_in_room(GRACE_ROOM, "grace_ms", least.to_string().into_bytes())
    }

    /// The shortest grace period of all stops; `None` for the specification's.
    pub(crate) fn read_grace(&self) -> Option<u64> {
        fs::read_to_string(self.file("grace_ms")).ok()?.trim().parse().ok()
    }

    /// Records by how much the run has grown, for which it is about to be killed.
    pub(crate) fn write_grown(&self, grown: DiskRoom) -> io::Result<()> {
        self.write_in_room(GROWN_ROOM, "grown.json", to_json(&grown)?)
    }

    /// By how much it had grown, if it was killed for that.
    pub(crate) fn grown(&self) -> Option<DiskRoom> {
        serde_json::from_slice(&fs::read(self.file("grown.json")).ok()?).ok()
    }

    /// Takes the run's lock. None: another process holds it.
    pub(crate) fn lock(&self) -> io::Result<Option<RunLock>> {
        let path = self.file("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(RunLock(file))),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The process that holds the run's lock. Does not report a lock of this process itself.
    pub(crate) fn holder(&self) -> io::Result<Option<Pid>> {
        let file = match OpenOptions::new().read(true).write(true).open(self.file("lock")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))? {
            None => Ok(None),
            Some(lock) => lock.pid.map(Some).ok_or_else(|| {
                io::Error::other(
                    "the supervisor runs in another PID namespace; run the server there",
                )
            }),
        }
    }

    /// Writes a file of the run atomically, readable by its owner only.
    pub(crate) fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let new = self.file(&format!("{name}.new"));
        private(&new)?.write_all(text)?;
        fs::rename(new, self.file(name))
    }
}

/// Creates or empties a file readable by its owner only: environments hold secrets.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn to_json<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::from)
}

/// A line in `supervisor.log`, which is this process's stderr. The write may fail on a full disk.
#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
pub(crate) fn log_line(text: &str) {
    let _refused = writeln!(io::stderr(), "{text}");
}
