//! Pods that work together: they start together, know each other's addresses, and end together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::{Exit, RunEvent, RunKey, RunSpec, RunState};
use spec::{CleanPods, PodSet, Restart, WorkloadSpec};
use units::Instant;
use view::{Phase, PodState, View};

use crate::world::{World, distributed, nodes, training, workspace};

fn clean(spec: WorkloadSpec, clean: CleanPods) -> WorkloadSpec {
    let together = spec.distributed.map(|together| spec::DistributedSpec { clean, ..together });
    WorkloadSpec { distributed: together, ..spec }
}

fn restart(mut spec: WorkloadSpec, restart: Restart) -> WorkloadSpec {
    spec.pods.pod.restart = restart;
    spec.more.iter_mut().for_each(|set| set.pod.restart = restart);
    spec
}

fn ports(runs: &[RunSpec]) -> Vec<u16> {
    let gang = runs[0].gang.as_ref().unwrap();
    assert!(runs.iter().all(|run| run.gang.as_ref().unwrap().members == gang.members));
    gang.members.iter().map(|member| member.port).collect()
}

fn generations(w: &World, name: &str) -> Vec<u32> {
    w.engine.runs_of(name).iter().map(|run| run.key.generation).collect()
}

async fn runs(w: &World, name: &str, wanted: &[u32]) -> Vec<RunSpec> {
    w.until(&format!("runs {wanted:?}"), |_| generations(w, name) == wanted).await;
    w.phase(name, Phase::Running).await;
    w.engine.runs_of(name)
}

#[tokio::test]
async fn a_gang_begins_whole_or_not_at_all() {
    let w = World::new(nodes(1, 3), &[3]).await;
    w.submit(1, workspace("busy", 1)).await;
    w.phase("busy", Phase::Running).await;
    w.submit(1, distributed("d", 2)).await;
    w.becomes("busy Running 1/1\nd Pending 0/3").await;
    assert!(w.engine.runs_of("d").is_empty());
    assert!(!w.get("d").unwrap().pending.is_empty(), "it says why");
    w.delete("busy").await;
    w.becomes("d Running 3/3").await;
    let runs = w.engine.runs_of("d");
    let told = |run: &RunSpec| {
        let gang = run.gang.as_ref().unwrap();
        (run.pod_name.clone(), gang.rank, gang.members.len())
    };
    let told: Vec<_> = runs.iter().map(told).collect();
    let want = [("d-master-0", 0), ("d-worker-0", 1), ("d-worker-1", 2)];
    assert_eq!(told, want.map(|(name, rank)| (name.to_owned(), rank, 3)));
    assert_eq!(ports(&runs).iter().collect::<BTreeSet<_>>().len(), 3, "each has its own");
}

#[tokio::test]
async fn nobody_begins_while_a_place_is_still_being_freed() {
    let w = World::new(nodes(1, 3), &[3, 0]).await;
    w.submit(2, training("guest", 1)).await;
    w.phase("guest", Phase::Running).await;
    w.engine.stubborn(true);
    w.submit(1, distributed("d", 2)).await;
    let reserved = |v: &View| {
        let pods = |w: &view::WorkloadView| w.pods.iter().any(|p| p.state == PodState::Reserved);
        v.workloads.values().any(|w| w.spec.name == "d" && pods(w))
    };
    w.until("a place is kept for it", reserved).await;
    assert!(w.engine.runs_of("d").is_empty());
    w.engine.let_go();
    runs(&w, "d", &[1, 1, 1]).await;
}

#[tokio::test]
async fn two_gangs_never_meet_on_one_port() {
    let w = World::new(nodes(1, 6), &[6]).await;
    w.submit(1, distributed("d", 2)).await;
    w.submit(1, distributed("e", 2)).await;
    let mut all = ports(&runs(&w, "d", &[1, 1, 1]).await);
    all.extend(ports(&runs(&w, "e", &[1, 1, 1]).await));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 6);
}

