//! Pods that exist elsewhere, from a scripted feed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use engine::{Error, FEED_CHANGES_MAX, PodFeed};
use expect_test::expect;
use model::{CORDONED, Effect, Taint, Toleration};
use orchestrator::OrgChange;
use spec::{
    AdoptedPhase, AdoptedPod, FeedChange, FeedListing, FeedOutcome, Hold, NodeSpec, Place,
    PlacementReport,
};
use tokio::sync::Notify;
use units::Instant;
use uuid::Uuid;
use view::Phase;

use crate::world::{World, nodes, project};

#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) nodes: BTreeMap<String, NodeSpec>,
    pods: BTreeMap<Uuid, AdoptedPod>,
    pub(crate) changes: VecDeque<FeedChange>,
    /// Operations, in order.
    verbs: Vec<String>,
    /// Bindings that fail before one is carried out.
    binds_failing: u32,
    /// Name of the pod that a disruption budget protects.
    pub(crate) protected: Option<String>,
}

/// A cluster in memory whose pods run as soon as they are bound.
#[derive(Default)]
pub(crate) struct FakeFeed {
    cluster: Mutex<Cluster>,
    changed: Notify,
}

impl FakeFeed {
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        let done = change(&mut self.cluster.lock().unwrap());
        self.changed.notify_one();
        done
    }

    pub(crate) fn put(&self, pod: AdoptedPod) {
        self.with(|c| {
            c.changes.push_back(FeedChange::Pod(Box::new(pod.clone())));
            c.pods.insert(pod.uid, pod);
        });
    }

    pub(crate) fn put_node(&self, node: NodeSpec) {
        self.with(|c| {
            c.changes.push_back(FeedChange::Node(node.clone()));
            c.nodes.insert(node.name.clone(), node);
        });
    }

    fn pod(&self, name: &str) -> AdoptedPod {
        let found = self.with(|c| c.pods.values().find(|pod| pod.name == name).cloned());
        found.unwrap_or_else(|| panic!("no pod {name}"))
    }

    /// Changes a pod.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut AdoptedPod)) {
        let mut pod = self.pod(name);
        change(&mut pod);
        self.put(pod);
    }

    pub(crate) fn delete(&self, name: &str) {
        let uid = self.pod(name).uid;
        self.with(|c| {
            c.pods.remove(&uid);
            c.changes.push_back(FeedChange::PodGone(uid));
        });
    }

    pub(crate) fn verbs(&self) -> Vec<String> {
        self.with(|c| c.verbs.clone())
    }
}

#[async_trait]
impl PodFeed for FakeFeed {
    async fn listing(&self) -> Result<FeedListing, Error> {
        Ok(self.with(|c| {
            c.changes.clear();
            FeedListing {
                nodes: c.nodes.values().cloned().collect(),
                pods: c.pods.values().cloned().collect(),
            }
        }))
    }

    async fn changes(&self) -> Vec<FeedChange> {
        loop {
            let taken: Vec<_> = {
                let mut cluster = self.cluster.lock().unwrap();
                let count = cluster.changes.len().min(FEED_CHANGES_MAX);
                cluster.changes.drain(..count).collect()
            };
            if !taken.is_empty() {
                return taken;
            }
            self.changed.notified().await;
        }
    }

    async fn bind(&self, uid: Uuid, node: &str) -> FeedOutcome {
        self.with(|c| {
            if c.binds_failing > 0 {
                c.binds_failing -= 1;
                return FeedOutcome::Later("it is overloaded".to_owned());
            }
            let Some(pod) = c.pods.get_mut(&uid) else { return FeedOutcome::Gone };
            if let Some(at) = &pod.node {
                return FeedOutcome::Conflict(format!("it is bound to {at}"));
            }
            pod.node = Some(node.to_owned());
            pod.phase = AdoptedPhase::Running;
            c.verbs.push(format!("bind {} to {node}", pod.name));
            c.changes.push_back(FeedChange::Pod(Box::new(pod.clone())));
            FeedOutcome::Done
        })
    }

