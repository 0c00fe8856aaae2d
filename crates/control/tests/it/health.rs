//! GPUs that are lost, or taken by foreign processes.

use std::collections::BTreeMap;

use control::Clock as _;
use engine::{ForeignProcess, GpuHealth};
use orchestrator::Error;
use records::EventFilter;
use spec::{GpuRequest, NodeSpec};
use view::{Event, GpuFault, Phase, View};

use crate::world::{World, distributed, elastic, nodes, training, with};

/// Nodes whose GPUs are there.
fn real(count: u32, gpus: u32) -> Vec<NodeSpec> {
    nodes(count, gpus).into_iter().map(|node| NodeSpec { simulated: false, ..node }).collect()
}

fn well() -> GpuHealth {
    GpuHealth { fault: None, foreign: Some(BTreeMap::new()) }
}

fn lost() -> GpuHealth {
    GpuHealth { fault: Some("off the bus".to_owned()), ..well() }
}

fn taken() -> GpuHealth {
    let process =
        ForeignProcess { name: "python".into(), user: "eve".into(), memory_bytes: 5 << 30 };
    GpuHealth { fault: None, foreign: Some([(4711, process)].into()) }
}

/// GPUs that are out of service, of all nodes.
fn out(view: &View) -> usize {
    view.nodes.iter().map(|node| node.gpu_faults.len()).sum()
}

/// Where the first pod of a workload is: `node-1 0`.
fn place(w: &World, name: &str) -> String {
    let pod = w.get(name).unwrap().pods[0].clone();
    let gpus: Vec<_> = pod.gpus.iter().map(|(gpu, _)| gpu.to_string()).collect();
    format!("{} {}", pod.node_name.unwrap_or_default(), gpus.join(","))
}

async fn of_nobody(w: &World) -> Vec<Event> {
    let events = w.handle.events(EventFilter::default()).await.unwrap();
    events.into_iter().filter(|event| event.project_id.is_none()).collect()
}

#[tokio::test]
async fn what_runs_on_a_failed_gpu_goes_elsewhere_and_it_comes_back() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("one", 1)).await;
    w.phase("one", Phase::Running).await;
    w.handle.fail_gpu("admin", "node-1", 0).await.unwrap();
    w.until("it moved", |_| place(&w, "one") == "node-1 1").await;
    let one = w.phase("one", Phase::Running).await;
    let why = one.last_eviction.clone().unwrap();
    assert_eq!((why.code.as_ref(), w.handle.view().capacity.gpu_millis), ("E207", 1000));
    assert!(why.message.starts_with("GPU 0 of node-1, which it used, is lost: "), "{why:?}");
    w.submit(1, training("two", 1)).await;
    assert!(w.why("two").iter().any(|reason| reason.code == "P111"));
    w.handle.heal_gpu("admin", "node-1", 0).await.unwrap();
    w.phase("two", Phase::Running).await;
    let kinds: Vec<_> = of_nobody(&w).await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["GpuLost", "GpuBack"]);
}

#[tokio::test]
async fn a_failure_outlives_the_server() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.handle.fail_gpu("admin", "node-1", 1).await.unwrap();
    w.handle.fail_gpu("admin", "node-1", 1).await.unwrap();
    w.restart().await;
    assert_eq!((out(&w.handle.view()), of_nobody(&w).await.len()), (1, 1), "told once");
    w.submit(1, training("two", 2)).await;
    assert_eq!(w.picture(), "two Pending 0/2");
    w.handle.heal_gpu("admin", "node-1", 1).await.unwrap();
    w.becomes("two Running 2/2").await;
}

#[tokio::test]
async fn a_gang_begins_anew_whole_and_fractions_move_together() {
    let w = World::new(nodes(1, 4), &[4]).await;
    let half = |name| with(training(name, 1), |pod| pod.gpu = GpuRequest::share(1, 500));
    for spec in [distributed("gang", 1), half("left"), half("right")] {
        w.submit(1, spec).await;
    }
    w.becomes("gang Running 2/2\nleft Running 0.5/0.5\nright Running 0.5/0.5").await;
    let gang: Vec<u32> = w.engine.runs_of("gang").iter().map(|run| run.key.generation).collect();
    let shared = w.get("left").unwrap().pods[0].gpus[0].0;
    let of_gang = w.get("gang").unwrap().pods[0].gpus[0].0;
    w.handle.fail_gpu("admin", "node-1", shared).await.unwrap();
    w.becomes("gang Running 2/2\nleft Running 0.5/0.5\nright Running 0.5/0.5").await;
    assert!(
        place(&w, "left") == place(&w, "right")
            && w.get("left").unwrap().pods[0].gpus[0].0 != shared
    );
    w.handle.heal_gpu("admin", "node-1", shared).await.unwrap();
    w.handle.fail_gpu("admin", "node-1", of_gang).await.unwrap();
    w.until("both restarted", |_| {
        let runs = w.engine.runs_of("gang");
        runs.len() == 2 && runs.iter().zip(&gang).all(|(run, before)| run.key.generation > *before)
    })
    .await;
    w.phase("gang", Phase::Running).await;
}

#[tokio::test]
async fn an_elastic_workload_makes_do_with_the_gpus_that_are_left() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, elastic("flex", 2)).await;
    w.becomes("flex Running 2/2").await;
    w.handle.fail_gpu("admin", "node-1", 0).await.unwrap();
    w.becomes("flex Running 1/2").await;
    assert_eq!(place(&w, "flex"), "node-1 1");
}