#[tokio::test]
async fn the_end_of_the_master_is_the_end_of_all() {
    let w = World::new(nodes(1, 3), &[3]).await;
    w.submit(1, distributed("d", 2)).await;
    let all = runs(&w, "d", &[1, 1, 1]).await;
    w.engine.end(all[1].key, Exit::Code(0));
    let is = |v: &View| v.workloads.values().any(|w| w.pods[1].state == PodState::Succeeded);
    w.until("a worker has ended", is).await;
    assert_eq!(w.get("d").unwrap().phase, Phase::Running, "which ends nothing");
    w.engine.end(all[0].key, Exit::Code(0));
    w.becomes("d Completed 0/3").await;
    assert!(w.engine.runs_of("d").is_empty(), "the other worker was stopped");
}

#[tokio::test]
async fn without_a_master_all_workers_have_to_end() {
    let w = World::new(nodes(1, 2), &[2]).await;
    let mut spec = distributed("d", 2);
    spec.pods = spec.more.remove(0);
    w.submit(1, spec).await;
    let all = runs(&w, "d", &[1, 1]).await;
    w.engine.end(all[0].key, Exit::Code(0));
    w.becomes("d Running 1/2").await;
    w.engine.end(all[1].key, Exit::Code(0));
    w.becomes("d Completed 0/2").await;
}

#[tokio::test]
async fn who_is_left_to_go_on_keeps_its_place_also_over_a_restart() {
    let mut w = World::new(nodes(1, 3), &[3]).await;
    w.submit(1, clean(distributed("d", 2), CleanPods::None)).await;
    let all = runs(&w, "d", &[1, 1, 1]).await;
    w.engine.end(all[0].key, Exit::Code(0));
    w.becomes("d Completed 2/3").await;
    w.restart().await;
    w.becomes("d Completed 2/3").await;
    w.submit(1, training("next", 2)).await;
    w.becomes("d Completed 2/3\nnext Pending 0/2").await;
    w.engine.end(all[1].key, Exit::Code(3));
    w.becomes("d Completed 1/3\nnext Running 2/2").await;
    w.delete("d").await;
    w.becomes("next Running 2/2").await;
}

#[tokio::test]
async fn a_failure_restarts_all_on_other_ports() {
    let w = World::new(nodes(1, 3), &[3]).await;
    let spec = WorkloadSpec { backoff_limit: 1, ..distributed("d", 2) };
    let id = w.submit(1, spec).await.id;
    let first = runs(&w, "d", &[1, 1, 1]).await;
    w.engine.end(first[1].key, Exit::Code(0));
    w.becomes("d Running 2/3").await;
    w.engine.end(first[2].key, Exit::Code(1));
    w.becomes("d Initializing 3/3").await;
    let exits: Vec<_> = w.get("d").unwrap().pods.iter().map(|pod| pod.last_exit.clone()).collect();
    let said = |exit: &str| Some(exit.to_owned());
    assert_eq!(exits, [None, said("exit code 0"), said("exit code 1")], "the first was stopped");
    w.clock.advance_ms(1000);
    // The worker that had succeeded restarts with the others.
    let second = runs(&w, "d", &[2, 2, 2]).await;
    let before: BTreeSet<_> = ports(&first).into_iter().collect();
    assert!(ports(&second).iter().all(|port| !before.contains(port)));
    assert_eq!(w.get("d").unwrap().restarts, 1);
    w.engine.end(second[1].key, Exit::Code(7));
    w.becomes("d Failed 0/3").await;
    let failure = w.get("d").unwrap().failure.clone();
    assert_eq!(failure.as_deref(), Some("exit code 7"), "not that the others were stopped");
    assert!(w.engine.runs_of("d").is_empty());
    assert!(w.story(id).await.ends_with(&["Exited".to_owned(), "Failed".to_owned()]));
}

