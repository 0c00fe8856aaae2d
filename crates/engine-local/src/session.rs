//! The process of one session, below the run's supervisor and with the run's context. Owns: the
//! command of an exec session, with or without a terminal, and its end with the client or the run;
//! or the copying between an attached client and the main process. Processes that a command leaves
//! running pass to the supervisor when this process ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Input, TerminalSize};
use engine_fractions::Refusal;
use rustix::event::PollFlags;
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_child_subreaper};
use rustix::termios::isatty;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::console::{pipe, resize, terminal};
use crate::isolation::{Account, Boundary};
use crate::log_retention::read_kept;
use crate::process::hang_up;
use crate::protocol::{self, SessionRequest};
use crate::record::log_line;
use crate::record::{ExitFile, ProcessSpec, RunDir, Runtime, SpecFile};
use crate::session_server::{self, MAIN_EXITED, NO_MORE_INPUT, RunContext};
use crate::supervise::{Fault, refusal};
use crate::tree::{Flag, ProcessTree, Signals};

/// How long a command has to end after its client disconnected, or after the run ended.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes read at a time.
const PIECE_BYTES: usize = 32 << 10;
/// Most pieces that are read after a command has ended: more than the kernel buffers. Processes in
/// the background may write for ever.
const LAST_PIECES_MAX: u32 = 64;
/// The end-of-input character of a terminal.
const END_OF_INPUT: [u8; 1] = [4];

