//! The life of a workload: start, end, retry, suspension, deletion, and messages that come late.

use engine::{Exit, LogRange, PullFailure, RunEvent, RunKey, RunState};
use futures_util::StreamExt;
use spec::{Priority, Restart, WorkloadSpec};
use units::Instant;
use view::{Phase, PodState, View};

use crate::world::{World, nodes, training, with, workspace};

async fn one_gpu() -> World {
    World::new(nodes(1, 1), &[1]).await
}

#[tokio::test]
async fn a_training_is_placed_started_and_completed() {
    let w = one_gpu().await;
    let mut live = w.handle.subscribe();
    let accepted = w.submit(1, training("train1", 1)).await;
    let decided = [Phase::Initializing, Phase::Running];
    assert!(decided.contains(&accepted.phase), "the decision follows the request at once");
    let running = w.phase("train1", Phase::Running).await;
    let pod = &running.pods[0];
    assert_eq!((pod.state, pod.generation), (PodState::Running, 1));
    assert_eq!((pod.node_name.as_deref(), pod.gpus.as_slice()), (Some("node-1"), &[(0, 1000)][..]));
    assert_eq!(w.engine.run_of("train1").devices[0].uuid, "GPU-sim-node-1-0");

    w.clock.advance_ms(5000);
    w.engine.end(w.engine.run_of("train1").key, Exit::Code(0));
    let done = w.phase("train1", Phase::Completed).await;
    assert_eq!((done.ran_ms, done.waited_ms), (5000, 0));
    assert_eq!(done.completed_at, Some(Instant(1_005_000)));
    assert_eq!(done.allocated.gpu_millis, 0);
    assert_eq!(w.handle.view().nodes[0].gpu_used_millis, [0]);
    let story = ["Submitted", "Scheduled", "Started", "Exited", "Completed"];
    assert_eq!(w.story(done.id).await, story);
    let mut heard = Vec::new();
    while heard.len() < story.len() {
        heard.push(live.recv().await.unwrap().kind.clone());
    }
    assert_eq!(heard, story, "the live stream tells the same");
}

#[tokio::test]
async fn output_stays_readable_until_deletion() {
    let w = one_gpu().await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(0));
    w.phase("t", Phase::Completed).await;
    let mut log = w.handle.logs(w.id("t"), None, LogRange::default()).await.unwrap();
    assert_eq!(log.chunks.next().await.unwrap().unwrap(), b"output of 1");
    let forget = format!("forget {}", w.engine.run_of("t").key.pod);
    w.delete("t").await;
    w.becomes("").await;
    while !w.engine.calls().contains(&forget) {
        tokio::task::yield_now().await;
    }
    assert_eq!(w.engine.known(), 0);
}

#[tokio::test]
async fn a_failed_training_is_retried_with_growing_delays() {
    let w = one_gpu().await;
    w.submit(1, WorkloadSpec { backoff_limit: 2, ..training("t", 1) }).await;
    for (retry, delay_ms) in [(1, 1000), (2, 2000)] {
        w.phase("t", Phase::Running).await;
        w.engine.end(w.engine.run_of("t").key, Exit::Code(3));
        let waits = w.phase("t", Phase::Initializing).await;
        assert_eq!(waits.restarts, retry);
        let again_ms = waits.pods[0].restart_at.map(|at| at.since_ms(waits.phase_since));
        assert_eq!(again_ms, Some(delay_ms), "shown as a crash loop");
        w.clock.advance_ms(delay_ms - 1);
        // A delete of something else makes the dispatcher decide once more.
        w.submit(1, training("other", 0)).await;
        w.delete("other").await;
        w.until("only t", |v| v.workloads.len() == 1).await;
        assert_eq!(w.get("t").unwrap().phase, Phase::Initializing, "not before its time");
        w.clock.advance_ms(1);
    }
    let third = w.phase("t", Phase::Running).await;
    assert_eq!(w.engine.run_of("t").key.generation, 3);
    let age_ms = third.pods[0].created_at.since_ms(third.created_at);
    assert_eq!(age_ms, 3000, "a pod for each run, and this one came after both delays");
    w.engine.end(w.engine.run_of("t").key, Exit::Signal(11));
    let failed = w.phase("t", Phase::Failed).await;
    assert_eq!(failed.pods[0].last_exit.as_deref(), Some("killed by signal 11"));
    assert_eq!(w.handle.view().nodes[0].gpu_used_millis, [0]);
}

