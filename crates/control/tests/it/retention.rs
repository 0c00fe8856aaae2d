//! Logs that stay bounded, beside a server that goes on.

use control::{RetentionPolicy, Subject};
use records::EventFilter;
use store::Store;
use units::Instant;

use crate::world::{World, given, gpus, nodes};

const DAY_MS: u64 = 86_400_000;

async fn sample(w: &World) {
    w.clock.advance_ms(15_000);
    let now = control::Clock::now(&w.clock);
    // The line may be a moment behind.
    w.until("a sample", |_| w.handle.sample().at.plus_ms(1) >= now).await;
}

#[tokio::test]
async fn what_is_old_is_forgotten_on_record_and_the_newest_event_stays() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    for quota in 2..5 {
        w.handle.update_project("admin", 1, given(gpus(quota))).await.unwrap();
    }
    sample(&w).await;
    let newest = w.handle.view().event_seq;
    assert_eq!(w.handle.events(EventFilter::default()).await.unwrap().len() as u64, newest);
    w.clock.advance_ms(RetentionPolicy::default().events_ms + DAY_MS);
    sample(&w).await;
    sample(&w).await;
    let left = w.handle.events(EventFilter::default()).await.unwrap();
    assert_eq!(left.iter().map(|event| event.seq).collect::<Vec<_>>(), [newest]);

    w.restart().await;
    w.handle.update_project("admin", 1, given(gpus(7))).await.unwrap();
    assert_eq!(w.handle.view().event_seq, newest + 1, "no position is given out twice");
    w.clock.advance_ms(RetentionPolicy::default().audit_ms);
    sample(&w).await;
    sample(&w).await;
    w.crash().await;
    let rows = Store::open(w.dir.path()).await.unwrap().audit(9).await.unwrap();
    let rows: Vec<_> =
        rows.iter().rev().map(|row| format!("{} {} {}", row.who, row.what, row.target)).collect();
    let gone = format!("elastane events.delete {newest} to {newest}, after 90 days");
    assert_eq!(
        rows[rows.len() - 2..],
        [gone, "elastane audit.delete 1 to 6, after 400 days".into()]
    );
}

/// Events that are kept, of those there were, and samples of the first hour.
async fn kept(w: &World) -> (usize, u64, usize) {
    let events = w.handle.events(EventFilter::default()).await.unwrap().len();
    let hour = (Instant(0), Instant(3_600_000));
    let now = control::Clock::now(&w.clock);
    let samples = w.handle.measured(&Subject::Cluster, hour, 60_000, now).await.unwrap().len();
    (events, w.handle.view().event_seq, samples)
}

/// A server that has something to forget, once it is old.
async fn with_a_past() -> World {
    let w = World::new(nodes(1, 1), &[1]).await;
    for quota in 2..5 {
        w.handle.update_project("admin", 1, given(gpus(quota))).await.unwrap();
    }
    for _ in 0..8 {
        sample(&w).await;
    }
    w
}

/// Nothing is gone now, and something is a day later.
async fn forgets_tomorrow(w: &World) {
    w.handle.update_project("admin", 1, given(gpus(6))).await.unwrap();
    sample(w).await;
    sample(w).await;
    let (events, of, samples) = kept(w).await;
    assert!(events as u64 == of && samples > 0, "{events} of {of} events, {samples} samples");
    w.clock.advance_ms(DAY_MS);
    sample(w).await;
    sample(w).await;
    let (events, of, samples) = kept(w).await;
    assert!((events as u64) < of && samples == 0, "{events} of {of} events, {samples} samples");
}

#[tokio::test]
async fn what_a_wrong_clock_makes_look_old_is_kept_for_a_day() {
    let w = with_a_past().await;
    w.clock.put_forward_ms(RetentionPolicy::default().events_ms + DAY_MS);
    forgets_tomorrow(&w).await;
}

#[tokio::test]
async fn nor_is_it_gone_where_the_clock_was_put_forward_while_there_was_no_server() {
    let mut w = with_a_past().await;
    w.crash().await;
    w.clock.put_forward_ms(RetentionPolicy::default().events_ms + DAY_MS);
    w.start().await;
    forgets_tomorrow(&w).await;
}

#[tokio::test]
async fn a_restart_is_no_step_of_the_clock() {
    let mut w = with_a_past().await;
    w.crash().await;
    w.clock.advance_ms(RetentionPolicy::default().events_ms + DAY_MS);
    w.clock.shake();
    w.start().await;
    w.handle.update_project("admin", 1, given(gpus(6))).await.unwrap();
    sample(&w).await;
    sample(&w).await;
    let (events, of, samples) = kept(&w).await;
    assert!((events as u64) < of && samples == 0, "{events} of {of} events, {samples} samples");
}
