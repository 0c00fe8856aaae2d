//! Sessions with a pod: a command in it, or its own input and output. Owns: the messages meanwhile,
//! and that the exit code of the process is that of this program.

use std::io::Write;
use std::time::Duration;

use api_types::{SessionEnd, TerminalSize, Workload, WorkloadPhase};
use client::{Exec, ExecSession, Input, Printed, Receiver, Sender};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::context::Context;
use super::logs::refuse_resting;
use super::terminal::{self, Page, Raw};
use super::wait;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::message::{print_always, print_note};
use cli_kit::suggest;
use dialects::intent::{ATTACH_WAIT_S, Stdio, Target};

/// Assumed size of a terminal that does not report one.
const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };
/// Maximum wait of `attach` for a pod to run.
const ATTACH_WAIT: Duration = Duration::from_secs(ATTACH_WAIT_S);
/// Interval between two requests, if the server has no change stream.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Keys that detach: Ctrl-P, Ctrl-Q.
const LEAVE: [u8; 2] = [0x10, 0x11];
/// Added to the number of a signal to form an exit code.
const BY_SIGNAL: i32 = 128;
/// The exit code of a command that cannot be run.
const CANNOT_RUN: u8 = 127;

/// Runs a command in a pod.
pub(super) async fn exec(
    of: &Target,
    command: &[String],
    stdio: Stdio,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(of).await?;
    refuse_unless_running(&workload)?;
    let stdio = as_far_as_here(stdio);
    let kind = std::env::var("TERM").unwrap_or_else(|_| "xterm".to_owned());
    let terminal = stdio.tty.then(|| (terminal::size().unwrap_or(SIZE), kind.as_str()));
    let what = Exec { command, stdin: stdio.stdin, terminal };
    let visit = context.client.exec(&workload.id, of.pod.as_deref(), what).await?;
    stay(visit, stdio, false, out).await
}

/// Attaches to the main process of a pod, once it runs.
pub(super) async fn attach(
    of: &Target,
    stdio: Stdio,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(of).await?;
    attach_to(&workload.id, of.pod.as_deref(), stdio, context, out).await
}

/// Attaches to a workload that was just submitted, once it runs.
pub(super) async fn attach_to_new(
    id: &str,
    within: Duration,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match wait::to_run(id, within, ("attach", ""), context).await? {
        Some(_) => attach_to(id, None, Stdio::FULL, context, out).await,
        None => Ok(()),
    }
}

