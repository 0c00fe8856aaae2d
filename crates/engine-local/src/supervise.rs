//! The supervisor: one small single-threaded process per run. Owns: starting the command, ending
//! its whole process tree, and recording the state of both in `state.json` and on the pipe that is
//! its stdout. Does not know about the server, which may stop and start.

use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use engine::Limits;
use engine_fractions::Refusal;
use rustix::event::PollFlags;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, getpid, set_child_subreaper, set_dumpable_behavior,
    setrlimit, setsid, umask,
};
use rustix::thread::set_no_new_privs;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::access;
use crate::cgroup::Group;
use crate::console::Console;
use crate::footprint::release_memory;
use crate::isolation::{Account, Boundary};
use crate::log_retention::{CHECK_INTERVAL, LogRetention};
use crate::ownership;
use crate::record::{
    ExitFile, OUTPUT, ProcessSpec, RunDir, Runtime, SpecFile, StateFile, log_line, now_ms,
};
use crate::secrets::Secrets;
use crate::session_server::{NO_MORE_INPUT, RunContext, SessionServer};
use crate::sys;
use crate::times::{TIMES, TIMES_BYTES_MAX, TimesWriter};
use crate::tree::{Flag, ProcessTree, Signals};

/// How long the processes that the main process left running have to end.
const REST_GRACE_MS_MAX: u64 = 2000;
/// Most pieces of a terminal that are read after the main process has ended: more than the kernel
/// buffers.
const TERMINAL_PIECES_MAX: u32 = 64;
/// SIGKILL, and what a shell makes of it.
const KILL: i32 = 9;
const KILLED_CODE: i32 = 128 + KILL;
/// Between two attempts to record the end.
const RECORD_RETRY: Duration = Duration::from_secs(1);
/// Between two looks whether the look before a run has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// Supervises the run in `run_dir` until every process of it is gone. Returns at once if another
/// supervisor has the run, or had it.
///
/// Call it first in a process of its own, before any thread or runtime is started. Prints the
/// states on stdout, one JSON object a line; reading them is optional.
#[must_use]
pub fn supervise(run_dir: &Path) -> ExitCode {
    match run(&RunDir::at(run_dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing was started, and the cause is not the run: a later attempt may succeed.
            log_line(&format!("failed to supervise the run: {error}"));
            send_state(&StateFile::exited(ExitFile::Lost));
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &RunDir) -> io::Result<()> {
    // Fails for the leader of a job, when started by hand: it then has a group of its own.
    let _leader = setsid();
    set_child_subreaper(Some(getpid()))?;
    sys::keep_descriptors();
    // The process holds secrets: other processes of the user cannot read it, and it dumps no core.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // No core dump of a run either. The limit is one byte: with 0 the kernel still pipes a core to
    // a program (`core_pattern`); with 1 it does not, and a file needs more (core(5), coredump.c).
    let nothing = Rlimit { current: Some(1), maximum: Some(1) };
    setrlimit(Resource::Core, nothing)?;
    std::env::set_current_dir("/")?;
    let mut signals = SignalFlags::register()?;
    let Some(_lock) = dir.lock()? else { return Ok(()) };
    let spec = dir.read_spec()?;
    dir.reserve_room()?;
    if !dir.claim(&StateFile::Starting)? {
        return Ok(());
    }
    // Before the command starts: a run without times has a supervisor that recorded none.
    let notes = TimesWriter::open(dir);
    let notes = notes.map_err(|error| log_line(&format!("no times of its output: {error}"))).ok();
    let Runtime::Process(process) = &spec.runtime;
    let begin = || {
        let held = process.fraction.as_ref().map(engine_fractions::hold).transpose();
        let held = held.map_err(Fault::OfMachine)?;
        Ok((held, start(dir, &spec, secrets(dir, &spec)?)?))
    };
    let mut context = None;
    let last = match begin() {
        Ok((_held, (main, console, around))) => {
            let running = StateFile::Running {
                pid: main.as_raw_nonzero().get().unsigned_abs(),
                started_at_ms: now_ms(),
            };
            let group = around.group.clone();
            context = Some(around.clone());
            // Before the state is reported: a client may connect at once.
            let session_server = SessionServer::open(dir, around);
            let session_server = session_server
                .map_err(|error| log_line(&format!("the run accepts no sessions: {error}")))
                .ok();
            // Write the file first: a state that was reported must be found after a restart.
            if let Err(error) = dir.write_state(&running) {
                log_line(&format!("failed to record that the run started: {error}"));
            }
            send_state(&running);
            let tree = ProcessTree::of(main, group.clone());
            let bounds = bounds(dir, &spec);
            let run =
                Run { dir, grace_ms: spec.grace_ms, tree, console, notes, session_server, bounds };
            StateFile::exited(with_cause(run.watch(&mut signals), group.as_ref(), dir))
        }
        Err(Fault::OfRun(fault)) => StateFile::cannot_run(&fault),
        Err(Fault::Refused(refusal)) => StateFile::refused(refusal),
        Err(Fault::OfMachine(error)) => {
            log_line(&format!("failed to start the command: {error}"));
            StateFile::exited(ExitFile::Lost)
        }
    };
    leave(process, context.as_ref());
    record(dir, &last);
    Ok(())
}

/// Removes the control group and the memory of a run whose processes are gone.
fn leave(process: &ProcessSpec, context: Option<&RunContext>) {
    if process.group.as_ref().is_some_and(|group| !group.end()) {
        log_line("the control group of the run cannot be removed; the next server tries again");
    }
    if let (Some(memory), Some(context)) = (&process.memory, context)
        && let Err(error) = memory.end(context.boundary.as_ref())
    {
        log_line(&format!("checkpoints of the run are only in memory: {error}"));
    }
}

/// Size limits of the output and of its times; empty without a limit.
fn bounds(dir: &RunDir, spec: &SpecFile) -> Vec<LogRetention> {
    let Runtime::Process(process) = &spec.runtime;
    let Some(most) = process.output_bytes_max else { return Vec::new() };
    let bound = |(name, most)| match dir.append(name) {
        Ok(file) => Some(LogRetention::new(name, file, most)),
        Err(error) => {
            log_line(&format!("{name} has no size limit: {error}"));
            None
        }
    };
    [(OUTPUT, most), (TIMES, TIMES_BYTES_MAX)].into_iter().filter_map(bound).collect()
}

/// How a run ended, corrected by the counters of its control group and by why the server ended it.
fn with_cause(exit: ExitFile, group: Option<&Group>, dir: &RunDir) -> ExitFile {
    if let Some(grown) = dir.grown() {
        return ExitFile::OutOfDisk(grown);
    }
    // 128 and the signal: how a shell reports that its last command was killed.
    let killed = matches!(exit, ExitFile::Signal(KILL) | ExitFile::Code(KILLED_CODE));
    let kills = group.filter(|_| killed).map_or(0, Group::out_of_memory_kills);
    if kills > 0 { ExitFile::OutOfMemory } else { exit }
}

/// Records the exit; retries for as long as the disk fails.
fn record(dir: &RunDir, last: &StateFile) {
    let mut told = false;
    loop {
        let written = dir.write_state(last);
        if !told {
            send_state(last);
            told = true;
        }
        match written {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return, // removed by the server
            Err(error) => log_line(&format!("failed to record the exit: {error}; trying again")),
        }
        std::thread::sleep(RECORD_RETRY);
    }
}

/// Why a command was not started.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The run cannot be started on this machine; a retry does not help.
    OfRun(String),
    /// The look before the run refused it.
    Refused(Refusal),
    /// The machine lacks memory, disk space or processes at the moment, or a disk fails.
    OfMachine(io::Error),
}

/// Reads the secret values, which from now on are only in memory and in the run's own files.
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
) -> Result<(Pid, Console, RunContext), Fault> {
    let Runtime::Process(process) = &spec.runtime;
    match &process.boundary {
        Some(boundary) => boundary.leave_keys().map_err(Fault::OfMachine)?,
        // With a boundary the child checks this, with the rights it has there.
        None => check_folder(&process.working_dir)?,
    }
    // The platform's variables win over those of the secrets.
    let mut env = secrets.variables;
    env.extend(process.env.clone());
    let around = RunContext {
        key: spec.key.clone(),
        env,
        working_dir: process.working_dir.clone(),
        group: confine(process)?,
        boundary: process.boundary.clone(),
    };
    verify(dir, process, &around)?;
    let (mut command, console) = command(dir, &around, process).map_err(Fault::OfMachine)?;
    if !process.more_rights {
        // Inherited by sessions as well.
        set_no_new_privs(true).map_err(|error| Fault::OfMachine(error.into()))?;
    }
    if let Some(mask) = process.umask {
        // Files that this process creates from now on have explicit modes.
        umask(Mode::from_raw_mode(mask));
    }
    let program = process.argv.first().map_or("", String::as_str);
    let child = command.spawn().map_err(|error| refusal(error, program, &around))?;
    // The handle is dropped: children are reaped together with the orphans, by
    // `ProcessTree::reap`.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Fault::OfMachine(io::Error::other("no process id")))?;
    Ok((pid, console, around))
}

