//! Decisions that fail: a fault of the scheduler costs one decision, and not the server. Faults of
//! the state itself: the request is refused, and a server that does not get on ends.

use engine::Exit;
use orchestrator::Error;
use view::{Phase, View};

use crate::world::{LATER_MS, World, nodes, training};

#[tokio::test]
async fn what_the_scheduler_fails_on_is_set_aside_and_all_else_goes_on() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("before", 1)).await;
    w.phase("before", Phase::Running).await;
    w.submit(1, training("poison", 1)).await;
    is_set_aside(&w, "poison").await;
    w.submit(1, training("after", 1)).await;
    w.becomes("before Running 1/1\npoison Pending 0/1\nafter Running 1/1").await;
    assert_eq!(w.engine.calls(), ["start before.1", "start after.1"], "and nothing was restarted");
}

/// A workload that waits, and on which decisions fail from now on; others that wait beside it.
async fn poisoned_later() -> World {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    for (name, gpus) in [("runs", 2), ("waits", 1), ("poison-later", 1), ("waits-too", 1)] {
        w.submit(1, training(name, gpus)).await;
    }
    w.phase("runs", Phase::Running).await;
    w.clock.advance_ms(LATER_MS);
    w.restart().await;
    w
}

async fn is_set_aside(w: &World, name: &str) {
    let aside = w.waits_for(name, "P307").await;
    assert_eq!((aside.phase, w.why(name).len()), (Phase::Pending, 1));
}

#[tokio::test]
async fn a_workload_on_which_decisions_fail_is_set_aside_also_after_a_restart() {
    let mut w = poisoned_later().await;
    is_set_aside(&w, "poison-later").await;
    w.delete("runs").await;
    w.becomes("waits Running 1/1\npoison-later Pending 0/1\nwaits-too Running 1/1").await;
    w.restart().await;
    is_set_aside(&w, "poison-later").await;
    w.delete("poison-later").await;
    w.becomes("waits Running 1/1\nwaits-too Running 1/1").await;
}

#[tokio::test]
async fn one_that_was_set_aside_gets_another_look_when_it_is_resumed() {
    let w = poisoned_later().await;
    let id = w.id("poison-later");
    w.handle.suspend("alice", id).await.unwrap();
    w.phase("poison-later", Phase::Stopped).await;
    w.handle.resume("alice", id).await.unwrap();
    is_set_aside(&w, "poison-later").await;
    w.delete("runs").await;
    w.becomes("waits Running 1/1\npoison-later Pending 0/1\nwaits-too Running 1/1").await;
}

/// Runs on all GPUs; two wait, and decisions fail on one of them as soon as a GPU is free.
async fn poisoned_by_room() -> World {
    let w = World::new(nodes(1, 2), &[2]).await;
    for (name, gpus) in [("runs", 2), ("poison-room", 1), ("waits", 1)] {
        w.submit(1, training(name, gpus)).await;
    }
    w.phase("runs", Phase::Running).await;
    w
}

#[tokio::test]
async fn what_fails_only_after_news_of_the_engine_is_set_aside_too() {
    let w = poisoned_by_room().await;
    w.engine.end(w.engine.run_of("runs").key, Exit::Code(0));
    w.phase("waits", Phase::Running).await;
    is_set_aside(&w, "poison-room").await;
}

#[tokio::test]
async fn a_server_starts_also_where_its_first_decision_fails() {
    let mut w = poisoned_by_room().await;
    w.crash().await;
    w.engine.end(w.engine.run_of("runs").key, Exit::Code(0));
    w.start().await;
    w.phase("waits", Phase::Running).await;
    is_set_aside(&w, "poison-room").await;
}

#[tokio::test]
async fn of_two_that_fail_only_together_one_is_set_aside_until_the_other_goes() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    for name in ["runs", "pair-one", "w1", "pair-two", "w2"] {
        w.submit(1, training(name, if name == "runs" { 2 } else { 1 })).await;
    }
    w.phase("runs", Phase::Running).await;
    w.clock.advance_ms(LATER_MS);
    w.restart().await;
    is_set_aside(&w, "pair-two").await;
    w.decided().await;
    for name in ["pair-one", "w1", "w2"] {
        assert_ne!(w.why(name)[0].code, "P307", "{name}");
    }
    w.delete("pair-one").await;
    let waits = |w: &World| w.why("pair-two").iter().all(|r| r.code != "P307");
    w.until("it waits as others do", |_| waits(&w)).await;
}

#[tokio::test]
async fn what_is_set_aside_is_tried_again_each_minute() {
    let w = poisoned_by_room().await;
    w.engine.end(w.engine.run_of("runs").key, Exit::Code(0));
    w.phase("waits", Phase::Running).await;
    is_set_aside(&w, "poison-room").await;
    // No GPU is free then, so that decisions do not fail on it.
    w.submit(1, training("more", 1)).await;
    w.phase("more", Phase::Running).await;
    w.clock.advance_ms(60_000);
    let pending = || w.why("poison-room");
    let is_back = |_: &View| pending().iter().all(|reason| reason.code != "P307");
    w.until("it waits as others do", is_back).await;
}

#[tokio::test]
async fn as_many_as_may_be_are_set_aside_and_the_rest_goes_on() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("runs", 2)).await;
    for number in 0..16 {
        w.submit(1, training(&format!("poison-later-{number}"), 1)).await;
    }
    w.submit(1, training("waits", 1)).await;
    w.phase("runs", Phase::Running).await;
    w.clock.advance_ms(LATER_MS);
    w.restart().await;
    is_set_aside(&w, "poison-later-0").await;
    w.delete("runs").await;
    w.phase("waits", Phase::Running).await;
}

#[tokio::test]
async fn a_request_on_which_the_state_fails_is_refused_however_often_it_comes() {
    let w = World::new(nodes(1, 2), &[2]).await;
    for _ in 0..8 {
        let refused = w.handle.submit(1, training("poison-batch", 1), false).await.unwrap_err();
        assert!(matches!(refused, Error::Internal { .. }), "{refused}");
    }
    w.submit(1, training("after", 1)).await;
    w.becomes("after Running 1/1").await;
}

#[tokio::test]
async fn a_server_whose_state_fails_again_and_again_ends_and_says_what_to_do() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("poison-batch-later", 1)).await;
    w.becomes("poison-batch-later Running 1/1").await;
    w.clock.advance_ms(LATER_MS);
    w.engine.end(w.engine.run_of("poison-batch-later").key, Exit::Code(1));
    let why = w.gives_up().await;
    for part in
        ["fault of it", "/elastane.db", "`elastane record", "`elastane replay", "`elastane restore"]
    {
        assert!(why.contains(part), "{why}");
    }
    let again = w.try_start().await.unwrap_err().to_string();
    assert_eq!(again, why, "and a start says it at once");
    w.clock.set_back_ms(LATER_MS);
    w.start().await;
    assert!(w.get("poison-batch-later").is_some(), "nothing is lost");
}
