//! Limits in time: announced, kept, and for what runs already too.

use control::OrgChange;
use control::view::{Phase, Rules};

use engine::Exit;

use crate::world::{World, nodes, training, workspace};

/// The rules of project 1, or of its department.
async fn limit(w: &World, of_department: bool, training_s: u64, workspace_s: u64) {
    let ms = |seconds: u64| (seconds > 0).then_some(seconds * 1000);
    let rules =
        Rules { training_run_ms_max: ms(training_s), workspace_run_ms_max: ms(workspace_s) };
    let change = OrgChange { rules: Some(rules), ..OrgChange::default() };
    if of_department {
        w.handle.update_department("admin", 1, change).await.unwrap();
    } else {
        w.handle.update_project("admin", 1, change).await.unwrap();
    }
}

/// Waits for an event about a workload.
async fn told(w: &World, name: &str, kind: &str) -> String {
    let id = w.id(name);
    for _ in 0..5000 {
        let found = w.events(id).await.into_iter().rev().find(|event| event.kind == kind);
        if let Some(event) = found {
            return event.message;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("{name} was never told {kind}");
}

#[tokio::test]
async fn a_training_is_told_and_then_suspended_and_can_be_resumed() {
    let w = World::new(nodes(1, 2), &[2]).await;
    limit(&w, false, 100, 0).await;
    w.submit(1, training("a1", 1)).await;
    w.submit(1, workspace("b1", 1)).await;
    w.becomes("a1 Running 1/1\nb1 Running 1/1").await;
    w.clock.advance_ms(90_000);
    let near = told(&w, "a1", "TimeLimitNear").await;
    assert_eq!(near, "it may run for 100 s at a time; it is suspended in 10 s");
    assert_eq!(w.get("a1").unwrap().phase, Phase::Running);
    w.clock.advance_ms(10_000);
    w.becomes("a1 Stopped 0/1\nb1 Running 1/1").await;
    let why = w.get("a1").unwrap().last_eviction.clone().unwrap();
    assert_eq!(why.code, "E203");
    w.handle.resume("alice", w.id("a1")).await.unwrap();
    w.becomes("a1 Running 1/1\nb1 Running 1/1").await;
}

#[tokio::test]
async fn a_new_rule_holds_for_what_runs_after_a_notice() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, workspace("a1", 1)).await;
    w.becomes("a1 Running 1/1").await;
    w.clock.advance_ms(1_000_000);
    limit(&w, true, 0, 600).await;
    assert_eq!(
        told(&w, "a1", "TimeLimitNear").await,
        "it may run for 600 s at a time; it is suspended in 60 s"
    );
    assert_eq!(w.get("a1").unwrap().phase, Phase::Running);
    w.clock.advance_ms(60_000);
    w.becomes("a1 Stopped 0/1").await;
}

#[tokio::test]
async fn the_tighter_rule_counts_and_survives_a_crash() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    limit(&w, true, 50, 70).await;
    limit(&w, false, 100, 60).await;
    w.submit(1, training("a1", 1)).await;
    w.becomes("a1 Running 1/1").await;
    w.restart().await;
    w.becomes("a1 Running 1/1").await;
    let both = w.handle.view().projects[&1].effective_rules;
    assert_eq!((both.training_run_ms_max, both.workspace_run_ms_max), (Some(50_000), Some(60_000)));
    w.clock.advance_ms(50_000);
    told(&w, "a1", "TimeLimitNear").await;
    w.clock.advance_ms(5_000);
    w.becomes("a1 Stopped 0/1").await;
}

#[tokio::test]
async fn without_the_rule_nobody_is_stopped() {
    let w = World::new(nodes(1, 1), &[1]).await;
    limit(&w, false, 100, 0).await;
    w.submit(1, training("a1", 1)).await;
    w.becomes("a1 Running 1/1").await;
    w.clock.advance_ms(95_000);
    told(&w, "a1", "TimeLimitNear").await;
    limit(&w, false, 0, 0).await;
    w.clock.advance_ms(1_000_000);
    w.submit(1, training("a2", 1)).await;
    w.becomes("a1 Running 1/1\na2 Pending 0/1").await;
}

#[tokio::test]
async fn starting_again_in_its_place_does_not_begin_the_limit_anew() {
    let w = World::new(nodes(1, 1), &[1]).await;
    limit(&w, false, 0, 100).await;
    w.submit(1, workspace("a1", 1)).await;
    for generation in 1..=3 {
        w.becomes("a1 Running 1/1").await;
        let run = w.engine.run_of("a1").key;
        assert_eq!(run.generation, generation);
        w.clock.advance_ms(30_000);
        w.engine.end(run, Exit::Code(1));
        w.phase("a1", Phase::Initializing).await;
        w.clock.advance_ms(4_000);
    }
    told(&w, "a1", "TimeLimitNear").await;
    w.clock.advance_ms(10_000);
    w.becomes("a1 Stopped 0/1").await;
}
