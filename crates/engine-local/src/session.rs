//! The process that sees to one visitor of a run, below the run's supervisor and with all that a
//! process of the run has. Owns: the command a visitor runs, with or without a terminal, and the end
//! of all it started; or the way between a visitor and the main process.

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

use engine::{Input, TerminalSize};
use rustix::event::PollFlags;
use rustix::fs::inotify;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_child_subreaper};
use rustix::termios::isatty;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::bound::read_kept;
use crate::console::{pipe, resize, terminal};
use crate::door::{self, NO_MORE_INPUT, OVER, Surroundings};
use crate::frame::{self, Wish};
use crate::isolation::{Account, Boundary};
use crate::process::signal_descendants;
use crate::record::{ExitFile, ProcessSpec, RunDir, Runtime, SpecFile};
use crate::supervise::{Fault, complain, refusal};
use crate::tree::{Brood, Flag, Signals};

/// What a command left running has so long to end.
const REST_GRACE_MS: u64 = 500;
/// Bytes read at a time.
const PIECE_BYTES: usize = 32 << 10;
/// What a terminal takes for the end of its input.
const END_OF_INPUT: [u8; 1] = [4];

/// Sees to the visitor that is connected to this process's standard input; who attaches types into
/// its standard output. Returns when nothing of the visitor is left.
///
/// To be called first thing in a process of its own.
#[must_use]
pub fn session(run_dir: &Path) -> ExitCode {
    match run(&RunDir::at(run_dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("failed to see to a visitor: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &RunDir) -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    let mut orders = Orders::register()?;
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    check_key(dir, &mut line)?;
    match frame::read_wish(&mut line)? {
        Wish::Exec { command, stdin, terminal, env } => {
            leave_input()?;
            let around = surroundings(dir, env)?;
            let exit = match Guest::start(&command, stdin, terminal, &around, &line)? {
                Ok(guest) => guest.watch(&mut orders, &line),
                Err(why) => ExitFile::CannotRun(why),
            };
            line.write_all(&frame::end(&exit)?)
        }
        Wish::Attach { terminal, from, stdin } => {
            let console = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            if !stdin {
                leave_input()?;
            }
            attach(dir, (terminal, from), (console, stdin), &mut orders, &line)
        }
    }
}

/// Refuses a visitor who has not the key of the run.
fn check_key(dir: &RunDir, line: &mut UnixStream) -> io::Result<()> {
    let key = std::fs::read(dir.file(door::KEY))?;
    let mut said = vec![0; key.len()];
    line.read_exact(&mut said)?;
    match said == key && !key.is_empty() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it has another key")),
    }
}

/// The surroundings of the run, for a command with these variables of its own.
fn surroundings(dir: &RunDir, env: BTreeMap<String, String>) -> io::Result<Surroundings> {
    let SpecFile { key, runtime: Runtime::Process(process), .. } = dir.read_spec()?;
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let env = door::handed_on().filter_map(text).chain(env).collect();
    let ProcessSpec { working_dir, boundary, .. } = process;
    // It is in the control group of the run, and so is what it starts.
    Ok(Surroundings { key, env, working_dir, group: None, boundary })
}

/// What this process is told by signals.
struct Orders {
    all: Signals,
    over: Flag,
}

impl Orders {
    fn register() -> io::Result<Self> {
        let all = Signals::new()?;
        let over = all.flag(&[OVER.as_raw()])?;
        // The run's processes are asked to end all together. This one ends after its own.
        all.wake_by(&[SIGCHLD, SIGTERM, SIGINT, SIGHUP])?;
        Ok(Self { all, over })
    }
}

/// A command of a visitor.
struct Guest {
    brood: Brood,
    main: Pid,
    /// Those who carry what it prints to the visitor.
    carriers: Vec<thread::JoinHandle<()>>,
}

impl Guest {
    /// Or why it cannot be run.
    fn start(
        words: &[String],
        stdin: bool,
        size: Option<(u16, u16)>,
        around: &Surroundings,
        line: &UnixStream,
    ) -> io::Result<Result<Self, String>> {
        let Some((program, args)) = words.split_first() else {
            return Ok(Err("say which command to run".to_owned()));
        };
        let mut command = Command::new(program);
        command.args(args);
        around.put_in(&mut command, size.is_some())?;
        let account = around.boundary.as_ref().and_then(Boundary::account);
        let ends = match size {
            Some(size) => Ends::of_terminal(&mut command, size, account)?,
            None => Ends::of_pipes(&mut command, stdin, account)?,
        };
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                return Ok(Err(match refusal(error, program, &around.working_dir) {
                    Fault::OfRun(why) => why,
                    Fault::OfMachine(error) => format!("`{program}` cannot be started: {error}"),
                }));
            }
        };
        // The other sides are the command's alone, so that they end with it.
        drop(command);
        let carriers = connect(ends, line)?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let main = id.ok_or_else(|| io::Error::other("no process id"))?;
        Ok(Ok(Self { brood: Brood::of(main, None), main, carriers }))
    }

    /// Returns how the command ended, when it is gone with all it started and all is printed.
    fn watch(mut self, orders: &mut Orders, line: &UnixStream) -> ExitFile {
        let mut hung_up = false;
        while self.brood.reap(|_| {}) {
            let left = orders.over.take() || is_gone(line);
            if (left || self.brood.exit().is_some()) && !hung_up {
                hung_up = true;
                signal_descendants(self.main, Signal::HUP);
                self.brood.ask(REST_GRACE_MS);
            }
            let pause = self.brood.force_when_due();
            // Once it is known that the visitor has gone it must not wake this any more.
            let visitor = (!hung_up).then(|| (line.as_fd(), PollFlags::empty()));
            if let Err(error) = orders.all.wait(pause, [visitor]) {
                complain(&format!("failed to wait for signals: {error}"));
                thread::sleep(std::time::Duration::from_millis(100));
            }
        }
        for carrier in self.carriers {
            // One that panicked has said so.
            let _ended = carrier.join();
        }
        self.brood.into_exit()
    }
}