#[tokio::test]
async fn a_run_that_cannot_start_fails_at_once() {
    let w = one_gpu().await;
    w.submit(1, with(training("t", 1), |pod| pod.image = "broken".to_owned())).await;
    let failed = w.phase("t", Phase::Failed).await;
    let why = failed.pods[0].last_exit.clone().unwrap();
    assert!(why.contains("the image is broken"), "{why}");
    assert_eq!(w.engine.calls(), ["start t.1"]);
}

#[tokio::test]
async fn a_failed_start_that_cannot_be_cleared_away_keeps_its_gpu_meanwhile() {
    let w = one_gpu().await;
    w.engine.fail_stops(1);
    w.submit(1, with(training("t", 1), |pod| pod.image = "half-started".to_owned())).await;
    w.submit(1, training("next", 1)).await;
    w.until("it ended", |_| w.get("t").unwrap().pods[0].last_exit.is_some()).await;
    w.delete("t").await;
    w.phase("next", Phase::Running).await;
    let mut calls = w.engine.calls();
    calls.retain(|call| !call.starts_with("forget "));
    assert_eq!(calls, ["start t.1", "stop t.1", "stop t.1", "start next.1"]);
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn a_failed_start_keeps_its_gpu_until_what_it_left_is_gone() {
    let w = one_gpu().await;
    w.engine.stubborn(true);
    w.submit(1, with(training("t", 1), |pod| pod.image = "half-started".to_owned())).await;
    w.submit(1, training("next", 1)).await;
    w.until("it is stopped", |_| w.engine.calls().contains(&"stop t.1".to_owned())).await;
    w.decided().await;
    assert_eq!(w.picture(), "t Initializing 1/1\nnext Pending 0/1");
    w.engine.let_go();
    w.until("it ended", |_| w.get("t").unwrap().pods[0].last_exit.is_some()).await;
    w.delete("t").await;
    w.phase("next", Phase::Running).await;
    assert_eq!(w.engine.most_in_use(), 1000);
}

/// The failure is reported in the batch in which the clock is set, after which the state is
/// rebuilt.
#[tokio::test]
async fn a_start_that_failed_before_the_state_was_built_again_is_not_held_against_the_next() {
    let w = one_gpu().await;
    w.submit(1, with(training("t", 1), |pod| pod.image = "clock-jumps".to_owned())).await;
    w.becomes("t Running 1/1").await;
    w.clock.advance_ms(2000);
    w.decided().await;
    assert_eq!(w.picture(), "t Running 1/1");
    assert_eq!(w.engine.calls(), ["start t.1", "start t.1"]);
    assert_eq!(w.engine.alive(), [("t".to_owned(), 1)]);
}

#[tokio::test]
async fn a_clock_that_is_set_back_moves_neither_history_nor_delays() {
    let w = one_gpu().await;
    w.clock.advance_ms(500_000);
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Lost);
    w.phase("t", Phase::Initializing).await;
    w.clock.set_back_ms(400_000);
    w.submit(1, training("other", 0)).await;
    w.clock.advance_ms(999);
    w.submit(1, training("another", 0)).await;
    assert_eq!(w.get("t").unwrap().phase, Phase::Initializing, "not before its time");
    w.clock.advance_ms(1);
    w.phase("t", Phase::Running).await;
    let events = w.handle.events(records::EventFilter::default()).await.unwrap();
    assert!(events.is_sorted_by_key(|event| event.at), "{events:?}");
    // The clock of the machine is right again, and counts again.
    w.clock.put_forward_ms(401_000);
    w.submit(1, training("last", 0)).await;
    assert_eq!(w.get("last").unwrap().created_at, Instant(1_502_000));
}

