//! What is on disk about one run. Owns: the files of a run directory, their formats, and the two
//! rules that make a run start at most once: the lock, and who creates `state.json`.
//!
//! ```text
//! spec.json     what to run; written once, before any supervisor is spawned
//! lock          locked by the supervisor for its life (a POSIX record lock: it names its holder,
//!               is not inherited by children, and cannot outlive the process)
//! state.json    created by whoever decides the run's fate first (its supervisor, or a stop that
//!               came before it); replaced by rename ever after
//! state.*.room  disk space for the next states, taken before anything is started
//! grace_ms      least grace of all stops so far
//! secrets.*     values of credentials, while they are needed (`secrets`)
//! mounts/       copies of repositories and buckets, below the path they would be mounted at
//! hostfile      the hosts of an MPI launcher
//! output.log    stdout and stderr of the run, together; a hole where it was too much (`bound`)
//! output.times  when it was written (`times`)
//! session.sock  where the supervisor lets in whoever comes to the run (`door`)
//! session.key   and says this first
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use engine::{Exit, Limits, RunKey, RunState};
use rustix::fs::FlockOperation;
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use serde::{Deserialize, Serialize};
use units::Instant;

use crate::cgroup::Group;
use crate::isolation::Boundary;
use crate::secrets::{self, Secrets};

/// Size of a reserved state file. One block on the usual file systems; a state fits in it.
const ROOM_BYTES: usize = 4096;
/// What the run prints.
pub(crate) const OUTPUT: &str = "output.log";
/// Longest fault text that is recorded, in characters; four bytes each still fit the room.
const FAULT_CHARS_MAX: usize = 800;

/// `spec.json`: everything the supervisor needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SpecFile {
    /// The run key, as text.
    pub(crate) key: String,
    /// SIGTERM to SIGKILL, in milliseconds.
    pub(crate) grace_ms: u64,
    /// Whether it needs what lies in `secrets.json`.
    #[serde(default)]
    pub(crate) secrets: bool,
    /// How it is run. An older supervisor refuses a runtime it does not know.
    pub(crate) runtime: Runtime,
}

/// The ways of running a pod on this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Runtime {
    /// A process tree on the host itself.
    Process(ProcessSpec),
}

/// A command with its surroundings, complete.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProcessSpec {
    /// Program and arguments; never empty.
    pub(crate) argv: Vec<String>,
    /// The whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Working directory.
    pub(crate) working_dir: PathBuf,
    /// Which permissions its files lack by default; none: as the supervisor's.
    #[serde(default)]
    pub(crate) umask: Option<u32>,
    /// Whether whoever attaches may type.
    #[serde(default)]
    pub(crate) stdin: bool,
    /// Whether it has a terminal.
    #[serde(default)]
    pub(crate) tty: bool,
    /// Its control group; none: there are none here, and what it uses is not limited.
    #[serde(default)]
    pub(crate) group: Option<Group>,
    /// Most it may use.
    #[serde(default)]
    pub(crate) limits: Limits,
    /// Most of its output that is kept, in bytes; none: all of it.
    #[serde(default)]
    pub(crate) output_bytes_max: Option<u64>,
    /// What keeps it apart from others; none: nothing does.
    #[serde(default)]
    pub(crate) boundary: Option<Boundary>,
    /// Whether programs in it may get rights that it has not, as `sudo` does.
    #[serde(default)]
    pub(crate) more_rights: bool,
    /// The port of its image, and the one it was told instead.
    #[serde(default)]
    pub(crate) port: Option<(u16, u16)>,
}

/// `state.json`, and one line on the pipe to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub(crate) enum StateFile {
    /// Claimed; no main process yet.
    Starting,
    /// The main process runs.
    Running {
        /// Its id.
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
    /// Killed because the run had more memory than it may.
    OutOfMemory,
    /// Unknown.
    Lost,
}

impl StateFile {
    /// The end, now.
    pub(crate) fn exited(exit: ExitFile) -> Self {
        Self::Exited { exit, at_ms: now_ms() }
    }

    /// The run could not be started; long texts are cut so that the state fits its room.
    pub(crate) fn cannot_run(fault: &str) -> Self {
        Self::exited(ExitFile::CannotRun(fault.chars().take(FAULT_CHARS_MAX).collect()))
    }
}

