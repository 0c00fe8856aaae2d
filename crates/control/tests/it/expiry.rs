//! Workloads that delete themselves.

use engine::Exit;
use spec::WorkloadSpec;
use view::Phase;

use crate::world::{World, distributed, nodes, training, workspace};

pub(crate) fn kept_for(seconds: u64) -> WorkloadSpec {
    WorkloadSpec { delete_after_ms: Some(seconds * 1000), ..training("t", 1) }
}

/// A training that has just ended.
async fn ended(spec: WorkloadSpec) -> World {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, spec).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(0));
    w
}

async fn gone(w: &World) {
    w.until("its deletion", |view| view.workloads.is_empty()).await;
}

#[tokio::test]
async fn what_has_ended_is_kept_for_as_long_as_it_asked_for() {
    let w = ended(kept_for(60)).await;
    w.phase("t", Phase::Completed).await;
    w.clock.advance_ms(59_000);
    w.submit(1, training("other", 0)).await;
    w.phase("other", Phase::Running).await;
    assert_eq!(w.get("t").unwrap().phase, Phase::Completed);
    w.clock.advance_ms(1_000);
    w.until("its deletion", |view| view.workloads.values().all(|one| one.spec.name != "t")).await;
}

#[tokio::test]
async fn a_restart_does_not_forget_it() {
    let mut w = ended(kept_for(60)).await;
    w.phase("t", Phase::Completed).await;
    w.crash().await;
    w.clock.advance_ms(60_000);
    w.start().await;
    gone(&w).await;
}

#[tokio::test]
async fn nothing_is_kept_of_what_is_to_be_kept_for_no_time() {
    gone(&ended(kept_for(0)).await).await;
}

#[tokio::test]
async fn what_does_not_want_to_be_queued_again_goes_when_it_is_evicted() {
    let w = World::new(nodes(1, 1), &[0, 1]).await;
    let first = WorkloadSpec { delete_when_preempted: true, ..training("t", 1) };
    w.submit(1, first).await;
    w.phase("t", Phase::Running).await;
    w.submit(2, workspace("mine", 1)).await;
    w.phase("mine", Phase::Running).await;
    w.until("its deletion", |view| view.workloads.len() == 1).await;
}

#[tokio::test]
async fn who_only_gives_back_what_it_had_beyond_its_least_does_not_go() {
    let w = World::new(nodes(1, 4), &[1, 3]).await;
    let mut spec = WorkloadSpec { delete_when_preempted: true, ..distributed("d", 3) };
    spec.more[0].pods_min = 1;
    w.submit(1, spec).await;
    w.becomes("d Running 4/4").await;
    w.submit(2, training("owner", 2)).await;
    w.becomes("d Degraded 2/4\nowner Running 2/2").await;
}