#[tokio::test]
async fn a_lost_run_uses_up_no_retry() {
    let w = one_gpu().await;
    w.submit(1, WorkloadSpec { backoff_limit: 0, ..training("t", 1) }).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Lost);
    let waits = w.phase("t", Phase::Initializing).await;
    assert_eq!((waits.restarts, waits.pods[0].restart_at), (0, None), "no crash loop");
    w.clock.advance_ms(1000);
    assert_eq!(w.phase("t", Phase::Running).await.restarts, 0);
}

#[tokio::test]
async fn a_run_that_the_machine_cannot_start_now_says_why_and_is_tried_again() {
    let w = one_gpu().await;
    let spec = with(training("t", 1), |pod| pod.image = "not-now".to_owned());
    let id = w.submit(1, WorkloadSpec { backoff_limit: 0, ..spec }).await.id;
    let shown = w.phase("t", Phase::Initializing).await;
    let all = w.why("t");
    let why = all.iter().find(|reason| reason.code == "E211").unwrap();
    assert!(why.message.starts_with("could not be started now: "), "{}", why.message);
    assert!(why.message.contains("look up its account"), "{}", why.message);
    assert_eq!((shown.restarts, shown.pods[0].restart_at), (0, None), "no crash loop");
    let told = w.events(id).await;
    assert!(told.iter().any(|event| event.code.as_deref() == Some("E211")), "{told:?}");
    w.clock.advance_ms(1000);
    w.until("the next run", |view| view.workloads[&id].pods[0].generation == 2).await;
}

#[tokio::test]
async fn a_run_that_is_lost_after_every_start_is_tried_less_and_less_often() {
    let w = one_gpu().await;
    w.submit(1, training("t", 1)).await;
    for delay_ms in [1000, 2000, 4000] {
        w.phase("t", Phase::Running).await;
        w.engine.end(w.engine.run_of("t").key, Exit::Lost);
        w.phase("t", Phase::Initializing).await;
        w.clock.advance_ms(delay_ms - 1);
        w.submit(1, training("other", 0)).await;
        w.delete("other").await;
        w.until("only t", |v| v.workloads.len() == 1).await;
        assert_eq!(w.get("t").unwrap().phase, Phase::Initializing, "not before its time");
        w.clock.advance_ms(1);
    }
    w.phase("t", Phase::Running).await;
    w.clock.advance_ms(600_000);
    w.engine.end(w.engine.run_of("t").key, Exit::Lost);
    w.phase("t", Phase::Initializing).await;
    w.clock.advance_ms(1000);
    w.phase("t", Phase::Running).await;
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_a_state_without_a_time_that_passes() {
    let w = one_gpu().await;
    w.submit(1, with(training("t", 1), |pod| pod.image = "not-there-yet".to_owned())).await;
    w.phase("t", Phase::Initializing).await;
    let key = w.engine.run_of("t").key;
    for (tries, failed) in [(1, "failed once"), (2, "failed 2 times")] {
        let why = "the registry does not answer".to_owned();
        let failure = PullFailure { why, tries, again_in_ms: 10_000 };
        w.engine.report(key, RunEvent::PullFailed(failure));
        let said = format!("the registry does not answer; the pull is retried ({failed})");
        w.until(&said, |view| {
            let pods = view.workloads.values().flat_map(|workload| &workload.pods);
            pods.filter_map(|pod| pod.condition.as_ref()).any(|why| *why.message == said)
        })
        .await;
    }
}

#[tokio::test]
async fn where_no_places_are_kept_a_failed_attempt_costs_the_place() {
    let w = World::that_keeps_no_places().await;
    w.submit(1, workspace("shell", 1)).await;
    w.phase("shell", Phase::Running).await;
    w.submit(1, training("waits", 1)).await;
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(1));
    w.becomes("shell Pending 0/1\nwaits Running 1/1").await;
}