impl From<ExitFile> for Exit {
    fn from(exit: ExitFile) -> Self {
        match exit {
            ExitFile::Code(code) => Self::Code(code),
            ExitFile::Signal(signal) => Self::Signal(signal),
            ExitFile::CannotRun(fault) => Self::CannotRun(fault),
            ExitFile::OutOfMemory => Self::OutOfMemory,
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

/// The lock of a run directory, held until dropped. The file is opened once per process:
/// closing any other handle to it would release the lock.
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

    /// An existing directory, as the supervisor is given it.
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
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

    /// Whether the run was prepared.
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

    /// Leaves the secret values to the supervisor. To be called before the specification is written.
    pub(crate) fn write_secrets(&self, secrets: &Secrets) -> io::Result<()> {
        if self.has_spec() { Ok(()) } else { self.replace(secrets::FILE, &to_json(secrets)?) }
    }

    /// Takes the secret values away from the disk.
    pub(crate) fn take_secrets(&self) -> io::Result<Secrets> {
        let path = self.file(secrets::FILE);
        let found = serde_json::from_slice(&fs::read(&path)?)?;
        fs::remove_file(path).map(|()| found)
    }

    /// Where the secret files of the run lie.
    pub(crate) fn secrets_folder(&self) -> PathBuf {
        self.file(secrets::FOLDER)
    }

    /// The run has ended, or never begins: nobody needs its secrets any more. That they resist
    /// changes nothing of how it ended; they go with the directory then.
    fn forget_secrets(&self, state: &StateFile) {
        let StateFile::Exited { .. } = state else { return };
        for gone in [
            secrets::forget(&self.file(secrets::FILE)),
            secrets::forget_folder(&self.secrets_folder()),
        ] {
            if let Err(error) = gone {
                // In the log of the supervisor or of the server, whoever this is.
                let _refused = writeln!(io::stderr(), "failed to delete its secrets: {error}");
            }
        }
    }

    /// Reads the specification.
    pub(crate) fn read_spec(&self) -> io::Result<SpecFile> {
        serde_json::from_slice(&fs::read(self.file("spec.json"))?).map_err(io::Error::from)
    }

    /// The control group of the run; none: it has none, or is not prepared.
    pub(crate) fn group(&self) -> Option<Group> {
        let Runtime::Process(process) = self.read_spec().ok()?.runtime;
        process.group
    }

    /// Reads the state. None: nobody has claimed the run. A state that is there but cannot be
    /// parsed was being created when its writer died, so the run was claimed and no more.
    pub(crate) fn read_state(&self) -> io::Result<Option<StateFile>> {
        match fs::read(self.file("state.json")) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text).unwrap_or(StateFile::Starting))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Decides the fate of an unclaimed run. False: somebody else was first.
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

    /// Takes disk space for the states to come, so that a disk that fills up later cannot keep
    /// an exit from being recorded.
    pub(crate) fn reserve_states(&self) -> io::Result<()> {
        let blank = [b' '; ROOM_BYTES];
        private(&self.file("state.running.room"))?.write_all(&blank)?;
        private(&self.file("state.exited.room"))?.write_all(&blank)
    }

    /// Replaces the state, using the reserved space. Falls back to new space without one.
    pub(crate) fn write_state(&self, state: &StateFile) -> io::Result<()> {
        let room = match state {
            StateFile::Exited { .. } => "state.exited.room",
            StateFile::Starting | StateFile::Running { .. } => "state.running.room",
        };
        let mut text = to_json(state)?;
        // Overwritten in place and never cut: blanks after a JSON value mean nothing.
        text.resize(text.len().max(ROOM_BYTES), b' ');
        match OpenOptions::new().write(true).open(self.file(room)) {
            Ok(mut file) => file.write_all(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private(&self.file(room))?.write_all(&text)?;
            }
            Err(error) => return Err(error),
        }
        fs::rename(self.file(room), self.file("state.json"))?;
        self.forget_secrets(state);
        Ok(())
    }

    /// Notes the grace of a stop, for the supervisor to read when it is signalled. Signals may
    /// melt into one, so the least grace of all stops is kept.
    pub(crate) fn write_grace(&self, grace_ms: u64) -> io::Result<()> {
        let least = self.read_grace().map_or(grace_ms, |before| before.min(grace_ms));
        self.replace("grace_ms", least.to_string().as_bytes())
    }

    /// The least grace of all stops; none when the specification's applies.
    pub(crate) fn read_grace(&self) -> Option<u64> {
        fs::read_to_string(self.file("grace_ms")).ok()?.trim().parse().ok()
    }

    /// Becomes the run's supervisor. None: another process is.
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

    /// The run's supervisor, if it lives. Says nothing about a lock of this process itself.
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

    /// Writes a file of the run, whole or not at all, readable by its owner only.
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
