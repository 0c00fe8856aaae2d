//! Sessions in a container. Owns: commands inside it, its own terminal, connections to its ports.
//! Does not know about users and transports.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error as Fault;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::{ContainerInspectResponse, ExecConfig};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, ResizeContainerTTYOptionsBuilder, ResizeExecOptionsBuilder,
};
use engine::{
    Duplex, Error, ExecSpec, Exit, Input, Output, RunKey, RunState, Session, TerminalSize,
};
use futures_util::{Stream, StreamExt as _};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::inspect::address;
use crate::shared::DockerEngineState;
use crate::{failed, names};

/// Pieces that one side may be ahead of the other.
const AHEAD: usize = 32;
/// Timeout of a connection to a port.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// How long a command has to end after its client disconnected.
const GRACE: Duration = Duration::from_millis(500);
/// How often the end of an attached run is checked after its output has ended.
const END_CHECK: Duration = Duration::from_millis(20);
/// How the daemon's message starts if the program of a command does not exist.
const NO_PROGRAM: &str = "OCI runtime exec failed";
/// Start of Podman's next message, in a piece of its own (seen with 4.3.1 and runc).
const NO_PROGRAM_PODMAN: &str = "Error: read unixpacket ";
/// Start of Podman's message if the program does not exist; the runtime's name follows.
const FAULT_PODMAN: &str = "Error: ";
/// The layers in that message.
const NO_PROGRAM_LAYERS: [&str; 3] =
    ["OCI runtime exec failed: ", "exec failed: ", "unable to start container process: "];

type Printed = Pin<Box<dyn Stream<Item = Result<LogOutput, Fault>> + Send>>;
type Typed = Pin<Box<dyn AsyncWrite + Send>>;

/// Runs a command inside a run.
pub(crate) async fn exec(
    shared: &Arc<DockerEngineState>,
    key: RunKey,
    what: ExecSpec,
) -> Result<Session, Error> {
    running(shared, key).await?;
    let docker = shared.daemon.docker.clone();
    let ExecSpec { command, stdin, terminal, env } = what;
    let program = command.first().cloned().unwrap_or_default();
    let wanted = ExecConfig {
        attach_stdin: Some(stdin),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(terminal.is_some()),
        env: Some(env.into_iter().map(|(name, value)| format!("{name}={value}")).collect()),
        cmd: Some(command),
        ..ExecConfig::default()
    };
    let doing = || format!("run a command in {key}");
    let made = docker.create_exec(&names::container(key), wanted).await;
    let id = made.map_err(|fault| failed(doing(), fault))?.id;
    let options = StartExecOptions { tty: terminal.is_some(), ..StartExecOptions::default() };
    let started = docker.start_exec(&id, Some(options)).await;
    let StartExecResults::Attached { output, input } =
        started.map_err(|fault| failed(doing(), fault))?
    else {
        return Err(Error::Unsupported("docker"));
    };
    let (session, mut ours) = pair();
    let resized = id.clone();
    let resize = {
        let docker = docker.clone();
        move |size: TerminalSize| {
            let (docker, id) = (docker.clone(), resized.clone());
            let options = ResizeExecOptionsBuilder::default()
                .h(size.rows.into())
                .w(size.columns.into())
                .build();
            async move { docker.resize_exec(&id, options).await }
        }
    };
    if let Some(size) = terminal {
        // A session that has ended has no size.
        let _ended = resize(size).await;
    }
    shared.spawn(async move {
        let held = ours.carry(output, stdin.then_some(input), resize).await;
        let code = match code_of(&docker, &id, &ours.to).await {
            Ok(code) => code,
            Err(error) => {
                tracing::warn!(%error, "how a command in run {key} ended is not known");
                return;
            }
        };
        // An unknown exit breaks the session off.
        let Some(end) = end_of(&ours, held, code, &program).await else { return };
        // The client may be gone.
        let _gone = ours.to.send(Output::End(end)).await;
    });
    Ok(session)
}

