//! Setting the wall clock, while the server runs and while it does not: durations from a moment go
//! on as if the clock was untouched, and shown times are those of the clock.

use control::Clock;
use engine::Exit;
use units::Instant;
use view::Phase;

use crate::expiry::kept_for;
use crate::limits::{idle_limits, limit, looks, told};
use crate::world::{World, nodes, training};

const HOUR: u64 = 3_600_000;

/// A training that has run for 40 s of the 100 s for which it may.
async fn limited() -> World {
    let w = World::new(nodes(1, 1), &[1]).await;
    limit(&w, false, 100, 0).await;
    w.submit(1, training("t", 1)).await;
    w.becomes("t Running 1/1").await;
    w.clock.advance_ms(40_000);
    w
}

/// The workload gets a warning when it has run for 90 s, and is suspended after 100 s.
async fn has_60_s_left(w: &World) {
    w.clock.advance_ms(49_000);
    let now = w.submit(1, training("now", 0)).await;
    assert!(w.events(w.id("t")).await.iter().all(|event| event.kind != "TimeLimitNear"));
    assert_eq!(now.created_at, w.clock.now(), "what people see");
    w.clock.advance_ms(1_000);
    told(w, "t", "TimeLimitNear").await;
    w.clock.advance_ms(10_000);
    w.phase("t", Phase::Stopped).await;
}

#[tokio::test]
async fn a_clock_that_is_put_forward_ends_nothing_early() {
    let w = limited().await;
    w.clock.put_forward_ms(HOUR);
    has_60_s_left(&w).await;
}

#[tokio::test]
async fn nor_does_one_that_was_put_forward_while_there_was_no_server() {
    let mut w = limited().await;
    w.crash().await;
    w.clock.put_forward_ms(HOUR);
    w.start().await;
    has_60_s_left(&w).await;
    w.restart().await;
    assert_eq!(w.get("t").unwrap().phase, Phase::Stopped);
}

#[tokio::test]
async fn one_that_was_set_back_while_there_was_no_server_makes_nothing_last_longer() {
    let mut w = limited().await;
    w.crash().await;
    w.clock.set_back_ms(900_000);
    w.start().await;
    has_60_s_left(&w).await;
}

#[tokio::test]
async fn one_that_is_set_back_and_right_again_changes_nothing() {
    let w = limited().await;
    w.clock.set_back_ms(900_000);
    w.submit(1, training("meanwhile", 0)).await;
    w.clock.advance_ms(20_000);
    w.clock.put_forward_ms(900_000);
    w.submit(1, training("right", 0)).await;
    w.clock.advance_ms(30_000);
    told(&w, "t", "TimeLimitNear").await;
}

#[tokio::test]
async fn what_has_ended_is_kept_for_as_long_as_it_asked_for_whatever_the_clock_says() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, kept_for(60)).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(0));
    w.phase("t", Phase::Completed).await;
    w.clock.put_forward_ms(HOUR);
    w.clock.advance_ms(59_000);
    w.submit(1, training("other", 0)).await;
    assert_eq!(w.get("t").unwrap().phase, Phase::Completed);
    w.clock.advance_ms(1_000);
    w.until("its deletion", |view| view.workloads.len() == 1).await;
}

#[tokio::test]
async fn after_a_restart_of_the_machine_the_clock_is_right() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, kept_for(60)).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(0));
    w.phase("t", Phase::Completed).await;
    w.crash().await;
    w.clock.reboot();
    w.clock.put_forward_ms(60_000);
    w.start().await;
    w.until("its deletion", |view| view.workloads.is_empty()).await;
}

#[tokio::test]
async fn idle_time_is_counted_by_looks_not_by_the_clock() {
    let w = World::new(nodes(1, 1), &[1]).await;
    idle_limits(&w, [100, 100, 100]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    looks(&w, 3, &[Some(0)]).await;
    w.clock.put_forward_ms(HOUR);
    w.submit(1, training("other", 0)).await;
    looks(&w, 3, &[Some(0)]).await;
    let events = w.events(w.id("t")).await;
    assert!(events.iter().all(|event| event.kind != "IdleLimitNear"), "{events:?}");
    looks(&w, 1, &[Some(0)]).await;
    told(&w, "t", "IdleLimitNear").await;
}

#[tokio::test]
async fn a_step_of_the_clock_is_no_time_that_gpus_were_held() {
    let w = limited().await;
    w.clock.put_forward_ms(10 * HOUR);
    w.submit(1, training("other", 0)).await;
    w.clock.advance_ms(20_000);
    let rows = w.handle.ledger(Instant(0), w.clock.now()).await.unwrap();
    let held: u64 = rows.iter().map(|row| row.allocated).sum();
    assert_eq!(held, 1000 * 60_000);
}
