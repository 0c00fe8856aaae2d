//! Nodes that go, come and change while the server runs.

use control::NewNode;
use engine::Exit;
use model::{Effect, Taint, Toleration};
use orchestrator::NodeChange;
use records::EventFilter;
use spec::{Scheduling, WorkloadSpec};
use view::{Phase, PodState, View};

use crate::world::{World, distributed, elastic, nodes, training, with, workspace};

pub(crate) fn new_node(name: &str, gpus: u64) -> NewNode {
    NewNode { name: name.to_owned(), gpus, ..NewNode::default() }
}

impl World {
    async fn add_node(&self, name: &str, gpus: u64) {
        self.handle.add_node("admin", new_node(name, gpus)).await.unwrap();
    }

    async fn remove_node(&self, name: &str) {
        self.handle.remove_node("admin", name).await.unwrap();
    }

    async fn schedule(&self, node: &str, scheduling: Scheduling) {
        let change = NodeChange { scheduling: Some(scheduling), ..NodeChange::default() };
        self.handle.change_node("admin", node, change).await.unwrap();
    }

    async fn taint(&self, node: &str, effect: Effect) {
        let taint = Taint { key: "team".to_owned(), value: "a".to_owned(), effect };
        let change = NodeChange { taints: vec![taint], ..NodeChange::default() };
        self.handle.change_node("admin", node, change).await.unwrap();
    }

    /// The nodes on which the pods of a workload are, in the order of the pods.
    fn places(&self, name: &str) -> String {
        let pods = self.get(name).unwrap().pods.clone();
        let nodes = pods.iter().map(|pod| pod.node_name.clone().unwrap_or_else(|| "-".to_owned()));
        nodes.collect::<Vec<_>>().join(" ")
    }

    /// Waits until the pods of a workload run on these nodes.
    async fn runs_on(&self, name: &str, places: &str) {
        let is = |view: &View| {
            let found = view.workloads.values().find(|w| w.spec.name == name);
            found.is_some_and(|w| w.phase == Phase::Running) && self.places(name) == places
        };
        self.until(&format!("{name} runs on {places}"), is).await;
    }

    /// Codes of the events about a workload that have one, without reasons to wait.
    async fn evictions(&self, name: &str) -> Vec<String> {
        let events = self.events(self.id(name)).await.into_iter();
        let evicted = events.filter(|event| event.kind == "Evicted");
        evicted.filter_map(|event| event.code).collect()
    }
}

fn names(view: &View) -> String {
    let nodes = view.nodes.iter().map(|node| node.name.as_str());
    nodes.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn what_ran_on_a_node_that_went_starts_elsewhere() {
    let w = World::new(nodes(2, 1), &[2]).await;
    w.submit(1, training("a", 1)).await;
    w.submit(1, training("b", 1)).await;
    w.runs_on("a", "node-1").await;
    w.runs_on("b", "node-2").await;
    w.remove_node("node-1").await;
    w.becomes("a Pending 0/1\nb Running 1/1").await;
    let view = w.handle.view();
    assert_eq!((names(&view).as_str(), view.capacity.gpu_millis), ("node-2", 1000));
    assert_eq!(w.get("a").unwrap().last_eviction.as_ref().unwrap().code, "E201");
    w.add_node("node-3", 1).await;
    w.runs_on("a", "node-3").await;
    assert_eq!(w.engine.alive(), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    assert_eq!(names(&w.handle.view()), "node-3 node-2", "a place that is free is taken first");
    let all = w.handle.events(EventFilter::default()).await.unwrap();
    let of_nodes = all.into_iter().filter(|event| event.project_id.is_none());
    let kinds: Vec<_> = of_nodes.map(|event| event.kind).collect();
    assert_eq!(kinds, ["NodeGone", "NodeAdded"]);
}

#[tokio::test]
async fn a_gang_restarts_whole_when_a_node_of_it_goes() {
    let w = World::new(nodes(3, 2), &[6]).await;
    w.submit(1, distributed("gang", 3)).await;
    w.becomes("gang Running 4/4").await;
    let lost = w.get("gang").unwrap().pods[0].node_name.clone().unwrap();
    w.remove_node(&lost).await;
    let runs = |w: &World| {
        let runs = w.engine.runs_of("gang");
        runs.iter().filter(|run| run.key.generation == 2).count()
    };
    w.until("all restarted", |_| runs(&w) == 4 && !w.places("gang").contains(&lost)).await;
    w.phase("gang", Phase::Running).await;
    assert_eq!(w.engine.runs_of("gang").len(), 4, "no run of before is left");
    assert_eq!(w.evictions("gang").await, ["E201", "E201"], "those that were there");
}

#[tokio::test]
async fn a_gang_that_waits_for_a_lost_node_says_so_first() {
    let w = World::new(nodes(2, 1), &[2]).await;
    w.submit(1, distributed("gang", 1)).await;
    w.phase("gang", Phase::Running).await;
    w.remove_node("node-2").await;
    w.waits_for("gang", "P309").await;
    let says = "1 of its 2 pods has a place, too few to go on; it keeps them for a while so that the \
                others can come back";
    assert_eq!(&*w.why("gang")[0].message, says);
    let kept =
        w.get("gang").unwrap().pods.iter().filter(|pod| pod.state == PodState::PlacesKept).count();
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn a_taint_takes_a_kept_place_at_once() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, workspace("shell", 1)).await;
    w.phase("shell", Phase::Running).await;
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(1));
    w.phase("shell", Phase::Initializing).await;
    w.taint("node-1", Effect::NoExecute).await;
    w.becomes("shell Pending 0/1").await;
}

