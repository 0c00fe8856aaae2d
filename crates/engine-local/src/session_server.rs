//! The supervisor's server for sessions. Owns: the socket, and a process for each session, which
//! is among the processes of the run. Does not know what a session does.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use engine::environment::RUN_VARIABLE;
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::cgroup::Group;
use crate::isolation::{Boundary, Entry};
use crate::process::limit_mark;
use crate::record::RunDir;
use crate::sys::{self, Start};
use crate::tasks;

/// The socket in the run's folder.
pub(crate) const SOCKET: &str = "session.sock";
/// The secret that a client sends first. The socket alone is no proof: Landlock lets every process
/// of the same account connect to it.
pub(crate) const KEY: &str = "session.key";
/// Starts the process of a session: `<program> session <run dir>`.
pub(crate) const SUBCOMMAND: &str = "session";
/// Tells sessions that the main process has ended and all its output is in the log.
pub(crate) const MAIN_EXITED: Signal = Signal::USR1;
/// Tells the supervisor that the input has ended.
pub(crate) const NO_MORE_INPUT: Signal = Signal::USR2;
/// Most sessions at a time; further connections are closed.
const SESSIONS_MAX: usize = 64;

/// The context of the run's processes.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    pub(crate) key: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) working_dir: PathBuf,
    /// The control group of the run, created.
    pub(crate) group: Option<Group>,
    /// The isolation of the run.
    pub(crate) boundary: Option<Boundary>,
}

impl RunContext {
    /// Starts a command as a process of the run, in a session of its own.
    pub(crate) fn prepare(&self, command: &mut Command, terminal: bool) -> io::Result<()> {
        command.env_clear().envs(&self.env);
        let groups = self.group.as_ref().map(Group::entry_files).transpose()?.unwrap_or_default();
        let entry = self.boundary.as_ref().map(|boundary| boundary.entry(&self.working_dir));
        let enter = entry.transpose()?.map(Entry::of_run);
        if enter.is_none() {
            command.current_dir(&self.working_dir);
        }
        let mark = limit_mark(&self.key);
        sys::in_own_session(
            command,
            Start { mark, tasks: tasks::of_runs(), terminal, groups, enter },
        );
        Ok(())
    }

    /// Starts this program among the processes of the run, for a session. It keeps the account of
    /// the server, so the run's environment (`LD_PRELOAD`) is passed under other names.
    fn prepare_session(&self, command: &mut Command) -> io::Result<()> {
        let run_environment =
            |(name, value): (&String, &String)| (format!("{RUN_PREFIX}{name}"), value.clone());
        command.env_clear().envs(self.env.iter().map(run_environment)).current_dir("/");
        command.env(RUN_VARIABLE, &self.key);
        let groups = self.group.as_ref().map(Group::entry_files).transpose()?.unwrap_or_default();
        let mark = limit_mark(&self.key);
        sys::in_own_session(
            command,
            Start { mark, tasks: tasks::of_runs(), terminal: false, groups, enter: None },
        );
        Ok(())
    }
}

/// Prefix of variables that are not for this process itself.
const RUN_PREFIX: &str = "RUN:";

/// The environment of the run, in a session's process.
pub(crate) fn run_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let own = name.as_bytes().strip_prefix(RUN_PREFIX.as_bytes())?;
        Some((OsStr::from_bytes(own).to_owned(), value))
    })
}

/// A listening server.
#[derive(Debug)]
pub(crate) struct SessionServer {
    listener: UnixListener,
    dir: RunDir,
    around: RunContext,
    sessions: BTreeSet<i32>,
}

/// The path of the socket, short enough for the kernel; valid while the folder's handle is open.
pub(crate) fn socket(dir: &RunDir) -> io::Result<(File, PathBuf)> {
    let folder = File::open(dir.path())?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
    Ok((folder, path.into()))
}

impl SessionServer {
    pub(crate) fn open(dir: &RunDir, around: RunContext) -> io::Result<Self> {
        dir.replace(KEY, Uuid::new_v4().simple().to_string().as_bytes())?;
        let (_folder, path) = socket(dir)?;
        let listener = match UnixListener::bind(&path) {
            // Left by an earlier supervisor that was killed before it started anything.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            bound => bound?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self { listener, dir: dir.clone(), around, sessions: BTreeSet::new() })
    }

    /// Readable when a client connects.
    pub(crate) fn awaited(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Accepts a connection; `input` is the main process's input, for attached clients.
    pub(crate) fn accept(&mut self, input: impl Fn() -> io::Result<Stdio>) -> io::Result<()> {
        let connection = match self.listener.accept() {
            Ok((connection, _)) => connection,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        if self.sessions.len() >= SESSIONS_MAX {
            return Ok(());
        }
        // This program, even if the file was replaced.
        let mut command = Command::new("/proc/self/exe");
        command.arg(SUBCOMMAND).arg(self.dir.path());
        let complaints = self.dir.append("supervisor.log")?;
        command.stdin(OwnedFd::from(connection)).stdout(input()?).stderr(complaints);
        self.around.prepare_session(&mut command)?;
        // Reaped with all processes below the supervisor.
        self.sessions.extend(i32::try_from(command.spawn()?.id()).ok());
        Ok(())
    }

    /// Removes an ended process, if it was a session's.
    pub(crate) fn gone(&mut self, pid: Pid) {
        self.sessions.remove(&pid.as_raw_nonzero().get());
    }

    /// Stops accepting connections and ends the sessions.
    pub(crate) fn shut(self) {
        for pid in self.sessions.into_iter().filter_map(Pid::from_raw) {
            // They are unreaped children of this process, so the ids are valid.
            let _ended = kill_process(pid, MAIN_EXITED);
        }
    }
}