/// One of two pods pauses in its place, with another server after that: the other pod runs, so the
/// workload, which is not preemptible, does not give way.
#[tokio::test]
async fn a_workload_of_which_a_pod_runs_does_not_pause_after_a_restart() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    let mut two = workspace("two", 1);
    (two.pods.pods, two.pods.pods_min) = (2, 1);
    w.submit(1, two).await;
    w.phase("two", Phase::Running).await;
    for first in [0, 1] {
        w.engine.end(w.engine.runs_of("two").swap_remove(first).key, Exit::Code(1));
        let pauses = |view: &View| {
            view.workloads.values().any(|one| one.pods.iter().any(|pod| pod.restart_at.is_some()))
        };
        w.until("one pauses", pauses).await;
        w.restart().await;
        let urgent = WorkloadSpec {
            priority: Priority { value: 1000, class: "p".into() },
            ..training("urgent", 1)
        };
        w.submit(1, urgent).await;
        w.waits_for("urgent", "P102").await;
        assert!(w.get("two").unwrap().pods.iter().all(|pod| pod.node_name.is_some()));
        w.delete("urgent").await;
        w.clock.advance_ms(60_000);
        w.phase("two", Phase::Running).await;
    }
}

#[tokio::test]
async fn a_workspace_restarts_in_its_place() {
    let w = one_gpu().await;
    w.submit(1, workspace("shell", 1)).await;
    w.phase("shell", Phase::Running).await;
    w.submit(1, training("waits", 1)).await;
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(1));
    let ended = w.phase("shell", Phase::Initializing).await;
    assert_eq!(ended.pods[0].last_exit.as_deref(), Some("exit code 1"));
    assert_eq!(ended.pods[0].restart_at, Some(Instant(1_001_000)));
    assert_eq!(ended.unsaved_since, None, "nothing of it runs, so it has nothing to lose");
    assert_eq!(w.get("waits").unwrap().phase, Phase::Pending, "the place is kept");
    w.clock.advance_ms(1000);
    let again = w.phase("shell", Phase::Running).await;
    assert_eq!(again.pods[0].restart_at, None);
    assert_eq!(again.unsaved_since, Some(Instant(1_001_000)), "its process began then");
    assert_eq!(again.waited_ms, 1000, "what counts while it starts still counts when it runs");
    assert_eq!((again.restarts, again.pods[0].generation), (1, 2));
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(0));
    w.becomes("shell Completed 0/1\nwaits Running 1/1").await;
}

#[tokio::test]
async fn a_training_that_falls_over_in_its_place_gives_up_at_its_limit() {
    let w = one_gpu().await;
    let spec = WorkloadSpec { backoff_limit: 1, ..training("t", 1) };
    w.submit(1, with(spec, |pod| pod.restart = Restart::OnFailure)).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(3));
    w.phase("t", Phase::Initializing).await;
    w.clock.advance_ms(1000);
    assert_eq!(w.phase("t", Phase::Running).await.restarts, 1);
    w.engine.end(w.engine.run_of("t").key, Exit::Code(3));
    w.becomes("t Failed 0/1").await;
}

#[tokio::test]
async fn what_waits_in_its_place_can_be_deleted_at_once() {
    let w = one_gpu().await;
    w.submit(1, with(workspace("shell", 1), |pod| pod.restart = Restart::Always)).await;
    w.phase("shell", Phase::Running).await;
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(0));
    w.phase("shell", Phase::Initializing).await;
    w.delete("shell").await;
    w.becomes("").await;
    assert_eq!(w.handle.view().nodes[0].gpu_used_millis, [0]);
}

