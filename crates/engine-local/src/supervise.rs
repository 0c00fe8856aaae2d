//! The supervisor: one small single-threaded process per run. Owns: starting the command, ending
//! its whole process tree, and the truth about both, in `state.json` and on the pipe it was
//! given as stdout. Refuses to know: the server, which may come and go.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use engine::Limits;
use rustix::event::PollFlags;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, getpid, set_child_subreaper, set_dumpable_behavior,
    setrlimit, setsid, umask,
};
use rustix::thread::set_no_new_privs;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::bound::{Bound, LOOK};
use crate::cgroup::Group;
use crate::console::Console;
use crate::door::{Door, NO_MORE_INPUT, Surroundings};
use crate::footprint::release_memory;
use crate::isolation::{Account, Boundary};
use crate::ownership;
use crate::record::{ExitFile, OUTPUT, ProcessSpec, RunDir, Runtime, SpecFile, StateFile, now_ms};
use crate::secrets::Secrets;
use crate::sys;
use crate::times::{Notes, TIMES, TIMES_BYTES_MAX};
use crate::tree::{Brood, Flag, Signals};

/// How the server asks its own program to supervise: `<program> supervise <run dir>`.
pub(crate) const SUBCOMMAND: &str = "supervise";
/// Once the main process has ended by itself, what it left running gets at most this long.
const REST_GRACE_MS_MAX: u64 = 2000;
/// Most pieces of a terminal that are written down once the main process has ended: more than the
/// kernel keeps.
const TERMINAL_PIECES_MAX: u32 = 64;
/// SIGKILL, and what a shell makes of it.
const KILL: i32 = 9;
const KILLED_CODE: i32 = 128 + KILL;
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
    // It holds secrets: nobody of the same user looks into it, and it leaves no image of itself.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // No image of a run either. A byte and not none: 0 would not keep the kernel from handing one to a
    // program (`core_pattern` with a pipe), 1 does, and is too little for a file (core(5), coredump.c).
    let nothing = Rlimit { current: Some(1), maximum: Some(1) };
    setrlimit(Resource::Core, nothing)?;
    std::env::set_current_dir("/")?;
    let mut signals = Orders::register()?;
    let Some(_lock) = dir.lock()? else { return Ok(()) };
    let spec = dir.read_spec()?;
    dir.reserve_states()?;
    if !dir.claim(&StateFile::Starting)? {
        return Ok(());
    }
    // Before it begins: what has no times was started by a supervisor that took none down.
    let notes = Notes::open(dir);
    let notes = notes.map_err(|error| complain(&format!("no times of its output: {error}"))).ok();
    let last = match secrets(dir, &spec).and_then(|secrets| start(dir, &spec, secrets)) {
        Ok((main, console, around)) => {
            let running = StateFile::Running {
                pid: main.as_raw_nonzero().get().unsigned_abs(),
                started_at_ms: now_ms(),
            };
            let group = around.group.clone();
            // Before it is said to run: who hears of it may come at once.
            let door = Door::open(dir, around);
            let door = door.map_err(|error| complain(&format!("nobody can come in: {error}"))).ok();
            // The file first: whoever was told of a state finds it after a restart.
            if let Err(error) = dir.write_state(&running) {
                complain(&format!("failed to record that the run started: {error}"));
            }
            say(&running);
            let brood = Brood::of(main, group.clone());
            let bounds = bounds(dir, &spec);
            let run = Run { dir, grace_ms: spec.grace_ms, brood, console, notes, door, bounds };
            StateFile::exited(judged(run.watch(&mut signals), group.as_ref()))
        }
        Err(Fault::OfRun(fault)) => StateFile::cannot_run(&fault),
        Err(Fault::OfMachine(error)) => {
            complain(&format!("failed to start the command: {error}"));
            StateFile::exited(ExitFile::Lost)
        }
    };
    let Runtime::Process(process) = &spec.runtime;
    if process.group.as_ref().is_some_and(|group| !group.end()) {
        complain("the control group of the run cannot be removed; the next server tries again");
    }
    record(dir, &last);
    Ok(())
}

/// The bounds of what is kept of the output, and of when it was written; none where all is.
fn bounds(dir: &RunDir, spec: &SpecFile) -> Vec<Bound> {
    let Runtime::Process(process) = &spec.runtime;
    let Some(most) = process.output_bytes_max else { return Vec::new() };
    let bound = |(name, most)| match dir.append(name) {
        Ok(file) => Some(Bound::new(name, file, most)),
        Err(error) => {
            complain(&format!("{name} has no bound: {error}"));
            None
        }
    };
    [(OUTPUT, most), (TIMES, TIMES_BYTES_MAX)].into_iter().filter_map(bound).collect()
}

