//! Servers that end at the worst moment, machines that changed meanwhile, disks that refuse.

use engine::{Engine as _, Exit, RunKey, RunSpec, RunState};
use orchestrator::Error;
use records::EventFilter;
use spec::WorkloadSpec;
use units::Instant;
use view::{NodeView, Phase, PodState};

use crate::world::{World, nodes, project, training, with, workspace};

#[tokio::test]
async fn what_runs_is_adopted() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t", 1)).await;
    w.submit(1, training("big", 2)).await;
    let before = w.phase("t", Phase::Running).await;
    w.engine.calls();
    w.restart().await;
    assert_eq!(*w.get("t").unwrap(), *before);
    let pending = w.get("big").unwrap();
    assert_eq!((pending.phase, pending.pending.is_empty()), (Phase::Pending, false));
    assert_eq!(w.engine.calls(), [""; 0], "the same process goes on, nothing was asked");
    assert_eq!(w.handle.view().projects[&1].unit.status.allocated.gpu_millis, 1000);
}

#[tokio::test]
async fn a_stream_of_observations_that_ends_is_followed_by_another() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    w.submit(1, training("next", 1)).await;
    w.engine.hang_up();
    w.engine.end(w.engine.run_of("first").key, Exit::Code(0));
    w.phase("next", Phase::Running).await;
    w.engine.end(w.engine.run_of("next").key, Exit::Code(0));
    w.phase("next", Phase::Completed).await;
}

#[tokio::test]
async fn a_start_that_was_decided_but_not_done_is_done() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.engine.deaf(true);
    w.submit(1, training("t", 1)).await;
    w.crash().await;
    w.engine.deaf(false);
    w.start().await;
    w.becomes("t Running 1/1").await;
    assert_eq!(w.engine.alive(), [("t".to_owned(), 1)], "the same run, not a second one");
}

#[tokio::test]
async fn a_stop_that_was_decided_but_not_done_is_done() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.stubborn(true);
    w.delete("t").await;
    w.crash().await;
    w.engine.stubborn(false);
    w.start().await;
    w.becomes("").await;
    assert!(w.engine.alive().is_empty());
    while w.engine.known() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_deleted_workload_kept_goes_although_the_server_was_killed_before() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.submit(1, training("stays", 1)).await;
    w.phase("stays", Phase::Running).await;
    let of_another_database = RunKey { pod: uuid::Uuid::new_v4(), generation: 1 };
    let spec = RunSpec { key: of_another_database, ..w.engine.run_of("t") };
    w.engine.start(spec).await.unwrap();
    w.engine.stop(of_another_database, 0).await.unwrap();
    w.engine.deaf(true);
    w.delete("t").await;
    w.becomes("stays Running 1/1").await;
    w.crash().await;
    w.engine.deaf(false);
    assert_eq!(w.engine.kept(), 3);
    w.start().await;
    while w.engine.kept() > 2 {
        tokio::task::yield_now().await;
    }
    let kept = w.engine.kept_pods().await.unwrap();
    for key in [w.engine.run_of("stays").key, of_another_database] {
        assert!(kept.contains(&key.pod));
    }
}

#[tokio::test]
async fn a_server_ends_when_what_was_deleted_is_forgotten() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.forget_slowly(100_000);
    w.delete("t").await;
    w.becomes("").await;
    w.end().await;
    assert_eq!(w.engine.kept(), 0);
}

#[tokio::test]
async fn an_end_that_nobody_saw_counts() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("good", 1)).await;
    w.phase("good", Phase::Running).await;
    w.submit(1, training("next", 1)).await;
    let key = w.engine.run_of("good").key;
    w.crash().await;
    w.engine.end(key, Exit::Code(0));
    w.start().await;
    w.becomes("good Completed 0/1\nnext Running 1/1").await;
}

#[tokio::test]
async fn a_run_that_vanished_is_started_again() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.crash().await;
    w.engine.lose(w.engine.run_of("t").key);
    w.start().await;
    w.becomes("t Running 1/1").await;
    assert_eq!(w.engine.alive(), [("t".to_owned(), 1)]);
}