fn is_gone(line: &UnixStream) -> bool {
    use rustix::event::{PollFd, Timespec, poll};
    let mut fds = [PollFd::new(line, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}

/// This side of what a command reads from and prints to.
struct Ends {
    typed: Option<Typed>,
    /// What it prints; whether these are errors.
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

/// Carries what is typed to a command, and what it prints to the visitor.
fn connect(ends: Ends, line: &UnixStream) -> io::Result<Vec<thread::JoinHandle<()>>> {
    let Ends { typed, printed } = ends;
    let to = Arc::new(Mutex::new(line.try_clone()?));
    let from = line.try_clone()?;
    // It ends with the visitor, or with this process.
    thread::spawn(move || take_input(from, typed, end_input));
    let start = |(from, errors)| {
        let to = Arc::clone(&to);
        thread::spawn(move || carry(from, errors, &to))
    };
    Ok(printed.into_iter().map(start).collect())
}

/// What a visitor types into.
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

/// Tells a command that there is no more input.
fn end_input(typed: &mut Option<Typed>) {
    match typed {
        // It may have ended.
        Some(Typed::Terminal(terminal)) => drop(terminal.write_all(&END_OF_INPUT)),
        _ => *typed = None,
    }
}

/// Hands on what is typed, until the visitor goes.
fn take_input(mut from: UnixStream, mut to: Option<Typed>, at_end: fn(&mut Option<Typed>)) {
    while let Ok(input) = frame::read_input(&mut from) {
        match (input, &mut to) {
            (Input::Bytes(bytes), Some(typed)) => {
                if typed.file().write_all(&bytes).is_err() {
                    // Who does not read any more is told nothing, and the visitor goes on.
                    to = None;
                }
            }
            (Input::Resize(TerminalSize { rows, columns }), Some(Typed::Terminal(terminal))) => {
                if let Err(error) = resize(terminal, (rows, columns)) {
                    complain(&format!("failed to resize a terminal: {error}"));
                }
            }
            (Input::Eof, typed) => at_end(typed),
            (Input::Bytes(_) | Input::Resize(_), _) => {}
        }
    }
}

fn carry(mut from: File, errors: bool, to: &Mutex<UnixStream>) {
    let mut piece = [0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // EIO is how a terminal says that nobody is at its other side any more.
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let frames = frame::output(errors, &piece[..count]);
                let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                // Read on for a visitor that has gone, so that the command can end.
                let _gone = to.write_all(&frames);
            }
        }
    }
}

/// Shows what the main process prints, and hands on what is typed. What it prints last the server finds
/// in the log.
fn attach(
    dir: &RunDir,
    (size, past): (Option<(u16, u16)>, u64),
    (console, stdin): (File, bool),
    orders: &mut Orders,
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
    thread::spawn(move || take_input(from, typed, let_go));
    let (mut to, mut piece) = (line.try_clone()?, vec![0; PIECE_BYTES]);
    while !orders.over.take() {
        loop {
            let (from, count) = read_kept(&log, shown, &mut piece)?;
            if count == 0 {
                break;
            }
            shown = from + count as u64;
            if to.write_all(&frame::output(false, &piece[..count])).is_err() {
                return Ok(());
            }
        }
        let others =
            [Some((changes.as_fd(), PollFlags::IN)), Some((line.as_fd(), PollFlags::empty()))];
        let [_, visitor] = orders.all.wait(None, others)?;
        if !visitor.is_empty() {
            return Ok(());
        }
        // Only that there are changes matters; the log says which.
        let _none = changes.read(&mut piece);
    }
    Ok(())
}

/// Somebody who attached types no more. At a terminal others may be; the input of a pipe ends.
fn let_go(typed: &mut Option<Typed>) {
    let (Some(Typed::Pipe(_)), Some(supervisor)) = (&typed, getppid()) else { return };
    *typed = None;
    let ended = leave_input().and_then(|()| Ok(kill_process(supervisor, NO_MORE_INPUT)?));
    if let Err(error) = ended {
        complain(&format!("failed to end the input: {error}"));
    }
}

/// Standard output is the input of the main process, which does not end while somebody has it open.
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
        let knock = |said: &[u8]| {
            let (mut visitor, mut line) = UnixStream::pair().expect("a line");
            visitor.write_all(said).expect("written");
            drop(visitor);
            check_key(&dir, &mut line).is_ok()
        };
        assert!(!knock(b""), "there is no key");
        dir.replace(door::KEY, b"").expect("written");
        assert!(!knock(b"x"), "no key that anybody has");
        dir.replace(door::KEY, b"0123").expect("written");
        assert!(knock(b"0123") && knock(b"0123wish"));
        assert!(!knock(b"0124") && !knock(b"012") && !knock(b""));
    }
}
