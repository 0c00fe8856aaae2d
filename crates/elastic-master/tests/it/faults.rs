//! Trainings in which processes are killed between any two steps.

use std::time::Duration;

use elastic_master::JobConfig;
use elastic_proto::v1::{JobPhase, LeaveReason, PodGone, TellRequest, tell_request};

use crate::cluster::{Cluster, client, job};
use crate::trainings::{assert_each, seen, worker};
use crate::worker::{Ended, Habits, Signal, Worker};

/// Numbers without a pattern, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Kills of the master and the servers do not reach the workers: what the model was trained on is
/// exactly every record once, because checkpoint and ledger are one cut.
async fn kills(servers: u32, seed: u64) {
    const RECORDS: u64 = 400;
    let config = JobConfig { parameter_servers: servers, ..job(RECORDS) };
    let mut cluster = Cluster::start(config);
    let habits = Habits { step_ms: 4, ..Habits::default() };
    let workers: Vec<_> =
        (0..2).map(|n| worker(&cluster, &format!("worker-{n}"), RECORDS, habits)).collect();
    let mut random = Random(seed);
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(100 + random.below(200))).await;
        let which = usize::try_from(random.below(u64::from(servers) + 1)).expect("few");
        if which == 0 {
            cluster.kill_master();
            cluster.start_master();
        } else {
            cluster.kill_server(which - 1);
            cluster.start_server(which - 1);
        }
    }
    for (handle, _signal) in workers {
        assert_eq!(handle.await.expect("ends").0, Ended::Done, "seed {seed}");
    }
    let status = cluster.ended().await;
    assert_eq!((status.phase(), status.records), (JobPhase::Succeeded, RECORDS), "seed {seed}");
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_masters_and_servers_lose_nothing_and_repeat_nothing() {
    kills(1, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_go_back_together() {
    kills(3, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_before_its_first_checkpoint_begins_again() {
    let mut cluster = Cluster::start(JobConfig { checkpoint_steps: 0, ..job(100) });
    let habits = Habits { step_ms: 10, ..Habits::default() };
    let (one, _keep) = worker(&cluster, "worker-0", 100, habits);
    cluster.until(|status| status.records >= 20).await;
    cluster.kill_server(0);
    cluster.start_server(0);
    one.await.expect("ends");
    let status = cluster.ended().await;
    assert_eq!((status.model_generation, status.records), (2, 100));
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_repeats_at_most_what_it_held_and_its_place_in_an_update_is_free() {
    let cluster = Cluster::start(JobConfig { grads_to_wait: 2, ..job(200) });
    let habits = Habits { step_ms: 3, ..Habits::default() };
    let (killed, _signal) = worker(&cluster, "worker-0", 200, habits);
    cluster.until(|status| status.records >= 40).await;
    killed.abort();
    let _ = killed.await;
    let gone = PodGone { pod: "worker-0".into(), ..PodGone::default() };
    let event = Some(tell_request::Event::PodGone(gone));
    let mut master = client(&cluster.address(), &cluster.credentials());
    master.tell(TellRequest { event }).await.expect("told");
    let (other, _signal) = worker(&cluster, "worker-1", 200, habits);
    assert_eq!(other.await.expect("ends").0, Ended::Done);
    let status = cluster.ended().await;
    assert_eq!(status.records, 200);
    assert!(status.tasks_lost <= 2, "{}", status.tasks_lost);
    let seen = seen(&cluster);
    let again = seen.iter().filter(|seen| **seen > 0.51).count();
    assert!(seen.iter().all(|seen| *seen > 0.49), "{seen:?}");
    assert!(again <= 40, "{again} records again; it held one task of 20");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_always_fails_fails_the_job_with_its_trace() {
    let cluster = Cluster::start(job(100));
    let habits = Habits { fails: true, ..Habits::default() };
    let (one, _one) = worker(&cluster, "worker-0", 100, habits);
    let (two, _two) = worker(&cluster, "worker-1", 100, habits);
    one.await.expect("ends");
    two.await.expect("ends");
    let status = cluster.ended().await;
    assert_eq!(status.phase(), JobPhase::Failed);
    assert!(status.message.contains("Traceback: no loss"), "{}", status.message);
    assert!(status.message.contains(" of digits, epoch 0: "), "{}", status.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_load_anywhere_fails_the_job_with_its_trace() {
    let cluster = Cluster::start(JobConfig { worker_crashes_max: 2, ..job(100) });
    for number in 0..3 {
        let (_sender, signal) = tokio::sync::watch::channel(Signal::Go);
        let address = cluster.address();
        let at = (address.as_str(), cluster.credentials());
        let pod = format!("worker-{number}");
        let worker = Worker::register(at, &pod, (100, Habits::default()), signal).await;
        assert_eq!(worker.id, number);
        worker.leave(LeaveReason::CodeError, "Traceback: model has no loss").await;
    }
    let status = cluster.ended().await;
    assert_eq!(status.message, "3 workers in a row failed: Traceback: model has no loss");
}
