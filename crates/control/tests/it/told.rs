//! Properties of workloads beside their pods that the scheduler needs: gates, delays, time limits,
//! groups, and the priority of pods.

use orchestrator::{Error, OrgChange, WorkloadChange};
use spec::{Group, PodSet, Rules, WorkloadSpec};
use view::Phase;

use crate::world::{World, distributed, nodes, training};

fn gates(left: &[&str]) -> WorkloadChange {
    let gates = left.iter().map(|&gate| gate.to_owned()).collect();
    WorkloadChange { gates: Some(gates), ..WorkloadChange::default() }
}

fn held_back(name: &str) -> WorkloadSpec {
    let gates = vec!["data/ready".to_owned(), "approved".to_owned()];
    WorkloadSpec { gates, ..training(name, 1) }
}

#[tokio::test]
async fn a_workload_is_held_back_until_its_last_gate_is_taken_away() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, held_back("t")).await;
    w.waits_for("t", "P305").await;
    w.restart().await;
    w.decided().await;
    assert_eq!(w.get("t").unwrap().phase, Phase::Pending, "it is held back after a restart, too");

    let id = w.id("t");
    w.handle.update_workload("bob", id, gates(&["approved"])).await.unwrap();
    w.decided().await;
    assert_eq!(w.get("t").unwrap().phase, Phase::Pending);
    let more = w.handle.update_workload("bob", id, gates(&["approved", "late"])).await;
    let why = more.unwrap_err().to_string();
    assert!(why.contains("gate `late` cannot be added to workload `t`"), "{why}");
    w.handle.update_workload("bob", id, gates(&[])).await.unwrap();
    w.phase("t", Phase::Running).await;
}

#[tokio::test]
async fn others_are_stopped_for_a_workload_only_after_its_delay() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    let patient = WorkloadSpec {
        priority: spec::Priority::named("medium-high").unwrap(),
        preemption_delay_ms: 60_000,
        ..training("patient", 1)
    };
    w.submit(1, patient).await;
    w.clock.advance_ms(59_000);
    w.decided().await;
    assert_eq!(w.get("first").unwrap().phase, Phase::Running);
    w.clock.advance_ms(2_000);
    w.phase("patient", Phase::Running).await;
    w.phase("first", Phase::Pending).await;
}

/// How long the scheduler has been told that a workload may run.
async fn told(w: &World, name: &str) -> Option<u64> {
    let state = w.handle.scheduling_state().await.unwrap();
    let mut all = state.cluster.workloads().iter().map(|(_, workload)| workload);
    all.find(|workload| workload.spec.name == name).unwrap().spec.time_limit_ms
}

#[tokio::test]
async fn the_scheduler_is_told_how_long_a_workload_may_run() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("a", 1)).await;
    w.submit(1, WorkloadSpec { time_limit_ms: Some(50_000), ..training("b", 1) }).await;
    assert_eq!((told(&w, "a").await, told(&w, "b").await), (None, Some(50_000)));
    for (ms, a, b) in [(90_000, Some(90_000), Some(50_000)), (40_000, Some(40_000), Some(40_000))] {
        let rules = Rules { training_run_ms_max: Some(ms), ..Rules::default() };
        let change = OrgChange { rules: Some(rules), ..OrgChange::default() };
        w.handle.update_project("bob", 1, change).await.unwrap();
        assert_eq!((told(&w, "a").await, told(&w, "b").await), (a, b));
    }
    w.restart().await;
    assert_eq!((told(&w, "a").await, told(&w, "b").await), (Some(40_000), Some(40_000)));
}

#[tokio::test]
async fn a_workload_is_suspended_when_its_own_time_is_over() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, WorkloadSpec { time_limit_ms: Some(100_000), ..training("t", 1) }).await;
    w.phase("t", Phase::Running).await;
    w.clock.advance_ms(91_000);
    w.until("it runs", |_| w.get("t").is_some_and(|t| t.phase == Phase::Running)).await;
    w.decided().await;
    w.clock.advance_ms(10_000);
    w.phase("t", Phase::Stopped).await;
}

/// The numbers of the pods of a workload that have places.
fn running(w: &World, name: &str) -> Vec<usize> {
    let view = w.get(name).unwrap();
    let placed = (0..).zip(&view.pods).filter(|(_, pod)| pod.node_name.is_some());
    placed.map(|(number, _)| number).collect()
}

#[tokio::test]
async fn the_scheduler_is_told_the_priority_of_pods() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let mut spec = distributed("t", 1);
    spec.more[0].pod_priority = 5;
    w.submit(1, spec).await;
    let state = w.handle.scheduling_state().await.unwrap();
    let (_, workload) = state.cluster.workloads().iter().next().unwrap();
    let told = workload.spec.pod_sets.iter().map(|set| (set.name.as_str(), set.task_priority));
    assert_eq!(told.collect::<Vec<_>>(), [("master", 0), ("worker", 5)]);
}

/// Two groups of two pods with a GPU each.
fn grouped(name: &str, children_min: Option<u32>) -> WorkloadSpec {
    let one = training(name, 1);
    let set = |role: &str, group: &str| PodSet {
        role: role.to_owned(),
        group: Some(group.to_owned()),
        pods: 2,
        pods_min: 2,
        ..one.pods.clone()
    };
    let group = |name: &str| Group { name: name.to_owned(), ..Group::default() };
    WorkloadSpec {
        pods: set("left", "a"),
        more: vec![set("right", "b")],
        groups: vec![group("a"), group("b")],
        children_min,
        ..one.clone()
    }
}

#[tokio::test]
async fn a_group_starts_alone_where_that_is_enough() {
    let w = World::new(nodes(1, 3), &[3]).await;
    w.submit(1, grouped("all", None)).await;
    w.decided().await;
    assert!(running(&w, "all").is_empty());
    w.submit(1, grouped("one", Some(1))).await;
    w.until("a group runs", |_| running(&w, "one") == [0, 1]).await;
}

#[tokio::test]
async fn what_is_no_tree_is_refused_by_its_field() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let changed = |change: fn(&mut WorkloadSpec)| {
        let mut spec = grouped("t", None);
        change(&mut spec);
        spec
    };
    for (spec, field, why) in [
        (changed(|s| s.children_min = Some(3)), "groups", "the workload has 2 parts, of which 3"),
        (changed(|s| s.groups[1].name = "a".into()), "groups", "group `a` is there twice"),
        (changed(|s| s.groups[0].parent = Some("b".into())), "groups", "is in `b`, which is not"),
        (changed(|s| s.pods.group = Some("x".into())), "groups", "pods `left` are in group `x`"),
        (changed(|s| s.pods.group = None), "groups", "group `a` has no pods and no groups"),
        (changed(|s| s.gates = vec!["a b".into()]), "gates", "gate `a b`: "),
        (changed(|s| s.gates = vec!["a".into(), "a".into()]), "gates", "gate `a` is there twice"),
        (changed(|s| s.preemption_delay_ms = u64::MAX), "preemption delay", "is too long; 0 to"),
        (changed(|s| s.time_limit_ms = Some(0)), "time limit", "the time limit is 0"),
    ] {
        let error = w.handle.submit(1, spec, false).await.unwrap_err();
        let Error::Invalid { field: found, .. } = &error else { panic!("{error}") };
        assert!(*found == field && error.to_string().contains(why), "{found}: {error}");
    }
}
