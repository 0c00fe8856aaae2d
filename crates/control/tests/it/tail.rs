//! The end of the event log.

use control::Tail;

use crate::world::{World, nodes, training};

/// Number of workloads whose events are more than a live reader may be behind.
const WORKLOADS: usize = 1_500;

#[tokio::test]
async fn a_reader_that_falls_behind_or_gives_up_waiting_gets_each_event_once_and_in_order() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let mut tail = Tail::new(w.handle.clone(), None, |event| event.kind == "Submitted");
    let from = w.handle.view().event_seq;
    for number in 0..WORKLOADS {
        w.submit(1, training(&format!("w{number}"), 0)).await;
    }
    let mut names = Vec::new();
    while names.len() < WORKLOADS {
        // Given up as soon as it would wait, again and again.
        let waits = async { tail.wait().await.unwrap() };
        tokio::select! {
            biased;
            more = waits => assert!(more),
            () = tokio::task::yield_now() => {}
        }
        while let Some(event) = tail.take() {
            assert!(event.seq > from);
            names.push(event.workload_name.clone());
        }
    }
    let all: Vec<_> = (0..WORKLOADS).map(|number| format!("w{number}")).collect();
    assert_eq!(names, all);
}