#[tokio::test]
async fn runs_of_nobody_are_stopped_and_removed() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.crash().await;
    let mut foreign = w.engine.run_of("t");
    foreign.workload_name = "foreign".to_owned();
    foreign.key = RunKey { pod: uuid::Uuid::new_v4(), generation: 1 };
    w.engine.plant(foreign, RunState::Running { pid: None, started_at: Instant(1) });
    w.start().await;
    while w.engine.known() > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(w.engine.alive(), [("t".to_owned(), 1)]);
}

/// A run that no workload knows, with the GPUs of one that does.
fn foreign(w: &World, like: &str) -> RunSpec {
    let key = RunKey { pod: uuid::Uuid::new_v4(), generation: 1 };
    RunSpec { key, workload_name: "foreign".to_owned(), ..w.engine.run_of(like) }
}

const ALIVE: RunState = RunState::Running { pid: Some(4711), started_at: Instant(1) };

/// The GPUs that are out of service, with why.
fn out_of_service(w: &World) -> Vec<String> {
    let view = w.handle.view();
    let of = |node: &NodeView| {
        let each = node.gpu_faults.iter();
        let each = each.map(|(gpu, why)| format!("{} {gpu} {} {why}", node.name, why.code().code));
        each.collect::<Vec<_>>()
    };
    view.nodes.iter().flat_map(|node| of(node)).collect()
}

#[tokio::test]
async fn a_run_of_nobody_that_does_not_end_holds_its_gpus_and_nothing_else() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    let foreign = foreign(&w, "t");
    w.delete("t").await;
    w.becomes("").await;
    w.crash().await;
    w.engine.stubborn(true);
    w.engine.plant(foreign.clone(), ALIVE);
    w.start().await;
    let held = format!(
        "node-1 0 E214 held by run {} (1 of it, process 4711), which should not exist any more and \
         is being stopped; if it stays, look at it with `ps -fp 4711`, end what holds it or restart \
         the machine",
        foreign.key
    );
    assert_eq!(out_of_service(&w), [held]);
    w.submit(1, training("u", 1)).await;
    w.becomes("u Running 1/1").await;
    w.submit(1, training("v", 1)).await;
    let waits = w.why("v");
    assert!(waits.iter().any(|reason| reason.code == "P111"), "{waits:?}");
    w.engine.let_go();
    w.becomes("u Running 1/1\nv Running 1/1").await;
    assert_eq!((w.engine.most_in_use(), out_of_service(&w).len()), (1000, 0));
    let all = w.handle.events(EventFilter::default()).await.unwrap();
    let of_gpus = all.into_iter().filter(|event| event.code.as_deref() == Some("E214"));
    let kinds: Vec<_> = of_gpus.map(|event| event.kind).collect();
    assert_eq!(kinds, ["GpuHeld", "GpuBack"]);
}