#[tokio::test]
async fn pods_of_a_gang_leave_a_tainted_node_together() {
    let w = World::new(nodes(2, 2), &[4]).await;
    w.submit(1, distributed("gang", 1)).await;
    w.phase("gang", Phase::Running).await;
    let tainted = w.get("gang").unwrap().pods[0].node_name.clone().unwrap();
    w.taint(&tainted, Effect::NoExecute).await;
    let left = move |view: &View| {
        let mut pods = view.workloads.values().flat_map(|one| &one.pods);
        pods.all(|pod| pod.node_name.as_ref().is_some_and(|node| *node != tainted))
    };
    w.until("it has left", left).await;
    w.phase("gang", Phase::Running).await;
}

#[tokio::test]
async fn an_elastic_workload_goes_on_without_the_node() {
    let w = World::new(nodes(2, 2), &[4]).await;
    let flex = WorkloadSpec { more: Vec::new(), ..elastic("flex", 2) };
    w.submit(1, flex).await;
    w.becomes("flex Running 2/2").await;
    let lost = w.places("flex");
    w.submit(1, training("other", 1)).await;
    w.remove_node(&lost).await;
    w.becomes("flex Running 1/2\nother Running 1/1").await;
    w.add_node(&lost, 2).await;
    w.delete("other").await;
    w.becomes("flex Running 2/2").await;
}

#[tokio::test]
async fn a_plan_for_a_node_that_went_meanwhile_is_dropped() {
    let w = World::new(nodes(2, 1), &[2]).await;
    w.submit(1, training("first", 1)).await;
    w.runs_on("first", "node-1").await;
    w.gate.shut();
    w.prompt.submit(1, training("a", 1), false).await.unwrap();
    w.gate.is_holding().await;
    w.prompt.remove_node("admin", "node-2").await.unwrap();
    w.prompt.add_node("admin", new_node("node-9", 1)).await.unwrap();
    w.gate.open();
    w.runs_on("a", "node-9").await;
    assert_eq!(w.engine.run_of("a").key.generation, 1, "it was placed once");
}

#[tokio::test]
async fn a_node_that_is_back_gets_nothing_before_what_was_left_there_has_ended() {
    let w = World::new(nodes(1, 1), &[2]).await;
    w.submit(1, training("a", 1)).await;
    w.runs_on("a", "node-1").await;
    w.engine.stubborn(true);
    w.remove_node("node-1").await;
    w.add_node("node-1", 1).await;
    w.submit(1, training("b", 1)).await;
    w.decided().await;
    assert_eq!(w.picture(), "a Pending 0/1\nb Pending 0/1");
    assert_eq!(w.why("a")[0].code, "P304");
    w.add_node("other", 1).await;
    w.runs_on("b", "other").await;
    w.engine.let_go();
    w.runs_on("a", "node-1").await;
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn a_node_that_goes_twice_is_gone_once() {
    let w = World::new(nodes(2, 1), &[2]).await;
    w.remove_node("node-2").await;
    let refused = w.handle.remove_node("admin", "node-2").await.unwrap_err().to_string();
    assert!(refused.contains("no node `node-2`"), "{refused}");
    let refused = w.handle.add_node("admin", new_node("node-1", 1)).await.unwrap_err().to_string();
    assert_eq!(refused, "there is a node node-1 already; choose another name");
    w.remove_node("node-1").await;
    w.submit(1, training("a", 1)).await;
    assert_eq!(w.picture(), "a Pending 0/1", "without any node");
    w.add_node("node-1", 1).await;
    w.runs_on("a", "node-1").await;
}

#[tokio::test]
async fn nodes_that_came_and_went_are_so_after_a_restart() {
    let mut w = World::new(nodes(2, 1), &[2]).await;
    w.submit(1, training("a", 1)).await;
    w.runs_on("a", "node-1").await;
    w.add_node("extra", 1).await;
    w.engine.stubborn(true);
    w.remove_node("node-1").await;
    w.restart().await;
    assert_eq!(names(&w.handle.view()), "node-2 extra");
    assert_eq!(w.picture(), "a Pending 0/1");
    w.engine.let_go();
    w.phase("a", Phase::Running).await;
    assert_eq!(w.engine.alive(), [("a".to_owned(), 2)]);
    w.restart().await;
    w.phase("a", Phase::Running).await;
    w.set_nodes(nodes(3, 1));
    w.restart().await;
    assert_eq!(names(&w.handle.view()), "node-1 node-2 node-3", "another list replaces all");
    w.set_nodes(nodes(2, 1));
    w.restart().await;
    assert_eq!(names(&w.handle.view()), "node-1 node-2", "and what was changed is forgotten");
}

#[tokio::test]
async fn what_is_deleted_or_suspended_on_a_node_that_went_ends_there() {
    let w = World::new(nodes(1, 3), &[3]).await;
    for name in ["deleted", "suspended"] {
        w.submit(1, training(name, 1)).await;
        w.phase(name, Phase::Running).await;
    }
    w.engine.stubborn(true);
    w.prompt.delete_workload("alice", w.id("deleted")).await.unwrap();
    w.prompt.suspend("alice", w.id("suspended")).await.unwrap();
    w.remove_node("node-1").await;
    w.becomes("deleted Deleting 0/1\nsuspended Stopped 0/1").await;
    w.engine.let_go();
    w.becomes("suspended Stopped 0/1").await;
    assert!(w.engine.alive().is_empty());
}

#[tokio::test]
async fn a_cordoned_node_keeps_what_runs_there_and_gets_nothing_new() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("a", 1)).await;
    w.phase("a", Phase::Running).await;
    w.schedule("node-1", Scheduling::Disabled).await;
    w.submit(1, training("b", 1)).await;
    w.restart().await;
    w.becomes("a Running 1/1\nb Pending 0/1").await;
    assert_eq!(w.handle.view().nodes[0].scheduling, Scheduling::Disabled);
    w.schedule("node-1", Scheduling::Enabled).await;
    w.becomes("a Running 1/1\nb Running 1/1").await;
    assert_eq!(w.evictions("a").await, [""; 0]);
}

