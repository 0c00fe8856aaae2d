//! Trainings in which processes are killed between any two steps.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use elastic::WorldLimits;
use elastic_master::{JobConfig, Master, Mode, Print, Settings, Sync};
use elastic_proto::v1::{
    AttendRequest, GetTaskRequest, JobPhase, LeaveReason, PodGone, TellRequest, WatchRequest,
    tell_request,
};
use tokio::sync::watch;

use crate::cluster::{Cluster, client, job};
use crate::trainings::{assert_each, seen, worker, worker_at};
use crate::wire::Wire;
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

/// The update of a push that the other server had waits for that one, which is gone; the leader
/// gets other orders meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_waits_for_a_server_follows_its_orders() {
    let mut cluster = Cluster::start(JobConfig { parameter_servers: 2, ..job(60) });
    let habits = Habits { leader_after_ms: 400, ..Habits::default() };
    let (one, _keep) = worker(&cluster, "worker-0", 60, habits);
    cluster.until(|status| status.model_version >= 3).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    cluster.kill_server(1);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let (two, _keep) = worker(&cluster, "worker-1", 60, Habits::default());
    cluster.until(|status| status.workers.len() == 2).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    cluster.start_server(1);
    for handle in [one, two] {
        assert_eq!(handle.await.expect("ends").0, Ended::Done);
    }
    assert_eq!(cluster.ended().await.phase(), JobPhase::Succeeded);
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_before_its_first_checkpoint_begins_again() {
    let mut cluster = Cluster::start(JobConfig { checkpoint_steps: 0, ..job(100) });
    let habits = Habits { step_ms: 10, pauses_after: 4, ..Habits::default() };
    let (one, signal) = worker(&cluster, "worker-0", 100, habits);
    cluster.until(|status| status.records >= 20).await;
    cluster.kill_server(0);
    cluster.start_server(0);
    signal.send(Signal::On).expect("it waits");
    one.await.expect("ends");
    let status = cluster.ended().await;
    assert_eq!((status.model_generation, status.records), (2, 100));
    assert_each(&seen(&cluster), 1.0);
}

/// A worker has pushed the gradients of two tasks and a quarter of the third, and is killed. Its
/// last push was never reported to the master.
async fn kill_worker(cluster: &Cluster) {
    let habits = Habits { vanishes_after: 9, ..Habits::default() };
    let (killed, _signal) = worker(cluster, "worker-0", 200, habits);
    assert_eq!(killed.await.expect("ends").0, Ended::Left);
}

async fn report_killed(cluster: &Cluster) {
    let gone = PodGone { pod: "worker-0".into(), ..PodGone::default() };
    let event = Some(tell_request::Event::PodGone(gone));
    let mut master = client(&cluster.address(), &cluster.credentials());
    master.tell(TellRequest { event }).await.expect("told");
}

/// Another worker does the rest: the model has each record so many times.
async fn finish(cluster: &Cluster, (tasks_lost, times): (u64, f32)) {
    let (other, _signal) = worker(cluster, "worker-1", 200, Habits::default());
    assert_eq!(other.await.expect("ends").0, Ended::Done);
    let status = cluster.ended().await;
    assert_eq!((status.records, status.tasks_lost), (200, tasks_lost));
    assert_eq!(status.applied_records, 200, "as the leader of the servers counts");
    assert_each(&seen(cluster), times);
}

