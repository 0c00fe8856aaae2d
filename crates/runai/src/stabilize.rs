//! The quiet waits after a change, so that a `list` pasted right behind shows the outcome.
//! Owns how long they are and what they may cost the server.

use std::time::Duration;

use api_types::{self as wire, ChangeKind};
use tokio::time::{Instant, sleep, timeout_at};

use super::context::Context;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::message::print_always;

/// How long the command stays to see its workload settle.
const OWN_WAIT_MAX: Duration = Duration::from_millis(1500);
/// How long it stays to see others settle that had to make room, or got some.
const OTHERS_WAIT_MAX: Duration = Duration::from_millis(400);
/// Among more workloads than these, some always change.
const OTHERS_MAX: u64 = 100;
/// A deleted workload may take its grace to stop; this long the command stays to see it gone.
const GONE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Between two looks, where the server does not say what changes.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// A change is decided within a few milliseconds of the event that caused it.
const DECIDED_WITHIN: Duration = Duration::from_millis(40);
/// Requests under way at the same time.
pub(super) const AT_ONCE_MAX: usize = 16;

/// Stays until the workload runs, has ended, or is known to wait, so that a `list` pasted right
/// behind shows the outcome. The submission stands whatever is seen here.
pub(super) async fn wait_until_stable(id: &str, context: &Context) -> Result<(), Error> {
    let deadline = Instant::now() + OWN_WAIT_MAX;
    let mut pulse = ChangeWait::of_workload(&context.client, id);
    while Instant::now() < deadline {
        match context.client.workload(id).await {
            Ok(workload) if is_stable(&workload) => break,
            Ok(_) => drop(timeout_at(deadline, pulse.changed(LOOK_EVERY)).await),
            // It was deleted meanwhile, or the server went away: nothing to wait for.
            Err(error) => {
                tracing::debug!("stopped waiting for {id}: {error}");
                return Ok(());
            }
        }
    }
    wait_for_others(context).await;
    Ok(())
}

fn is_stable(workload: &wire::Workload) -> bool {
    match workload.phase.as_str() {
        "Running" | "Completed" | "Failed" | "Stopped" => true,
        "Pending" => {
            let extras = &workload.additional_fields;
            !extras.reserved && !extras.pending_reasons.is_empty()
        }
        _ => false,
    }
}

/// Waits until no workload is being started, stopped or moved; for a moment only, since on a busy
/// server one always is. On a crowded one it does not wait at all.
pub(super) async fn wait_for_others(context: &Context) {
    sleep(DECIDED_WITHIN).await;
    let deadline = Instant::now() + OTHERS_WAIT_MAX;
    let mut pulse = ChangeWait::new(&context.client, &[ChangeKind::Workload], None);
    while Instant::now() < deadline {
        match context.client.unfinished_if_few(OTHERS_MAX).await {
            Ok(Some(workloads)) if workloads.iter().any(in_transition) => {
                drop(timeout_at(deadline, pulse.changed(LOOK_EVERY)).await);
            }
            Ok(_) => return,
            Err(error) => {
                tracing::debug!("stopped waiting: {error}");
                return;
            }
        }
    }
}

/// Stays until the deleted ones have no process any more.
pub(super) async fn wait_until_gone(
    mut deleted: Vec<wire::Workload>,
    context: &Context,
) -> Result<(), Error> {
    let deadline = Instant::now() + GONE_WAIT_MAX;
    let mut pulse = ChangeWait::new(&context.client, &[ChangeKind::Workload], None);
    // Of many, only the number that is left is asked for.
    if let Some(first) = deleted.first().filter(|_| deleted.len() > AT_ONCE_MAX) {
        while Instant::now() < deadline {
            if context.client.deleting(&first.project_name).await? == 0 {
                return Ok(());
            }
            drop(timeout_at(deadline, pulse.changed(LOOK_EVERY)).await);
        }
    }
    loop {
        let look = |workload: &wire::Workload| {
            let (client, id) = (context.client.clone(), workload.id.clone());
            async move { client.workload(&id).await }
        };
        let mut still = Vec::new();
        for some in deleted.chunks(AT_ONCE_MAX) {
            for (workload, now) in some.iter().zip(at_once(some.iter().map(look)).await?) {
                match now {
                    Ok(now) if now.deleted_at.is_none() => still.push(workload.clone()),
                    Ok(_) | Err(client::Error::Api { code: 404, .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        deleted = still;
        let Some(first) = deleted.first() else { return Ok(()) };
        if Instant::now() >= deadline {
            print_always(&match deleted.len() {
                1 => format!(
                    "{} is still stopping; it leaves the list when its processes have ended",
                    first.name
                ),
                many => format!(
                    "{} and {} more are still stopping; they leave the list when their processes \
                     have ended",
                    first.name,
                    many - 1
                ),
            });
            return Ok(());
        }
        drop(timeout_at(deadline, pulse.changed(LOOK_EVERY)).await);
    }
}

/// Asks several things of the server at the same time; the answers in the order of the questions.
pub(super) async fn at_once<F>(asked: impl Iterator<Item = F>) -> Result<Vec<F::Output>, Error>
where
    F: Future<Output: Send> + Send + 'static,
{
    let asked: Vec<_> = asked.map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(asked.len());
    for one in asked {
        let broken = |error| Error::Failed(format!("a question to the server broke off: {error}"));
        answers.push(one.await.map_err(broken)?);
    }
    Ok(answers)
}

fn in_transition(workload: &wire::Workload) -> bool {
    let extras = &workload.additional_fields;
    let moving = extras.pods.starting + extras.pods.terminating + extras.pods.reserved > 0;
    moving || matches!(workload.phase.as_str(), "Initializing" | "Stopping" | "Resuming")
}
