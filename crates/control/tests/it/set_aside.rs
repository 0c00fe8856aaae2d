//! Decisions that fail: a fault of the scheduler costs one decision, and not the server.

use control::view::Phase;

use crate::world::{LATER_MS, World, nodes, training};

#[tokio::test]
async fn what_the_scheduler_fails_on_is_refused_and_all_else_goes_on() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("before", 1)).await;
    w.phase("before", Phase::Running).await;
    let refused = w.handle.submit(1, training("poison", 1)).await.unwrap_err().to_string();
    assert!(refused.contains("the scheduler failed"), "{refused}");
    w.submit(1, training("after", 1)).await;
    w.becomes("before Running 1/1\nafter Running 1/1").await;
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

async fn is_set_aside(w: &World) {
    let aside = w.phase("poison-later", Phase::Pending).await;
    let codes: Vec<_> = aside.pending.iter().map(|reason| reason.code.as_str()).collect();
    assert_eq!(codes, ["P307"]);
}

#[tokio::test]
async fn a_workload_on_which_decisions_fail_is_set_aside_also_after_a_restart() {
    let mut w = poisoned_later().await;
    is_set_aside(&w).await;
    w.delete("runs").await;
    w.becomes("waits Running 1/1\npoison-later Pending 0/1\nwaits-too Running 1/1").await;
    w.restart().await;
    is_set_aside(&w).await;
    w.delete("poison-later").await;
    w.becomes("waits Running 1/1\nwaits-too Running 1/1").await;
}

#[tokio::test]
async fn one_that_was_set_aside_gets_another_look_when_it_is_resumed() {
    let w = poisoned_later().await;
    let id = w.id("poison-later");
    w.handle.suspend("alice", id).await.unwrap();
    let refused = w.handle.resume("alice", id).await.unwrap_err().to_string();
    assert!(refused.contains("the scheduler failed"), "{refused}");
    w.phase("poison-later", Phase::Stopped).await;
    w.delete("runs").await;
    w.becomes("waits Running 1/1\npoison-later Stopped 0/1\nwaits-too Running 1/1").await;
}