#[tokio::test]
async fn a_start_that_crosses_with_the_failure_of_the_gang_is_no_event_after_it() {
    let w = World::new(nodes(1, 3), &[3]).await;
    w.engine.deaf(true);
    let spec = WorkloadSpec { backoff_limit: 0, ..distributed("d", 2) };
    let id = w.submit(1, spec).await.id;
    let begun = |view: &View| view.workloads[&id].pods.iter().all(|pod| pod.generation == 1);
    let pods = w.until("all begin", begun).await.workloads[&id].pods.clone();
    let key = |pod: usize| RunKey { pod: pods[pod].id, generation: 1 };
    let at = Instant(1_000_000);
    w.engine.report(key(1), RunState::Exited { exit: Exit::Code(1), at });
    w.engine.report(key(2), RunState::Running { pid: None, started_at: at });
    w.phase("d", Phase::Failed).await;
    w.engine.report(key(0), RunState::Running { pid: None, started_at: at });
    w.submit(1, training("next", 0)).await;
    let story = w.story(id).await;
    assert_eq!(story.last().map(String::as_str), Some("Failed"), "{story:?}");
}

#[tokio::test]
async fn a_pod_that_may_restarts_alone_where_it_is() {
    let w = World::new(nodes(1, 3), &[3]).await;
    w.submit(1, restart(distributed("d", 2), Restart::OnFailure)).await;
    let first = runs(&w, "d", &[1, 1, 1]).await;
    w.engine.end(first[2].key, Exit::Code(1));
    w.phase("d", Phase::Initializing).await;
    w.clock.advance_ms(1000);
    let second = runs(&w, "d", &[1, 1, 2]).await;
    assert_eq!(ports(&second), ports(&first));
}

#[tokio::test]
async fn eviction_stops_all_of_a_gang_and_suspension_too() {
    let w = World::new(nodes(1, 3), &[1, 2]).await;
    let id = w.submit(1, distributed("d", 2)).await.id;
    runs(&w, "d", &[1, 1, 1]).await;
    w.submit(2, training("owner", 1)).await;
    w.becomes("d Pending 0/3\nowner Running 1/1").await;
    assert!(w.engine.runs_of("d").is_empty());
    w.delete("owner").await;
    runs(&w, "d", &[2, 2, 2]).await;
    w.handle.suspend("alice", id).await.unwrap();
    w.becomes("d Stopped 0/3").await;
    w.handle.resume("alice", id).await.unwrap();
    runs(&w, "d", &[3, 3, 3]).await;
}

#[tokio::test]
async fn a_server_that_comes_back_finds_the_gang_as_it_was() {
    let mut w = World::new(nodes(1, 3), &[3]).await;
    let spec = distributed("d", 2);
    w.submit(1, spec.clone()).await;
    let before = runs(&w, "d", &[1, 1, 1]).await;
    w.restart().await;
    let after = runs(&w, "d", &[1, 1, 1]).await;
    assert_eq!(ports(&before), ports(&after));
    assert_eq!(*w.get("d").unwrap().spec, spec, "nothing of it is lost on disk");
    w.crash().await;
    // One of them is lost while the server is away: the others cannot go on without.
    w.engine.end(after[1].key, Exit::Lost);
    w.start().await;
    w.becomes("d Initializing 3/3").await;
    w.clock.advance_ms(1000);
    runs(&w, "d", &[2, 2, 2]).await;
}

#[tokio::test]
async fn an_elastic_gang_goes_on_with_fewer() {
    let w = World::new(nodes(1, 4), &[1, 3]).await;
    let mut spec = distributed("d", 3);
    spec.more[0].pods_min = 1;
    w.submit(1, spec).await;
    runs(&w, "d", &[1, 1, 1, 1]).await;
    w.submit(2, training("owner", 2)).await;
    w.becomes("d Degraded 2/4\nowner Running 2/2").await;
    assert_eq!(generations(&w, "d").len(), 2);
    w.delete("owner").await;
    w.becomes("d Running 4/4").await;
}