#[tokio::test]
async fn a_run_of_nobody_whose_gpus_are_not_known_holds_those_of_its_node() {
    let mut w = World::new(nodes(2, 2), &[4]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.crash().await;
    let image = "of-an-earlier-version".to_owned();
    w.engine.stubborn(true);
    w.engine.plant(RunSpec { image, ..foreign(&w, "t") }, ALIVE);
    w.start().await;
    let out = out_of_service(&w);
    assert!(out[0].starts_with("node-1 0 E214") && out[1].starts_with("node-1 1 E214"), "{out:?}");
    assert!(out.len() == 2 && out[0].contains("(its GPUs are not known, process 4711)"), "{out:?}");
    w.submit(1, training("u", 2)).await;
    w.becomes("t Running 1/1\nu Running 2/2").await;
    assert_eq!(w.engine.run_of("u").node_name, "node-2");
    w.engine.let_go();
    w.until("its node is back", |_| out_of_service(&w).is_empty()).await;
}

#[tokio::test]
async fn what_has_no_process_leaves_a_gpu_that_a_run_of_nobody_holds() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("vanished", 1)).await;
    w.phase("vanished", Phase::Running).await;
    w.submit(1, workspace("failed", 1)).await;
    w.phase("failed", Phase::Running).await;
    let taken = ["vanished", "failed"].map(|name| foreign(&w, name));
    w.engine.end(w.engine.run_of("failed").key, Exit::Code(1));
    w.phase("failed", Phase::Initializing).await;
    w.crash().await;
    w.engine.lose(w.engine.run_of("vanished").key);
    w.engine.stubborn(true);
    let keys = taken.each_ref().map(|run| run.key);
    taken.into_iter().for_each(|run| w.engine.plant(run, ALIVE));
    w.start().await;
    w.becomes("vanished Pending 0/1\nfailed Pending 0/1").await;
    w.clock.advance_ms(300_000);
    w.decided().await;
    assert_eq!(w.engine.alive().len(), 2, "{:?}", w.engine.alive());
    assert_eq!(w.get("vanished").unwrap().last_eviction.as_ref().unwrap().code, "E214");
    keys.into_iter().for_each(|key| w.engine.end(key, Exit::Signal(9)));
    w.becomes("vanished Running 1/1\nfailed Running 1/1").await;
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn a_later_run_than_the_state_knows_is_ended_before_another_starts() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.crash().await;
    // As after an old copy of the state was restored: generation 1 is past, 5 is there.
    let mut later = w.engine.run_of("t");
    w.engine.lose(later.key);
    later.key.generation = 5;
    w.engine.stubborn(true);
    w.engine.plant(later, RunState::Running { pid: None, started_at: Instant(1) });
    w.start().await;
    w.phase("t", Phase::Pending).await;
    assert_eq!(w.engine.alive(), [("t".to_owned(), 5)], "nothing beside it");
    w.engine.let_go();
    w.becomes("t Running 1/1").await;
    assert_eq!(w.engine.alive(), [("t".to_owned(), 6)]);
}

#[tokio::test]
async fn a_move_goes_on_where_it_was() {
    let mut w = World::new(nodes(1, 1), &[1, 1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.stubborn(true);
    w.submit(1, workspace("shell", 1)).await;
    let shell = w.get("shell").unwrap();
    assert_eq!(shell.pods[0].state, PodState::Reserved);
    w.restart().await;
    assert_eq!(w.get("shell").unwrap().pods[0].state, PodState::Reserved);
    assert_eq!(w.get("t").unwrap().pods[0].state, PodState::Terminating);
    w.engine.let_go();
    w.becomes("t Pending 0/1\nshell Running 1/1").await;
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn the_delay_before_a_restart_survives() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, workspace("shell", 1)).await;
    w.phase("shell", Phase::Running).await;
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(1));
    w.phase("shell", Phase::Initializing).await;
    w.restart().await;
    assert_eq!(w.get("shell").unwrap().phase, Phase::Initializing);
    assert!(w.engine.alive().is_empty());
    w.clock.advance_ms(1000);
    w.becomes("shell Running 1/1").await;
    assert_eq!(w.engine.alive(), [("shell".to_owned(), 2)]);
}

#[tokio::test]
async fn no_delay_is_longer_than_the_longest_when_the_clock_was_set_back() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.clock.advance_ms(900_000);
    w.submit(1, training("t", 1)).await;
    w.submit(1, workspace("shell", 1)).await;
    w.becomes("t Running 1/1\nshell Running 1/1").await;
    w.engine.end(w.engine.run_of("t").key, Exit::Lost);
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(1));
    w.becomes("t Initializing 1/1\nshell Initializing 1/1").await;
    w.crash().await;
    w.clock.set_back_ms(900_000);
    w.start().await;
    w.clock.advance_ms(300_000);
    w.becomes("t Running 1/1\nshell Running 1/1").await;
}

#[tokio::test]
async fn work_on_gpus_that_are_gone_is_stopped_and_queued() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t1", 1)).await;
    w.submit(1, training("t2", 1)).await;
    w.becomes("t1 Running 1/1\nt2 Running 1/1").await;
    w.crash().await;
    w.set_nodes(nodes(1, 1));
    w.engine.stubborn(true);
    w.start().await;
    let view = w.handle.view();
    let evicted: Vec<_> = view.workloads.values().filter(|w| w.last_eviction.is_some()).collect();
    assert_eq!(evicted.len(), 1);
    assert_eq!(evicted[0].last_eviction.as_ref().unwrap().code, "E201");
    assert_eq!(evicted[0].phase, Phase::Pending);
    assert_eq!(w.engine.alive().len(), 2, "its process is still being stopped");
    w.engine.let_go();
    while w.engine.alive().len() > 1 {
        tokio::task::yield_now().await;
    }
    let name = evicted[0].spec.name.clone();
    let other = if name == "t1" { "t2" } else { "t1" };
    w.delete(other).await;
    w.becomes(&format!("{name} Running 1/1")).await;
    assert_eq!(w.engine.run_of(&name).key.generation, 2);
}