/// Attaches by id.
async fn attach_to(
    id: &str,
    pod: Option<&str>,
    stdio: Stdio,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let name = wait_for_pod(id, pod, context).await?;
    print_note(&format!("Connecting to pod {name}"));
    let wanted = as_far_as_here(stdio);
    // Tries fewer streams after a refusal: first no terminal, then no input either.
    let less = Stdio { tty: false, ..wanted };
    let only_look = Stdio { stdin: false, tty: false };
    let mut ties = vec![wanted, less, only_look];
    ties.dedup();
    let mut refused = None;
    for stdio in ties {
        let size = stdio.tty.then(|| terminal::size().unwrap_or(SIZE));
        match context.client.attach(id, Some(&name), stdio.stdin, size).await {
            Ok(visit) => {
                if stdio != wanted {
                    let has = if stdio.stdin { "no terminal" } else { "no input" };
                    print_note(&format!("It was started with {has}"));
                }
                return stay(visit, stdio, true, out).await;
            }
            Err(error @ client::Error::Api { code: 409, .. }) => refused = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused.map_or_else(|| Error::Failed("nothing to attach to".to_owned()), Error::from))
}

/// The name of the pod, once it runs.
async fn wait_for_pod(id: &str, pod: Option<&str>, context: &Context) -> Result<String, Error> {
    let until = Instant::now() + ATTACH_WAIT;
    let mut told = false;
    let mut pulse = ChangeWait::of_workload(&context.client, id);
    loop {
        let pods = context.client.pods(id).await?;
        let is_it = |one: &&api_types::Pod| pod.is_none_or(|name| name == one.name);
        if let (Some(pod), None) = (pod, pods.iter().find(is_it)) {
            let near = suggest::hint(pod, pods.iter().map(|one| one.name.as_str()));
            return Err(Error::NotFound(format!("pod {} was not found{near}", units::shown(pod))));
        }
        if let Some(runs) = pods.iter().filter(is_it).find(|one| one.k8s_phase == "Running") {
            return Ok(runs.name.clone());
        }
        let workload = context.client.workload(id).await?;
        refuse_ended(&workload)?;
        if Instant::now() >= until {
            let Workload { name, project_name, .. } = &workload;
            return Err(Error::Failed(format!(
                "{}\n`runai explain {name} -p {project_name}` shows what would let it start",
                wait::still_waits(&workload)
            )));
        }
        if !told {
            print_note("Waiting for pod to start running...");
            told = true;
        }
        // The loop checks the deadline.
        drop(timeout_at(until, pulse.changed(LOOK_EVERY)).await);
    }
}

/// Without a local terminal there can be no remote one.
fn as_far_as_here(stdio: Stdio) -> Stdio {
    let tty = stdio.tty && stdio.stdin && terminal::is_here();
    if stdio.tty && !stdio.stdin {
        print_note("Without -i nothing can be typed at a terminal; there is none");
    } else if stdio.tty && !tty {
        print_note("Unable to use a TTY - input is not a terminal");
    }
    Stdio { tty, ..stdio }
}

/// Forwards input and output until the process has ended.
async fn stay(
    visit: ExecSession,
    stdio: Stdio,
    may_leave: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (to, mut from) = visit.split();
    let mut signals = Signals::listen()?;
    let raw = if stdio.tty { Some(Raw::enter(Page::Same)?) } else { None };
    let left = tokio::select! {
        end = print(&mut from, out) => end.map(SessionOutcome::Ended),
        left = hand_on(to, stdio, may_leave && stdio.tty) => Ok(left),
        code = signals.come() => Ok(SessionOutcome::Told(code)),
    };
    drop(raw);
    match left? {
        SessionOutcome::Ended(end) => ended(end),
        SessionOutcome::Detached => {
            print_note("\nDetached; it goes on");
            Ok(())
        }
        SessionOutcome::Told(code) => Err(Error::Said(code)),
    }
}

/// End of a session.
enum SessionOutcome {
    Ended(SessionEnd),
    Detached,
    /// This program ends with this code.
    Told(u8),
}

/// The exit code of the remote process as that of this program.
fn ended(end: SessionEnd) -> Result<(), Error> {
    let code = match end {
        SessionEnd { error: Some(why), .. } => {
            print_always(&format!("error: {why}"));
            return Err(Error::Said(CANNOT_RUN));
        }
        SessionEnd { signal: Some(signal), .. } => BY_SIGNAL + signal,
        SessionEnd { exit_code, .. } => exit_code.unwrap_or(1),
    };
    match u8::try_from(code & 0xff).unwrap_or(1) {
        0 => Ok(()),
        code => Err(Error::Said(code)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the bytes of the program, as they are")]
async fn print(from: &mut Receiver, out: &mut dyn Write) -> Result<SessionEnd, Error> {
    loop {
        match from.hears().await? {
            Printed::Output(bytes) => {
                out.write_all(&bytes)?;
                out.flush()?;
            }
            // Nothing reads it; the command continues, and its exit code is still needed.
            Printed::Errors(bytes) => drop(std::io::stderr().write_all(&bytes)),
            Printed::End(end) => return Ok(end),
        }
    }
}

/// Forwards typed input, and the size of the terminal. Returns only when the user detaches; when
/// the connection ends, the printing side knows the reason.
async fn hand_on(mut to: Sender, stdio: Stdio, may_leave: bool) -> SessionOutcome {
    let mut sizes = if stdio.tty { signal(SignalKind::window_change()).ok() } else { None };
    let mut typed = stdio.stdin.then(terminal::typed);
    let mut keys = Keys::default();
    loop {
        let next = tokio::select! {
            bytes = next_typed(&mut typed) => match bytes {
                Some(bytes) if may_leave => match keys.pass(bytes) {
                    Some(bytes) => Input::Bytes(bytes),
                    None => {
                        to.leaves().await;
                        return SessionOutcome::Detached;
                    }
                },
                Some(bytes) => Input::Bytes(bytes),
                None => {
                    typed = None;
                    Input::End
                }
            },
            () = next_signal(&mut sizes) => match terminal::size() {
                Some(size) => Input::Size(size),
                None => continue,
            },
        };
        if to.types(next).await.is_err() {
            return std::future::pending().await;
        }
    }
}

async fn next_typed(typed: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match typed {
        Some(typed) => typed.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_signal(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Scanner for the detach keys.
#[derive(Debug, Default)]
struct Keys {
    /// True if the previous key was the first of them.
    half: bool,
}

impl Keys {
    /// Bytes to forward; `None` if the user detaches. The first detach key is held back until the
    /// next key.
    fn pass(&mut self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let mut passed = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            if std::mem::take(&mut self.half) {
                if byte == LEAVE[1] {
                    return None;
                }
                passed.push(LEAVE[0]);
            }
            if byte == LEAVE[0] {
                self.half = true;
            } else {
                passed.push(byte);
            }
        }
        Some(passed)
    }
}

/// Signals that end this program.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    quit: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, Error> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for a signal, and returns its exit code.
    pub(super) async fn come(&mut self) -> u8 {
        let kind = tokio::select! {
            // A terminal in raw mode sends no signal by a key; a signal from another process is for
            // this program.
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hang_up.recv() => SignalKind::hangup(),
            _ = self.quit.recv() => SignalKind::quit(),
        };
        u8::try_from(BY_SIGNAL + kind.as_raw_value()).unwrap_or(1)
    }
}

fn refuse_unless_running(workload: &Workload) -> Result<(), Error> {
    refuse_resting(workload)?;
    if workload.running_pods > 0 {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "cannot run a command in a pod that is not running; {} is {}",
        workload.name, workload.phase
    )))
}

/// Refuses a workload whose pods will not run again unless it is resumed.
pub(super) fn refuse_ended(workload: &Workload) -> Result<(), Error> {
    let Workload { name, phase, .. } = workload;
    let hint = match workload.phase() {
        WorkloadPhase::Completed | WorkloadPhase::Failed => "; `logs` shows what it wrote",
        WorkloadPhase::Stopped => "; `resume` queues it again",
        WorkloadPhase::Deleting => "",
        _ => return Ok(()),
    };
    // Running pods may remain after the end, depending on the clean-up policy.
    if workload.running_pods > 0 {
        return Ok(());
    }
    Err(Error::Failed(format!("{name} is {phase}, and no pod of it runs{hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_in_a_row_leave_and_one_alone_is_handed_on() {
        let mut keys = Keys::default();
        assert_eq!(keys.pass(b"ab".to_vec()), Some(b"ab".to_vec()));
        assert_eq!(keys.pass(b"\x10".to_vec()), Some(b"".to_vec()), "held back");
        assert_eq!(keys.pass(b"x".to_vec()), Some(b"\x10x".to_vec()));
        assert_eq!(keys.pass(b"\x11".to_vec()), Some(b"\x11".to_vec()));
        assert_eq!(keys.pass(b"\x10".to_vec()), Some(b"".to_vec()));
        assert_eq!(keys.pass(b"\x11".to_vec()), None);
    }

    #[test]
    fn the_exit_code_there_is_the_exit_code_here() {
        let code = |end| ended(end).map_or_else(|error| error.code(), |()| 0);
        let end = SessionEnd::default();
        assert_eq!(code(SessionEnd { exit_code: Some(0), ..end.clone() }), 0);
        assert_eq!(code(SessionEnd { exit_code: Some(7), ..end.clone() }), 7);
        assert_eq!(code(SessionEnd { signal: Some(9), ..end.clone() }), 137);
        assert_eq!(code(SessionEnd { error: Some("no".into()), ..end }), 127);
    }
}