    async fn evict(&self, uid: Uuid) -> FeedOutcome {
        self.with(|c| {
            let Some(pod) = c.pods.get_mut(&uid) else { return FeedOutcome::Gone };
            if c.protected.as_ref() == Some(&pod.name) {
                pod.protected = Some("a budget".to_owned());
                c.changes.push_back(FeedChange::Pod(Box::new(pod.clone())));
                return FeedOutcome::Refused("a budget".to_owned());
            }
            pod.deleting = true;
            c.verbs.push(format!("evict {}", pod.name));
            c.changes.push_back(FeedChange::Pod(Box::new(pod.clone())));
            FeedOutcome::Done
        })
    }

    fn report(&self, uid: Uuid, report: PlacementReport) {
        self.with(|c| {
            let name = c.pods.get(&uid).map(|pod| pod.name.clone()).unwrap_or_default();
            c.verbs.push(format!("report {name}: {} {}", report.code, report.message));
        });
    }

    fn nominate(&self, uid: Uuid, node: Option<String>) {
        self.with(|c| {
            let name = c.pods.get(&uid).map(|pod| pod.name.clone()).unwrap_or_default();
            c.verbs.push(format!("nominate {name}: {}", node.as_deref().unwrap_or("none")));
        });
    }
}

/// A pod with a GPU that this server has to place.
pub(crate) fn pod(namespace: &str, name: &str) -> AdoptedPod {
    AdoptedPod {
        uid: Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{namespace}/{name}").as_bytes()),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        created_at: Instant(1000),
        owner: Some(("Job".to_owned(), "train".to_owned())),
        is_ours: true,
        project: None,
        gpus: 1,
        cpu_millis: 100,
        memory_bytes: 1 << 20,
        place: Place::default(),
        priority_class: String::new(),
        preemptible: None,
        gang: None,
        gates: Vec::new(),
        hold: None,
        node: None,
        protected: None,
        phase: AdoptedPhase::Pending,
        started_at: None,
        deleting: false,
        grace_ms: 30_000,
    }
}

/// A pod of others on a node.
pub(crate) fn foreign(name: &str, node: &str, gpus: u32) -> AdoptedPod {
    AdoptedPod {
        is_ours: false,
        gpus,
        node: Some(node.to_owned()),
        phase: AdoptedPhase::Running,
        ..pod("others", name)
    }
}

/// A server on one node with this many GPUs and these quotas, and its feed.
pub(crate) async fn world(gpus: u32, quotas: &[u64]) -> (World, Arc<FakeFeed>) {
    let mut world = World::new(Vec::new(), quotas).await;
    let feed = Arc::new(FakeFeed::default());
    for node in nodes(1, gpus) {
        feed.put_node(NodeSpec { simulated: false, ..node });
    }
    world.engine.set_feed(feed.clone());
    world.restart().await;
    (world, feed)
}

/// Names of pods in the operations that begin with a word, in order.
pub(crate) fn names(feed: &FakeFeed, verb: &str) -> Vec<String> {
    let verbs = feed.verbs().into_iter();
    let named = verbs.filter_map(|of| Some(of.strip_prefix(verb)?.split(' ').nth(1)?.to_owned()));
    named.collect()
}

#[tokio::test]
async fn pods_are_bound_by_quota_and_a_borrower_gives_way() {
    let (world, feed) = world(2, &[1, 1]).await;
    for (count, name) in [(1, "a1"), (2, "a2"), (3, "a3")] {
        feed.put(pod("team-a", name));
        world.until(name, |view| view.workloads.len() == count).await;
    }
    let waits = "team-a.a1 Running 1/1\nteam-a.a2 Running 1/1\nteam-a.a3 Pending 0/1";
    world.becomes(waits).await;
    world.until("its reason", |_| feed.verbs().iter().any(|verb| verb.contains("a3: P"))).await;

    feed.put(pod("runai-team-b", "b1"));
    let evicts = |feed: &FakeFeed| feed.verbs().into_iter().find(|verb| verb.starts_with("evict"));
    world.until("an eviction", |_| evicts(&feed).is_some()).await;
    let victim = evicts(&feed).unwrap().split_off("evict ".len());
    world.phase(&format!("team-a.{victim}"), Phase::Deleting).await;
    assert!(!feed.verbs().iter().any(|verb| verb.contains("bind b1")), "its room is not free yet");
    assert!(feed.verbs().contains(&"nominate b1: node-1".to_owned()), "{:?}", feed.verbs());
    feed.delete(&victim);
    world.phase("runai-team-b.b1", Phase::Running).await;
    assert_eq!(world.get(&format!("team-a.{victim}")), None);

    feed.change("b1", |pod| pod.phase = AdoptedPhase::Succeeded);
    world.phase("team-a.a3", Phase::Running).await;
    world.phase("runai-team-b.b1", Phase::Completed).await;
    feed.delete("b1");
    world.until("gone", |view| view.workloads.len() == 2).await;
}