#[tokio::test]
async fn a_lost_gpu_is_seen_before_anything_is_placed_and_comes_back_by_itself() {
    let mut w = World::new(real(1, 2), &[2]).await;
    w.engine.gpu_is("GPU-sim-node-1-0", lost());
    w.restart().await;
    w.submit(1, training("one", 1)).await;
    w.phase("one", Phase::Running).await;
    assert_eq!((place(&w, "one"), out(&w.handle.view())), ("node-1 1".to_owned(), 1));
    w.engine.gpu_is("GPU-sim-node-1-0", well());
    w.clock.advance_ms(5_000);
    w.until("it is back", |view| out(view) == 0).await;
}

#[tokio::test]
async fn a_gpu_that_was_lost_before_the_start_is_told_and_never_given_out() {
    let mut machine = real(1, 2);
    machine[0].gpus[0].fault = Some("the driver does not answer for it".to_owned());
    let w = World::new(machine, &[2]).await;
    w.submit(1, training("one", 1)).await;
    w.submit(1, training("two", 1)).await;
    w.becomes("one Running 1/1\ntwo Pending 0/1").await;
    assert_eq!(place(&w, "one"), "node-1 1");
    let before = w.engine.gpu_looks();
    w.clock.advance_ms(5_000);
    w.until("a sample", |_| w.engine.gpu_looks() > before).await;
    assert_eq!((out(&w.handle.view()), w.handle.view().capacity.gpu_millis), (1, 1000));
    let told = &of_nobody(&w).await[0];
    assert_eq!(told.code.as_deref(), Some("E207"));
    assert_eq!(told.message, "GPU 0 of node-1 is lost: the driver does not answer for it");
}

#[tokio::test]
async fn a_loss_is_told_once_also_when_the_state_is_built_again() {
    let w = World::new(real(1, 2), &[2]).await;
    w.submit(1, training("one", 1)).await;
    w.phase("one", Phase::Running).await;
    w.engine.gpu_is("GPU-sim-node-1-0", lost());
    w.clock.advance_ms(5_000);
    w.until("it moved", |_| place(&w, "one") == "node-1 1").await;
    w.clock.put_forward_ms(3_600_000);
    w.submit(1, training("two", 1)).await;
    w.becomes("one Running 1/1\ntwo Pending 0/1").await;
    let kinds: Vec<_> = of_nobody(&w).await.into_iter().map(|event| event.kind).collect();
    assert_eq!((out(&w.handle.view()), kinds), (1, vec!["GpuLost".to_owned()]));
}

#[tokio::test]
async fn beside_a_foreign_process_nothing_is_stopped_and_nothing_new_comes() {
    let w = World::new(real(1, 1), &[1]).await;
    w.submit(1, with(training("one", 1), |pod| pod.gpu = GpuRequest::share(1, 400))).await;
    w.phase("one", Phase::Running).await;
    w.engine.gpu_is("GPU-sim-node-1-0", taken());
    for _ in 0..2 {
        assert_eq!(out(&w.handle.view()), 0, "it has to be seen twice");
        let before = w.engine.gpu_looks();
        w.clock.advance_ms(5_000);
        w.until("a sample", |_| w.engine.gpu_looks() > before).await;
    }
    let view = w.until("it is taken", |view| out(view) == 1).await;
    let Some(GpuFault::Taken(who)) = view.nodes[0].gpu_faults.get(&0) else { panic!("not taken") };
    assert_eq!(who[&4711].name, "python");
    w.submit(1, with(training("two", 1), |pod| pod.gpu = GpuRequest::share(1, 400))).await;
    w.becomes("one Running 0.4/0.4\ntwo Pending 0/0.4").await;
    assert_eq!(
        of_nobody(&w).await[0].message,
        "GPU 0 of node-1 is used by foreign processes: python of eve (process 4711, 5GiB)"
    );
    w.engine.gpu_is("GPU-sim-node-1-0", well());
    w.clock.advance_ms(5_000);
    w.phase("two", Phase::Running).await;
}

#[tokio::test]
async fn a_driver_that_hangs_is_asked_again_and_nothing_else_waits_for_it() {
    let w = World::new(real(1, 1), &[1]).await;
    w.until("the first sample", |_| w.handle.sample().at == w.clock.now()).await;
    let asked = || (w.engine.gpu_looks(), w.engine.measurings());
    let before = asked();
    w.engine.hang();
    w.clock.advance_ms(15_000);
    let at = w.clock.now();
    w.until("both are asked", |_| asked() == (before.0 + 1, before.1 + 1)).await;
    w.submit(1, training("one", 1)).await;
    w.becomes("one Running 1/1").await;
    w.clock.advance_ms(20_000);
    w.until("a sample without what is used", |_| w.handle.sample().at == at).await;
    w.until("both are asked again", |_| asked() == (before.0 + 2, before.1 + 2)).await;
}

#[tokio::test]
async fn only_simulated_gpus_that_are_there_can_be_made_to_fail() {
    let w = World::new(real(1, 1), &[1]).await;
    let said = |error: Error| error.to_string();
    let refused = w.handle.fail_gpu("admin", "node-1", 0).await.map_err(said).unwrap_err();
    assert!(refused.contains("only simulated ones"), "{refused}");
    let refused = w.handle.heal_gpu("admin", "node-7", 0).await.map_err(said).unwrap_err();
    assert!(refused.contains("node-7"), "{refused}");
    let w = World::new(nodes(1, 1), &[1]).await;
    let refused = w.handle.fail_gpu("admin", "node-1", 1).await.map_err(said).unwrap_err();
    assert!(refused.contains("counted from 0"), "{refused}");
    let audit =
        w.handle.audit(&records::AuditFilter { limit: 9, ..Default::default() }).await.unwrap();
    assert_eq!((audit[0].1.what.as_str(), audit[0].1.target.as_str()), ("gpu.fail", "node-1/1"));
}
