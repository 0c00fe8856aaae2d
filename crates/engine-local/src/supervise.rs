//! The supervisor: one small single-threaded process per run. Owns: starting the command, ending
//! its whole process tree, and the truth about both, in `state.json` and on the pipe it was
//! given as stdout. Refuses to know: the server, which may come and go.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, set_child_subreaper, setsid, umask, wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::process::{limit_mark, signal_descendants};
use crate::record::{ExitFile, ProcessSpec, RunDir, Runtime, SpecFile, StateFile, now_ms};
use crate::secrets::Secrets;
use crate::sys;

/// How the server asks its own program to supervise: `<program> supervise <run dir>`.
pub(crate) const SUBCOMMAND: &str = "supervise";
/// Once the main process has ended by itself, what it left running gets at most this long.
const REST_GRACE_MS_MAX: u64 = 2000;
/// Between two rounds of SIGKILL, first and most: a process may be forking, or stuck in a driver.
const KILL_ROUND_MS: (u64, u64) = (5, 1000);
/// Between two attempts to record the end.
const RECORD_RETRY: Duration = Duration::from_secs(1);

/// Supervises the run in `run_dir` until every process of it is gone. Returns at once if another
/// supervisor has the run, or had it.
///
/// To be called first thing in a process of its own, before any thread or runtime is started.
/// States are printed on stdout, one JSON object a line; nobody needs to read them.
#[must_use]
pub fn supervise(run_dir: &Path) -> ExitCode {
    match run(&RunDir::at(run_dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing was started, and the run is not to blame: a later one may do better.
            complain(&format!("failed to supervise the run: {error}"));
            say(&StateFile::exited(ExitFile::Lost));
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &RunDir) -> io::Result<()> {
    // Refused when started by hand as the leader of a job: then it has a group of its own.
    let _leader = setsid();
    set_child_subreaper(Some(getpid()))?;
    sys::keep_descriptors();
    std::env::set_current_dir("/")?;
    let mut signals = Signals::register()?;
    let Some(_lock) = dir.lock()? else { return Ok(()) };
    let spec = dir.read_spec()?;
    dir.reserve_states()?;
    if !dir.claim(&StateFile::Starting)? {
        return Ok(());
    }
    let last = match secrets(dir, &spec).and_then(|secrets| start(dir, &spec, &secrets)) {
        Ok(main) => {
            let running = StateFile::Running {
                pid: main.as_raw_nonzero().get().unsigned_abs(),
                started_at_ms: now_ms(),
            };
            // The file first: whoever was told of a state finds it after a restart.
            if let Err(error) = dir.write_state(&running) {
                complain(&format!("failed to record that the run started: {error}"));
            }
            say(&running);
            let tree = Tree { dir, main, grace_ms: spec.grace_ms, exit: None, end: End::Unasked };
            StateFile::exited(tree.watch(&mut signals))
        }
        Err(Fault::OfRun(fault)) => StateFile::cannot_run(&fault),
        Err(Fault::OfMachine(error)) => {
            complain(&format!("failed to start the command: {error}"));
            StateFile::exited(ExitFile::Lost)
        }
    };
    record(dir, &last);
    Ok(())
}

/// Records the end, however long it takes: while the disk refuses, this process is the record.
fn record(dir: &RunDir, last: &StateFile) {
    let mut told = false;
    loop {
        let written = dir.write_state(last);
        if !told {
            say(last);
            told = true;
        }
        match written {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return, // removed meanwhile
            Err(error) => complain(&format!("failed to record the exit: {error}; trying again")),
        }
        std::thread::sleep(RECORD_RETRY);
    }
}

/// Why a command was not started.
#[derive(Debug)]
enum Fault {
    /// What was asked for cannot be run here; trying again does not help.
    OfRun(String),
    /// The machine has no room, memory or process to spare at the moment, or a disk that fails.
    OfMachine(io::Error),
}

/// The secret values, from now on in memory and in the run's own files only.
fn secrets(dir: &RunDir, spec: &SpecFile) -> Result<Secrets, Fault> {
    if !spec.secrets {
        return Ok(Secrets::default());
    }
    let secrets = dir.take_secrets().map_err(Fault::OfMachine)?;
    secrets.write_files(&dir.secrets_folder()).map_err(Fault::OfMachine)?;
    Ok(secrets)
}

fn start(dir: &RunDir, spec: &SpecFile, secrets: &Secrets) -> Result<Pid, Fault> {
    let Runtime::Process(process) = &spec.runtime;
    check_folder(&process.working_dir)?;
    let mut command = command(dir, &spec.key, process).map_err(Fault::OfMachine)?;
    for (name, value) in &secrets.variables {
        // What the platform says of the run itself stands.
        if !process.env.contains_key(name) {
            command.env(name, value);
        }
    }
    if let Some(mask) = process.umask {
        // What this process writes from now on has its mode stated in full.
        umask(Mode::from_raw_mode(mask));
    }
    let child = command.spawn().map_err(|error| refusal(error, process))?;
    // The handle is dropped: children are reaped together with the orphans, by `Tree::reap`.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| Fault::OfMachine(io::Error::other("no process id")))
}

fn check_folder(working_dir: &Path) -> Result<(), Fault> {
    let folder = working_dir.display();
    match std::fs::metadata(working_dir) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(Fault::OfRun(format!("the working directory {folder} is not a directory"))),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Fault::OfRun(format!(
                "the working directory {folder} does not exist on this machine"
            )),
            io::ErrorKind::PermissionDenied => {
                Fault::OfRun(format!("the working directory {folder}: permission denied"))
            }
            _ => Fault::OfMachine(error),
        }),
    }
}

