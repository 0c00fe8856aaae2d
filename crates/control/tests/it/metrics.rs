//! Counters of the dispatcher: each occurrence counts once, and only when it is on disk.

use engine::Exit;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use spec::WorkloadSpec;
use view::Phase;

use crate::world::{World, distributed, nodes, training, with, workspace};

/// Values of these series, in their order; `None` for a series that does not exist.
fn values<const N: usize>(w: &World, series: [&str; N]) -> [Option<f64>; N] {
    let mut registry = Registry::default();
    w.handle.metrics().register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    series.map(|series| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    })
}

#[tokio::test]
async fn a_wait_counts_once_from_submission_to_the_first_run() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, WorkloadSpec { backoff_limit: 1, ..training("first", 1) }).await;
    w.phase("first", Phase::Running).await;
    w.submit(1, training("second", 1)).await;
    w.clock.advance_ms(30_000);
    w.engine.end(w.engine.run_of("first").key, Exit::Code(1));
    w.phase("first", Phase::Initializing).await;
    w.clock.advance_ms(1000);
    w.phase("first", Phase::Running).await;
    w.engine.end(w.engine.run_of("first").key, Exit::Code(1));
    w.becomes("first Failed 0/1\nsecond Running 1/1").await;
    w.engine.end(w.engine.run_of("second").key, Exit::Code(0));
    w.phase("second", Phase::Completed).await;
    let got = values(
        &w,
        [
            "workloads_submitted_total{kind=\"training\"}",
            "workload_wait_duration_seconds_count{kind=\"training\"}",
            "workload_wait_duration_seconds_sum{kind=\"training\"}",
            "workload_wait_duration_seconds_bucket{le=\"15.0\",kind=\"training\"}",
            "workload_wait_duration_seconds_bucket{le=\"60.0\",kind=\"training\"}",
            "workloads_ended_total{kind=\"training\",result=\"completed\"}",
            "workloads_ended_total{kind=\"training\",result=\"failed\"}",
            "workloads_submitted_total{kind=\"workspace\"}",
        ],
    );
    assert_eq!(got, [2.0, 2.0, 31.0, 1.0, 2.0, 1.0, 1.0, 0.0].map(Some));
}

#[tokio::test]
async fn a_workload_that_is_evicted_counts_once_by_its_cause_however_many_pods_it_has() {
    let w = World::new(nodes(1, 3), &[1, 2]).await;
    w.submit(1, distributed("gang", 2)).await;
    w.phase("gang", Phase::Running).await;
    w.submit(2, training("owner", 1)).await;
    w.becomes("gang Pending 0/3\nowner Running 1/1").await;
    let cause = w.get("gang").unwrap().last_eviction.clone().unwrap().code;
    let series = format!("evictions_total{{cause=\"{cause}\",kind=\"distributed\"}}");
    assert_eq!((values(&w, [&series]), &*cause), ([Some(1.0)], "E101"));
}

#[tokio::test]
async fn what_the_engine_refuses_counts_by_what_was_asked_of_it() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.engine.fail_stops(1);
    w.submit(1, with(training("t", 1), |pod| pod.image = "half-started".to_owned())).await;
    w.submit(1, training("next", 1)).await;
    w.until("it ended", |_| w.get("t").unwrap().pods[0].last_exit.is_some()).await;
    w.delete("t").await;
    w.phase("next", Phase::Running).await;
    let verbs = ["start", "stop", "remove"];
    let errors = verbs.map(|verb| format!("engine_errors_total{{verb=\"{verb}\"}}"));
    assert_eq!(values(&w, errors.each_ref().map(|series| &**series)), [1.0, 1.0, 0.0].map(Some));
    let calls = verbs.map(|verb| format!("engine_call_duration_seconds_count{{verb=\"{verb}\"}}"));
    assert_eq!(values(&w, calls.each_ref().map(|series| &**series)), [2.0, 2.0, 2.0].map(Some));
}

#[tokio::test]
async fn what_could_not_be_written_did_not_happen() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let failed = "store_transaction_errors_total{purpose=\"decision\"}";
    let submitted = "workloads_submitted_total{kind=\"workspace\"}";
    w.refuse_events(true).await;
    w.handle.submit(1, workspace("w", 1), false).await.unwrap_err();
    let [errors, none] = values(&w, [failed, submitted]);
    assert!(errors >= Some(1.0) && none == Some(0.0), "{errors:?} {none:?}");
    w.refuse_events(false).await;
    w.submit(1, workspace("w", 1)).await;
    w.phase("w", Phase::Running).await;
    let [submitted, decided, written, batches] = values(
        &w,
        [
            submitted,
            "decision_duration_seconds_count",
            "store_transaction_duration_seconds_count{purpose=\"decision\"}",
            "batch_events_count",
        ],
    );
    assert_eq!(submitted, Some(1.0));
    assert!(decided > Some(0.0) && written > errors && batches > Some(1.0));
}
