//! Workers that hold the model themselves: when they are in a world, and who attends for them.

use elastic::WorldLimits;
use elastic_master::JobConfig;
use elastic_proto::v1::{
    AttendRequest, GetTaskRequest, JobPhase, LeaveReason, LeaveRequest, RegisterReply,
    RegisterRequest, ReportTaskRequest, Task, TaskOutcome, Unreached, WatchReply, WatchRequest,
};

use crate::cluster::{Cluster, client, job};
use crate::worker::Master;

const LIMITS: WorldLimits = WorldLimits { min: 1, max: 2, unit: 1, first_ms: 0, gather_ms: 0 };

/// A master of a job with one task, that answers.
async fn master() -> (Cluster, Master) {
    let cluster = Cluster::start(JobConfig { world: Some(LIMITS), ..job(20) });
    cluster.status().await;
    let master = client(&cluster.address(), &cluster.credentials());
    (cluster, master)
}

async fn register(master: &mut Master, pod: &str, host: &str) -> RegisterReply {
    let request = RegisterRequest { pod: pod.into(), instance: 1, host: host.into() };
    master.register(request).await.expect("registered").into_inner()
}

async fn look(master: &mut Master, worker_id: u32) -> WatchReply {
    let request = WatchRequest { worker_id, ..Default::default() };
    master.watch(request).await.expect("there").into_inner()
}

async fn task(master: &mut Master, worker_id: u32) -> Option<Task> {
    let request = GetTaskRequest { worker_id, holding: Vec::new(), wait_ms: 200 };
    master.get_task(request).await.expect("answered").into_inner().task
}

async fn finish(master: &mut Master, worker_id: u32) {
    let task_id = task(master, worker_id).await.expect("the task").task_id;
    let outcome = TaskOutcome::Finished.into();
    let report = ReportTaskRequest { worker_id, task_id, outcome, ..Default::default() };
    assert!(master.report_task(report).await.expect("answered").into_inner().held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_in_the_world_once_it_listens() {
    let (_cluster, mut master) = master().await;
    let first = register(&mut master, "worker-0", "127.0.0.1").await;
    let settings = first.settings.expect("settings");
    assert_eq!(settings.parameter_servers, 0, "workers hold the model themselves");
    assert_eq!(look(&mut master, 0).await.world, None);
    for host in ["127.0.0.1:", "127.0.0.1:0", ":7001", "fd00::1", "127.0.0.1:70000"] {
        assert_eq!(register(&mut master, "worker-0", host).await.worker_id, 0);
        assert_eq!(look(&mut master, 0).await.world, None, "{host}");
    }
    register(&mut master, "worker-0", "127.0.0.1:7001").await;
    register(&mut master, "worker-1", "[fd00::1]:7002").await;
    let world = look(&mut master, 1).await.world.expect("a world");
    let hosts: Vec<_> = world.members.iter().map(|member| member.host.as_str()).collect();
    assert_eq!((world.rank, world.size, world.generation), (1, 2, 2));
    assert_eq!(hosts, ["127.0.0.1:7001", "[fd00::1]:7002"]);
    let leave =
        LeaveRequest { worker_id: 0, reason: LeaveReason::Done.into(), ..Default::default() };
    master.leave(leave).await.expect("left");
    let world = look(&mut master, 1).await.world.expect("a world");
    assert_eq!((world.rank, world.size, world.generation), (0, 1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_younger_of_two_that_do_not_reach_each_other_leaves() {
    let (mut cluster, mut master) = master().await;
    for (number, pod) in (0..).zip(["worker-0", "worker-1"]) {
        register(&mut master, pod, &format!("127.0.0.1:{}", 7001 + number)).await;
    }
    let generation = look(&mut master, 1).await.world.expect("a world").generation;
    // Worker 0 cannot connect to worker 1.
    for (generation, worker_id, for_ms, is_believed) in [
        (generation, 1, 89_999, false),
        (generation - 1, 1, 90_000, false),
        (generation, 7, 90_000, false),
        (generation, 1, 90_000, true),
    ] {
        let unreached = Some(Unreached { generation, worker_id, for_ms });
        let request = WatchRequest { worker_id: 0, unreached, ..Default::default() };
        assert!(!master.watch(request).await.expect("there").into_inner().leaving);
        let reply = look(&mut master, 1).await;
        assert_eq!(reply.leaving, is_believed, "{unreached:?}");
        assert_eq!(reply.leave_within_ms > 0, is_believed, "{unreached:?}");
        assert_eq!(reply.parted, is_believed, "{unreached:?}");
        assert!(!look(&mut master, 0).await.parted, "only the one that leaves");
    }
    // The next master knows why it leaves, and people see which the two were.
    cluster.kill_master();
    cluster.start_master();
    let status = cluster.status().await;
    let [parting] = &status.partings[..] else { panic!("{:?}", status.partings) };
    assert_eq!((parting.worker_id, parting.for_ms), (1, 90_000));
    let names = [&parting.pod, &parting.unreached, &parting.leaves];
    assert_eq!(names, ["worker-0", "worker-1", "worker-1"]);
    let mut master = client(&cluster.address(), &cluster.credentials());
    assert!(look(&mut master, 1).await.parted);
    let leave = LeaveRequest { worker_id: 1, ..Default::default() };
    master.leave(leave).await.expect("left");
    assert_eq!(look(&mut master, 0).await.world.expect("a world").size, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_lost_with_all_its_workers_at_the_end_is_trained_again() {
    let (cluster, mut master) = master().await;
    register(&mut master, "worker-0", "127.0.0.1:7001").await;
    let attend = |instance| AttendRequest { instance, ..Default::default() };
    let orders = master.attend(attend(7)).await.expect("orders").into_inner();
    assert_eq!((orders.model_generation, orders.checkpoint_version), (1, 0));
    finish(&mut master, 0).await;
    assert_eq!(cluster.status().await.phase(), JobPhase::Running, "the model is not safe");
    let leave = LeaveRequest { worker_id: 0, ..Default::default() };
    master.leave(leave).await.expect("left");

    let next = register(&mut master, "worker-1", "127.0.0.1:7002").await;
    assert_eq!(next.model_generation, 2, "no worker has the first model any more");
    let orders = master.attend(attend(8)).await.expect("orders").into_inner();
    finish(&mut master, next.worker_id).await;
    // A second one that comes meanwhile changes nothing: the first has the model.
    register(&mut master, "worker-2", "127.0.0.1:7003").await;
    let done = AttendRequest { model_generation: orders.model_generation, done: true, ..attend(8) };
    master.attend(done).await.expect("orders");
    let status = cluster.status().await;
    assert_eq!((status.phase(), status.records), (JobPhase::Succeeded, 20));
}
