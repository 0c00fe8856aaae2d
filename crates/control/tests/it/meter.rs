//! Measurements over time: known values, missing values, and retention.

use control::{Requests, Subject, Traffic, of};
use engine::{GpuUse, Measured, RunUse};
use units::Instant;

use crate::world::{World, nodes, training, with};

const LOOK_MS: u64 = 15_000;
const MINUTE_MS: u64 = 60_000;

/// Moves the clock to the next look and waits for it.
async fn sample(w: &World) {
    w.clock.advance_ms(LOOK_MS);
    let now = control::Clock::now(&w.clock);
    w.until("a sample", |_| w.handle.sample().at == now).await;
}

/// Use of a run with this much CPU time, on a GPU that is busy for half of the time.
fn used(w: &World, name: &str, cpu_time_ms: u64) -> Measured {
    let key = w.engine.run_of(name).key;
    let gpu = |busy| GpuUse {
        uuid: "GPU-sim-node-1-0".to_owned(),
        busy_millis: Some(busy),
        memory_bytes: Some(4 << 30),
    };
    let run = RunUse { key, cpu_time_ms, memory_bytes: 7 << 20, gpus: vec![gpu(200)] };
    Measured { runs: vec![run], gpus: vec![gpu(500)] }
}

/// Values of this name in the last `minutes` minutes, with their times.
async fn series(w: &World, subject: &Subject, name: &str, minutes: u64) -> Vec<(u64, u64)> {
    let now = control::Clock::now(&w.clock);
    let from = Instant(now.0.saturating_sub(minutes * MINUTE_MS));
    let span = (from, now.plus_ms(1));
    let rows = w.handle.measured(subject, span, 1000, now).await.unwrap();
    rows.into_iter().filter_map(|(at, values)| Some((at.0, *values.get(name)?))).collect()
}

#[tokio::test]
async fn what_is_used_adds_up_from_pods_to_the_cluster_and_survives_a_crash() {
    let mut w = World::new(nodes(2, 2), &[2, 2]).await;
    w.submit(1, training("a", 1)).await;
    w.becomes("a Running 1/1").await;
    w.engine.uses(used(&w, "a", 3000));
    sample(&w).await;
    w.engine.uses(used(&w, "a", 10_500));
    sample(&w).await;
    let seen = w.handle.sample();
    let pod = Subject::Pod(w.get("a").unwrap().pods[0].id);
    let node = |name: &str| Subject::Node(name.to_owned());
    for (subject, name, want) in [
        // Half a core for 15 seconds.
        (&pod, of::CPU, Some(500)),
        (&pod, of::MEMORY, Some(7 << 20)),
        (&pod, of::GPU, Some(1000)),
        (&pod, of::BUSY, Some(500)),
        (&pod, of::GPU_MEMORY, Some(4 << 30)),
        (&node("node-1"), of::CPU, Some(500)),
        (&node("node-1"), of::BUSY, Some(500)),
        (&node("node-1"), "busy.0", Some(500)),
        (&node("node-1"), "busy.1", None),
        (&node("node-1"), "gpu.0", Some(1000)),
        (&node("node-2"), of::CPU, Some(0)),
        (&node("node-2"), of::BUSY, None),
        (&Subject::Project(1), of::GPU, Some(1000)),
        (&Subject::Project(1), of::GPU_QUOTA, Some(2000)),
        (&Subject::Project(1), of::GPU_MEMORY, Some(4 << 30)),
        (&Subject::Project(2), of::GPU, Some(0)),
        (&Subject::Project(2), of::GPU_MEMORY, None),
        (&Subject::Department(1), of::GPU, Some(1000)),
        (&Subject::Department(1), of::GPU_QUOTA, Some(4000)),
        (&Subject::Cluster, of::CPU, Some(500)),
        (&Subject::Cluster, of::GPU_TOTAL, Some(4000)),
        (&Subject::Cluster, of::WORKLOADS, Some(1000)),
        (&Subject::Kind(spec::WorkloadKind::Training), of::GPU, Some(1000)),
    ] {
        assert_eq!(seen.value(subject, name), want, "{subject} {name}");
    }
    let before = series(&w, &pod, of::CPU, 5).await;
    assert_eq!(before.iter().map(|(_, cpu)| *cpu).collect::<Vec<_>>(), [200, 500]);
    // A server that begins at the same moment would look at the same moment.
    w.clock.advance_ms(1);
    w.restart().await;
    assert_eq!(series(&w, &pod, of::CPU, 5).await, before);
}

