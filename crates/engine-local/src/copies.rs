//! Copies for runs. Owns: when they are made (before anything else of a run is on disk, so that a
//! crash leaves nothing that looks like a run), and the end of a run whose copy
//! fails. Does not know how to copy.

use std::sync::Arc;

use engine::copy::{self, NotCopied};
use engine::{Error, RunSpec};
use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::launch::launch;
use crate::record::{ExitFile, SpecFile, StateFile};
use crate::secrets::below;
use crate::shared::LocalEngineState;

/// Copies what a run needs, then starts it; the run is registered.
pub(crate) fn spawn(shared: &Arc<LocalEngineState>, spec: RunSpec, file: SpecFile) {
    let key = spec.key;
    let mut stop = shared.begin_copying(key);
    let own = Arc::clone(shared);
    shared.spawn(async move {
        let copied = make(&own, &spec, &mut stop).await;
        let turn = own.turns.take(key).await;
        let finished = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            // A stop from here on comes after it.
            let wanted = own.end_copying(key);
            let end = match copied {
                Ok(()) if wanted => launch(&own, &spec, &file).err().map(failed_start),
                Err(NotCopied::Failed(why)) if wanted => Some(StateFile::cannot_run(&why)),
                _ => Some(StateFile::exited(ExitFile::Signal(Signal::TERM.as_raw()))),
            };
            if let Some(end) = end {
                give_up(&own, &spec, end);
            }
        });
        if let Err(error) = finished.await {
            tracing::error!("run {key} was not started: {error}");
        }
    });
}

async fn make(
    shared: &LocalEngineState,
    spec: &RunSpec,
    stop: &mut oneshot::Receiver<()>,
) -> Result<(), NotCopied> {
    let folder = shared.dir(spec.key).copies();
    for (to, origin) in engine::copy::copies(&spec.container) {
        let tell = |what| shared.report_progress(spec.key, what);
        copy::copy((origin, shared.copy_bytes_max), &below(&folder, to), stop, tell).await?;
    }
    Ok(())
}

/// A temporary failure of this machine may be retried.
fn failed_start(error: Error) -> StateFile {
    match error {
        Error::Invalid(why) => StateFile::cannot_run(&why),
        error => {
            tracing::warn!("{error}");
            StateFile::exited(ExitFile::Lost)
        }
    }
}

/// The run ends without having started.
fn give_up(shared: &LocalEngineState, spec: &RunSpec, end: StateFile) {
    let dir = shared.dir(spec.key);
    for done in [dir.claim(&end).map(drop), shared.trash.discard(&dir.copies())] {
        if let Err(error) = done {
            tracing::warn!("cannot record the end of run {}: {error}", spec.key);
        }
    }
    shared.report(spec.key, end);
}
