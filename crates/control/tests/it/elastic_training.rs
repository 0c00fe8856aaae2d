//! Elastic trainings: workers that lose their places to more important jobs, and grow back.

use engine::{Exit, RunSpec};
use spec::{DistributedSpec, Framework, NodeSpec, PodSet, Priority, SecretPlace, WorkloadSpec};
use view::{Phase, PodState, View};

use crate::world::{World, distributed, nodes};

/// The machines of the published document: 4 cores, of which 3.92 can be given out, and 15 GB.
fn machines() -> Vec<NodeSpec> {
    let small = |node| NodeSpec { cpu_millis: 3920, memory_bytes: 15_000_000_000, ..node };
    nodes(3, 0).into_iter().map(small).collect()
}

/// A job of the document: a master of 1 core, workers of 3.
fn job(name: &str, workers: u32, priority: u32) -> WorkloadSpec {
    let spec = distributed(name, workers);
    let together = spec.distributed.expect("it is distributed");
    let set = |set: &PodSet, names: &str, cpu_millis, memory_bytes, pod_priority| PodSet {
        pods_min: 1,
        pod_names: Some(format!("elasticdl-{names}")),
        pod_priority,
        pod: spec::PodSpec {
            gpu: spec::GpuRequest::Whole(0),
            cpu_millis,
            memory_bytes,
            ..set.pod.clone()
        },
        ..set.clone()
    };
    WorkloadSpec {
        pods: set(&spec.pods, &format!("master-{name}"), 1000, 1 << 30, 2),
        more: vec![set(&spec.more[0], &format!("worker-{name}-{{}}"), 3000, 4 << 30, 1)],
        distributed: Some(DistributedSpec { framework: Framework::ElasticDl, ..together }),
        children_min: Some(1),
        priority: Priority { value: priority, class: format!("p{priority}") },
        backoff_limit: 1,
        ..spec
    }
}

/// The pods of a job, each with its state.
fn pods(view: &View, name: &str) -> String {
    let job = view.workloads.values().find(|workload| workload.spec.name == name);
    let pods = job.into_iter().flat_map(|job| &job.pods);
    let line = |pod: &view::PodView| {
        let name = pod.name.strip_prefix("elasticdl-").unwrap_or(&pod.name);
        format!("{name} {:?}", pod.state)
    };
    pods.map(line).collect::<Vec<_>>().join(", ")
}

async fn are(w: &World, name: &str, expected: &str) {
    w.until(expected, |view| pods(view, name) == expected).await;
}

/// The run of a pod that is alive.
fn run(w: &World, job: &str, pod: &str) -> RunSpec {
    let runs = w.engine.runs_of(job);
    runs.into_iter().rfind(|run| run.pod_name == format!("elasticdl-{pod}")).expect("it runs")
}

#[tokio::test]
async fn a_low_job_gives_one_worker_and_grows_back_under_the_next_number() {
    let w = World::new(machines(), &[0]).await;
    w.submit(1, job("low", 2, 1000)).await;
    let whole = "master-low Running, worker-low-0 Running, worker-low-1 Running";
    are(&w, "low", whole).await;

    // The place of one worker is being freed; the master begins already.
    w.engine.stubborn(true);
    w.submit(1, job("high", 1, 1_000_000)).await;
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Terminating").await;
    are(&w, "high", "master-high Running, worker-high-0 Reserved").await;
    w.engine.stubborn(false);
    w.engine.let_go();
    are(&w, "high", "master-high Running, worker-high-0 Running").await;
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-2 Pending").await;
    w.phase("low", Phase::Degraded).await;

    w.engine.end(run(&w, "high", "worker-high-0").key, Exit::Code(0));
    are(&w, "high", "master-high Running, worker-high-0 Succeeded").await;
    w.engine.end(run(&w, "high", "master-high").key, Exit::Code(0));
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-2 Running").await;
    w.phase("high", Phase::Completed).await;
    for pod in ["worker-low-0", "worker-low-2", "master-low"] {
        w.engine.end(run(&w, "low", pod).key, Exit::Code(0));
    }
    w.phase("low", Phase::Completed).await;
    let ended = "master-low Succeeded, worker-low-0 Succeeded, worker-low-2 Succeeded";
    are(&w, "low", ended).await;
}

