//! Checkpoints that runs report: the victims of an eviction, and its wait for a checkpoint.

use engine::{CheckpointNews, RunEvent};
use view::{Phase, PodState};

use crate::world::{World, nodes, training};

fn saved(ago_ms: u64) -> RunEvent {
    RunEvent::Checkpoint(CheckpointNews::Saved { ago_ms })
}

/// Two workloads of the first project on two GPUs, one of which is beyond its quota, and a third of
/// the second project that may have one.
async fn world() -> World {
    let w = World::new(nodes(1, 2), &[1, 1]).await;
    for name in ["one", "two"] {
        w.submit(1, training(name, 1)).await;
        w.phase(name, Phase::Running).await;
    }
    w.clock.advance_ms(1_800_000);
    w
}

async fn tells(w: &World, name: &str, news: RunEvent) {
    let before = w.get(name).unwrap().checkpointed_at;
    w.engine.tell(w.engine.run_of(name).key, news);
    let is_noted = |view: &view::View| {
        let workload = view.workloads.values().find(|one| one.spec.name == name);
        workload.is_some_and(|one| one.checkpointed_at != before)
    };
    w.until("it is noted", is_noted).await;
}

/// Which of the two is stopped.
async fn victim(w: &World) -> &'static str {
    w.submit(2, training("taker", 1)).await;
    w.phase("taker", Phase::Running).await;
    let waits = |name: &&str| w.get(name).is_some_and(|one| one.phase == Phase::Pending);
    ["one", "two"].into_iter().find(waits).expect("one was stopped")
}

#[tokio::test]
async fn of_two_that_are_equal_the_one_that_saved_is_stopped_and_the_event_says_what_is_lost() {
    for name in ["one", "two"] {
        let w = world().await;
        tells(&w, name, saved(300_000)).await;
        assert_eq!(victim(&w).await, name, "whichever it is");
        let stopped = w.get(name).unwrap().last_eviction.clone().unwrap();
        let lost = "; 5 min had passed since its last checkpoint was reported";
        assert!(stopped.message.ends_with(lost), "{}", stopped.message);
    }
}

#[tokio::test]
async fn a_checkpoint_that_has_gone_counts_no_more() {
    let w = world().await;
    tells(&w, "one", saved(0)).await;
    tells(&w, "two", saved(120_000)).await;
    tells(&w, "one", RunEvent::Checkpoint(CheckpointNews::Gone)).await;
    assert_eq!(victim(&w).await, "two");
}

#[tokio::test]
async fn what_was_reported_outlives_the_server() {
    let mut w = world().await;
    tells(&w, "one", saved(60_000)).await;
    let at = w.get("one").unwrap().checkpointed_at;
    w.restart().await;
    assert_eq!(w.get("one").unwrap().checkpointed_at, at);
    assert_eq!(victim(&w).await, "one");
}

#[tokio::test]
async fn an_eviction_waits_for_an_announced_checkpoint_and_a_deletion_does_not() {
    let w = world().await;
    tells(&w, "one", saved(60_000)).await;
    let key = w.engine.run_of("one").key;
    w.engine.saving(true);
    w.submit(2, training("taker", 1)).await;
    let leaves = |view: &view::View| {
        view.workloads.values().any(|one| one.pods[0].state == PodState::Terminating)
    };
    w.until("it is to leave", leaves).await;
    w.engine.tell(key, RunEvent::Checkpoint(CheckpointNews::Awaited { within_ms: 7500 }));
    let id = w.id("one");
    let is_stopped = || w.engine.calls().contains(&"stop one.1".to_owned());
    while !w.events(id).await.iter().any(|event| event.kind == "AwaitsCheckpoint") {
        tokio::task::yield_now().await;
    }
    assert!(!is_stopped(), "it still saves");
    w.delete("two").await;
    w.until("it is gone", |view| view.workloads.values().all(|one| one.spec.name != "two")).await;
    assert!(!is_stopped(), "it still saves");
    w.engine.saving(false);
    w.phase("taker", Phase::Running).await;
    assert!(is_stopped());
}

/// Work whose pods have not begun has nothing to lose, however long it has had its place.
#[tokio::test]
async fn what_has_not_begun_loses_nothing() {
    let w = World::new(nodes(1, 2), &[1, 1]).await;
    let mut fetching = training("fetching", 1);
    fetching.pods.pod.image = "not-there-yet".to_owned();
    w.submit(1, training("runs", 1)).await;
    w.phase("runs", Phase::Running).await;
    w.submit(1, fetching).await;
    w.phase("fetching", Phase::Initializing).await;
    let key = w.engine.run_of("fetching").key;
    w.engine.tell(key, RunEvent::Preparing("fetches its image".to_owned()));
    let prepares = |view: &view::View| {
        view.workloads
            .values()
            .any(|one| one.spec.name == "fetching" && one.pods[0].state == PodState::Starting)
    };
    w.until("it prepares", prepares).await;
    w.decided().await;
    w.clock.advance_ms(1_800_000);
    w.submit(2, training("taker", 1)).await;
    w.phase("taker", Phase::Running).await;
    let stopped = w.get("fetching").unwrap().last_eviction.clone().expect("not the other");
    assert!(!stopped.message.contains("had passed"), "{}", stopped.message);
}