/// Only what the same command meets again on a healthy machine is the run's own fault.
fn refusal(error: io::Error, process: &ProcessSpec) -> Fault {
    let program = process.argv.first().map_or("", String::as_str);
    let folder = process.working_dir.display();
    match (error.kind(), Errno::from_io_error(&error)) {
        (io::ErrorKind::NotFound, _) => {
            Fault::OfRun(format!("`{program}`: command not found on this machine"))
        }
        (io::ErrorKind::PermissionDenied, _) => Fault::OfRun(format!(
            "`{program}`: permission denied (is it executable, and {folder} accessible?)"
        )),
        // Without a system error: a zero byte in an argument, as the standard library finds.
        (io::ErrorKind::InvalidInput, None)
        | (
            _,
            Some(
                Errno::NOEXEC
                | Errno::TOOBIG
                | Errno::NOTDIR
                | Errno::ISDIR
                | Errno::LOOP
                | Errno::NAMETOOLONG,
            ),
        ) => Fault::OfRun(format!("`{program}` cannot be started: {error}")),
        _ => Fault::OfMachine(error),
    }
}

fn command(dir: &RunDir, key: &str, spec: &ProcessSpec) -> io::Result<Command> {
    let log = dir.append("output.log")?;
    let (program, args) = spec.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(&spec.env).current_dir(&spec.working_dir);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    sys::in_own_session(&mut command, limit_mark(key));
    Ok(command)
}

/// How far the run has been asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Not at all.
    Unasked,
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked(Instant),
    /// SIGKILL is sent again and again, this many milliseconds apart.
    Forced(u64),
}

/// The processes of the run: as subreaper, everything below this process.
#[derive(Debug)]
struct Tree<'a> {
    dir: &'a RunDir,
    main: Pid,
    grace_ms: u64,
    exit: Option<ExitFile>,
    end: End,
}

