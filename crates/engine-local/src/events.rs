//! Following runs while the server lives. Owns: the tasks that follow
//! supervisors (by pipe, or for adopted ones by process handle), and the end of a run whose
//! supervisor vanished.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use engine::RunKey;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::record::{ExitFile, RunDir, Runtime, StateFile};
use crate::shared::LocalEngineState;
use crate::sys;

/// How often an adopted run that has not started its command is checked: there is no notification,
/// and it takes milliseconds.
const STARTING_PAUSE: Duration = Duration::from_millis(10);
/// Pause before a run that could not be read, or whose processes survive, is retried: first and
/// most.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// Follows a supervisor of this server: its states come through the pipe.
pub(crate) fn spawn_started(shared: &Arc<LocalEngineState>, key: RunKey, mut supervisor: Child) {
    let own = Arc::clone(shared);
    shared.spawn(async move {
        if let Some(pipe) = supervisor.stdout.take() {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match serde_json::from_str(&line) {
                    Ok(state) => own.report(key, state),
                    Err(error) => tracing::warn!("supervisor of {key} said `{line}`: {error}"),
                }
            }
        }
        if let Err(error) = supervisor.wait().await {
            tracing::warn!("cannot wait for the supervisor of {key}: {error}");
        }
        // Usually complete now; but another supervisor may have had the run before this one.
        follow(&own, key).await;
    });
}

/// Follows a supervisor of an earlier server.
pub(crate) fn spawn_adopted(shared: &Arc<LocalEngineState>, key: RunKey) {
    let own = Arc::clone(shared);
    shared.spawn(async move { follow(&own, key).await });
}

async fn follow(shared: &Arc<LocalEngineState>, key: RunKey) {
    let mut pause = RETRY_PAUSE.0;
    loop {
        match follow_once(shared, key).await {
            Ok(Step::Ended) => return,
            Ok(Step::Again) => {
                pause = RETRY_PAUSE.0;
                continue;
            }
            Ok(Step::Resisting) => tracing::error!(
                "processes of the lost run {key} cannot be killed ; its GPUs stay taken \
                 until they are gone"
            ),
            Err(error) => tracing::warn!("cannot follow run {key}: {error}; trying again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_PAUSE.1);
    }
}

/// The result of one check of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Its end is recorded.
    Ended,
    /// Something changed: check again.
    Again,
    /// It has processes that survive, so it has not ended.
    Resisting,
}

/// Waits for the end of the run's supervisor; determines how the run ended if there is none.
async fn follow_once(shared: &Arc<LocalEngineState>, key: RunKey) -> io::Result<Step> {
    let dir = shared.dir(key);
    let Some(holder) = dir.holder()? else {
        let own = Arc::clone(shared);
        let settled = tokio::task::spawn_blocking(move || determine_end(&own, key)).await;
        return settled.map_err(io::Error::other)?;
    };
    let Some(death) = handle(&dir, holder)? else { return Ok(Step::Again) };
    let death = sys::await_death(death)?;
    loop {
        let state = dir.read_state()?.unwrap_or(StateFile::Starting);
        let starting = state == StateFile::Starting;
        shared.report(key, state);
        tokio::select! {
            ended = death.readable() => return ended.map(|_| Step::Again),
            () = tokio::time::sleep(STARTING_PAUSE), if starting => {}
        }
    }
}

/// A handle on the lock's holder. None: it just ended. The second read of the lock proves that the
/// id was not reused before the handle existed.
pub(crate) fn handle(dir: &RunDir, holder: Pid) -> io::Result<Option<OwnedFd>> {
    match pidfd_open(holder, PidfdFlags::empty()) {
        Ok(fd) => Ok((dir.holder()? == Some(holder)).then_some(fd)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Has the checkpoints written that a run left in memory whose supervisor cannot do it.
pub(crate) fn finish(key: RunKey, dir: &RunDir) {
    let finished = dir.read_spec().and_then(|spec| {
        let Runtime::Process(process) = spec.runtime;
        process.memory.map_or(Ok(()), |memory| memory.end(process.boundary.as_ref()))
    });
    if let Err(error) = finished {
        tracing::warn!("checkpoints of {key} are only in memory: {error}");
    }
}

/// The run has no supervisor: finds out, or decides, how it ended.
fn determine_end(shared: &LocalEngineState, key: RunKey) -> io::Result<Step> {
    let dir = shared.dir(key);
    let told = shared.state(key).filter(|state| matches!(state, StateFile::Exited { .. }));
    let last = || told.clone().unwrap_or_else(|| StateFile::exited(ExitFile::Lost));
    let written = match dir.read_state()? {
        Some(state @ StateFile::Exited { .. }) => {
            shared.report(key, state);
            return Ok(Step::Ended);
        }
        // Removed meanwhile, by `remove`, which needs no report, or by hand.
        None if !dir.exists() && shared.state(key).is_none() => return Ok(Step::Ended),
        None if dir.exists() => match dir.claim(&last()) {
            Ok(false) => return Ok(Step::Again),
            claimed => claimed.map(drop),
        },
        _ => {
            if !shared.sweep(&BTreeSet::from([key])).is_empty() {
                return Ok(Step::Resisting);
            }
            // Before its end is recorded: a server that dies in between leaves it to the next one.
            finish(key, &dir);
            if dir.exists() { dir.write_state(&last()) } else { Ok(()) }
        }
    };
    if let Err(error) = written {
        tracing::warn!("cannot record the end of run {key}: {error}");
    }
    shared.report(key, last());
    Ok(Step::Ended)
}