/// How a run ended, by what its control group knows of it.
fn judged(exit: ExitFile, group: Option<&Group>) -> ExitFile {
    // 128 and the signal: how a shell tells that its last command was killed.
    let killed = matches!(exit, ExitFile::Signal(KILL) | ExitFile::Code(KILLED_CODE));
    let kills = group.filter(|_| killed).map_or(0, Group::out_of_memory_kills);
    if kills > 0 { ExitFile::OutOfMemory } else { exit }
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
pub(crate) enum Fault {
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
    let folder = dir.secrets_folder();
    secrets.write_files(&folder).map_err(Fault::OfMachine)?;
    if let Some(account) = account_of(spec) {
        ownership::give(&folder, account).map_err(Fault::OfMachine)?;
    }
    Ok(secrets)
}

fn account_of(spec: &SpecFile) -> Option<&Account> {
    let Runtime::Process(process) = &spec.runtime;
    process.boundary.as_ref()?.account()
}

fn start(
    dir: &RunDir,
    spec: &SpecFile,
    secrets: Secrets,
) -> Result<(Pid, Console, Surroundings), Fault> {
    let Runtime::Process(process) = &spec.runtime;
    match &process.boundary {
        Some(boundary) => boundary.leave_keys().map_err(Fault::OfMachine)?,
        // Behind a boundary the child finds out with the rights it has there.
        None => check_folder(&process.working_dir)?,
    }
    // What the platform says of the run itself stands.
    let mut env = secrets.variables;
    env.extend(process.env.clone());
    let around = Surroundings {
        key: spec.key.clone(),
        env,
        working_dir: process.working_dir.clone(),
        group: confine(process)?,
        boundary: process.boundary.clone(),
    };
    let (mut command, console) = command(dir, &around, process).map_err(Fault::OfMachine)?;
    if !process.more_rights {
        // Handed down to whoever comes to the run as well.
        set_no_new_privs(true).map_err(|error| Fault::OfMachine(error.into()))?;
    }
    if let Some(mask) = process.umask {
        // What this process writes from now on has its mode stated in full.
        umask(Mode::from_raw_mode(mask));
    }
    let program = process.argv.first().map_or("", String::as_str);
    let child = command.spawn().map_err(|error| refusal(error, program, &process.working_dir))?;
    // The handle is dropped: children are reaped together with the orphans, by `Brood::reap`.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Fault::OfMachine(io::Error::other("no process id")))?;
    Ok((pid, console, around))
}

/// Makes the control group of a run. Only one that has limits to keep is worth a failed start.
fn confine(process: &ProcessSpec) -> Result<Option<Group>, Fault> {
    let Some(group) = &process.group else { return Ok(None) };
    match group.make(&process.limits) {
        Ok(()) => Ok(Some(group.clone())),
        Err(error) if process.limits == Limits::default() => {
            complain(&format!("the run has no control group: {error}"));
            Ok(None)
        }
        // More than the groups around it have, or than the kernel can count.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(Fault::OfRun(format!(
            "its limits of CPU and memory cannot be kept on this machine: {error}; ask for less"
        ))),
        Err(error) => Err(Fault::OfMachine(error)),
    }
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
pub(crate) fn refusal(error: io::Error, program: &str, folder: &Path) -> Fault {
    let folder = folder.display();
    match (error.kind(), Errno::from_io_error(&error)) {
        (_, Some(sys::NO_WORKING_DIR)) => Fault::OfRun(format!(
            "the working directory {folder} does not exist, or the account of the run may not \
             enter it"
        )),
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

fn command(
    dir: &RunDir,
    around: &Surroundings,
    spec: &ProcessSpec,
) -> io::Result<(Command, Console)> {
    let log = dir.append(OUTPUT)?;
    let account = spec.boundary.as_ref().and_then(Boundary::account);
    if let Some(account) = account {
        // So that it can open /dev/stdout; it has no other way to the file.
        ownership::give_handle(&log, account)?;
    }
    let (console, [input, output, errors]) = Console::open(spec.stdin, spec.tty, log, account)?;
    let (program, args) = spec.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(args).stdin(input).stdout(output).stderr(errors);
    around.put_in(&mut command, spec.tty)?;
    Ok((command, console))
}

/// A run and who comes to it.
#[derive(Debug)]
struct Run<'a> {
    dir: &'a RunDir,
    grace_ms: u64,
    brood: Brood,
    console: Console,
    /// None: nobody takes down when it writes.
    notes: Option<Notes>,
    /// None: nobody can come to it.
    door: Option<Door>,
    /// None where there is no bound, or the file system cannot keep it.
    bounds: Vec<Bound>,
}

impl Run<'_> {
    /// Returns when the last process is gone, with how the main one ended.
    fn watch(mut self, signals: &mut Orders) -> ExitFile {
        let mut is_new = true;
        while self.brood.reap(|pid| self.door.iter_mut().for_each(|door| door.gone(pid))) {
            if signals.stop.take() {
                self.brood.ask(self.dir.read_grace().unwrap_or(self.grace_ms));
            }
            if signals.no_more_input.take() {
                self.console.end_input();
            }
            if self.brood.exit().is_some() {
                if let Some(door) = self.door.take() {
                    self.carry_rest();
                    door.shut();
                }
                self.brood.ask(self.grace_ms.min(REST_GRACE_MS_MAX));
            }
            self.note(Notes::look_when_due);
            let next_look = self.notes.as_ref().map(Notes::pause);
            let pause = self.brood.force_when_due().into_iter().chain(next_look);
            let pause = pause.chain(self.keep_bound()).min();
            // There is one supervisor for each run, for as long as it runs, and it does little more
            // than this.
            if std::mem::take(&mut is_new)
                && let Err(error) = release_memory()
            {
                complain(&format!("the memory of the start is not released: {error}"));
            }
            if let Err(error) = self.attend(signals, pause) {
                complain(&format!("failed to wait for signals and visitors: {error}"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        self.carry_rest();
        self.note(Notes::look);
        self.keep_bound();
        self.brood.into_exit()
    }

    /// Takes down when it wrote. What the disk refuses comes with the next time.
    fn note(&mut self, look: fn(&mut Notes) -> io::Result<()>) {
        if let Some(Err(error)) = self.notes.as_mut().map(look) {
            complain(&format!("failed to take down when it wrote: {error}"));
        }
    }

    /// Returns when to do it again.
    fn keep_bound(&mut self) -> Option<Duration> {
        self.bounds.retain_mut(Bound::keep);
        self.bounds.first().map(|_| LOOK)
    }

    /// Waits for what comes next, and sees to what is no signal.
    fn attend(&mut self, signals: &mut Orders, pause: Option<Duration>) -> io::Result<()> {
        let input = |fd| (fd, PollFlags::IN);
        let others =
            [self.console.awaited().map(input), self.door.as_ref().map(Door::awaited).map(input)];
        let [printed, knocked] = signals.all.wait(pause, others)?;
        if !printed.is_empty() {
            self.console.carry();
        }
        match &mut self.door {
            Some(door) if !knocked.is_empty() => door.let_in(|| self.console.handle()),
            _ => Ok(()),
        }
    }

    /// Writes down what is in the terminal. What goes on printing is not waited for.
    fn carry_rest(&mut self) {
        for _ in 0..TERMINAL_PIECES_MAX {
            if !self.console.carry() {
                return;
            }
        }
    }
}

/// What a supervisor is told by signals.
#[derive(Debug)]
struct Orders {
    all: Signals,
    stop: Flag,
    no_more_input: Flag,
}

impl Orders {
    fn register() -> io::Result<Self> {
        let all = Signals::new()?;
        let stop = all.flag(&[SIGTERM, SIGINT])?;
        let no_more_input = all.flag(&[NO_MORE_INPUT.as_raw()])?;
        // SIGHUP only wakes: a terminal that closes is no reason to stop a run.
        all.wake_by(&[SIGCHLD, SIGHUP])?;
        Ok(Self { all, stop, no_more_input })
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
pub(crate) fn complain(text: &str) {
    let _refused = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_with_limits_needs_the_group_that_cannot_be_made() {
        let spec = |group: &str, limits: &str| {
            let text = format!(
                r#"{{"argv":[],"env":{{}},"working_dir":"/","group":{group},"limits":{limits}}}"#
            );
            serde_json::from_str::<ProcessSpec>(&text).expect("a specification")
        };
        let nowhere = r#"{"version":"v2","folders":{"cpu":"/no/such/place"}}"#;
        let none = r#"{"cpu_millis_max":null,"memory_bytes_max":null}"#;
        let some = r#"{"cpu_millis_max":500,"memory_bytes_max":null}"#;
        assert_eq!(confine(&spec("null", some)).expect("it starts, without"), None);
        assert_eq!(confine(&spec(nowhere, none)).expect("it starts, without"), None);
        assert!(confine(&spec(nowhere, some)).is_err(), "later it may do better");
    }

    #[test]
    fn only_what_would_fail_again_is_the_runs_own_fault() {
        let refusal = |error| refusal(error, "train", Path::new("/work"));
        let own = |error: Errno| matches!(refusal(error.into()), Fault::OfRun(_));
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
        assert!(matches!(refusal(zero), Fault::OfRun(_)));
    }
}