#[tokio::test]
async fn a_restart_finds_the_pods_and_binds_none_again() {
    let (mut world, feed) = world(2, &[2]).await;
    feed.put(pod("team-a", "a1"));
    world.becomes("team-a.a1 Running 1/1").await;
    feed.put(pod("team-a", "a2"));
    let both = "team-a.a1 Running 1/1\nteam-a.a2 Running 1/1";
    world.becomes(both).await;
    let before = feed.verbs();
    world.restart().await;
    let two = |view: &view::View| {
        view.workloads.values().filter(|w| w.phase == Phase::Running).count() == 2
    };
    world.until("both again", two).await;
    feed.put(pod("team-a", "a3"));
    world.waits_for("team-a.a3", "P102").await;
    let after = feed.verbs();
    assert_eq!(after.iter().filter(|verb| verb.starts_with("bind")).count(), 2, "{after:?}");
    assert_eq!(after[..before.len()], before);
    // The state is built again, without a restart, from the feed as well.
    world.refuse_events(true).await;
    feed.delete("a2");
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    world.refuse_events(false).await;
    world.phase("team-a.a3", Phase::Running).await;
}

#[tokio::test]
async fn pods_of_others_take_what_they_hold() {
    let (world, feed) = world(4, &[4]).await;
    feed.put(foreign("db", "node-1", 3));
    feed.put(pod("team-a", "a1"));
    world.phase("team-a.a1", Phase::Running).await;
    feed.put(pod("team-a", "a2"));
    world.phase("team-a.a2", Phase::Pending).await;
    let view = world.handle.view();
    assert_eq!(view.nodes[0].gpu_faults.len(), 3);
    feed.delete("db");
    world.phase("team-a.a2", Phase::Running).await;
}

#[tokio::test]
async fn a_pod_without_a_project_or_with_an_unknown_field_is_held() {
    let (world, feed) = world(4, &[4]).await;
    feed.put(pod("team-x", "x1"));
    let volume =
        Hold { field: "spec.volumes[0].nfs".to_owned(), why: "is not supported yet".to_owned() };
    feed.put(AdoptedPod { hold: Some(volume), ..pod("team-a", "a1") });
    let label = Some(("project".to_owned(), "team-a".to_owned()));
    feed.put(AdoptedPod { project: label, ..pod("team-b", "b1") });
    world.until("three reports", |_| feed.verbs().len() == 3).await;
    let verbs = feed.verbs();
    assert!(verbs[0].starts_with("report x1: P310 no project has namespace team-x"), "{verbs:?}");
    assert!(verbs[1].starts_with("report a1: P311 spec.volumes[0].nfs is not"), "{verbs:?}");
    assert!(verbs[2].contains("it does not count in namespace team-b"), "{verbs:?}");
    let shown = |namespace: &str, name: &str| {
        let view = world.handle.view();
        let pod = &view.adopted[&(namespace.to_owned(), name.to_owned())];
        (pod.workload_id.is_some(), pod.held.as_ref().map(|held| held.reason.code.clone()))
    };
    assert_eq!(shown("team-x", "x1"), (false, Some("P310".to_owned())));
    assert_eq!(shown("team-a", "a1"), (false, Some("P311".to_owned())));
    world.handle.create_project("admin", 1, project("team-x", 1)).await.unwrap();
    world.phase("team-x.x1", Phase::Running).await;
    assert_eq!(shown("team-x", "x1"), (true, None));
    feed.change("a1", |pod| pod.hold = None);
    world.phase("team-a.a1", Phase::Running).await;
}

#[tokio::test]
async fn a_held_pod_starts_once_a_project_lists_its_namespace() {
    let (world, feed) = world(4, &[4]).await;
    feed.put(pod("lab", "l1"));
    world.until("a report", |_| feed.verbs().len() == 1).await;
    let lists = |names: &[&str]| OrgChange {
        namespaces: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..OrgChange::default()
    };
    let wrong = world.handle.update_project("admin", 1, lists(&["Lab"])).await.unwrap_err();
    assert!(wrong.to_string().contains("`Lab` is not the name of a namespace"), "{wrong}");
    world.handle.update_project("admin", 1, lists(&["lab", "other"])).await.unwrap();
    world.phase("lab.l1", Phase::Running).await;
}