#[tokio::test]
async fn suspended_and_ended_work_stays_so() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("done", 1)).await;
    w.submit(1, training("still", 1)).await;
    w.becomes("done Running 1/1\nstill Running 1/1").await;
    w.engine.end(w.engine.run_of("done").key, Exit::Code(0));
    w.handle.suspend("alice", w.id("still")).await.unwrap();
    w.becomes("done Completed 0/1\nstill Stopped 0/1").await;
    w.restart().await;
    w.becomes("done Completed 0/1\nstill Stopped 0/1").await;
    w.handle.resume("alice", w.id("still")).await.unwrap();
    w.becomes("done Completed 0/1\nstill Running 1/1").await;
}

#[tokio::test]
async fn nothing_acts_that_could_not_be_written() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t", 1)).await;
    let before = w.phase("t", Phase::Running).await;
    w.engine.calls();
    w.refuse_events(true).await;
    for attempt in 0..3 {
        let error = w.handle.submit(1, training("u", 1), false).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{attempt}: {error}");
        let error = w.handle.create_project("admin", 1, project("x", 1)).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{attempt}: {error}");
    }
    assert_eq!(w.engine.calls(), [""; 0]);
    assert_eq!(w.picture(), "t Running 1/1");
    w.refuse_events(false).await;
    w.submit(1, training("u", 1)).await;
    w.becomes("t Running 1/1\nu Running 1/1").await;
    assert_eq!(*w.get("t").unwrap(), *before, "it was never touched");
}

#[tokio::test]
async fn what_happened_while_nothing_could_be_written_is_not_lost() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, WorkloadSpec { backoff_limit: 0, ..training("t", 1) }).await;
    w.phase("t", Phase::Running).await;
    w.refuse_events(true).await;
    w.engine.end(w.engine.run_of("t").key, Exit::Code(0));
    let error = w.handle.submit(1, training("u", 1), false).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert_eq!(w.picture(), "t Running 1/1");
    w.refuse_events(false).await;
    w.becomes("t Completed 0/1").await;
}

#[tokio::test]
async fn a_stop_of_everything_that_could_not_be_written_never_was() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.refuse_events(true).await;
    let error = w.handle.stop_everything("alice").await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    w.refuse_events(false).await;
    w.submit(1, training("u", 1)).await;
    w.becomes("t Running 1/1\nu Running 1/1").await;
}

#[tokio::test]
async fn what_runs_goes_on_when_the_machine_has_less_cpu_and_memory() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    for name in ["t1", "t2"] {
        let spec = with(training(name, 1), |pod| {
            pod.cpu_millis = 30_000;
            pod.memory_bytes = 100 << 30;
        });
        w.submit(1, spec).await;
        w.phase(name, Phase::Running).await;
    }
    let before = w.handle.view();
    w.crash().await;
    let mut smaller = nodes(1, 4);
    smaller[0].cpu_millis = 31_000;
    smaller[0].memory_bytes = 110 << 30;
    w.set_nodes(smaller);
    w.engine.calls();
    w.start().await;
    let after = w.handle.view();
    assert_eq!(after.workloads, before.workloads, "the same processes go on");
    assert_eq!(w.engine.calls(), [""; 0]);
    assert!(after.nodes[0].used.cpu_millis > after.nodes[0].capacity.cpu_millis);
    w.submit(1, training("t3", 1)).await;
    assert_eq!(w.get("t3").unwrap().phase, Phase::Pending, "nothing new beyond the capacity");
    w.delete("t1").await;
    w.becomes("t2 Running 1/1\nt3 Running 1/1").await;
}