/// Looks, as a program of the run, whether its limits hold.
fn verify(dir: &RunDir, process: &ProcessSpec, around: &RunContext) -> Result<(), Fault> {
    let Some(fraction) = &process.fraction else { return Ok(()) };
    let Some(words) = fraction.check() else { return Ok(()) };
    let mut command = Command::new(&fraction.program);
    command.args(words).stdin(Stdio::null());
    let look = |command: &mut Command| {
        around.prepare(command, false)?;
        refusal_within(command, fraction.gives_up_after())
    };
    let refused = look(&mut command);
    match refused.map_err(|error| refusal(error, "gpu-check", around))? {
        None if fraction.preloaded => note_unlimited(dir, process, around),
        None => Ok(()),
        Some(refusal) => Err(Fault::Refused(refusal)),
    }
}

/// Writes down that what keeps its limits does not reach its program, if that is so.
fn note_unlimited(dir: &RunDir, process: &ProcessSpec, around: &RunContext) -> Result<(), Fault> {
    let program = process.argv.first().map_or("", String::as_str);
    let search = around.env.get("PATH").map(AsRef::as_ref);
    let (folder, pages) = (&process.working_dir, dir.fraction());
    let noted = engine_fractions::note_unlimited(program, search, folder, &pages);
    noted.map_err(Fault::OfMachine)
}

