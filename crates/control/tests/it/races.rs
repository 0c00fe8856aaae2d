//! Decisions are made beside everything else: what happens meanwhile, and what becomes of a plan.

use std::future::poll_fn;
use std::task::Poll;

use view::{Phase, WorkloadView};

use crate::inference::inference;
use crate::world::{World, given, gpus, nodes, training, workspace};

/// A world in which a decision about a submission is held up.
async fn deciding_about(w: &World, name: &str, wanted: u32) -> std::sync::Arc<WorkloadView> {
    w.gate.shut();
    let taken = w.prompt.submit(1, training(name, wanted), false).await.unwrap().workload;
    w.gate.is_holding().await;
    taken
}

/// Starts and stops that the engine was called with.
fn runs(w: &World) -> Vec<String> {
    let calls = w.engine.calls().into_iter();
    calls.filter(|call| call.starts_with("start") || call.starts_with("stop")).collect()
}

#[tokio::test]
async fn a_submission_is_acknowledged_before_it_is_considered() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let a = deciding_about(&w, "a", 1).await;
    assert_eq!((a.phase, w.why("a")[0].code.as_ref()), (Phase::Pending, "P308"));
    w.prompt.submit(1, training("b", 1), false).await.unwrap();
    assert_eq!(w.why("b")[0].code, "P308", "other requests do not wait either");
    w.gate.open();
    w.becomes("a Running 1/1\nb Pending 0/1").await;
    w.decided().await;
    let codes: Vec<_> = w.why("b").iter().map(|why| why.code.clone()).collect();
    assert!(!codes.is_empty() && !codes.iter().any(|code| code == "P308"), "{codes:?}");
}

#[tokio::test]
async fn what_is_deleted_meanwhile_is_not_started() {
    let w = World::new(nodes(1, 1), &[1]).await;
    deciding_about(&w, "a", 1).await;
    w.prompt.delete_workload("alice", w.id("a")).await.unwrap();
    w.gate.open();
    w.decided().await;
    assert_eq!((w.picture(), runs(&w)), (String::new(), vec![]));
}

#[tokio::test]
async fn a_replica_that_leaves_meanwhile_is_not_started() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, inference("svc", 1, 0, 2)).await;
    w.decided().await;
    let revision = *w.get("svc").unwrap().revisions.last().unwrap();
    w.gate.shut();
    w.prompt.scale(revision, [0].into(), String::new()).await.unwrap();
    w.gate.is_holding().await;
    w.prompt.scale(revision, [1].into(), String::new()).await.unwrap();
    w.gate.open();
    w.becomes("svc Running 1/1").await;
    let begun: Vec<_> = w.engine.runs_of("svc").iter().map(|run| run.pod_index).collect();
    assert_eq!((begun, runs(&w)), (vec![1], vec!["start svc.1".to_owned()]));
}

#[tokio::test]
async fn what_is_suspended_meanwhile_is_not_started() {
    let w = World::new(nodes(1, 1), &[1]).await;
    deciding_about(&w, "a", 1).await;
    w.prompt.suspend("alice", w.id("a")).await.unwrap();
    w.gate.open();
    w.decided().await;
    assert_eq!((w.picture().as_str(), runs(&w)), ("a Stopped 0/1", vec![]));
    assert_eq!(*w.get("a").unwrap().pending, [], "nor does it wait for anything");
}

#[tokio::test]
async fn what_is_suspended_and_resumed_meanwhile_is_considered_again() {
    let w = World::new(nodes(1, 1), &[1]).await;
    deciding_about(&w, "a", 1).await;
    w.prompt.suspend("alice", w.id("a")).await.unwrap();
    w.prompt.resume("alice", w.id("a")).await.unwrap();
    w.gate.open();
    w.becomes("a Running 1/1").await;
    assert_eq!(runs(&w), ["start a.1"]);
}

#[tokio::test]
async fn nothing_is_placed_on_a_gpu_that_is_lost_meanwhile() {
    let w = World::new(nodes(1, 2), &[2]).await;
    deciding_about(&w, "a", 1).await;
    w.prompt.fail_gpu("admin", "node-1", 0).await.unwrap();
    w.gate.open();
    w.phase("a", Phase::Running).await;
    assert_eq!(w.get("a").unwrap().pods[0].gpus, [(1, 1000)]);
    assert_eq!(runs(&w), ["start a.1"], "once, where it stays");
}

#[tokio::test]
async fn nobody_is_stopped_for_what_is_deleted_meanwhile() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("low", 1)).await;
    w.phase("low", Phase::Running).await;
    w.gate.shut();
    w.prompt.submit(1, workspace("high", 1), false).await.unwrap();
    w.gate.is_holding().await;
    w.prompt.delete_workload("alice", w.id("high")).await.unwrap();
    w.gate.open();
    w.decided().await;
    assert_eq!((w.picture().as_str(), runs(&w)), ("low Running 1/1", vec!["start low.1".into()]));
}

#[tokio::test]
async fn a_quota_that_shrinks_meanwhile_holds() {
    let w = World::new(nodes(1, 1), &[1, 0]).await;
    w.submit(2, training("lent", 1)).await;
    w.phase("lent", Phase::Running).await;
    deciding_about(&w, "entitled", 1).await;
    w.prompt.update_project("admin", 1, given(gpus(0))).await.unwrap();
    w.prompt.update_project("admin", 2, given(gpus(1))).await.unwrap();
    w.gate.open();
    w.decided().await;
    assert_eq!(w.picture(), "lent Running 1/1\nentitled Pending 0/1");
    assert_eq!(runs(&w), ["start lent.1"], "nothing was taken back");
}