#[tokio::test]
async fn suspended_work_frees_its_gpus_and_comes_back() {
    let w = one_gpu().await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.stubborn(true);
    let stopping = w.handle.suspend("alice", w.id("t")).await.unwrap();
    assert_eq!(stopping.phase, Phase::Stopping);
    assert_eq!(stopping.pods[0].state, PodState::Terminating);
    w.submit(1, training("next", 1)).await;
    assert_eq!(w.handle.view().nodes[0].gpu_used_millis, [1000], "held until the process is gone");
    w.engine.let_go();
    w.becomes("t Stopped 0/1\nnext Running 1/1").await;
    assert_eq!(w.get("t").unwrap().pods[0].state, PodState::Suspended);

    w.handle.resume("alice", w.id("t")).await.unwrap();
    w.phase("t", Phase::Pending).await;
    w.delete("next").await;
    w.becomes("t Running 1/1").await;
    assert_eq!(w.engine.run_of("t").key.generation, 2);
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn reasons_and_flags_go_with_what_they_are_about() {
    let w = World::new(nodes(1, 2), &[1]).await;
    w.submit(1, training("a", 1)).await;
    w.submit(1, training("b", 1)).await;
    w.becomes("a Running 1/1\nb Running 1/1").await;
    w.submit(1, training("waits", 1)).await;
    assert!(!w.get("waits").unwrap().pending.is_empty());
    w.handle.suspend("alice", w.id("waits")).await.unwrap();
    assert_eq!(*w.get("waits").unwrap().pending, []);
    w.handle.resume("alice", w.id("waits")).await.unwrap();
    assert!(!w.get("waits").unwrap().pending.is_empty());

    let flags = || ["a", "b", "waits"].map(|name| w.get(name).unwrap().over_quota);
    assert_eq!(flags(), [false, true, false]);
    w.engine.end(w.engine.run_of("b").key, Exit::Code(0));
    w.becomes("a Running 1/1\nb Completed 0/1\nwaits Running 1/1").await;
    assert_eq!(flags(), [false, false, true]);
    assert_eq!(*w.get("waits").unwrap().pending, []);
}

#[tokio::test]
async fn deletion_is_done_when_the_process_is_gone() {
    let w = one_gpu().await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.stubborn(true);
    let id = w.id("t");
    assert_eq!(w.handle.delete_workload("alice", id).await.unwrap().phase, Phase::Deleting);
    assert_eq!(w.handle.delete_workload("alice", id).await.unwrap().phase, Phase::Deleting);
    let taken = w.handle.submit(1, training("t", 1), false).await.unwrap_err();
    assert!(taken.to_string().contains("still being deleted"), "{taken}");
    w.engine.let_go();
    w.becomes("").await;
    assert_eq!(w.story(id).await.last().unwrap(), "Deleted");
    w.submit(1, training("t", 1)).await;
}

#[tokio::test]
async fn an_exit_that_crossed_with_the_stop_is_a_completion() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.stubborn(true);
    let key = w.engine.run_of("t").key;
    let before = Instant(1_000_000);
    w.clock.advance_ms(10);
    // Preempted by the workspace, which may not wait behind a training of its project.
    w.submit(1, workspace("shell", 1)).await;
    w.until("stopping", |v| v.workloads.values().any(|w| w.pods[0].state == PodState::Terminating))
        .await;
    w.engine.tell(key, RunState::Exited { exit: Exit::Code(0), at: before });
    w.becomes("t Completed 0/1\nshell Running 1/1").await;
}

#[tokio::test]
async fn an_eviction_after_the_clock_was_set_back_is_no_completion() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.stubborn(true);
    let key = w.engine.run_of("t").key;
    w.clock.set_back_ms(400_000);
    w.submit(1, workspace("shell", 1)).await;
    w.until("stopping", |v| v.workloads.values().any(|w| w.pods[0].state == PodState::Terminating))
        .await;
    // It saves a checkpoint and ends well, because it was asked to.
    w.engine.end(key, Exit::Code(0));
    w.becomes("t Pending 0/1\nshell Running 1/1").await;
}