/// How a command ended, if known. Output that was held back is sent if it is the command's own.
async fn end_of(
    ours: &EngineSide,
    held: Vec<Output>,
    code: Option<i64>,
    program: &str,
) -> Option<Exit> {
    match (held.first(), code) {
        (Some(Output::Stdout(said) | Output::Stderr(said)), Some(126..=127)) => {
            Some(Exit::CannotRun(program_error(&String::from_utf8_lossy(said), program)))
        }
        (_, code) => {
            for held in held {
                // The receiver may be gone.
                let _gone = ours.to.send(held).await;
            }
            code.map(crate::inspect::exit)
        }
    }
}

/// The exit code of a command whose output ended; `None` if unknown. If the client is gone, the
/// command is hung up and, after a grace period, killed.
async fn code_of(
    docker: &Docker,
    id: &str,
    to: &mpsc::Sender<Output>,
) -> Result<Option<i64>, Fault> {
    let mut hung_up: Option<Instant> = None;
    loop {
        let found = docker.inspect_exec(id).await?;
        if found.running != Some(true) {
            return Ok(found.exit_code);
        }
        let pid = found.pid.and_then(|pid| i32::try_from(pid).ok());
        match (hung_up, pid.zip(found.container_id)) {
            _ if !to.is_closed() => {}
            (_, None) => return Ok(None),
            (None, Some((pid, container))) => {
                hang_up(pid, &container);
                hung_up = Some(Instant::now());
            }
            (Some(since), Some((pid, container))) if since.elapsed() > GRACE => {
                signal(pid, &container, Signal::KILL);
                return Ok(None);
            }
            _ => {}
        }
        tokio::time::sleep(END_CHECK).await;
    }
}

/// Sends the main process's output, and copies input to it.
pub(crate) async fn attach(
    shared: &Arc<DockerEngineState>,
    key: RunKey,
    stdin: bool,
    terminal: Option<TerminalSize>,
) -> Result<Session, Error> {
    let found = running(shared, key).await?;
    let config = found.config.unwrap_or_default();
    let missing = |what: &str| {
        Err(Error::Invalid(format!("run {key} was started without {what}; submit it with one")))
    };
    if stdin && config.open_stdin != Some(true) {
        return missing("an input (--stdin)");
    }
    if terminal.is_some() && config.tty != Some(true) {
        return missing("a terminal (--tty)");
    }
    let docker = shared.daemon.docker.clone();
    let name = names::container(key);
    let options = AttachContainerOptionsBuilder::default()
        .stream(true)
        .stdin(stdin)
        .stdout(true)
        .stderr(true)
        .build();
    let attached = docker.attach_container(&name, Some(options)).await;
    let attached = attached.map_err(|fault| failed(format!("attach to run {key}"), fault))?;
    let (session, mut ours) = pair();
    let resize = move |size: TerminalSize| {
        let (docker, name) = (docker.clone(), name.clone());
        let options = ResizeContainerTTYOptionsBuilder::default()
            .h(size.rows.into())
            .w(size.columns.into())
            .build();
        async move { docker.resize_container_tty(&name, options).await }
    };
    if let Some(size) = terminal {
        let _ended = resize(size).await;
    }
    let own = Arc::clone(shared);
    shared.spawn(async move {
        let held = ours.carry(attached.output, stdin.then_some(attached.input), resize).await;
        for held in held {
            let _gone = ours.to.send(held).await;
        }
        while !ours.to.is_closed() {
            match own.runs.state(key) {
                Some(RunState::Exited { exit, .. }) => {
                    let _gone = ours.to.send(Output::End(exit)).await;
                    return;
                }
                None => return,
                Some(_) => tokio::time::sleep(END_CHECK).await,
            }
        }
    });
    Ok(session)
}