#[tokio::test]
async fn one_whose_pods_meet_at_the_server_goes_on_without_the_first() {
    let w = World::new(nodes(1, 3), &[3]).await;
    let meets = |name| {
        let mut spec = distributed(name, 2);
        spec.more[0].pods_min = 1;
        let variable = ("PET_RDZV_BACKEND".to_owned(), "elastane".to_owned());
        spec.pods.pod.env.extend([variable.clone()]);
        spec.more[0].pod.env.extend([variable]);
        spec
    };
    w.submit(1, meets("d")).await;
    let first = runs(&w, "d", &[1, 1, 1]).await;
    w.engine.end(first[0].key, Exit::Code(1));
    w.becomes("d Initializing 3/3").await;
    w.clock.advance_ms(1000);
    let second = runs(&w, "d", &[2, 1, 1]).await;
    assert_eq!(ports(&second), ports(&first), "the others look for it where it was");
    w.engine.end(second[0].key, Exit::Lost);
    w.becomes("d Initializing 3/3").await;
    w.clock.advance_ms(1000);
    runs(&w, "d", &[3, 1, 1]).await;
}

#[tokio::test]
async fn one_whose_pods_have_met_at_the_server_goes_on_without_the_first_as_long_as_they_compute() {
    let mut w = World::new(nodes(1, 3), &[3]).await;
    let mut spec = distributed("d", 2);
    spec.more[0].pods_min = 1;
    w.submit(1, spec).await;
    let first = runs(&w, "d", &[1, 1, 1]).await;
    for run in &first {
        w.engine.tell(run.key, RunEvent::Meets(true));
    }
    w.engine.end(first[0].key, Exit::Code(1));
    w.becomes("d Initializing 3/3").await;
    w.clock.advance_ms(1000);
    let second = runs(&w, "d", &[2, 1, 1]).await;
    w.restart().await;
    w.engine.end(second[0].key, Exit::Lost);
    w.becomes("d Initializing 3/3").await;
    w.clock.advance_ms(1000);
    let third = runs(&w, "d", &[3, 1, 1]).await;
    // Their next program does not meet at the server.
    for run in &third {
        w.engine.tell(run.key, RunEvent::Meets(false));
    }
    w.engine.end(third[0].key, Exit::Code(1));
    w.becomes("d Initializing 3/3").await;
    w.clock.advance_ms(10_000);
    runs(&w, "d", &[4, 2, 2]).await;
}

#[tokio::test]
async fn an_mpi_launcher_waits_for_its_workers() {
    let w = World::new(nodes(1, 3), &[3]).await;
    let mut spec = distributed("d", 2);
    spec.distributed =
        spec.distributed.map(|one| spec::DistributedSpec { first_waits: true, ..one });
    let id = w.submit(1, spec).await.id;
    runs(&w, "d", &[1, 1, 1]).await;
    let events = w.events(id).await.into_iter();
    let started = events.filter(|event| event.kind == "Started").filter_map(|e| e.pod_name);
    let started: Vec<_> = started.collect();
    assert!(started.len() == 3 && started[2] == "d-master-0", "{started:?}");
}

#[tokio::test]
async fn a_worker_that_ends_before_it_is_seen_to_run_holds_the_launcher_up_no_longer() {
    let w = World::new(nodes(1, 2), &[2]).await;
    let mut spec = distributed("d", 1);
    spec.distributed =
        spec.distributed.map(|one| spec::DistributedSpec { first_waits: true, ..one });
    w.engine.deaf(true);
    let id = w.submit(1, spec).await.id;
    let begun = |view: &View| view.workloads[&id].pods.iter().any(|pod| pod.generation == 1);
    let view = w.until("the worker begins", begun).await;
    let worker = view.workloads[&id].pods.iter().find(|pod| pod.generation == 1).unwrap().id;
    w.engine.deaf(false);
    let (exit, at) = (Exit::Code(0), Instant(1_000_000));
    w.engine.report(RunKey { pod: worker, generation: 1 }, RunState::Exited { exit, at });
    w.until("the launcher runs", |_| generations(&w, "d") == [1]).await;
}