#[tokio::test]
async fn a_shared_gpu_is_measured_by_the_processes_on_it() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let half = spec::GpuRequest::share(1, 500);
    w.submit(1, with(training("a", 1), |pod| pod.gpu = half)).await;
    w.becomes("a Running 0.5/0.5").await;
    w.engine.uses(used(&w, "a", 0));
    sample(&w).await;
    let pod = Subject::Pod(w.get("a").unwrap().pods[0].id);
    assert_eq!(w.handle.sample().value(&pod, of::BUSY), Some(200), "its own part");
    assert_eq!(
        w.handle.sample().value(&pod, of::GPU_MEMORY_TOTAL),
        Some(8 << 30),
        "half of 16 GiB"
    );
}

#[tokio::test]
async fn what_cannot_be_measured_is_not_there_and_what_is_held_is() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("a", 2)).await;
    w.becomes("a Running 2/2").await;
    sample(&w).await;
    let seen = w.handle.sample();
    for subject in [Subject::Cluster, Subject::Node("node-1".to_owned())] {
        assert_eq!(seen.value(&subject, of::GPU), Some(2000), "{subject}");
        for name in [of::CPU, of::MEMORY, of::BUSY, of::GPU_MEMORY] {
            assert_eq!(seen.value(&subject, name), None, "{subject} {name}");
        }
    }
    // Once one of the runs on a node is not known, neither is the sum.
    w.engine.uses(Measured::default());
    sample(&w).await;
    assert_eq!(w.handle.sample().value(&Subject::Cluster, of::CPU), None);
}

#[tokio::test]
async fn the_past_is_kept_in_means_and_then_forgotten() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.until("the first sample", |_| w.handle.sample().at == Instant(1_000_000)).await;
    w.submit(1, training("a", 1)).await;
    w.becomes("a Running 1/1").await;
    for _ in 0..8 {
        sample(&w).await;
    }
    w.delete("a").await;
    w.until("gone", |view| view.workloads.is_empty()).await;
    let fine = series(&w, &Subject::Cluster, of::GPU, 5).await;
    assert_eq!(
        fine.iter().map(|(_, gpu)| gpu / 1000).collect::<Vec<_>>(),
        [0, 1, 1, 1, 1, 1, 1, 1, 1]
    );

    // The server crashed and was gone for two hours: the minutes before are there.
    w.crash().await;
    w.clock.advance_ms(120 * MINUTE_MS);
    w.start().await;
    w.until("a sample", |_| w.handle.sample().at.0 > 0).await;
    sample(&w).await;
    let minutes = series(&w, &Subject::Cluster, of::GPU, 125).await;
    let last = control::Clock::now(&w.clock).0;
    // The first minute saw two looks, and nothing was held at one of them.
    let want =
        [(960_000, 500), (1_020_000, 1000), (1_080_000, 1000), (last - LOOK_MS, 0), (last, 0)];
    assert_eq!(minutes, want);

    // A day later only quarters of an hour are left; after a month nothing.
    w.clock.advance_ms(24 * 60 * MINUTE_MS);
    sample(&w).await;
    let quarters = series(&w, &Subject::Cluster, of::GPU, 27 * 60).await;
    // The mean of three minutes; of the next quarter only the last two looks are there.
    assert_eq!(quarters[0], (900_000, 833), "{quarters:?}");
    assert_eq!(quarters[1], (8_100_000, 0), "{quarters:?}");
    w.clock.advance_ms(40 * 24 * 60 * MINUTE_MS);
    sample(&w).await;
    let all = series(&w, &Subject::Cluster, of::GPU, 50 * 24 * 60).await;
    assert!(all.iter().all(|(at, _)| *at > 30 * 24 * 60 * MINUTE_MS), "{all:?}");
}

#[tokio::test]
async fn requests_to_inferences_are_kept_as_what_each_second_had() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, crate::inference::inference("svc", 1, 1, 1)).await;
    w.becomes("svc Running 1/1").await;
    let (svc, key) = (w.id("svc"), w.engine.run_of("svc").key);
    let count = |w: &World, span_ms, answered, latency_ms| {
        let requests = Requests { answered, latency_ms, busy_ms: latency_ms };
        let (inferences, replicas) = ([(svc, (requests, 1))].into(), [(key, requests)].into());
        w.handle.count(Traffic { span_ms, inferences, replicas });
    };
    count(&w, 5000, 10, 100);
    sample(&w).await;
    count(&w, 20_000, 40, 1600);
    sample(&w).await;
    // There are no samples, so nothing is known; older ones are kept.
    sample(&w).await;
    w.clock.advance_ms(1);
    w.restart().await;
    for subject in [Subject::Inference(svc), Subject::Pod(key.pod)] {
        for (name, want) in [
            (of::ANSWERED, [2_000_000, 2_000_000]),
            (of::ANSWER_MS, [20_000_000, 100_000_000]),
            (of::REQUESTS, [20, 100]),
        ] {
            let seen = series(&w, &subject, name, 5).await;
            let seen: Vec<u64> = seen.into_iter().map(|(_, value)| value).collect();
            assert_eq!(seen, want, "{subject} {name}");
        }
    }
}