/// Connects to a port of a run, at the run's own address. In the host's network the port could be
/// another's.
pub(crate) async fn connect(
    shared: &Arc<DockerEngineState>,
    key: RunKey,
    port: u16,
) -> Result<Box<dyn Duplex>, Error> {
    let found = running(shared, key).await?;
    let address = match address(&found) {
        Some(address) if !address.is_loopback() => address,
        _ => {
            return Err(Error::Invalid(
                "it has no network of its own; reach its ports on the machine".to_owned(),
            ));
        }
    };
    match tokio::time::timeout(CONNECT_WAIT, TcpStream::connect((address, port))).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) if error.kind() != io::ErrorKind::ConnectionRefused => {
            Err(Error::Io { what: format!("connect to port {port} of run {key}"), source: error })
        }
        Ok(Err(_)) | Err(_) => Err(Error::Invalid(format!("nothing in it answers on port {port}"))),
    }
}

async fn running(
    shared: &DockerEngineState,
    key: RunKey,
) -> Result<ContainerInspectResponse, Error> {
    shared.runs.state(key).ok_or(Error::NoSuchRun(key))?;
    match shared.inspect(key).await? {
        Some((found, inspected)) if matches!(inspected.state, RunState::Running { .. }) => {
            Ok(found)
        }
        _ => Err(Error::NotRunning(key)),
    }
}

/// The engine's side of a session.
struct EngineSide {
    from: mpsc::Receiver<Input>,
    to: mpsc::Sender<Output>,
}

fn pair() -> (Session, EngineSide) {
    let (input, from) = mpsc::channel(AHEAD);
    let (to, output) = mpsc::channel(AHEAD);
    (Session { input, output }, EngineSide { from, to })
}

impl EngineSide {
    /// Copies both directions until the output ends or the client disconnects. The daemon's
    /// message that it cannot start a program comes as output: it is held back, and returned if it
    /// was all.
    async fn carry<F>(
        &mut self,
        mut printed: Printed,
        mut typed: Option<Typed>,
        resize: impl Fn(TerminalSize) -> F,
    ) -> Vec<Output>
    where
        F: Future<Output = Result<(), Fault>>,
    {
        let Self { from, to } = self;
        let (mut held, mut first) = (Vec::new(), true);
        let shows = async {
            while let Some(Ok(piece)) = printed.next().await {
                let piece = match piece {
                    LogOutput::StdErr { message } => Output::Stderr(message.to_vec()),
                    LogOutput::StdIn { .. } => continue,
                    LogOutput::StdOut { message } | LogOutput::Console { message } => {
                        Output::Stdout(message.to_vec())
                    }
                };
                let is_first = std::mem::take(&mut first);
                let starts = |text: &str| bytes_of(&piece).starts_with(text.as_bytes());
                if is_first && is_program_error(bytes_of(&piece))
                    || !held.is_empty() && starts(NO_PROGRAM_PODMAN)
                {
                    held.push(piece);
                    continue;
                }
                for piece in held.drain(..).chain([piece]) {
                    if to.send(piece).await.is_err() {
                        return;
                    }
                }
            }
        };
        // Concurrently: a client that is not read from may not be able to read.
        let types = async {
            while let Some(input) = from.recv().await {
                match input {
                    Input::Bytes(bytes) => {
                        if let Some(to) = &mut typed
                            && (to.write_all(&bytes).await.is_err() || to.flush().await.is_err())
                        {
                            // It reads no more.
                            typed = None;
                        }
                    }
                    Input::Resize(size) => drop(resize(size).await),
                    Input::Eof => end_input(typed.take()).await,
                }
            }
            end_input(typed.take()).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = shows => {}
            () = types => {}
            () = to.closed() => {}
        }
        held
    }
}

fn bytes_of(piece: &Output) -> &[u8] {
    match piece {
        Output::Stdout(bytes) | Output::Stderr(bytes) => bytes,
        Output::End(_) => &[],
    }
}

/// True if this is the start of the daemon's message that it cannot start a program.
fn is_program_error(said: &[u8]) -> bool {
    let said = String::from_utf8_lossy(said);
    // Podman names its runtime before, and what it is about at the end.
    let podman = said.starts_with(FAULT_PODMAN) && said.contains(": OCI ");
    podman || said.starts_with(NO_PROGRAM)
}