#[tokio::test]
async fn a_workload_that_ends_meanwhile_leaves_its_place_to_the_next_decision() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    deciding_about(&w, "next", 1).await;
    w.engine.end(w.engine.run_of("first").key, engine::Exit::Code(0));
    w.phase("first", Phase::Completed).await;
    w.gate.open();
    w.becomes("first Completed 0/1\nnext Running 1/1").await;
}

/// Each time something else happens to the same workload, so that its plan is of no use.
#[tokio::test]
async fn after_three_plans_in_vain_the_fourth_is_waited_for() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let id = deciding_about(&w, "a", 1).await.id;
    for _ in 0..3 {
        w.prompt.suspend("alice", id).await.unwrap();
        w.prompt.resume("alice", id).await.unwrap();
        w.gate.let_one_pass();
        w.gate.is_holding().await;
    }
    let prompt = w.prompt.clone();
    let suspended = tokio::spawn(async move { prompt.suspend("alice", id).await.unwrap() });
    tokio::task::yield_now().await;
    w.gate.open();
    suspended.await.unwrap();
    w.becomes("a Stopped 0/1").await;
    assert_eq!(runs(&w)[..1], ["start a.1"], "it was placed before it was suspended");
}

#[tokio::test]
async fn a_server_that_stops_everything_takes_over_no_plan() {
    let w = World::new(nodes(1, 1), &[1]).await;
    deciding_about(&w, "a", 1).await;
    w.prompt.stop_everything("admin").await.unwrap();
    w.gate.open();
    w.clock.advance_ms(1000);
    tokio::task::yield_now().await;
    assert_eq!((w.picture().as_str(), runs(&w)), ("a Pending 0/1", vec![]));
}

#[tokio::test]
async fn a_time_that_comes_during_a_decision_is_not_missed() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("a", 1)).await;
    w.phase("a", Phase::Running).await;
    w.gate.shut();
    w.engine.end(w.engine.run_of("a").key, engine::Exit::Code(1));
    w.gate.is_holding().await;
    w.clock.advance_ms(1000);
    w.gate.open();
    w.phase("a", Phase::Running).await;
}

#[tokio::test]
async fn reasons_of_what_was_deleted_meanwhile_are_told_of_nothing_else() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let a = deciding_about(&w, "a", 2).await;
    w.prompt.delete_workload("alice", a.id).await.unwrap();
    let b = w.prompt.submit(1, training("b", 1), false).await.unwrap().workload;
    w.gate.open();
    w.phase("b", Phase::Running).await;
    assert!(!w.story(b.id).await.contains(&"Pending".to_owned()));
}

#[tokio::test]
async fn a_plan_for_what_was_deleted_is_carried_out_on_nothing_else() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    w.submit(1, training("a", 1)).await;
    w.gate.shut();
    w.engine.end(w.engine.run_of("first").key, engine::Exit::Code(0));
    w.phase("first", Phase::Completed).await;
    w.gate.is_holding().await;
    w.prompt.delete_workload("alice", w.id("a")).await.unwrap();
    // Two replicas that are not wanted.
    w.prompt.submit(1, inference("resting", 1, 0, 2), false).await.unwrap();
    w.gate.open();
    w.decided().await;
    assert_eq!(runs(&w), ["start first.1"]);
}

#[tokio::test]
async fn what_comes_while_a_culprit_is_looked_for_is_not_set_aside_for_it() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let poison = deciding_about(&w, "poison", 1).await;
    w.gate.let_one_pass();
    w.gate.is_holding().await;
    w.prompt.delete_workload("alice", poison.id).await.unwrap();
    w.prompt.submit(1, training("good", 1), false).await.unwrap();
    w.gate.open();
    w.becomes("good Running 1/1").await;
}

#[tokio::test]
async fn what_is_suspended_while_the_scheduler_fails_waits_for_nothing() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("a", 2)).await;
    assert_ne!(*w.get("a").unwrap().pending, []);
    deciding_about(&w, "poison", 1).await;
    w.prompt.suspend("alice", w.id("a")).await.unwrap();
    w.gate.open();
    w.decided().await;
    assert_eq!((w.get("a").unwrap().phase, w.get("a").unwrap().pending.len()), (Phase::Stopped, 0));
}

/// The resumption is taken together with the plan: the scheduler sees no difference.
#[tokio::test]
async fn what_is_resumed_as_the_plan_comes_has_a_reason() {
    let w = World::new(nodes(1, 1), &[1]).await;
    for round in 0..20 {
        let name = format!("a{round}");
        let id = deciding_about(&w, &name, 2).await.id;
        w.prompt.suspend("alice", id).await.unwrap();
        let mut resumed = Box::pin(w.prompt.resume("alice", id));
        let polled = poll_fn(|cx| Poll::Ready(resumed.as_mut().poll(cx).is_pending())).await;
        assert!(polled, "it is queued");
        w.gate.open();
        // The plan is there before the dispatcher goes on.
        std::thread::sleep(std::time::Duration::from_millis(20));
        resumed.await.unwrap();
        w.decided().await;
        let pending = w.why(&name);
        assert!(pending.iter().all(|why| why.code != "P308"), "{round}: {pending:?}");
    }
}