impl Tree<'_> {
    /// Returns when the last process is gone, with how the main one ended.
    fn watch(mut self, signals: &mut Signals) -> ExitFile {
        while self.reap() {
            if signals.stop_asked() {
                self.ask(self.dir.read_grace().unwrap_or(self.grace_ms));
            }
            if self.exit.is_some() {
                self.ask(self.grace_ms.min(REST_GRACE_MS_MAX));
            }
            let pause = self.force_when_due();
            if let Err(error) = signals.wait(pause) {
                complain(&format!("failed to wait for signals: {error}"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        self.exit.unwrap_or(ExitFile::Lost)
    }

    /// Takes in whoever has died. False: no process of the run is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.exit = Some(exit_of(status)),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(rustix::io::Errno::CHILD) => return false,
                Err(error) => {
                    complain(&format!("failed to reap: {error}"));
                    return true;
                }
            }
        }
    }

    /// SIGTERM to all, once; asked again, only an earlier end counts.
    fn ask(&mut self, grace_ms: u64) {
        let now = Instant::now();
        // A grace beyond the clock's range is as good as a year.
        let until = now
            .checked_add(Duration::from_millis(grace_ms))
            .unwrap_or(now + Duration::from_secs(365 * 24 * 3600));
        self.end = match self.end {
            End::Unasked => {
                signal_descendants(self.main, Signal::TERM);
                End::Asked(until)
            }
            End::Asked(before) => End::Asked(before.min(until)),
            forced @ End::Forced(_) => forced,
        };
    }

    /// SIGKILL to all once the grace is over. Returns how long nothing is due.
    fn force_when_due(&mut self) -> Option<Duration> {
        let pause_ms = match self.end {
            End::Unasked => return None,
            End::Asked(until) => match until.checked_duration_since(Instant::now()) {
                Some(rest) if !rest.is_zero() => return Some(rest),
                _ => KILL_ROUND_MS.0,
            },
            End::Forced(pause_ms) => pause_ms,
        };
        signal_descendants(self.main, Signal::KILL);
        self.end = End::Forced((pause_ms * 2).min(KILL_ROUND_MS.1));
        Some(Duration::from_millis(pause_ms))
    }
}

fn exit_of(status: WaitStatus) -> ExitFile {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitFile::Code(code),
        (None, Some(signal)) => ExitFile::Signal(signal),
        (None, None) => ExitFile::Lost, // only stops and continues, which are not asked for
    }
}

/// Signals turned into bytes on a socket, so that one read waits for all of them.
#[derive(Debug)]
struct Signals {
    wake: UnixStream,
    stop: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // Before the wake-up below: handlers run in the order of their registration.
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        for signal in [SIGTERM, SIGINT, SIGCHLD, SIGHUP] {
            // SIGHUP only wakes: a terminal that closes is no reason to stop a run.
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(Self { wake, stop })
    }

    fn stop_asked(&self) -> bool {
        self.stop.swap(false, Ordering::SeqCst)
    }

    /// Waits for the next signal, at most so long.
    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        // The system refuses a timeout of zero.
        self.wake.set_read_timeout(at_most.map(|pause| pause.max(Duration::from_millis(1))))?;
        match self.wake.read(&mut [0; 64]) {
            // How many signals came does not matter, only that one did.
            Ok(_count) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            },
        }
    }
}

/// One line for the server. It may be gone; the files stand for the message then.
fn say(state: &StateFile) {
    let Ok(mut line) = serde_json::to_vec(state) else { return };
    line.push(b'\n');
    let mut out = io::stdout().lock();
    let _gone = out.write_all(&line).and_then(|()| out.flush());
}

/// A line in `supervisor.log`, which is this process's stderr. It may be on the full disk.
fn complain(text: &str) {
    let _refused = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_fail_again_is_the_runs_own_fault() {
        let process = ProcessSpec {
            argv: vec!["train".into()],
            env: std::collections::BTreeMap::new(),
            working_dir: "/work".into(),
            umask: None,
        };
        let own = |error: Errno| matches!(refusal(error.into(), &process), Fault::OfRun(_));
        for error in [Errno::NOENT, Errno::ACCESS, Errno::NOEXEC, Errno::TOOBIG, Errno::LOOP] {
            assert!(own(error), "{error}");
        }
        for error in [
            Errno::AGAIN,
            Errno::NOMEM,
            Errno::NOSPC,
            Errno::MFILE,
            Errno::NFILE,
            Errno::IO,
            Errno::TXTBSY,
            Errno::INVAL,
        ] {
            assert!(!own(error), "{error}");
        }
        let zero = Command::new("a\0b").spawn().expect_err("no such name");
        assert!(matches!(refusal(zero, &process), Fault::OfRun(_)));
    }
}
