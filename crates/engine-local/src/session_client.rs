//! Sessions, from the server's side. Owns: connecting to the supervisor, and copying input and
//! output between the caller and the session's process.

use std::io::{self, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

use engine::{Error, ExecSpec, Input, Output, RunKey, Session, TerminalSize};
use tokio::fs::File;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::log_retention::first_kept;
use crate::protocol::{self, SessionRequest};
use crate::record::{ProcessSpec, Runtime, StateFile};
use crate::session_server;
use crate::shared::LocalEngineState;
use crate::shared::blocking;

/// Pieces that a slow caller or command may be behind, in each direction.
const PIECES_AHEAD: usize = 8;
/// Bytes of the log that are read at a time.
const REST_BYTES: usize = 64 << 10;
/// How often and how long the end of a run is awaited after its session ended: processes that a
/// run left have less time to end.
const END_CHECK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(15));

/// Runs a command in a run.
pub(crate) async fn exec(
    shared: &Arc<LocalEngineState>,
    key: RunKey,
    what: ExecSpec,
) -> Result<Session, Error> {
    let ExecSpec { command, stdin, terminal, env } = what;
    if command.is_empty() {
        return Err(Error::Invalid("say which command to run".to_owned()));
    }
    let request = SessionRequest::Exec { command, stdin, terminal: terminal.map(pair), env };
    open(shared, key, &request).await
}

/// Attaches to the main process of a run.
pub(crate) async fn attach(
    shared: &Arc<LocalEngineState>,
    key: RunKey,
    stdin: bool,
    terminal: Option<TerminalSize>,
) -> Result<Session, Error> {
    running(shared, key)?;
    let dir = shared.dir(key);
    let spec = blocking(move || {
        dir.read_spec().map_err(|source| Error::io(format!("read what run {key} is"), source))
    })
    .await?;
    let Runtime::Process(ProcessSpec { stdin: has_input, tty, .. }) = spec.runtime;
    if stdin && !has_input {
        return Err(Error::Invalid(
            "it was started without an input; attach without one, or submit it with --stdin".into(),
        ));
    }
    if terminal.is_some() && !tty {
        return Err(Error::Invalid(
            "it was started without a terminal; attach without one, or submit it with --stdin --tty"
                .into(),
        ));
    }
    let from = match tokio::fs::metadata(shared.dir(key).log_path()).await {
        Ok(log) => log.len(),
        Err(source) => return Err(Error::io(format!("look at the output of run {key}"), source)),
    };
    open(shared, key, &SessionRequest::Attach { terminal: terminal.map(pair), from, stdin }).await
}

fn pair(size: TerminalSize) -> (u16, u16) {
    (size.rows, size.columns)
}

/// Rejects a run that is not running.
pub(crate) fn running(shared: &LocalEngineState, key: RunKey) -> Result<(), Error> {
    match shared.state(key) {
        Some(StateFile::Running { .. }) => Ok(()),
        Some(StateFile::Starting | StateFile::Exited { .. }) => Err(Error::NotRunning(key)),
        None => Err(Error::NoSuchRun(key)),
    }
}

async fn open(
    shared: &Arc<LocalEngineState>,
    key: RunKey,
    request: &SessionRequest,
) -> Result<Session, Error> {
    running(shared, key)?;
    let failed = |source| Error::io(format!("come to run {key}"), source);
    let said = protocol::request(request).map_err(|error| Error::Invalid(error.to_string()))?;
    let mut stream = connect(shared, key).await?;
    // A supervisor of an earlier version has no key, and expects none.
    match tokio::fs::read(shared.dir(key).file(session_server::KEY)).await {
        Ok(proof) => stream.write_all(&proof).await.map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    stream.write_all(&said).await.map_err(failed)?;
    let (reader, writer) = stream.into_split();
    let (input, typed) = mpsc::channel(PIECES_AHEAD);
    let (shown, output) = mpsc::channel(PIECES_AHEAD);
    let (past, stdin) = match request {
        SessionRequest::Attach { from, stdin, .. } => (Some(*from), *stdin),
        SessionRequest::Exec { stdin, .. } => (None, *stdin),
    };
    let own = Arc::clone(shared);
    shared.spawn(async move {
        tokio::select! {
            // The caller is gone: drop the connection, which ends the command.
            () = shown.closed() => {}
            count = show(BufReader::new(reader), &shown) => {
                if let Some(past) = past {
                    finish(&own, key, past + count, &shown).await;
                }
            }
            () = hand_on(typed, stdin, writer) => {}
        }
    });
    Ok(Session { input, output })
}

async fn connect(shared: &LocalEngineState, key: RunKey) -> Result<UnixStream, Error> {
    let dir = shared.dir(key);
    let connect = async {
        let (_folder, path) = session_server::socket(&dir)?;
        UnixStream::connect(path).await
    };
    connect.await.map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::Invalid(
            "it was started by a version without sessions; commands can join it after its next start"
                .to_owned(),
        ),
        // The supervisor is gone, or ends all sessions.
        io::ErrorKind::ConnectionRefused => Error::NotRunning(key),
        _ => Error::io(format!("come to run {key}"), error),
    })
}

/// Passes on the output to its end. Returns its length in bytes.
async fn show(mut from: impl AsyncRead + Unpin, to: &mpsc::Sender<Output>) -> u64 {
    let mut count = 0;
    // A connection that breaks counts as ended without a result.
    while let Ok(next) = protocol::next_output(&mut from).await {
        let last = matches!(next, Output::End(_));
        if let Output::Stdout(bytes) | Output::Stderr(bytes) = &next {
            count += bytes.len() as u64;
        }
        if to.send(next).await.is_err() || last {
            break;
        }
    }
    count
}

/// Passes on the rest of the output after attaching, and how the run ended.
async fn finish(shared: &LocalEngineState, key: RunKey, past: u64, to: &mpsc::Sender<Output>) {
    let Some(exit) = end_of(shared, key).await else { return };
    let rest = async {
        let mut log = File::open(shared.dir(key).log_path()).await?;
        let from = first_kept(&log, past)?;
        log.seek(SeekFrom::Start(from)).await?;
        loop {
            let mut piece = Vec::with_capacity(REST_BYTES);
            if log.read_buf(&mut piece).await? == 0 || to.send(Output::Stdout(piece)).await.is_err()
            {
                return io::Result::Ok(());
            }
        }
    };
    if let Err(error) = rest.await {
        tracing::warn!("cannot show the end of the output of run {key}: {error}");
    }
    let _gone = to.send(Output::End(exit)).await;
}

/// Passes on the size of the terminal and the input; never returns, because a command may continue
/// without input.
async fn hand_on(mut typed: mpsc::Receiver<Input>, stdin: bool, mut to: impl AsyncWrite + Unpin) {
    while let Some(input) = typed.recv().await {
        if !stdin && !matches!(input, Input::Resize(_)) {
            continue;
        }
        if to.write_all(&protocol::input(&input)).await.is_err() {
            break;
        }
    }
    std::future::pending::<()>().await;
}

/// How the run ended; none if it is still running.
async fn end_of(shared: &LocalEngineState, key: RunKey) -> Option<engine::Exit> {
    let look = async {
        loop {
            match shared.state(key) {
                Some(StateFile::Exited { exit, .. }) => return Some(exit.into()),
                Some(_) => tokio::time::sleep(END_CHECK.0).await,
                None => return None,
            }
        }
    };
    tokio::time::timeout(END_CHECK.1, look).await.ok().flatten()
}
