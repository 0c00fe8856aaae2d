//! Trainings in which processes come and go as they should.

use elastic::{Epochs, Shard};
use elastic_master::{JobConfig, Mode};
use elastic_proto::v1::{JobPhase, PodLeaves, TellRequest, tell_request};
use fixture::STUCK_AFTER;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, client, job};
use crate::worker::{Ended, Habits, LINE, SEEN, Signal, Worker, mark};

/// A worker at work, and the channel for its signals.
pub(crate) fn worker(
    cluster: &Cluster,
    pod: &str,
    records: u64,
    habits: Habits,
) -> (JoinHandle<(Ended, u64)>, watch::Sender<Signal>) {
    worker_at(&cluster.address(), cluster, pod, records, habits)
}

/// A worker that reaches the master at another address.
pub(crate) fn worker_at(
    address: &str,
    cluster: &Cluster,
    pod: &str,
    records: u64,
    habits: Habits,
) -> (JoinHandle<(Ended, u64)>, watch::Sender<Signal>) {
    let (address, credentials, pod) = (address.to_owned(), cluster.credentials(), pod.to_owned());
    let (sender, signal) = watch::channel(Signal::Go);
    let work = async move {
        let at = (address.as_str(), credentials);
        let mut worker = Worker::register(at, &pod, (records, habits), signal).await;
        let ended = worker.work().await;
        (ended, worker.rejected)
    };
    let handle = tokio::spawn(async move {
        tokio::time::timeout(STUCK_AFTER, work).await.expect("the training is stuck")
    });
    (handle, sender)
}

/// How often the model of the newest checkpoint was trained on each record.
pub(crate) fn seen(cluster: &Cluster) -> Vec<f32> {
    let seen = variable(cluster, SEEN);
    let rows = cluster.rows(*cluster.checkpoints().last().expect("a checkpoint"));
    // Rows of the embedding table count the same; they are the sum of the gradients of an update.
    for (record, seen) in (0..).zip(&seen) {
        match rows.get(&mark(record)) {
            Some(row) if cluster.grads_to_wait() == 1 => {
                assert!((row[0] - seen).abs() < 0.01, "record {record}: {row:?}, not {seen}");
            }
            Some(row) => assert!(row[0] + 0.01 > *seen, "record {record}: {row:?}, not {seen}"),
            None => assert!(seen.abs() < 0.01, "record {record}: no row, not {seen}"),
        }
    }
    seen
}

fn variable(cluster: &Cluster, name: &str) -> Vec<f32> {
    let newest = *cluster.checkpoints().last().expect("a checkpoint");
    let all = cluster.checkpoint(newest);
    all.into_iter().find(|(of, _)| of == name).expect("a variable").1
}