#[tokio::test]
async fn pods_take_turns_until_enough_have_ended_well() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    let mut spec = training("hpo", 1);
    spec.pods = PodSet { pods: 3, parallelism: Some(2), ..spec.pods };
    w.submit(1, spec).await;
    w.becomes("hpo Running 2/2").await;
    let are = |view: &View, states: [PodState; 3]| {
        view.workloads.values().all(|hpo| hpo.pods.iter().map(|pod| pod.state).eq(states))
    };
    let two = [PodState::Running, PodState::Running, PodState::Later];
    w.until("two run, and the third does not wait", |view| are(view, two)).await;
    let first = w.engine.runs_of("hpo");
    assert_eq!(first.iter().map(|run| run.pod_index).collect::<Vec<_>>(), [0, 1]);
    w.engine.end(first[0].key, Exit::Code(0));
    w.until("the third has its turn", |_| w.engine.runs_of("hpo").len() == 2).await;
    w.becomes("hpo Running 2/2").await;
    let next: Vec<_> = w.engine.runs_of("hpo").iter().map(|run| run.pod_index).collect();
    assert_eq!(next, [1, 2]);
    let others = [PodState::Succeeded, PodState::Running, PodState::Running];
    w.until("the others run", |view| are(view, others)).await;
    w.restart().await;
    w.becomes("hpo Running 2/2").await;
    for run in w.engine.runs_of("hpo") {
        w.engine.end(run.key, Exit::Code(0));
    }
    w.becomes("hpo Completed 0/2").await;
}

#[tokio::test]
async fn the_scheduler_knows_of_a_search_those_that_have_their_turn() {
    let mut w = World::new(nodes(1, 4), &[4]).await;
    let mut spec = training("hpo", 1);
    spec.pods = PodSet { pods: 300, parallelism: Some(4), ..spec.pods };
    w.submit(1, spec).await;
    w.becomes("hpo Running 4/4").await;
    for _ in 0..3 {
        for run in w.engine.runs_of("hpo") {
            w.engine.end(run.key, Exit::Code(0));
        }
        w.until("the next run", |_| w.engine.runs_of("hpo").len() == 4).await;
        w.restart().await;
        w.becomes("hpo Running 4/4").await;
    }
    let next: Vec<_> = w.engine.runs_of("hpo").iter().map(|run| run.pod_index).collect();
    assert_eq!(next, [12, 13, 14, 15]);
    assert!(w.gate.pods_most() <= 8, "those that end and those that begin");
}

#[tokio::test]
async fn ports_are_found_in_steps_where_others_use_most_of_them() {
    let w = World::new(nodes(1, 3), &[3]).await;
    w.engine.use_ports(20_000..29_996);
    // A task beside all others, on the same thread: it has its turn whenever another yields.
    let (engine, most) = (w.engine.clone(), Arc::new(AtomicUsize::new(0)));
    let most_seen = most.clone();
    let looks = tokio::spawn(async move {
        loop {
            most_seen.fetch_max(engine.ports_tried(), Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    w.submit(1, distributed("d", 2)).await;
    while w.engine.runs_of("d").is_empty() {
        w.clock.advance_ms(10);
        tokio::task::yield_now().await;
    }
    w.becomes("d Running 3/3").await;
    looks.abort();
    let most = most.load(Ordering::Relaxed);
    assert!((1..1_000).contains(&most), "{most} ports tried between two turns");
    let used = ports(&w.engine.runs_of("d"));
    assert!(used.iter().all(|port| *port >= 29_996), "{used:?}");
    let story = w.story(w.id("d")).await;
    assert!(!story.iter().any(|event| event.contains("TooFewPorts")), "{story:?}");
}

#[tokio::test]
async fn too_few_ports_are_told_once_and_looked_for_again() {
    let w = World::new(nodes(1, 3), &[3]).await;
    w.engine.use_ports(20_000..30_000);
    let id = w.submit(1, distributed("d", 2)).await.id;
    let told = async || w.story(id).await.iter().filter(|e| e.contains("TooFewPorts")).count();
    while told().await == 0 {
        w.clock.advance_ms(10);
        tokio::task::yield_now().await;
    }
    w.engine.use_ports(0..0);
    w.clock.advance_ms(6_000);
    w.becomes("d Running 3/3").await;
    assert_eq!(told().await, 1);
}