/// The last gradient of the killed worker waits for one of another, on each server: an update is
/// their mean.
#[tokio::test(flavor = "multi_thread")]
async fn gradients_of_a_killed_worker_that_wait_for_others_count_once() {
    for parameter_servers in [1, 3] {
        let config = JobConfig { grads_to_wait: 2, parameter_servers, ..job(200) };
        let cluster = Cluster::start(config);
        kill_worker(&cluster).await;
        report_killed(&cluster).await;
        finish(&cluster, (1, 0.5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_gradients_of_a_killed_worker_count_once() {
    for (parameter_servers, mode) in [(1, Mode::Asynchronous), (3, Mode::SynchronousReject)] {
        let cluster = Cluster::start(JobConfig { mode, parameter_servers, ..job(200) });
        kill_worker(&cluster).await;
        report_killed(&cluster).await;
        finish(&cluster, (1, 1.0)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_with_its_knowledge_of_a_killed_worker_restores_a_model_without_it() {
    let mut cluster = Cluster::start(job(200));
    kill_worker(&cluster).await;
    cluster.kill_server(0);
    report_killed(&cluster).await;
    let status = cluster.until(|status| status.workers.is_empty()).await;
    assert_eq!((status.records, status.tasks_lost), (40, 0), "the third task waits");
    cluster.start_server(0);
    finish(&cluster, (0, 1.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_starts_again_still_asks_for_the_pushes_of_a_killed_worker() {
    let mut cluster = Cluster::start(job(200));
    kill_worker(&cluster).await;
    cluster.pause_server(0, true);
    report_killed(&cluster).await;
    cluster.kill_master();
    cluster.start_master();
    assert_eq!(cluster.status().await.tasks_lost, 0);
    cluster.pause_server(0, false);
    finish(&cluster, (1, 1.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_say_what_it_accepted_keeps_no_task_from_others() {
    let mut cluster = Cluster::start(job(40));
    cluster.status().await;
    cluster.kill_server(0);
    let credentials = cluster.credentials();
    let mut master = client(&cluster.address(), &credentials);
    let attend = AttendRequest { instance: 7, settles: true, ..Default::default() };
    let orders = master.attend(attend.clone()).await.expect("orders").into_inner();
    let attend = AttendRequest { model_generation: orders.model_generation, ..attend };
    let (_sender, signal) = watch::channel(Signal::Go);
    let at = (cluster.address(), credentials);
    let habits = Habits::default();
    let worker = Worker::register((&at.0, at.1), "worker-0", (40, habits), signal).await;
    let ask = GetTaskRequest { worker_id: worker.id, holding: Vec::new(), wait_ms: 30_000 };
    assert!(master.get_task(ask).await.expect("answered").into_inner().task.is_some());
    worker.leave(LeaveReason::Preempted, "").await;
    let orders = master.attend(attend.clone()).await.expect("orders").into_inner();
    assert_eq!((orders.unsettled_workers, cluster.status().await.tasks_lost), (vec![worker.id], 0));
    // One of an earlier version does not know the question.
    let earlier = AttendRequest { settles: false, ..attend };
    let orders = master.attend(earlier).await.expect("orders").into_inner();
    assert_eq!((orders.unsettled_workers, cluster.status().await.tasks_lost), (vec![], 1));
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

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_last_worker_is_taken_waits_and_goes_on_with_the_next_one() {
    let cluster = Cluster::start(job(200));
    let habits = Habits { step_ms: 3, ..Habits::default() };
    // Both stay in the middle of their second task.
    let pauses = Habits { pauses_after: 6, ..habits };
    let (one, signal) = worker(&cluster, "worker-0", 200, pauses);
    let (two, of_two) = worker(&cluster, "worker-1", 200, pauses);
    cluster.until(|status| status.records >= 40).await;
    for (handle, signal) in [(two, of_two), (one, signal)] {
        signal.send(Signal::Leave).expect("it waits");
        assert_eq!(handle.await.expect("ends").0, Ended::Left);
    }
    let status = cluster.until(|status| status.workers.is_empty()).await;
    assert_eq!((status.phase(), status.tasks_lost), (JobPhase::Running, 0));
    let (next, _keep) = worker(&cluster, "worker-2", 200, habits);
    assert_eq!(next.await.expect("ends").0, Ended::Done);
    let status = cluster.ended().await;
    assert_eq!((status.phase(), status.records), (JobPhase::Succeeded, 200));
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_of_the_network_that_is_shorter_than_the_patience_repeats_nothing() {
    const RECORDS: u64 = 600;
    let cluster = Cluster::start(job(RECORDS));
    let wire = Wire::to(&cluster.address());
    let habits = Habits { step_ms: 3, ..Habits::default() };
    let (one, _one) = worker_at(&wire.address(), &cluster, "worker-0", RECORDS, habits);
    let (two, _two) = worker(&cluster, "worker-1", RECORDS, habits);
    for records in [20, 60, 100] {
        cluster.until(|status| status.records >= records).await;
        wire.cut();
        // The other one finds nothing of it; it may have done all there was by now.
        let before = cluster.status().await.records;
        cluster.until(|status| status.records > before || status.records == RECORDS).await;
        wire.mend();
    }
    assert_eq!(one.await.expect("ends").0, Ended::Done);
    assert_eq!(two.await.expect("ends").0, Ended::Done);
    let status = cluster.ended().await;
    assert_eq!((status.records, status.tasks_lost), (RECORDS, 0));
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_behind_a_longer_cut_is_given_up_and_its_tasks_go_to_the_others() {
    // Long enough that no other is taken for one that is gone, on a machine that has much to do.
    let cluster = Cluster::start(JobConfig { worker_timeout_ms: 12_000, ..job(200) });
    let wire = Wire::to(&cluster.address());
    let habits = Habits { step_ms: 3, ..Habits::default() };
    // The connection is cut in the middle of its second task, and the worker continues that task.
    let pauses = Habits { pauses_after: 6, ..habits };
    let (cut_off, signal) = worker_at(&wire.address(), &cluster, "worker-0", 200, pauses);
    cluster.until(|status| status.records >= 20).await;
    wire.cut();
    signal.send(Signal::On).expect("it waits");
    cluster.until(|status| status.workers.is_empty()).await;
    let (other, _other) = worker(&cluster, "worker-1", 200, habits);
    assert_eq!(other.await.expect("ends").0, Ended::Done);
    let status = cluster.ended().await;
    assert_eq!(status.records, 200);
    assert!(status.tasks_lost <= 1, "{}", status.tasks_lost);
    wire.mend();
    assert_ne!(cut_off.await.expect("ends").0, Ended::Done, "it is no worker of the job any more");
    // Its pushes before it was given up are in the model, and their records were given to no other.
    assert_each(&seen(&cluster), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_that_join_at_once_are_all_there_in_few_changes_of_the_world() {
    const WORKERS: u32 = 200;
    let limits = WorldLimits { min: 1, max: WORKERS, unit: 1, first_ms: 0, gather_ms: 5_000 };
    let config = JobConfig { parameter_servers: 0, world: Some(limits), ..job(400) };
    let cluster = Cluster::start(config);
    cluster.status().await;
    let join = |number: u32| {
        let (address, credentials) = (cluster.address(), cluster.credentials());
        tokio::spawn(async move {
            let (_sender, signal) = tokio::sync::watch::channel(Signal::Go);
            let at = (address.as_str(), credentials);
            let pod = format!("worker-{number}");
            let worker = Worker::register(at, &pod, (400, Habits::default()), signal).await;
            let mut request = WatchRequest { worker_id: worker.id, ..Default::default() };
            loop {
                let reply = worker.master.clone().watch(request).await.expect("there").into_inner();
                match reply.world {
                    Some(world) if world.size == WORKERS => return (worker.id, world),
                    _ => {
                        request =
                            WatchRequest { revision: reply.revision, wait_ms: 1000, ..request }
                    }
                }
            }
        })
    };
    let mut ranks = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for joined in (0..WORKERS).map(join).collect::<Vec<_>>() {
        let (number, world) = joined.await.expect("it joined");
        ranks.insert(world.rank);
        numbers.insert(number);
        assert!(world.generation <= 5, "generation {}", world.generation);
    }
    assert_eq!((ranks.len(), numbers.len()), (200, 200));
    assert_eq!(cluster.status().await.workers.len(), 200);
}

#[tokio::test]
async fn a_foreign_process_on_the_port_of_a_job_is_named() {
    let foreign = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = foreign.local_addr().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "a-token-of-this-job").expect("a token");
    let settings = Settings {
        listen: address,
        token_file: token_file.clone(),
        journal_dir: folder.path().join("journal"),
        journal_sync: Sync::Os,
        linger_ms: 0,
        job: job(100),
    };
    let refused = Master::open(settings, Print).await.err().expect("taken").to_string();
    assert!(refused.starts_with(&format!("cannot listen on {address}: ")), "{refused}");
    assert!(refused.ends_with("give another address or port 0"), "{refused}");
    let settings = elastic_ps::Settings {
        index: 0,
        servers: 1,
        listen: address,
        advertise: None,
        master: address.to_string(),
        token_file,
        checkpoint_dir: None,
        init_dir: None,
        message_bytes_max: 1 << 20,
    };
    let refused = elastic_ps::Server::bind(settings).await.err().expect("taken").to_string();
    assert!(refused.starts_with(&format!("cannot listen on {address}: ")), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_model_is_not_there_fails_and_says_where_it_was_looked_for() {
    let empty = tempfile::tempdir().expect("a folder");
    let cluster = Cluster::start_from(job(100), Some(empty.path().to_owned()));
    let status = cluster.ended().await;
    assert_eq!(status.phase(), JobPhase::Failed);
    let said = format!("no checkpoint can be restored: {}", empty.path().display());
    assert!(status.message.contains(&said), "{}", status.message);
}
