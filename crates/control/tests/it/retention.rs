//! Logs that stay bounded, beside a server that goes on.

use control::{EventFilter, Kept};
use store::Store;

use crate::world::{World, given, gpus, nodes};

const DAY_MS: u64 = 86_400_000;

async fn look(w: &World) {
    w.clock.advance_ms(15_000);
    let now = control::Clock::now(&w.clock);
    w.until("a look", |_| w.handle.look().at == now).await;
}

#[tokio::test]
async fn what_is_old_is_forgotten_on_record_and_the_newest_event_stays() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    for quota in 2..5 {
        w.handle.update_project("admin", 1, given(gpus(quota))).await.unwrap();
    }
    look(&w).await;
    let newest = w.handle.view().event_seq;
    assert_eq!(w.handle.events(EventFilter::default()).await.unwrap().len() as u64, newest);
    w.clock.advance_ms(Kept::default().events_ms + DAY_MS);
    look(&w).await;
    look(&w).await;
    let left = w.handle.events(EventFilter::default()).await.unwrap();
    assert_eq!(left.iter().map(|event| event.seq).collect::<Vec<_>>(), [newest]);

    w.restart().await;
    w.handle.update_project("admin", 1, given(gpus(7))).await.unwrap();
    assert_eq!(w.handle.view().event_seq, newest + 1, "no position is given out twice");
    w.clock.advance_ms(Kept::default().audit_ms);
    look(&w).await;
    look(&w).await;
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

#[tokio::test]
async fn what_a_wrong_clock_makes_look_old_is_kept_for_a_day() {
    let w = World::new(nodes(1, 1), &[1]).await;
    for quota in 2..5 {
        w.handle.update_project("admin", 1, given(gpus(quota))).await.unwrap();
    }
    w.clock.put_forward_ms(Kept::default().events_ms + DAY_MS);
    w.handle.update_project("admin", 1, given(gpus(6))).await.unwrap();
    look(&w).await;
    look(&w).await;
    let newest = w.handle.view().event_seq;
    assert_eq!(w.handle.events(EventFilter::default()).await.unwrap().len() as u64, newest);
    w.clock.advance_ms(DAY_MS);
    look(&w).await;
    look(&w).await;
    assert!((w.handle.events(EventFilter::default()).await.unwrap().len() as u64) < newest);
}