#[tokio::test]
async fn a_binding_that_fails_is_tried_again_in_its_place() {
    let (world, feed) = world(1, &[1]).await;
    feed.with(|c| c.binds_failing = 1);
    feed.put(pod("team-a", "a1"));
    let waits = |_: &view::View| feed.with(|c| c.binds_failing) == 0;
    world.until("a failure", waits).await;
    world.decided().await;
    world.clock.advance_ms(2000);
    world.phase("team-a.a1", Phase::Running).await;
}

#[tokio::test]
async fn a_pod_that_another_has_bound_is_charged_where_it_is() {
    let (world, feed) = world(2, &[1]).await;
    let other = NodeSpec { simulated: false, name: "node-2".to_owned(), ..nodes(1, 2).remove(0) };
    feed.put_node(other);
    world.until("two nodes", |view| view.nodes.len() == 2).await;
    feed.put(AdoptedPod {
        node: Some("node-2".to_owned()),
        phase: AdoptedPhase::Running,
        ..pod("team-a", "a1")
    });
    let found = world.phase("team-a.a1", Phase::Running).await;
    assert_eq!(found.pods[0].node_name.as_deref(), Some("node-2"));
    feed.change("a1", |pod| pod.node = Some("node-1".to_owned()));
    let at = |view: &view::View| {
        let mut pods = view.workloads.values().flat_map(|w| &w.pods);
        pods.any(|pod| pod.node_name.as_deref() == Some("node-1"))
    };
    world.until("at the other node", at).await;
    assert_eq!(feed.verbs(), Vec::<String>::new());
}

#[tokio::test]
async fn what_only_the_owner_can_do_is_refused_with_the_command_for_it() {
    let (world, feed) = world(1, &[1]).await;
    feed.put(pod("team-a", "a1"));
    world.phase("team-a.a1", Phase::Running).await;
    let id = world.id("team-a.a1");
    let refused = world.handle.delete_workload("alice", id).await.unwrap_err().to_string();
    assert!(refused.contains("its owner is Job team-a/train"), "{refused}");
    let refused = world.handle.suspend("alice", id).await.unwrap_err().to_string();
    assert!(refused.contains("pod team-a/a1 of Kubernetes"), "{refused}");
    assert_eq!(feed.verbs().len(), 1);
}