pub(crate) fn assert_each(seen: &[f32], times: f32) {
    let wrong = |(_, value): &(usize, &f32)| (**value - times).abs() > 0.01;
    let wrong: Vec<_> = seen.iter().enumerate().filter(wrong).collect();
    assert!(wrong.is_empty(), "not {times} times: {wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_trained_on_every_record_once_a_pass_and_learns() {
    let config = JobConfig { epochs: Epochs::Count(20), saves: true, ..job(100) };
    let cluster = Cluster::start(config);
    let (one, _keep) = worker(&cluster, "worker-0", 100, Habits::default());
    assert_eq!(one.await.expect("ends").0, Ended::Done);
    let status = cluster.ended().await;
    assert_eq!((status.phase(), status.records), (JobPhase::Succeeded, 2000));
    assert_each(&seen(&cluster), 20.0);
    let line = variable(&cluster, LINE);
    assert!((line[0] - 2.0).abs() < 0.5 && (line[1] - 1.0).abs() < 0.3, "{line:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_hand_back_lose_nothing_and_repeat_nothing_on_three_servers() {
    let config = JobConfig { parameter_servers: 3, ..job(600) };
    let cluster = Cluster::start(config);
    // Worker 0 pauses after half of the 120 steps, the others after few: none reaches the end
    // before it has its signal.
    let start = |(n, pauses_after)| {
        let habits = Habits { step_ms: 2, pauses_after, ..Habits::default() };
        worker(&cluster, &format!("worker-{n}"), 600, habits)
    };
    let all: Vec<_> = (0..4).zip([60, 10, 14, 18]).map(start).collect();
    let mut handles = Vec::new();
    for (number, (handle, signal)) in (0_u64..).zip(all) {
        if number > 0 {
            cluster.until(|status| status.records >= 100 * number).await;
            signal.send(Signal::Leave).expect("it works");
        }
        handles.push((handle, signal));
    }
    handles[0].1.send(Signal::On).expect("it works");
    for (number, (handle, _signal)) in handles.into_iter().enumerate() {
        let expected = if number == 0 { Ended::Done } else { Ended::Left };
        assert_eq!(handle.await.expect("ends").0, expected);
    }
    let status = cluster.ended().await;
    assert_eq!((status.records, status.tasks_lost), (600, 0));
    assert_eq!(status.applied_records, 600, "as the leader of the servers counts");
    assert!(status.tasks_handed_back > 0);
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_goes_on_with_another_number_of_servers() {
    let first = Cluster::start(JobConfig { parameter_servers: 3, ..job(100) });
    let (one, _one) = worker(&first, "worker-0", 100, Habits::default());
    one.await.expect("ends");
    first.ended().await;
    assert_each(&seen(&first), 1.0);
    let config = JobConfig { parameter_servers: 2, ..job(100) };
    let second = Cluster::start_from(config, Some(first.path("checkpoints")));
    let (one, _one) = worker(&second, "worker-0", 100, Habits::default());
    one.await.expect("ends");
    let status = second.ended().await;
    assert_eq!((status.phase(), status.records), (JobPhase::Succeeded, 100));
    assert_each(&seen(&second), 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_twice_counts_once() {
    let cluster = Cluster::start(job(100));
    let habits = Habits { pushes_twice: true, ..Habits::default() };
    let (one, _keep) = worker(&cluster, "worker-0", 100, habits);
    one.await.expect("ends");
    assert_eq!(cluster.ended().await.applied_records, 100);
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gradients_that_wait_at_the_end_are_in_the_model_and_none_is_rejected() {
    // 12 minibatches: with five to an update, two are left.
    let config = JobConfig { grads_to_wait: 5, saves: true, ..job(60) };
    let cluster = Cluster::start(config);
    let (one, _one) = worker(&cluster, "worker-0", 60, Habits::default());
    let (two, _two) = worker(&cluster, "worker-1", 60, Habits::default());
    let rejected = one.await.expect("ends").1 + two.await.expect("ends").1;
    cluster.ended().await;
    assert_eq!(rejected, 0);
    // Each gradient counts a fifth, and a half in the last update.
    let sum: f32 = seen(&cluster).iter().sum();
    assert!((sum - (50.0 / 5.0 + 10.0 / 2.0)).abs() < 0.01, "{sum}");
    assert!(seen(&cluster).iter().all(|seen| *seen > 0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_mode_rejects_and_loses_nothing() {
    let mode = Mode::SynchronousReject;
    let cluster = Cluster::start(JobConfig { mode, grads_to_wait: 2, ..job(400) });
    let habits = Habits { step_ms: 3, pauses_after: 1, ..Habits::default() };
    let (one, of_one) = worker(&cluster, "worker-0", 400, habits);
    let (two, of_two) = worker(&cluster, "worker-1", 400, habits);
    cluster.until(|status| status.workers.len() == 2).await;
    for signal in [&of_one, &of_two] {
        signal.send(Signal::On).expect("it works");
    }
    let rejected = one.await.expect("ends").1 + two.await.expect("ends").1;
    assert!(rejected > 0, "two workers that do not wait for each other");
    cluster.ended().await;
    assert_each(&seen(&cluster), 0.5);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_waiting_each_gradient_is_an_update() {
    let mode = Mode::Asynchronous;
    let cluster = Cluster::start(JobConfig { mode, keep_checkpoint_max: 0, ..job(200) });
    let (one, _one) = worker(&cluster, "worker-0", 200, Habits::default());
    let (two, _two) = worker(&cluster, "worker-1", 200, Habits::default());
    one.await.expect("ends");
    two.await.expect("ends");
    cluster.ended().await;
    assert_each(&seen(&cluster), 1.0);
    // 0 keeps all; the last is the 40th update.
    let versions = cluster.checkpoints();
    assert!(versions.len() > 1 && versions.last() == Some(&40), "{versions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_wait_for_a_slow_one_where_staleness_has_a_bound() {
    let cluster =
        Cluster::start(JobConfig { mode: Mode::Asynchronous, staleness_max: 1, ..job(400) });
    let habits = |step_ms| Habits { step_ms, pauses_after: 1, ..Habits::default() };
    let (slow, of_slow) = worker(&cluster, "worker-0", 400, habits(20));
    let (fast, of_fast) = worker(&cluster, "worker-1", 400, habits(3));
    cluster.until(|status| status.workers.len() == 2).await;
    for signal in [&of_slow, &of_fast] {
        signal.send(Signal::On).expect("it works");
    }
    // Both train until the slow one is preempted, which holds up nothing.
    cluster.until(|status| status.records >= 100).await;
    // If all are trained by now it has ended by itself.
    let _ = of_slow.send(Signal::Leave);
    let rejected = slow.await.expect("ends").1 + fast.await.expect("ends").1;
    assert_eq!((rejected, cluster.ended().await.gradients_rejected), (0, 0));
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_is_computed_again_where_a_job_says_so() {
    let mode = Mode::AsynchronousReject;
    let cluster = Cluster::start(JobConfig { mode, staleness_max: 1, ..job(400) });
    let slow = Habits { computes_long: true, ..Habits::default() };
    let (slow, of_slow) = worker(&cluster, "worker-0", 400, slow);
    let (fast, _of_fast) = worker(&cluster, "worker-1", 400, Habits::default());
    // The fast one makes many versions while the slow one computes with its first.
    cluster.until(|status| status.records >= 100).await;
    of_slow.send(Signal::On).expect("it computes");
    let rejected = slow.await.expect("ends").1 + fast.await.expect("ends").1;
    assert!(rejected > 0);
    let shown = cluster.ended().await.gradients_rejected;
    // The status of the master may be some seconds old.
    assert!(shown <= rejected, "{shown} of {rejected}");
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_checkpoints_are_kept_and_the_newest_are() {
    let cluster = Cluster::start(JobConfig { keep_checkpoint_max: 2, ..job(200) });
    let habits = Habits { step_ms: 5, ..Habits::default() };
    let (one, _one) = worker(&cluster, "worker-0", 200, habits);
    one.await.expect("ends");
    cluster.ended().await;
    // The server ends after the job, once the newest is whole and the oldest is gone.
    let since = std::time::Instant::now();
    while cluster.checkpoints().len() > 2 && since.elapsed() < STUCK_AFTER {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let versions = cluster.checkpoints();
    assert!(versions.len() == 2 && versions[1] == 40, "{versions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_measured_while_it_is_trained() {
    let config = JobConfig {
        validation_shards: vec![Shard { name: "test".into(), start: 0, count: 50 }],
        evaluation_steps: 8,
        ..job(200)
    };
    let cluster = Cluster::start(config);
    let (one, _one) = worker(&cluster, "worker-0", 200, Habits::default());
    one.await.expect("ends");
    let status = cluster.ended().await;
    let evaluation = status.evaluations.first().expect("an evaluation");
    let metric = &evaluation.metrics[0];
    // Three tasks of 20, 20 and 10 records.
    assert_eq!((evaluation.records, metric.weight, metric.state[0]), (50, 50.0, 50.0));
    assert!(metric.total / metric.weight < 2.0, "it has learnt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_place_is_taken_leaves_and_the_other_ends_the_job() {
    let cluster = Cluster::start(job(400));
    let habits = Habits { step_ms: 5, pauses_after: 2, ..Habits::default() };
    let (one, on) = worker(&cluster, "worker-0", 400, habits);
    let (two, leave) = worker(&cluster, "worker-1", 400, habits);
    cluster.until(|status| status.workers.len() == 2).await;
    let leaves = PodLeaves { pod: "worker-1".into(), within_ms: 60_000 };
    let event = Some(tell_request::Event::PodLeaves(leaves));
    let mut master = client(&cluster.address(), &cluster.credentials());
    master.tell(TellRequest { event }).await.expect("told");
    let status = cluster.status().await;
    let leaving = status.workers.iter().filter(|worker| worker.leaving);
    assert_eq!(leaving.map(|worker| worker.pod.as_str()).collect::<Vec<_>>(), ["worker-1"]);
    on.send(Signal::On).expect("it waits");
    leave.send(Signal::Leave).expect("it waits");
    two.await.expect("ends");
    assert_eq!(one.await.expect("ends").0, Ended::Done);
    cluster.ended().await;
    assert_each(&seen(&cluster), 1.0);
}