/// Refusal by a check that failed; `None` if it succeeds. A check that exceeds `most` is killed and
/// not waited for: a driver may not let it end.
fn refusal_within(command: &mut Command, most: Duration) -> io::Result<Option<Refusal>> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let since = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if since.elapsed() > most => {
                child.kill()?;
                return Ok(Some(Refusal::driver_silent(most)));
            }
            None => std::thread::sleep(LOOK_PAUSE),
        }
    };
    if status.success() {
        return Ok(None);
    }
    let mut output = String::new();
    child.stderr.take().map_or(Ok(0), |mut text| text.read_to_string(&mut output))?;
    Ok(Some(Refusal::of_output(&output)))
}

/// Creates the control group of a run. The start fails only if the run has limits.
fn confine(process: &ProcessSpec) -> Result<Option<Group>, Fault> {
    let group = confine_host(process)?;
    let regions = process.fraction.as_ref().map(|fraction| &fraction.regions);
    if let Some(regions) = regions.filter(|regions| !regions.is_empty()) {
        // Without them it does not start.
        let limited = match &group {
            Some(group) => group.limit_devices(regions),
            None => Err(io::Error::other("the run has no control group")),
        };
        limited.map_err(|error| Fault::Refused(Refusal::not_kept(&error.to_string())))?;
    }
    Ok(group)
}