#[tokio::test]
async fn a_drained_node_is_left_by_all() {
    let mut w = World::new(nodes(2, 2), &[4]).await;
    w.submit(1, workspace("notebook", 1)).await;
    w.submit(1, training("a", 1)).await;
    w.submit(1, workspace("wide", 2)).await;
    w.becomes("notebook Running 1/1\na Running 1/1\nwide Running 2/2").await;
    let drained = w.places("a");
    w.schedule(&drained, Scheduling::Draining).await;
    w.becomes("notebook Pending 0/1\na Pending 0/1\nwide Running 2/2").await;
    assert_eq!(w.get("a").unwrap().last_eviction.as_ref().unwrap().code, "E106");
    w.restart().await;
    assert_eq!(w.get("a").unwrap().phase, Phase::Pending, "it is drained after a restart, too");
    w.add_node("spare", 2).await;
    w.runs_on("a", "spare").await;
    w.runs_on("notebook", "spare").await;
    w.schedule(&drained, Scheduling::Disabled).await;
    w.schedule(&drained, Scheduling::Enabled).await;
    w.submit(1, training("late", 1)).await;
    w.runs_on("late", &drained).await;
}

/// A training that tolerates the taint of these tests.
fn tolerant(name: &str) -> WorkloadSpec {
    let key = Some("team".to_owned());
    let toleration = Toleration { key, value: Some("a".to_owned()), effect: None };
    with(training(name, 1), |pod| pod.place.tolerations = vec![toleration])
}

#[tokio::test]
async fn a_taint_keeps_away_what_does_not_tolerate_it() {
    let mut w = World::new(nodes(1, 3), &[3]).await;
    w.submit(1, training("early", 1)).await;
    w.phase("early", Phase::Running).await;
    w.taint("node-1", Effect::NoSchedule).await;
    w.submit(1, training("late", 1)).await;
    w.submit(1, tolerant("of-team-a")).await;
    let only_new = "early Running 1/1\nlate Pending 0/1\nof-team-a Running 1/1";
    w.becomes(only_new).await;
    w.restart().await;
    w.becomes(only_new).await;
    let key = "team".to_owned();
    let gone = NodeChange { removed_taints: vec![(key, None)], ..NodeChange::default() };
    w.handle.change_node("admin", "node-1", gone.clone()).await.unwrap();
    w.becomes("early Running 1/1\nlate Running 1/1\nof-team-a Running 1/1").await;
    let refused = w.handle.change_node("admin", "node-1", gone).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "node-1 was not given a taint `team`, so it cannot be taken back; it was given: none"
    );
}

#[tokio::test]
async fn no_execute_stops_what_does_not_tolerate_it() {
    let w = World::new(nodes(1, 3), &[3]).await;
    for spec in [training("a", 1), tolerant("b")] {
        w.submit(1, spec).await;
    }
    w.becomes("a Running 1/1\nb Running 1/1").await;
    w.taint("node-1", Effect::NoExecute).await;
    w.becomes("a Pending 0/1\nb Running 1/1").await;
    let why = w.get("a").unwrap().last_eviction.clone().unwrap();
    let said = "node-1 has taint team=a:NoExecute, which it does not tolerate";
    assert_eq!((why.code.as_ref(), why.message.as_ref()), ("E213", said));
}
