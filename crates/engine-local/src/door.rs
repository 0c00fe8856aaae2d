//! Where a supervisor lets in who comes to its run. Owns: the socket, and a process for each
//! visitor, which is among the processes of the run. Refuses to know: what the visitor wants.

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
use crate::isolation::Boundary;
use crate::process::limit_mark;
use crate::record::RunDir;
use crate::sys::{self, Start};

/// The socket in the run's folder.
pub(crate) const SOCKET: &str = "session.sock";
/// What a visitor says first. The socket alone is no proof: Landlock lets every process of the same
/// account connect to it.
pub(crate) const KEY: &str = "session.key";
/// How the supervisor asks its own program to see to a visitor: `<program> session <run dir>`.
pub(crate) const SUBCOMMAND: &str = "session";
/// Tells sessions that the main process has ended and all it printed is in the log.
pub(crate) const OVER: Signal = Signal::USR1;
/// Tells the supervisor that nobody types any more.
pub(crate) const NO_MORE_INPUT: Signal = Signal::USR2;
/// Most visitors at a time; further ones find the door shut.
const VISITORS_MAX: usize = 64;

/// The surroundings of a run.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) key: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) working_dir: PathBuf,
    /// The control group of the run, made.
    pub(crate) group: Option<Group>,
    /// What keeps it apart from others.
    pub(crate) boundary: Option<Boundary>,
}

impl Surroundings {
    /// Lets a command begin as a process of the run, in a session of its own.
    pub(crate) fn put_in(&self, command: &mut Command, terminal: bool) -> io::Result<()> {
        command.env_clear().envs(&self.env);
        let groups = self.group.as_ref().map(Group::doors).transpose()?.unwrap_or_default();
        let entry = self.boundary.as_ref().map(|boundary| boundary.entry(&self.working_dir));
        let entry = entry.transpose()?;
        if entry.is_none() {
            command.current_dir(&self.working_dir);
        }
        let mark = limit_mark(&self.key);
        sys::in_own_session(command, Start { mark, terminal, groups, entry });
        Ok(())
    }

    /// Lets this program begin among the processes of the run, to see to a visitor. It keeps the
    /// account of the server, so what the run put into its environment (`LD_PRELOAD`) is handed on
    /// under other names.
    fn put_beside(&self, command: &mut Command) -> io::Result<()> {
        let handed_on =
            |(name, value): (&String, &String)| (format!("{HANDED_ON}{name}"), value.clone());
        command.env_clear().envs(self.env.iter().map(handed_on)).current_dir("/");
        command.env(RUN_VARIABLE, &self.key);
        let groups = self.group.as_ref().map(Group::doors).transpose()?.unwrap_or_default();
        let mark = limit_mark(&self.key);
        sys::in_own_session(command, Start { mark, terminal: false, groups, entry: None });
        Ok(())
    }
}

/// What goes before the name of a variable that is not for the process which has it.
const HANDED_ON: &str = "RUN:";

/// The environment of the run, in a process that sees to its visitor.
pub(crate) fn handed_on() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let own = name.as_bytes().strip_prefix(HANDED_ON.as_bytes())?;
        Some((OsStr::from_bytes(own).to_owned(), value))
    })
}

/// An open door.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    dir: RunDir,
    around: Surroundings,
    visitors: BTreeSet<i32>,
}

/// The path of the socket, short enough for the kernel wherever the run's folder is; it is good while
/// the folder is held open.
pub(crate) fn socket(dir: &RunDir) -> io::Result<(File, PathBuf)> {
    let folder = File::open(dir.path())?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
    Ok((folder, path.into()))
}

impl Door {
    pub(crate) fn open(dir: &RunDir, around: Surroundings) -> io::Result<Self> {
        dir.replace(KEY, Uuid::new_v4().simple().to_string().as_bytes())?;
        let (_folder, path) = socket(dir)?;
        let listener = match UnixListener::bind(&path) {
            // Of a supervisor before this one that was killed before it started anything.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                fs::remove_file(&path)?;
                UnixListener::bind(&path)?
            }
            bound => bound?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self { listener, dir: dir.clone(), around, visitors: BTreeSet::new() })
    }

    /// What tells that somebody is at the door.
    pub(crate) fn awaited(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Lets in who is there; `input` is what they type into, should they attach.
    pub(crate) fn let_in(&mut self, input: impl Fn() -> io::Result<Stdio>) -> io::Result<()> {
        let connection = match self.listener.accept() {
            Ok((connection, _)) => connection,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        if self.visitors.len() >= VISITORS_MAX {
            return Ok(());
        }
        // Its own program, also when another was put in its place meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.arg(SUBCOMMAND).arg(self.dir.path());
        let complaints = self.dir.append("supervisor.log")?;
        command.stdin(OwnedFd::from(connection)).stdout(input()?).stderr(complaints);
        self.around.put_beside(&mut command)?;
        // Reaped together with all that is below the supervisor.
        self.visitors.extend(i32::try_from(command.spawn()?.id()).ok());
        Ok(())
    }

    /// A process has ended, perhaps a visitor's.
    pub(crate) fn gone(&mut self, pid: Pid) {
        self.visitors.remove(&pid.as_raw_nonzero().get());
    }

    /// Shuts the door and shows out who is in.
    pub(crate) fn shut(self) {
        for pid in self.visitors.into_iter().filter_map(Pid::from_raw) {
            // They are this process's children and not reaped, so the ids are theirs.
            let _ended = kill_process(pid, OVER);
        }
    }
}
