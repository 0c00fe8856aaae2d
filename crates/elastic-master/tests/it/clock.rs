//! The clock of the machine is set while a job runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use elastic_master::{Clock, Master, Print, Settings, Sync};
use elastic_proto::Credentials;
use elastic_proto::v1::{
    GetTaskRequest, RegisterRequest, ReportTaskRequest, StatusReply, StatusRequest, TaskOutcome,
};
use fixture::STUCK_AFTER;
use tokio::task::JoinHandle;

use crate::cluster::{client, job};

/// A clock that is set by hand.
#[derive(Clone)]
struct ByHand(Arc<AtomicU64>);

impl Clock for ByHand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A master in this process.
async fn open(settings: &Settings, clock: &ByHand) -> (crate::worker::Master, JoinHandle<()>) {
    let until = tokio::time::Instant::now() + STUCK_AFTER;
    let master = loop {
        // The thread of the one before may still have the journal.
        match Master::with_clock(settings.clone(), Print, clock.clone()).await {
            Ok(master) => break master,
            Err(error) if tokio::time::Instant::now() > until => panic!("{error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let credentials = Credentials::read(&settings.token_file).expect("a token");
    let way = client(&master.address.to_string(), &credentials);
    (way, tokio::spawn(async move { drop(master.serve().await) }))
}

async fn status(master: &mut crate::worker::Master) -> StatusReply {
    master.status(StatusRequest {}).await.expect("an answer").into_inner()
}

fn settings(folder: &tempfile::TempDir) -> Settings {
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "a-token-of-this-job").expect("a token");
    Settings {
        listen: "127.0.0.1:0".parse().expect("an address"),
        token_file,
        journal_dir: folder.path().join("journal"),
        journal_sync: Sync::Os,
        linger_ms: 0,
        job: job(100),
    }
}

fn at(ms: u64) -> ByHand {
    ByHand(Arc::new(AtomicU64::new(ms)))
}

/// Opens and ends a master at this time, with a worker that has a task. Returns the worker and the
/// task.
async fn first_master(settings: &Settings, ms: u64) -> (u32, u64) {
    let (mut master, serves) = open(settings, &at(ms)).await;
    let request = RegisterRequest { pod: "worker-0".into(), instance: 1, host: String::new() };
    let worker_id = master.register(request).await.expect("registered").into_inner().worker_id;
    let ask = GetTaskRequest { worker_id, holding: Vec::new(), wait_ms: 1000 };
    let task = master.get_task(ask).await.expect("answered").into_inner().task.expect("a task");
    drop(master);
    serves.abort();
    let _aborted = serves.await;
    (worker_id, task.task_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_comes_again_after_the_clock_was_set_forward_gives_up_no_worker_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = settings(&folder);
    let (worker_id, task_id) = first_master(&settings, 1_000).await;
    let clock = at(86_400_000);
    let (mut master, second) = open(&settings, &clock).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let workers = status(&mut master).await.workers;
    assert_eq!(workers[0].task_ids, [task_id], "it was silent for no time");
    let report = ReportTaskRequest {
        worker_id,
        task_id,
        outcome: TaskOutcome::Finished.into(),
        ..Default::default()
    };
    master.report_task(report).await.expect("it counts");
    assert_eq!(status(&mut master).await.records, 20);
    second.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_comes_again_after_the_clock_was_set_back_finds_silent_workers_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = settings(&folder);
    first_master(&settings, 3_600_000).await;

    let clock = at(1_000);
    let (mut master, second) = open(&settings, &clock).await;
    assert_eq!(status(&mut master).await.workers.len(), 1, "the journal has it");
    let patience_ms = settings.job.worker_timeout_ms;
    clock.0.store(1_000 + patience_ms, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(status(&mut master).await.workers.len(), 1, "it is not silent for so long yet");
    clock.0.store(2_000 + patience_ms, Ordering::Relaxed);
    let until = tokio::time::Instant::now() + STUCK_AFTER;
    while !status(&mut master).await.workers.is_empty() {
        assert!(tokio::time::Instant::now() < until, "a silent worker is never given up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    second.abort();
}