#[tokio::test]
async fn what_hands_its_work_back_has_not_lost_it() {
    let w = World::new(machines(), &[0]).await;
    w.submit(1, job("low", 2, 1000)).await;
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Running").await;
    w.clock.advance_ms(600_000);
    w.submit(1, job("high", 1, 1_000_000)).await;
    are(&w, "high", "master-high Running, worker-high-0 Running").await;
    let events = w.events(w.id("low")).await;
    let stopped = events.iter().find(|event| event.kind == "Preempted").expect("a stop");
    let expected = "stopped for team-a/high of higher priority (1000000 over 1000); it has 1 s to \
                    hand back or save its work";
    assert_eq!(stopped.message, expected);
}

/// A job of which one worker is of high priority with the master, and the others of low priority.
fn partly_high(name: &str, workers: u32) -> WorkloadSpec {
    WorkloadSpec {
        children_min: None,
        spare_priority: Some(Priority { value: 1000, class: "low".to_owned() }),
        ..job(name, workers, 1_000_000)
    }
}

#[tokio::test]
async fn of_a_job_that_is_partly_of_high_priority_the_other_part_goes() {
    let w = World::new(machines(), &[0]).await;
    w.submit(1, partly_high("part", 2)).await;
    are(&w, "part", "master-part Running, worker-part-0 Running, worker-part-1 Running").await;

    w.submit(1, job("middle", 2, 50_000)).await;
    let one = "master-middle Running, worker-middle-0 Running, worker-middle-1 Pending";
    are(&w, "middle", one).await;
    let left = "master-part Running, worker-part-0 Running, worker-part-2 Pending";
    are(&w, "part", left).await;
    let events = w.events(w.id("part")).await;
    let stopped = events.iter().find(|event| event.kind == "Preempted").expect("a stop");
    assert!(stopped.message.contains("(50000 over 1000)"), "{}", stopped.message);
    w.clock.advance_ms(600_000);
    w.decided().await;
    w.decided().await;
    are(&w, "part", left).await;

    // The training of low priority takes no GPU of those in between.
    w.submit(1, job("low", 1, 100)).await;
    w.engine.end(run(&w, "middle", "worker-middle-0").key, Exit::Code(0));
    w.engine.end(run(&w, "middle", "master-middle").key, Exit::Code(0));
    are(&w, "part", "master-part Running, worker-part-0 Running, worker-part-2 Running").await;
}

#[tokio::test]
async fn the_part_of_high_priority_takes_what_is_between_and_the_rest_does_not() {
    let w = World::new(machines(), &[0]).await;
    w.submit(1, job("middle", 2, 50_000)).await;
    w.phase("middle", Phase::Running).await;
    w.submit(1, partly_high("part", 2)).await;
    are(&w, "part", "master-part Running, worker-part-0 Running, worker-part-1 Pending").await;
    let left = "master-middle Running, worker-middle-0 Running, worker-middle-2 Pending";
    are(&w, "middle", left).await;
    w.clock.advance_ms(600_000);
    w.decided().await;
    are(&w, "middle", left).await;
}

#[tokio::test]
async fn the_master_stays_when_all_workers_go() {
    let w = World::new(machines(), &[0]).await;
    w.submit(1, job("low", 2, 1000)).await;
    w.phase("low", Phase::Running).await;
    w.submit(1, job("high", 2, 1_000_000)).await;
    are(&w, "high", "master-high Running, worker-high-0 Running, worker-high-1 Running").await;
    let alone = |view: &View| {
        let low = pods(view, "low");
        low.starts_with("master-low Running") && low.matches("Pending").count() == 2
    };
    w.until("the master alone", alone).await;
}