#[tokio::test]
async fn late_and_repeated_messages_change_nothing() {
    let w = one_gpu().await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    let first = w.engine.run_of("t").key;
    w.engine.end(first, Exit::Code(1));
    w.phase("t", Phase::Initializing).await;
    w.clock.advance_ms(1000);
    let second = w.phase("t", Phase::Running).await;
    let exited = RunState::Exited { exit: Exit::Code(1), at: Instant(1_000_000) };
    let running = RunState::Running { pid: None, started_at: Instant(1) };
    let unknown = RunKey { pod: uuid::Uuid::new_v4(), generation: 1 };
    for (key, state) in [
        (first, exited.clone()),
        (first, running.clone()),
        (first, RunState::Starting),
        (w.engine.run_of("t").key, running.clone()),
        (w.engine.run_of("t").key, RunState::Starting),
        (unknown, running),
        (unknown, exited),
    ] {
        w.engine.report(key, state);
    }
    // Comes after all of them, and is answered after all of them.
    w.submit(1, training("other", 0)).await;
    assert_eq!(*w.get("t").unwrap(), *second);
    assert_eq!(w.engine.alive(), [("other".to_owned(), 1), ("t".to_owned(), 2)]);
}

#[tokio::test]
async fn everything_can_be_stopped_and_comes_back_with_the_next_server() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t", 1)).await;
    w.submit(1, workspace("shell", 1)).await;
    w.becomes("t Running 1/1\nshell Running 1/1").await;
    w.handle.stop_everything("alice").await.unwrap();
    assert!(w.engine.alive().is_empty());
    w.becomes("t Pending 0/1\nshell Pending 0/1").await;
    assert_eq!(w.get("t").unwrap().last_eviction.as_ref().unwrap().code, "E202");
    let refused = w.handle.submit(1, training("late", 1), false).await.unwrap_err();
    assert!(matches!(refused, orchestrator::Error::Unavailable { .. }), "{refused}");
    w.restart().await;
    w.becomes("t Running 1/1\nshell Running 1/1").await;
    assert_eq!(w.engine.alive(), [("shell".to_owned(), 2), ("t".to_owned(), 2)]);
}

#[tokio::test]
async fn output_of_an_earlier_run_is_asked_for_by_its_name() {
    let w = one_gpu().await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(1));
    w.phase("t", Phase::Initializing).await;
    w.clock.advance_ms(1000);
    w.phase("t", Phase::Running).await;
    for (name, output) in
        [(None, "output of 2"), (Some("t-0-2"), "output of 2"), (Some("t-0-1"), "output of 1")]
    {
        let name = name.map(ToOwned::to_owned);
        let mut log = w.handle.logs(w.id("t"), name, LogRange::default()).await.unwrap();
        assert_eq!(log.chunks.next().await.unwrap().unwrap(), output.as_bytes());
    }
    for name in [None, Some("t-0-2")] {
        assert_eq!(w.handle.run_before(w.id("t"), name).await.unwrap().generation, 1, "{name:?}");
    }
    let none = w.handle.run_before(w.id("t"), Some("t-0-1")).await.unwrap_err().to_string();
    assert!(none.contains("the first run of the pod"), "{none}");
    for name in ["t-0-0", "t-0-3", "t-1-1", "other"] {
        let found = w.handle.logs(w.id("t"), Some(name.to_owned()), LogRange::default()).await;
        assert!(matches!(found, Err(orchestrator::Error::NotFound { .. })), "{name}");
    }
}

#[tokio::test]
async fn what_no_node_could_hold_is_accepted_with_a_warning_or_refused() {
    let w = one_gpu().await;
    let why = "asks for 99 GPUs on one node";
    let refused = w.handle.submit(1, training("large", 99), true).await.unwrap_err().to_string();
    assert!(refused.contains(why) && refused.contains("leave out --strict"), "{refused}");
    assert!(w.get("large").is_none());
    let settled = w.handle.settled(1, training("large", 99), true).await.unwrap_err().to_string();
    assert_eq!(settled, refused);
    let accepted = w.handle.submit(1, training("large", 99), false).await.unwrap();
    assert!(accepted.warning.is_some_and(|said| said.contains(why)));
    let fits = w.handle.submit(1, training("small", 1), true).await.unwrap();
    assert_eq!(fits.warning, None);
}