fn confine_host(process: &ProcessSpec) -> Result<Option<Group>, Fault> {
    let Some(group) = &process.group else { return Ok(None) };
    match group.make(&process.limits) {
        Ok(()) => Ok(Some(group.clone())),
        Err(error) if process.limits == Limits::default() => {
            log_line(&format!("the run has no control group: {error}"));
            Ok(None)
        }
        // Above the limit of a parent group, or of the kernel.
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

/// Blames the run only for an error that would also occur on a healthy machine.
pub(crate) fn refusal(error: io::Error, program: &str, around: &RunContext) -> Fault {
    let folder = around.working_dir.display();
    match (error.kind(), Errno::from_io_error(&error)) {
        (_, Some(sys::NO_WORKING_DIR)) => Fault::OfRun(format!(
            "the working directory {folder} does not exist, or the account of the run may not \
             enter it"
        )),
        (io::ErrorKind::NotFound, _) => {
            Fault::OfRun(format!("`{program}`: command not found on this machine"))
        }
        (io::ErrorKind::PermissionDenied, _) => {
            let account = around.boundary.as_ref().and_then(Boundary::account);
            // A name without a folder is searched in `PATH`, where closed folders count as empty.
            let account = account.filter(|_| program.contains('/'));
            let path = around.working_dir.join(program);
            let closed = account.and_then(|account| access::refusal(account, &path));
            Fault::OfRun(closed.unwrap_or_else(|| {
                format!(
                    "`{program}`: permission denied (is it executable, and {folder} accessible?)"
                )
            }))
        }
        // Without a system error: a zero byte in an argument, found by the standard library.
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
    around: &RunContext,
    spec: &ProcessSpec,
) -> io::Result<(Command, Console)> {
    let log = dir.append(OUTPUT)?;
    let account = spec.boundary.as_ref().and_then(Boundary::account);
    if let Some(account) = account {
        // So that the process can open /dev/stdout; it cannot reach the file otherwise.
        ownership::give_handle(&log, account)?;
    }
    let (console, [input, output, errors]) = Console::open(spec.stdin, spec.tty, log, account)?;
    let (program, args) = spec.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(args).stdin(input).stdout(output).stderr(errors);
    around.prepare(&mut command, spec.tty)?;
    Ok((command, console))
}

/// A run and its sessions.
#[derive(Debug)]
struct Run<'a> {
    dir: &'a RunDir,
    grace_ms: u64,
    tree: ProcessTree,
    console: Console,
    /// `None` if write times are not recorded.
    notes: Option<TimesWriter>,
    /// `None` if the run accepts no sessions.
    session_server: Option<SessionServer>,
    /// Empty without a limit, or where the file system cannot punch holes.
    bounds: Vec<LogRetention>,
}

impl Run<'_> {
    /// Returns when the last process is gone, with how the main one ended.
    fn watch(mut self, signals: &mut SignalFlags) -> ExitFile {
        let mut is_new = true;
        while self.tree.reap(|pid| {
            self.session_server.iter_mut().for_each(|server| server.gone(pid));
        }) {
            if signals.stop.take() {
                self.tree.ask(self.dir.read_grace().unwrap_or(self.grace_ms));
            }
            if signals.no_more_input.take() {
                self.console.end_input();
            }
            if self.tree.exit().is_some() {
                if let Some(session_server) = self.session_server.take() {
                    self.carry_rest();
                    session_server.shut();
                }
                self.tree.ask(self.grace_ms.min(REST_GRACE_MS_MAX));
            }
            self.note(TimesWriter::check_when_due);
            let next_look = self.notes.as_ref().map(TimesWriter::pause);
            let pause = self.tree.force_when_due().into_iter().chain(next_look);
            let pause = pause.chain(self.keep_bound()).min();
            // Supervisors are many, live as long as their runs, and do little else.
            if std::mem::take(&mut is_new)
                && let Err(error) = release_memory()
            {
                log_line(&format!("the memory of the start is not released: {error}"));
            }
            if let Err(error) = self.attend(signals, pause) {
                log_line(&format!("failed to wait for signals and sessions: {error}"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        self.carry_rest();
        self.note(TimesWriter::look);
        self.keep_bound();
        self.tree.into_exit()
    }

    /// Records write times. After a disk error the next record stands for this one as well.
    fn note(&mut self, look: fn(&mut TimesWriter) -> io::Result<()>) {
        if let Some(Err(error)) = self.notes.as_mut().map(look) {
            log_line(&format!("failed to record when output was written: {error}"));
        }
    }

    /// Returns the time until the next check.
    fn keep_bound(&mut self) -> Option<Duration> {
        self.bounds.retain_mut(LogRetention::keep);
        self.bounds.first().map(|_| CHECK_INTERVAL)
    }

    /// Waits for the next event, and handles those that are not signals.
    fn attend(&mut self, signals: &mut SignalFlags, pause: Option<Duration>) -> io::Result<()> {
        let input = |fd| (fd, PollFlags::IN);
        let others = [
            self.console.awaited().map(input),
            self.session_server.as_ref().map(SessionServer::awaited).map(input),
        ];
        let [printed, connected] = signals.all.wait(pause, others)?;
        if !printed.is_empty() {
            self.console.carry();
        }
        match &mut self.session_server {
            Some(session_server) if !connected.is_empty() => {
                session_server.accept(|| self.console.handle())
            }
            _ => Ok(()),
        }
    }

    /// Copies what the terminal has buffered into the log. Does not wait for more.
    fn carry_rest(&mut self) {
        for _ in 0..TERMINAL_PIECES_MAX {
            if !self.console.carry() {
                return;
            }
        }
    }
}

/// The signals that a supervisor reacts to.
#[derive(Debug)]
struct SignalFlags {
    all: Signals,
    stop: Flag,
    no_more_input: Flag,
}

impl SignalFlags {
    fn register() -> io::Result<Self> {
        let all = Signals::new()?;
        let stop = all.flag(&[SIGTERM, SIGINT])?;
        let no_more_input = all.flag(&[NO_MORE_INPUT.as_raw()])?;
        // SIGHUP only wakes: a closed terminal does not stop a run.
        all.wake_by(&[SIGCHLD, SIGHUP])?;
        Ok(Self { all, stop, no_more_input })
    }
}

/// Sends one line to the server. If the server is gone, the state file remains.
fn send_state(state: &StateFile) {
    let Ok(mut line) = serde_json::to_vec(state) else { return };
    line.push(b'\n');
    let mut out = io::stdout().lock();
    let _gone = out.write_all(&line).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests;