#[tokio::test]
async fn each_pod_knows_the_master_and_the_token_of_its_job() {
    let w = World::new(machines(), &[0]).await;
    w.submit(1, job("low", 2, 1000)).await;
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Running").await;
    let master = run(&w, "low", "master-low");
    let port = master.gang.as_ref().expect("a gang").members[0].port;
    assert_ne!(port, 0);
    for pod in ["master-low", "worker-low-0", "worker-low-1"] {
        let run = run(&w, "low", pod);
        assert_eq!(run.gang.expect("a gang").members[0].port, port);
        let token = &run.secrets[0];
        assert_eq!(token.value, format!("job-token/{}", run.workload_id));
        assert!(matches!(&token.to, SecretPlace::File { path, mode: 0o400 }
            if path.as_os_str() == spec::JOB_TOKEN_FILE));
    }
    // One that is killed comes again where the others look for it.
    w.engine.end(master.key, Exit::Signal(9));
    w.until("a dead master", |view| !pods(view, "low").starts_with("master-low Running")).await;
    w.clock.advance_ms(2000);
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Running").await;
    let master = run(&w, "low", "master-low");
    assert_eq!(master.key.generation, 2);
    assert_eq!(master.gang.expect("a gang").members[0].port, port);
}

#[tokio::test]
async fn a_name_that_is_used_again_at_once_leads_to_nothing_of_the_job_before() {
    let w = World::new(machines(), &[0]).await;
    let running = "master-low Running, worker-low-0 Running, worker-low-1 Running";
    let reached = |w: &World| {
        let worker = run(w, "low", "worker-low-1");
        let port = worker.gang.expect("a gang").members[0].port;
        (worker.workload_id, worker.secrets[0].value.clone(), port)
    };
    w.submit(1, job("low", 2, 50)).await;
    are(&w, "low", running).await;
    let before = reached(&w);
    w.engine.stubborn(true);
    w.delete("low").await;
    let refused = w.handle.submit(1, job("low", 2, 50), false).await;
    refused.expect_err("processes of the first still run");
    w.engine.let_go();
    w.until("it is gone", |view| view.workloads.is_empty()).await;
    w.submit(1, job("low", 2, 50)).await;
    are(&w, "low", running).await;
    let after = reached(&w);
    assert_ne!(before.0, after.0);
    assert_ne!(before.1, after.1, "a token of its own");
    assert_ne!(before.2, after.2, "where the master before was is none");
}

#[tokio::test]
async fn a_worker_that_fails_begins_again_so_often_and_all_that_fail_end_the_job() {
    let w = World::new(machines(), &[0]).await;
    w.submit(1, job("low", 2, 1000)).await;
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Running").await;
    let ends = async |pod: &str, exit: Exit, next: &str| {
        w.engine.end(run(&w, "low", pod).key, exit);
        are(&w, "low", &format!("master-low Running, {next} Paused, worker-low-1 Running")).await;
        w.clock.advance_ms(2000);
        are(&w, "low", &format!("master-low Running, {next} Running, worker-low-1 Running")).await;
    };
    // A kill does not count.
    ends("worker-low-0", Exit::Signal(9), "worker-low-2").await;
    ends("worker-low-2", Exit::Code(1), "worker-low-3").await;
    w.engine.end(run(&w, "low", "worker-low-3").key, Exit::Code(1));
    are(&w, "low", "master-low Running, worker-low-3 Failed, worker-low-1 Running").await;
    w.engine.end(run(&w, "low", "worker-low-1").key, Exit::OutOfMemory);
    w.phase("low", Phase::Failed).await;
    // A retry is one of a worker that failed, not of all that were begun again.
    let events = w.events(w.id("low")).await;
    let again: Vec<_> = events.iter().filter(|event| event.kind == "BackOff").collect();
    let again: Vec<_> = again.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(
        again,
        ["starts again in its place in 1 s", "starts again in its place in 1 s (retry 1 of 1)"]
    );
}

