//! Following containers. Owns: the daemon's events, catching up after an outage, and the
//! consequences of an inspection.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::query_parameters::{EventsOptionsBuilder, LogsOptionsBuilder};
use engine::{Error, Exit, Outage, RunKey, RunState};
use engine_fractions::Refusal;
use futures_util::StreamExt as _;

use crate::inspect::{Inspected, NOT_EXECUTABLE, not_executable};
use crate::names::{self, RUN_LABEL};
use crate::run_registry::has_ended;
use crate::shared::{DockerEngineState, now};
use crate::{chain, daemon};

/// Pause before an absent daemon is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How often an idle daemon is pinged, and the timeout.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_WAIT: Duration = Duration::from_secs(10);
/// Pause before a failed inspection of one run is retried.
const INSPECT_PAUSE: Duration = Duration::from_secs(5);

/// Follows the daemon for as long as the engine lives.
pub(crate) async fn follow(shared: &Arc<DockerEngineState>) {
    loop {
        let ended = Box::pin(follow_once(shared)).await;
        let why = match &ended {
            Ok(()) => "its events ended".to_owned(),
            Err(error) => chain(error),
        };
        note_outage(shared, why);
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// The first reason stays until the daemon answers.
fn note_outage(shared: &DockerEngineState, why: String) {
    let mut outage = outage(shared);
    if outage.is_none() {
        tracing::warn!("{} does not answer ({why}); waiting for it", shared.daemon);
        *outage = Some(Outage::Silent { who: shared.daemon.to_string(), why, since: now() });
    }
}

fn outage(shared: &DockerEngineState) -> MutexGuard<'_, Option<Outage>> {
    shared.outage.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns when the daemon stops answering although its events have not ended: it hangs.
async fn hangs(shared: &DockerEngineState) -> Error {
    loop {
        tokio::time::sleep(PING_EVERY).await;
        let answered = tokio::time::timeout(PING_WAIT, shared.daemon.docker.ping()).await;
        let why = match answered {
            Ok(Ok(_)) => continue,
            Ok(Err(fault)) => return crate::failed("ping it", fault),
            Err(_) => format!("no answer within {} s", PING_WAIT.as_secs()),
        };
        return Error::Io { what: "ping it".to_owned(), source: io::Error::other(why) };
    }
}

/// Subscribes before the first inspection: what happens in between is seen twice, not missed.
async fn follow_once(shared: &Arc<DockerEngineState>) -> Result<(), Error> {
    let docker = &shared.daemon.docker;
    let since = (now().0 / 1000).to_string();
    let mut facts = daemon::facts(docker, &shared.daemon.socket).await?;
    facts.away_since = outage(shared).as_ref().map(Outage::since);
    *shared.facts.write().unwrap_or_else(PoisonError::into_inner) = facts;
    // In Docker's words and in Podman's, whose filter by the name of a label finds nothing.
    let actions = vec!["start", "die", "destroy", "died", "remove"];
    let filters = [("type", vec!["container"]), ("event", actions)];
    let options = EventsOptionsBuilder::default().since(&since).filters(&filters.into()).build();
    let mut events = Box::pin(docker.events(Some(options)));
    let caught_up = async {
        for key in shared.runs.living() {
            refresh_all(shared, key).await?;
        }
        Ok::<_, Error>(())
    };
    let mut first = std::pin::pin!(caught_up);
    let mut hangs = std::pin::pin!(hangs(shared));
    let mut behind = true;
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => {
                    let labels = event.actor.and_then(|actor| actor.attributes);
                    let label = |name: &str| labels.as_ref().and_then(|labels| labels.get(name));
                    let run = label(RUN_LABEL).filter(|_| shared.owner.owns(label));
                    if let Some(key) = run.and_then(|run| run.parse().ok()) {
                        refresh_all(shared, key).await?;
                    }
                }
                Some(Err(fault)) => return Err(crate::failed("follow its events", fault)),
                None => return Ok(()),
            },
            done = &mut first, if behind => {
                done?;
                behind = false;
                if outage(shared).take().is_some() {
                    tracing::info!("{} is back", shared.daemon);
                }
            }
            error = &mut hangs => return Err(error),
        }
    }
}

/// Inspects a run. A failure for one run does not delay the others: it is retried.
///
/// # Errors
/// The daemon does not answer, or shuts down.
async fn refresh_all(shared: &Arc<DockerEngineState>, key: RunKey) -> Result<(), Error> {
    let Err(error) = refresh(shared, key).await else { return Ok(()) };
    shared.ask_new_connection().await?;
    if !asking(shared).insert(key) {
        return Ok(());
    }
    tracing::warn!("{}; asking again", chain(&error));
    let own = Arc::clone(shared);
    shared.spawn(async move {
        loop {
            tokio::time::sleep(INSPECT_PAUSE).await;
            if refresh(&own, key).await.is_ok() {
                asking(&own).remove(&key);
                return;
            }
        }
    });
    Ok(())
}

fn asking(shared: &DockerEngineState) -> MutexGuard<'_, BTreeSet<RunKey>> {
    shared.asking.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Inspects a run's container and reports changes. A container that disappeared is lost.
pub(crate) async fn refresh(shared: &DockerEngineState, key: RunKey) -> Result<(), Error> {
    let Some(known) = shared.runs.get(key) else { return Ok(()) };
    if has_ended(&known.state) {
        return Ok(());
    }
    match shared.inspect(key).await? {
        Some((_, inspected)) => take(shared, key, inspected).await,
        None if known.has_container => {
            shared.fractions.fractions.forget(key);
            shared.channels.close(key);
            shared.runs.report(key, RunState::Exited { exit: Exit::Lost, at: now() });
            Ok(())
        }
        None => Ok(()),
    }
}

/// Records the result. A run that ended between two inspections is also reported as running.
pub(crate) async fn take(
    shared: &DockerEngineState,
    key: RunKey,
    inspected: Inspected,
) -> Result<(), Error> {
    let Inspected { mut state, started_at, address, .. } = inspected;
    shared.runs.is_at(key, address);
    if let RunState::Exited { exit, .. } = &mut state {
        shared.fractions.fractions.forget(key);
        shared.channels.close(key);
        if let Exit::Code(code) = exit
            && NOT_EXECUTABLE.contains(code)
            && let Some(refusal) = start_error(shared, key).await
        {
            *exit = refusal.exit();
        } else if let Some(started_at) = started_at
            && !matches!(shared.runs.state(key), Some(RunState::Running { .. }))
        {
            shared.runs.report(key, RunState::Running { pid: None, started_at });
        }
    }
    shared.runs.report(key, state);
    Ok(())
}

/// Why the program was not started, if the last line of the output says so.
async fn start_error(shared: &DockerEngineState, key: RunKey) -> Option<Refusal> {
    let options = LogsOptionsBuilder::default().stderr(true).tail("1").build();
    let name = names::container(key);
    let mut lines = Box::pin(shared.daemon.docker.logs(&name, Some(options)));
    let line = lines.next().await?.ok()?.into_bytes();
    not_executable(&String::from_utf8_lossy(&line))
}
