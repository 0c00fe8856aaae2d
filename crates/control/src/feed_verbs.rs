//! Operations on adopted pods. Owns: the input that follows from each outcome, and further tries.
//! Does not know why an operation is requested.

use std::time::Duration;

use engine::{Exit, Observation, PodFeed, RunKey, RunState};
use orchestrator::Input;
use spec::{FeedOutcome, FeedVerb};
use tokio::sync::mpsc;

use crate::time::MonotonicClock;
use crate::waits::Gate;

/// First wait between two tries of an operation.
const RETRY_MS: u64 = 250;
/// Longest wait between two tries of an operation.
const RETRY_MS_MAX: u64 = 60_000;

/// Carries out an operation. A pod that cannot be bound has ended its run without a start, so that
/// it is tried again after a pause, or elsewhere.
pub(crate) async fn carry_out(
    feed: &dyn PodFeed,
    (run, verb): (RunKey, FeedVerb),
    open: &Gate,
    told: &mpsc::UnboundedSender<Input>,
    clock: &MonotonicClock,
) {
    match verb {
        FeedVerb::Report(report) => feed.report(run.pod, report),
        FeedVerb::Nominate(node) => feed.nominate(run.pod, node),
        FeedVerb::Evict => evict(feed, run, open).await,
        FeedVerb::Bind { node } => {
            let Some(why) = bind(feed, (run, &node), open).await else { return };
            tracing::warn!(pod = %run.pod, node, "the pod is not bound: {why}");
            let exit = Exit::NotStarted(format!("it was not bound to {node}: {why}"));
            let state = RunState::Exited { exit, at: clock.wall() };
            // The channel is closed only when the dispatcher is gone, and the next one lists all.
            let _ = told.send(Input::Run(Observation::new(run, state)));
        }
    }
}

/// Binds a pod; returns the reason if it is not bound. While the outcome is unknown the pod keeps
/// its place, because it may be bound.
async fn bind(feed: &dyn PodFeed, (run, node): (RunKey, &str), open: &Gate) -> Option<String> {
    let mut wait_ms = RETRY_MS;
    loop {
        // Not held meanwhile: the cluster refuses a second binding, and the feed reports a late one.
        if !*open.read().await {
            return None;
        }
        let why = match feed.bind(run.pod, node).await {
            FeedOutcome::Done => return None,
            FeedOutcome::Gone => return Some("the pod does not exist any more".to_owned()),
            FeedOutcome::Conflict(why) => return Some(format!("the pod has changed: {why}")),
            FeedOutcome::Refused(why) | FeedOutcome::Later(why) => return Some(why),
            FeedOutcome::Unknown(why) => why,
        };
        tracing::warn!(pod = %run.pod, node, wait_ms, "the pod may be bound; asking again: {why}");
        wait(&mut wait_ms).await;
    }
}

/// Evicts a pod. It holds its place until it is gone, so this gives up only if the cluster refuses:
/// then the feed reports the pod as protected, and others are chosen.
async fn evict(feed: &dyn PodFeed, run: RunKey, open: &Gate) {
    let mut wait_ms = RETRY_MS;
    loop {
        if !*open.read().await {
            return;
        }
        let why = match feed.evict(run.pod).await {
            FeedOutcome::Done | FeedOutcome::Gone => return,
            FeedOutcome::Refused(why) => {
                tracing::warn!(pod = %run.pod, "the pod is not evicted: {why}");
                return;
            }
            FeedOutcome::Conflict(why) | FeedOutcome::Later(why) | FeedOutcome::Unknown(why) => why,
        };
        tracing::warn!(pod = %run.pod, wait_ms, "the pod is not evicted; trying again: {why}");
        wait(&mut wait_ms).await;
    }
}

/// Waits, and doubles the next wait.
async fn wait(wait_ms: &mut u64) {
    tokio::time::sleep(Duration::from_millis(*wait_ms)).await;
    *wait_ms = (*wait_ms * 2).min(RETRY_MS_MAX);
}