#[tokio::test]
async fn a_parameter_server_that_is_killed_begins_again_in_its_place() {
    let w = World::new(machines(), &[0]).await;
    let mut job = job("low", 1, 1000);
    let server = PodSet {
        role: spec::PARAMETER_SERVER.to_owned(),
        pod_names: Some("elasticdl-ps-low-{}".to_owned()),
        ..job.pods.clone()
    };
    job.more.insert(0, server);
    job.children_min = Some(2);
    w.submit(1, job).await;
    let all = "master-low Running, ps-low-0 Running, worker-low-0 Running";
    are(&w, "low", all).await;
    let first = run(&w, "low", "ps-low-0").key;
    w.engine.end(first, Exit::Signal(9));
    w.until("it waits", |view| !pods(view, "low").contains("ps-low-0 Running")).await;
    w.clock.advance_ms(2000);
    are(&w, "low", all).await;
    let second = run(&w, "low", "ps-low-0").key;
    assert_eq!((second.pod, second.generation), (first.pod, first.generation + 1));
    // One that ends by itself cannot go on, and the job cannot without it.
    w.engine.end(second, Exit::Code(1));
    w.phase("low", Phase::Failed).await;
}

#[tokio::test]
async fn how_often_a_master_was_killed_outlives_the_server() {
    let mut w = World::new(machines(), &[0]).await;
    w.submit(1, job("low", 1, 1000)).await;
    let all = "master-low Running, worker-low-0 Running";
    for _ in 0..spec::BACKOFF_LIMIT_DEFAULT {
        are(&w, "low", all).await;
        w.engine.end(run(&w, "low", "master-low").key, Exit::Signal(9));
        w.until("it waits", |view| pods(view, "low") != all).await;
        w.restart().await;
        // As long as the longest of these delays.
        w.clock.advance_ms(32_000);
    }
    are(&w, "low", all).await;
    w.engine.end(run(&w, "low", "master-low").key, Exit::Signal(9));
    w.phase("low", Phase::Failed).await;
}

#[tokio::test]
async fn numbers_outlive_the_server() {
    let mut w = World::new(machines(), &[0]).await;
    w.submit(1, job("low", 2, 1000)).await;
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Running").await;
    w.engine.end(run(&w, "low", "worker-low-1").key, Exit::Signal(9));
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-2 Paused").await;
    w.clock.advance_ms(2000);
    let after = "master-low Running, worker-low-0 Running, worker-low-2 Running";
    are(&w, "low", after).await;
    w.restart().await;
    are(&w, "low", after).await;
    assert!(w.get("low").expect("there").pods.iter().all(|pod| pod.state == PodState::Running));
}

#[tokio::test]
async fn workers_that_do_not_reach_each_other_are_named_in_an_event() {
    let w = World::new(machines(), &[0]).await;
    let id = w.submit(1, job("low", 2, 50)).await.id;
    let pods = ["worker-low-0", "worker-low-1"].map(str::to_owned);
    w.handle.note_parting(id, pods, "worker-low-1".to_owned(), 90_500).await.expect("noted");
    let events = w.events(id).await;
    let event =
        events.iter().find(|event| event.code.as_deref() == Some("E218")).expect("an event");
    assert!(event.warning && event.kind == "WorkersParted");
    assert_eq!(
        event.message,
        "worker-low-0 has not reached worker-low-1 for 90 s, and both reach the master: worker-low-1 \
         leaves; look at the network between the two"
    );
}

#[tokio::test]
async fn a_training_that_hangs_says_so_in_an_event_and_goes_on() {
    let w = World::new(machines(), &[0]).await;
    let id = w.submit(1, job("low", 2, 50)).await.id;
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Running").await;
    w.handle.note_hang(id, 2, 600_000).await.expect("noted");
    let events = w.events(id).await;
    let event =
        events.iter().find(|event| event.code.as_deref() == Some("E217")).expect("an event");
    assert!(event.warning && event.kind == "NoSteps");
    assert_eq!(event.message, "no step of its 2 workers for 10 minutes; their logs may say why");
    are(&w, "low", "master-low Running, worker-low-0 Running, worker-low-1 Running").await;
}