/// Serves the client connected to standard input; standard output is the input of the main
/// process, for attached clients. Returns when nothing of the session is left.
///
/// Call it first in a process of its own.
#[must_use]
pub fn session(run_dir: &Path) -> ExitCode {
    match run(&RunDir::at(run_dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_line(&format!("the session failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &RunDir) -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    let mut signals = SignalFlags::register()?;
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    check_key(dir, &mut line)?;
    match protocol::read_request(&mut line)? {
        SessionRequest::Exec { command, stdin, terminal, env } => {
            leave_input()?;
            let around = surroundings(dir, env)?;
            let exit = match ExecSession::start(&command, stdin, terminal, &around, &line)? {
                Ok(exec_session) => exec_session.watch(&mut signals, &line),
                Err(why) => ExitFile::CannotRun(why),
            };
            line.write_all(&protocol::end(&exit)?)
        }
        SessionRequest::Attach { terminal, from, stdin } => {
            let console = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            if !stdin {
                leave_input()?;
            }
            attach(dir, (terminal, from), (console, stdin), &mut signals, &line)
        }
    }
}

/// Rejects a client without the key of the run.
fn check_key(dir: &RunDir, line: &mut UnixStream) -> io::Result<()> {
    let key = std::fs::read(dir.file(session_server::KEY))?;
    let mut said = vec![0; key.len()];
    line.read_exact(&mut said)?;
    match said == key && !key.is_empty() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it has another key")),
    }
}

/// The context of the run, with additional variables for a command.
fn surroundings(dir: &RunDir, env: BTreeMap<String, String>) -> io::Result<RunContext> {
    let SpecFile { key, runtime: Runtime::Process(process), .. } = dir.read_spec()?;
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let env = session_server::run_environment().filter_map(text).chain(env).collect();
    let ProcessSpec { working_dir, boundary, .. } = process;
    // This process is in the control group of the run, and so are its children.
    Ok(RunContext { key, env, working_dir, group: None, boundary })
}

/// The signals that this process reacts to.
struct SignalFlags {
    all: Signals,
    over: Flag,
}

impl SignalFlags {
    fn register() -> io::Result<Self> {
        let all = Signals::new()?;
        let over = all.flag(&[MAIN_EXITED.as_raw()])?;
        // The run's processes are stopped together. This one ends after its own.
        all.wake_by(&[SIGCHLD, SIGTERM, SIGINT, SIGHUP])?;
        Ok(Self { all, over })
    }
}

/// A command of a session.
struct ExecSession {
    tree: ProcessTree,
    main: Pid,
    /// The threads that copy its output to the client.
    carriers: Vec<thread::JoinHandle<()>>,
    /// Dropped when the command has ended: carriers read what is there, and no more.
    ended: UnixStream,
}

impl ExecSession {
    /// Or why it cannot be run.
    fn start(
        words: &[String],
        stdin: bool,
        size: Option<(u16, u16)>,
        around: &RunContext,
        line: &UnixStream,
    ) -> io::Result<Result<Self, String>> {
        let Some((program, args)) = words.split_first() else {
            return Ok(Err("say which command to run".to_owned()));
        };
        let mut command = Command::new(program);
        command.args(args);
        around.prepare(&mut command, size.is_some())?;
        let account = around.boundary.as_ref().and_then(Boundary::account);
        let ends = match size {
            Some(size) => Ends::of_terminal(&mut command, size, account)?,
            None => Ends::of_pipes(&mut command, stdin, account)?,
        };
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                return Ok(Err(match refusal(error, program, around) {
                    Fault::OfRun(why) | Fault::Refused(Refusal { why, .. }) => why,
                    Fault::OfMachine(error) => format!("`{program}` cannot be started: {error}"),
                }));
            }
        };
        // Only the command holds the other ends, so they close with it.
        drop(command);
        let (ended, carriers) = connect(ends, line)?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let main = id.ok_or_else(|| io::Error::other("no process id"))?;
        Ok(Ok(Self { tree: ProcessTree::of(main, None), main, carriers, ended }))
    }

    /// Returns the exit of the command, when its output is sent. Processes that it left in the
    /// background go on; with the run all end.
    fn watch(mut self, signals: &mut SignalFlags, line: &UnixStream) -> ExitFile {
        let (mut is_over, mut hung_up) = (false, None);
        while self.tree.reap(|_| {}) && (is_over || self.tree.exit().is_none()) {
            if signals.over.take() {
                is_over = true;
                hang_up(self.main);
                self.tree.ask(millis(GRACE));
            } else if hung_up.is_none() && has_disconnected(line) {
                hung_up = Some(Instant::now());
                hang_up(self.main);
            }
            let pause = self.tree.force_when_due().or_else(|| self.kill_when_due(hung_up));
            // A client that is known to be gone must not wake this loop again.
            let visitor = hung_up.is_none().then(|| (line.as_fd(), PollFlags::empty()));
            if let Err(error) = signals.all.wait(pause, [visitor]) {
                log_line(&format!("failed to wait for signals: {error}"));
                thread::sleep(Duration::from_millis(100));
            }
        }
        drop(self.ended);
        for carrier in self.carriers {
            // A panic was already printed.
            let _ended = carrier.join();
        }
        self.tree.into_exit()
    }

    /// SIGKILL to a command whose client disconnected, after the grace period. Returns the time
    /// until it is due.
    fn kill_when_due(&self, hung_up: Option<Instant>) -> Option<Duration> {
        let left = GRACE.checked_sub(hung_up?.elapsed()).filter(|left| !left.is_zero());
        if left.is_none() {
            // An unreaped child of this process, so the id is valid.
            let _ended = kill_process(self.main, Signal::KILL);
        }
        left
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn has_disconnected(line: &UnixStream) -> bool {
    use rustix::event::{PollFd, Timespec, poll};
    let mut fds = [PollFd::new(line, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}

/// This process's ends of a command's input and output.
struct Ends {
    typed: Option<Typed>,
    /// Its output; whether it is stderr.
    printed: Vec<(File, bool)>,
}

impl Ends {
    fn of_terminal(
        command: &mut Command,
        size: (u16, u16),
        account: Option<&Account>,
    ) -> io::Result<Self> {
        let (master, slave) = terminal(size, account)?;
        let master = File::from(master);
        command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
        let typed = Some(Typed::Terminal(master.try_clone()?));
        Ok(Self { typed, printed: vec![(master, false)] })
    }

    fn of_pipes(command: &mut Command, stdin: bool, account: Option<&Account>) -> io::Result<Self> {
        let mut typed = None;
        command.stdin(Stdio::null());
        if stdin {
            let (reader, writer) = pipe(account)?;
            command.stdin(reader);
            typed = Some(Typed::Pipe(OwnedFd::from(writer).into()));
        }
        let ((output, to_output), (errors, to_errors)) = (pipe(account)?, pipe(account)?);
        command.stdout(to_output).stderr(to_errors);
        let printed = [(output, false), (errors, true)];
        let printed = printed.map(|(from, errors)| (OwnedFd::from(from).into(), errors)).into();
        Ok(Self { typed, printed })
    }
}

/// Copies input to a command, and its output to the client, until the returned end is dropped.
fn connect(ends: Ends, line: &UnixStream) -> io::Result<(UnixStream, Vec<thread::JoinHandle<()>>)> {
    let Ends { typed, printed } = ends;
    let to = Arc::new(Mutex::new(line.try_clone()?));
    let from = line.try_clone()?;
    // Ends with the client, or with this process.
    thread::spawn(move || take_input(from, typed, end_input));
    let (ended, seen) = UnixStream::pair()?;
    let start = |(from, errors)| {
        let (to, seen) = (Arc::clone(&to), seen.try_clone()?);
        Ok(thread::spawn(move || carry(from, errors, &to, &seen)))
    };
    let carriers: io::Result<Vec<_>> = printed.into_iter().map(start).collect();
    Ok((ended, carriers?))
}

/// The destination of a client's input.
enum Typed {
    Terminal(File),
    Pipe(File),
}

impl Typed {
    fn file(&mut self) -> &mut File {
        match self {
            Self::Terminal(file) | Self::Pipe(file) => file,
        }
    }
}

/// Ends the input of a command.
fn end_input(typed: &mut Option<Typed>) {
    match typed {
        // It may have ended.
        Some(Typed::Terminal(terminal)) => drop(terminal.write_all(&END_OF_INPUT)),
        _ => *typed = None,
    }
}

/// Copies input until the client disconnects.
fn take_input(mut from: UnixStream, mut to: Option<Typed>, at_end: fn(&mut Option<Typed>)) {
    while let Ok(input) = protocol::read_input(&mut from) {
        match (input, &mut to) {
            (Input::Bytes(bytes), Some(typed)) => {
                if typed.file().write_all(&bytes).is_err() {
                    // A command that closed its input gets no more, and the session continues.
                    to = None;
                }
            }
            (Input::Resize(TerminalSize { rows, columns }), Some(Typed::Terminal(terminal))) => {
                if let Err(error) = resize(terminal, (rows, columns)) {
                    log_line(&format!("failed to resize a terminal: {error}"));
                }
            }
            (Input::Eof, typed) => at_end(typed),
            (Input::Bytes(_) | Input::Resize(_), _) => {}
        }
    }
}

/// Copies output until no process can write it, or the command has `ended` and nothing is left.
fn carry(mut from: File, errors: bool, to: &Mutex<UnixStream>, ended: &UnixStream) {
    let (mut piece, mut last_pieces) = (vec![0; PIECE_BYTES], 0);
    while last_pieces < LAST_PIECES_MAX {
        match wait_for_output(&from, ended) {
            Ok(Awaited { is_readable: false, .. }) => return,
            Ok(Awaited { has_ended, .. }) => last_pieces += u32::from(has_ended),
            Err(error) => return log_line(&format!("failed to wait for output: {error}")),
        }
        match from.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // EIO means that no process has the other end open.
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let frames = protocol::output(errors, &piece[..count]);
                let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                // Keep reading after the client disconnected, so that the command can end.
                let _gone = to.write_all(&frames);
            }
        }
    }
}

/// An event at the output of a command.
struct Awaited {
    is_readable: bool,
    has_ended: bool,
}

fn wait_for_output(from: &File, ended: &UnixStream) -> io::Result<Awaited> {
    use rustix::event::{PollFd, poll};
    // In this order, so that all that a command wrote before its end is readable with that end.
    let mut fds = [PollFd::new(ended, PollFlags::empty()), PollFd::new(from, PollFlags::IN)];
    loop {
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            done => break done.map(drop)?,
        }
    }
    let [has_ended, is_readable] = fds.map(|fd| !fd.revents().is_empty());
    Ok(Awaited { is_readable, has_ended })
}

/// Sends the main process's output, and copies input to it. The server reads the last output from
/// the log.
fn attach(
    dir: &RunDir,
    (size, past): (Option<(u16, u16)>, u64),
    (console, stdin): (File, bool),
    signals: &mut SignalFlags,
    line: &UnixStream,
) -> io::Result<()> {
    let log = File::open(dir.log_path())?;
    let mut shown = past;
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&watch, dir.log_path(), inotify::WatchFlags::MODIFY)?;
    let mut changes = File::from(watch);
    let is_terminal = isatty(&console);
    if let (true, Some(size)) = (is_terminal, size) {
        resize(&console, size)?;
    }
    let typed = match is_terminal {
        true => Some(Typed::Terminal(console)),
        false => stdin.then_some(Typed::Pipe(console)),
    };
    let from = line.try_clone()?;
    thread::spawn(move || take_input(from, typed, detach));
    let (mut to, mut piece) = (line.try_clone()?, vec![0; PIECE_BYTES]);
    while !signals.over.take() {
        loop {
            let (from, count) = read_kept(&log, shown, &mut piece)?;
            if count == 0 {
                break;
            }
            shown = from + count as u64;
            if to.write_all(&protocol::output(false, &piece[..count])).is_err() {
                return Ok(());
            }
        }
        let others =
            [Some((changes.as_fd(), PollFlags::IN)), Some((line.as_fd(), PollFlags::empty()))];
        let [_, visitor] = signals.all.wait(None, others)?;
        if !visitor.is_empty() {
            return Ok(());
        }
        // Only that the log changed matters, not how.
        let _none = changes.read(&mut piece);
    }
    Ok(())
}

/// Closes the input of an attached client. A terminal may have other clients; a pipe ends.
fn detach(typed: &mut Option<Typed>) {
    let (Some(Typed::Pipe(_)), Some(supervisor)) = (&typed, getppid()) else { return };
    *typed = None;
    let ended = leave_input().and_then(|()| Ok(kill_process(supervisor, NO_MORE_INPUT)?));
    if let Err(error) = ended {
        log_line(&format!("failed to end the input: {error}"));
    }
}

/// Standard output is the input of the main process, which stays open while this process has it.
fn leave_input() -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(null)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_key_of_the_run_is_seen_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = RunDir::at(folder.path());
        let connect = |said: &[u8]| {
            let (mut visitor, mut line) = UnixStream::pair().expect("a line");
            visitor.write_all(said).expect("written");
            drop(visitor);
            check_key(&dir, &mut line).is_ok()
        };
        assert!(!connect(b""), "there is no key");
        dir.replace(session_server::KEY, b"").expect("written");
        assert!(!connect(b"x"), "no key that anybody has");
        dir.replace(session_server::KEY, b"0123").expect("written");
        assert!(connect(b"0123") && connect(b"0123wish"));
        assert!(!connect(b"0124") && !connect(b"012") && !connect(b""));
    }
}
