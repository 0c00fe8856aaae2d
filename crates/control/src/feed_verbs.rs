//! Operations on adopted pods. Owns: the input that follows from each outcome, and trying an
//! eviction again. Does not know why an operation is requested.

use std::time::Duration;

use engine::{Exit, Observation, PodFeed, RunKey, RunState};
use orchestrator::Input;
use spec::{FeedOutcome, FeedVerb};
use tokio::sync::mpsc;

use crate::time::MonotonicClock;
use crate::waits::Gate;

/// Longest wait between two tries to evict a pod.
const EVICT_RETRY_MS_MAX: u64 = 60_000;

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
        FeedVerb::Evict => evict(feed, run, open).await,
        FeedVerb::Bind { node } => {
            let open = open.read().await;
            if !*open {
                return;
            }
            let why = match feed.bind(run.pod, &node).await {
                FeedOutcome::Done => return,
                FeedOutcome::Gone => "the pod does not exist any more".to_owned(),
                FeedOutcome::Conflict(why) => format!("the pod has changed: {why}"),
                FeedOutcome::Refused(why) | FeedOutcome::Later(why) => why,
            };
            tracing::warn!(pod = %run.pod, node, "the pod is not bound: {why}");
            let exit = Exit::NotStarted(format!("it was not bound to {node}: {why}"));
            let state = RunState::Exited { exit, at: clock.wall() };
            // The channel is closed only when the dispatcher is gone, and the next one lists all.
            let _ = told.send(Input::Run(Observation::new(run, state)));
        }
    }
}

/// Evicts a pod. It holds its place until it is gone, so this does not give up.
async fn evict(feed: &dyn PodFeed, run: RunKey, open: &Gate) {
    let mut wait_ms = 250;
    loop {
        if !*open.read().await {
            return;
        }
        let why = match feed.evict(run.pod).await {
            FeedOutcome::Done | FeedOutcome::Gone | FeedOutcome::Conflict(_) => return,
            FeedOutcome::Refused(why) | FeedOutcome::Later(why) => why,
        };
        tracing::warn!(pod = %run.pod, wait_ms, "the pod is not evicted; trying again: {why}");
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        wait_ms = (wait_ms * 2).min(EVICT_RETRY_MS_MAX);
    }
}
