//! Short waits after a change, so that a `list` that follows at once shows the outcome. Owns their
//! length and their load on the server.

use std::time::Duration;

use api_types::{self as wire, ChangeKind, WorkloadPhase};
use tokio::time::{Instant, sleep, timeout_at};

use super::context::Context;
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::message::print_always;

/// Maximum wait for the workload of the command to stabilize.
const OWN_WAIT_MAX: Duration = Duration::from_millis(1500);
/// Maximum wait for others to stabilize that made room, or got some.
const OTHERS_WAIT_MAX: Duration = Duration::from_millis(400);
/// With more workloads than these, some always change.
const OTHERS_MAX: u64 = 100;
/// Maximum wait for deleted workloads to be gone; each may use its grace period to stop.
const GONE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Interval between two requests, if the server has no change stream.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Time from an event to the decision that it causes, at most.
const DECIDED_WITHIN: Duration = Duration::from_millis(40);
/// Maximum number of concurrent requests.
pub(super) const AT_ONCE_MAX: usize = 16;

/// Waits until the workload runs, has ended, or has a pending reason, so that a `list` that follows
/// at once shows the outcome. The submission stands whatever this finds.
pub(super) async fn wait_until_stable(id: &str, context: &Context) -> Result<(), Error> {
    let deadline = Instant::now() + OWN_WAIT_MAX;
    let mut pulse = ChangeWait::of_workload(&context.client, id);
    while Instant::now() < deadline {
        match context.client.workload(id).await {
            Ok(workload) if is_stable(&workload) => break,
            Ok(_) => drop(timeout_at(deadline, pulse.changed(LOOK_EVERY)).await),
            // It was deleted meanwhile, or the server stopped: there is nothing to wait for.
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
    match workload.phase() {
        WorkloadPhase::Running
        | WorkloadPhase::Completed
        | WorkloadPhase::Failed
        | WorkloadPhase::Stopped => true,
        WorkloadPhase::Pending => {
            let extras = &workload.additional_fields;
            !extras.reserved && !extras.pending_reasons.is_empty()
        }
        _ => false,
    }
}

/// Waits until no workload is being started, stopped or moved; only briefly, since on a busy server
/// one always is. With many workloads it does not wait at all.
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

/// Waits until the deleted workloads have no process any more.
pub(super) async fn wait_until_gone(
    mut deleted: Vec<wire::Workload>,
    context: &Context,
) -> Result<(), Error> {
    let deadline = Instant::now() + GONE_WAIT_MAX;
    let mut pulse = ChangeWait::new(&context.client, &[ChangeKind::Workload], None);
    // For many workloads, only the remaining number is requested.
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

/// Runs requests concurrently; the answers are in the order of the requests.
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
    let phases = [WorkloadPhase::Initializing, WorkloadPhase::Stopping, WorkloadPhase::Resuming];
    moving || phases.contains(&workload.phase())
}