#[tokio::test]
async fn advice_names_kubectl_for_nodes_and_the_owner_of_pods() {
    let (world, feed) = world(1, &[1]).await;
    let taint = |key: &str, value: &str| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: Effect::NoSchedule,
    };
    let mut node = nodes(1, 1).remove(0);
    node.name = "node-2".to_owned();
    node.taints = vec![taint("own", "me")];
    feed.put_node(node.clone());
    // Pods with GPUs tolerate the taint of nodes with GPUs.
    let gpus = taint("nvidia.com/gpu", "present");
    (node.name, node.taints) = ("node-3".to_owned(), vec![taint(CORDONED, ""), gpus]);
    feed.put_node(node.clone());
    // The cluster or its autoscaler sets these again.
    for (name, key) in [
        ("node-4", "node.kubernetes.io/not-ready"),
        ("node-5", "ToBeDeletedByClusterAutoscaler"),
        ("node-6", "karpenter.sh/disrupted"),
    ] {
        (node.name, node.taints) = (name.to_owned(), vec![taint(key, "")]);
        feed.put_node(node.clone());
    }
    let tolerates = |name: &str| {
        let key = Some("nvidia.com/gpu".to_owned());
        let tolerations = vec![Toleration { key, value: None, effect: None }];
        AdoptedPod { place: Place { tolerations, ..Place::default() }, ..pod("team-a", name) }
    };
    feed.put(tolerates("a1"));
    world.phase("team-a.a1", Phase::Running).await;
    feed.put(tolerates("a2"));
    world.waits_for("team-a.a2", "P102").await;
    let said = async || {
        let found = world.handle.diagnose(world.id("team-a.a2"), ()).await.unwrap();
        let (found, now) = found.expect("a diagnosis");
        let view = world.handle.view();
        convert::diagnosis(&found, &view, now, &|_| true, Vec::new()).lines.join("\n")
    };
    expect![[r#"
        Where it does not fit:
          1 node, node-1 (1 GPU of 16GiB, 64 cores, 256GiB): has too few free GPUs (needs 1, has 0)
          1 node, node-2 (1 GPU of 16GiB, 64 cores, 256GiB): has the taint own=me, which it does not tolerate
          1 node, node-3 (1 GPU of 16GiB, 64 cores, 256GiB): is cordoned
          1 node, node-4 (1 GPU of 16GiB, 64 cores, 256GiB): has the taint node.kubernetes.io/not-ready, which it does not tolerate
          1 node, node-5 (1 GPU of 16GiB, 64 cores, 256GiB): has the taint ToBeDeletedByClusterAutoscaler, which it does not tolerate
          1 node, node-6 (1 GPU of 16GiB, 64 cores, 256GiB): has the taint karpenter.sh/disrupted, which it does not tolerate
        Who holds what it needs:
          team-a holds 1 GPU (quota 1, fair share 1)
          team-a/team-a.a1 holds 1 GPU: same project, and not less important (priority 50)
        Why nothing was moved or taken for it:
          P401 nothing is moved: what is in the way has no other place, or may not be moved
          P402 nothing is taken from other projects: with 1 more it would hold more than its fair share; team-a holds 1 GPU (quota 1, fair share 1)
          P403 nothing is taken inside its project: no workload is eligible: 1 not less important
        What would let it start (each tried out):
          raise its priority to medium-low (stops or moves 1 other); ask the owner of Job team-a/train in Kubernetes
          tolerate the taint own=me; ask the owner of Job team-a/train in Kubernetes
          remove the taint own=me from node-2
            kubectl taint nodes node-2 own:NoSchedule-
          add a node like node-1
          that team-a/team-a.a1 ends; ask the owner of Job team-a/train in Kubernetes"#]].assert_eq(&said().await);
    feed.with(|c| c.changes.push_back(FeedChange::NodeGone("node-2".to_owned())));
    world.until("its end", |view| view.nodes.len() == 5).await;
    let next = said().await;
    assert!(next.contains("kubectl uncordon node-3"), "{next}");
}

#[tokio::test]
async fn another_pod_is_evicted_in_place_of_one_that_its_cluster_protects() {
    let (world, feed) = world(2, &[1, 1]).await;
    feed.put(pod("team-a", "a1"));
    world.phase("team-a.a1", Phase::Running).await;
    feed.put(pod("team-a", "a2"));
    world.phase("team-a.a2", Phase::Running).await;
    feed.with(|c| c.protected = Some("a2".to_owned()));
    feed.put(pod("team-b", "b1"));
    world.until("an eviction", |_| names(&feed, "evict") == ["a1"]).await;
    feed.delete("a1");
    world.phase("team-b.b1", Phase::Running).await;
    let a2 = world.phase("team-a.a2", Phase::Running).await;
    assert!(!a2.spec.preemptible);
    let told = world.events(a2.id).await.into_iter().find(|event| event.kind == "EvictionRefused");
    assert_eq!(told.unwrap().message, "pod team-a/a2 is not evicted: a budget");
    feed.change("a2", |pod| pod.protected = None);
    let is_free =
        |view: &view::View| view.workloads.values().any(|w| w.id == a2.id && w.spec.preemptible);
    world.until("it may be evicted again", is_free).await;
}

#[tokio::test]
async fn gpus_that_a_node_does_not_report_for_a_while_evict_no_pod() {
    let (world, feed) = world(2, &[2]).await;
    feed.put(pod("team-a", "a1"));
    world.phase("team-a.a1", Phase::Running).await;
    let whole = feed.with(|c| c.nodes["node-1"].clone());
    feed.put_node(NodeSpec { gpus: Vec::new(), ..whole.clone() });
    feed.put(pod("team-a", "a2"));
    world.phase("team-a.a2", Phase::Pending).await;
    world.decided().await;
    assert_eq!(world.get("team-a.a1").unwrap().phase, Phase::Running);
    feed.put_node(whole);
    world.phase("team-a.a2", Phase::Running).await;
    assert_eq!(
        (names(&feed, "bind"), names(&feed, "evict").len()),
        (vec!["a1".into(), "a2".into()], 0)
    );
}