/// Why a program cannot be run, from the daemon's message.
fn program_error(said: &str, program: &str) -> String {
    let said = said.trim_end().trim_end_matches(": unknown");
    if said.contains("no such file") || said.contains("not found") {
        return format!(
            "`{program}` is not in the image of this workload; name a program that is there"
        );
    }
    let inner =
        NO_PROGRAM_LAYERS.iter().fold(said, |text, layer| text.strip_prefix(layer).unwrap_or(text));
    format!("`{program}` cannot be run: {inner}")
}

async fn end_input(typed: Option<Typed>) {
    if let Some(mut to) = typed {
        // It may have ended.
        let _ended = to.shutdown().await;
    }
}

/// SIGHUP to a command that leads its session, and to what is in the foreground of its terminal: as
/// from a terminal that is closed. Processes in the background that ignore it (`nohup`), and those
/// that left the session (`setsid`), go on.
fn hang_up(command: i32, container: &str) {
    let Some(Groups { foreground, .. }) = Groups::of(command) else { return };
    let is_meant = |of: &Groups| of.session == command && [command, foreground].contains(&of.group);
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = pid.filter(|pid| Groups::of(*pid).is_some_and(|of| is_meant(&of))) {
            signal(pid, container, Signal::HUP);
        }
    }
}

/// The process group and the session of a process, and the group in the foreground of its terminal.
struct Groups {
    group: i32,
    session: i32,
    foreground: i32,
}

impl Groups {
    /// Groups of a process; `None` if it does not exist.
    fn of(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets and may contain anything; then come state, parent, group,
        // session, terminal and the group in its foreground.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut numbers = rest.split(' ').skip(2).map(|number| number.parse().ok());
        let (group, session) = (numbers.next()??, numbers.next()??);
        Some(Self { group, session, foreground: numbers.nth(1)?? })
    }
}

/// Signals a process of a container. One outside the container's control group is skipped: the id
/// was reused, or the daemon has another PID namespace.
fn signal(number: i32, container: &str, signal: Signal) {
    let Some(pid) = Pid::from_raw(number) else { return };
    // The handle pins the id before its owner is checked.
    let sent = pidfd_open(pid, PidfdFlags::empty()).and_then(|handle| {
        let group = std::fs::read_to_string(format!("/proc/{number}/cgroup"));
        if group.is_ok_and(|group| group.contains(container)) {
            return pidfd_send_signal(handle, signal);
        }
        tracing::warn!("process {number} is not of container {container}; left alone");
        Ok(())
    });
    if let Err(error) = sent
        && error != Errno::SRCH
    {
        tracing::warn!("a command without a client goes on as process {number}: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_and_no_other() {
        let said = "OCI runtime exec failed: exec failed: unable to start container process: exec: \
                    \"/bin/bash\": stat /bin/bash: no such file or directory: unknown\r\n";
        let told = program_error(said, "/bin/bash");
        assert!(told.starts_with("`/bin/bash` is not in the image"), "{told}");
        let said = said.replace("no such file or directory", "permission denied");
        let told = program_error(&said, "/bin/bash");
        let want =
            "`/bin/bash` cannot be run: exec: \"/bin/bash\": stat /bin/bash: permission denied";
        assert_eq!(told, want);
        let podman = "Error: runc: exec failed: unable to start container process: exec: \"nvtop\": \
                      executable file not found in $PATH: OCI runtime attempted to invoke a command \
                      that was not found\n";
        assert!(is_program_error(podman.as_bytes()));
        let told = program_error(podman, "nvtop");
        assert!(told.starts_with("`nvtop` is not in the image"), "{told}");
        assert!(!is_program_error(b"Error: the script's own words\n"));
    }

    #[test]
    fn only_what_is_in_the_container_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("a process");
        let pid = i32::try_from(child.id()).expect("a number");
        signal(pid, "7f3a-no-such-container", Signal::KILL);
        assert!(child.try_wait().expect("known").is_none(), "it is somebody else's");
        // Every control group has a `/` in its path.
        signal(pid, "/", Signal::KILL);
        assert_eq!(child.wait().expect("ended").code(), None, "by a signal");
    }
}
