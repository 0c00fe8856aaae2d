//! Pods that exist elsewhere and start together.

use spec::{AdoptedGang, AdoptedPhase, AdoptedPod, FeedChange, NodeSpec};
use uuid::Uuid;
use view::Phase;

use crate::adopted::{FakeFeed, foreign, names, pod, world};
use crate::world::{World, nodes};

/// A pod of a gang of this many.
fn of_gang(name: &str, pods_min: u32) -> AdoptedPod {
    let id = Uuid::from_u128(9);
    let gang = AdoptedGang { id, name: "job.train".to_owned(), pods_min };
    AdoptedPod { gang: Some(gang), ..pod("team-a", name) }
}

#[tokio::test]
async fn a_gang_waits_for_its_pods_and_for_room_and_is_bound_whole() {
    let (world, feed) = world(3, &[3]).await;
    feed.put(pod("team-a", "single"));
    world.phase("team-a.single", Phase::Running).await;
    feed.put(of_gang("t-0", 3));
    feed.put(of_gang("t-1", 3));
    world.waits_for("team-a.job.train", "P106").await;
    let why = &world.why("team-a.job.train")[0].message;
    assert_eq!(&**why, "3 pods must run together, and only 2 are there");
    feed.put(of_gang("t-2", 3));
    let some_fit = |_: &view::View| {
        let why = world.why("team-a.job.train");
        why.iter().any(|why| why.message.contains("3 pods must start together; 2 fit"))
    };
    world.until("room for two", some_fit).await;
    assert_eq!(names(&feed, "bind"), ["single"]);
    feed.change("single", |pod| pod.phase = AdoptedPhase::Succeeded);
    world.phase("team-a.job.train", Phase::Running).await;
    assert_eq!(names(&feed, "bind"), ["single", "t-0", "t-1", "t-2"]);
    let told = names(&feed, "report");
    assert!(["t-0", "t-1", "t-2"].iter().all(|name| told.iter().any(|of| of.starts_with(name))));
    // A pod above the number starts by itself.
    feed.put(of_gang("t-3", 3));
    world.waits_for("team-a.t-3", "P102").await;
}

#[tokio::test]
async fn an_evicted_gang_goes_as_a_whole_and_its_next_pods_are_a_gang_again() {
    let (world, feed) = of_two(2, &[1, 1]).await;
    world.phase("team-a.job.train", Phase::Running).await;
    feed.put(pod("team-b", "b1"));
    world.until("both evicted", |_| names(&feed, "evict").len() == 2).await;
    // The Job makes the next pods before the others are gone.
    for name in ["u-0", "u-1"] {
        feed.put(of_gang(name, 2));
    }
    world.phase("team-a.job.train.2", Phase::Pending).await;
    feed.delete("t-0");
    feed.delete("t-1");
    world.phase("team-b.b1", Phase::Running).await;
    world.until("one gang", |view| view.workloads.len() == 2).await;
    feed.change("b1", |pod| pod.phase = AdoptedPhase::Succeeded);
    world.phase("team-a.job.train.2", Phase::Running).await;
    assert_eq!(names(&feed, "bind"), ["t-0", "t-1", "b1", "u-0", "u-1"]);
}

#[tokio::test]
async fn a_pod_in_place_of_one_that_failed_takes_its_number() {
    let (world, feed) = of_two(3, &[3]).await;
    world.phase("team-a.job.train", Phase::Running).await;
    feed.change("t-0", |pod| pod.phase = AdoptedPhase::Failed);
    feed.put(of_gang("t-2", 2));
    world.until("bound", |_| names(&feed, "bind").len() == 3).await;
    let gang = world.phase("team-a.job.train", Phase::Running).await;
    let pods: Vec<_> = gang.pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(pods, ["t-2", "t-1"]);
    // One that is being deleted keeps its number until it is gone.
    feed.change("t-1", |pod| pod.deleting = true);
    feed.put(of_gang("t-3", 2));
    world.decided().await;
    assert_eq!(names(&feed, "bind").len(), 3);
    feed.delete("t-1");
    world.until("bound", |_| names(&feed, "bind").len() == 4).await;
    assert_eq!((names(&feed, "evict").len(), world.handle.view().workloads.len()), (0, 1));
    feed.change("t-2", |pod| pod.phase = AdoptedPhase::Succeeded);
    feed.change("t-3", |pod| pod.phase = AdoptedPhase::Succeeded);
    world.phase("team-a.job.train", Phase::Completed).await;
}

#[tokio::test]
async fn a_restart_finds_a_gang_where_it_runs() {
    let (mut world, feed) = world(3, &[3]).await;
    for name in ["t-0", "t-1", "t-2"] {
        feed.put(of_gang(name, 3));
    }
    world.phase("team-a.job.train", Phase::Running).await;
    feed.delete("t-0");
    world
        .until("left", |view| view.workloads.values().any(|w| w.allocated.gpu_millis == 2000))
        .await;
    let before = feed.verbs();
    world.restart().await;
    let gang = world.phase("team-a.job.train", Phase::Running).await;
    assert_eq!((gang.pods.len(), gang.allocated.gpu_millis), (2, 2000));
    feed.put(pod("team-a", "single"));
    world.phase("team-a.single", Phase::Running).await;
    let after = feed.verbs();
    assert_eq!(after[before.len()..].iter().filter(|verb| !verb.starts_with("report")).count(), 1);
}

#[tokio::test]
async fn a_gang_loses_a_node_and_finds_it_again() {
    let (world, feed) = on_two_nodes(&[2]).await;
    let other = feed.with(|c| c.nodes["node-2"].clone());
    feed.with(|c| c.changes.push_back(FeedChange::NodeGone("node-2".to_owned())));
    let held = |millis| {
        move |view: &view::View| view.workloads.values().any(|w| w.allocated.gpu_millis == millis)
    };
    world.until("half of it", held(1000)).await;
    feed.put_node(other);
    world.until("all of it", held(2000)).await;
    assert_eq!((names(&feed, "bind").len(), names(&feed, "evict").len()), (2, 0));
}

/// Puts a gang of two pods.
fn put_two(feed: &FakeFeed) {
    for name in ["t-0", "t-1"] {
        feed.put(of_gang(name, 2));
    }
}

/// A server on one node with this many GPUs and these quotas, and a gang of two pods.
async fn of_two(gpus: u32, quotas: &[u64]) -> (World, std::sync::Arc<FakeFeed>) {
    let (world, feed) = world(gpus, quotas).await;
    put_two(&feed);
    (world, feed)
}

/// A server with a node with one GPU more, and a gang of two on both.
async fn on_two_nodes(quotas: &[u64]) -> (World, std::sync::Arc<FakeFeed>) {
    let (world, feed) = world(1, quotas).await;
    let other = NodeSpec { simulated: false, name: "node-2".to_owned(), ..nodes(1, 1).remove(0) };
    feed.put_node(other);
    world.until("two nodes", |view| view.nodes.len() == 2).await;
    put_two(&feed);
    world.phase("team-a.job.train", Phase::Running).await;
    (world, feed)
}

#[tokio::test]
async fn a_gang_whose_nodes_are_all_gone_is_found_again_and_is_not_made_again_and_again() {
    let (world, feed) = of_two(2, &[2]).await;
    let id = world.phase("team-a.job.train", Phase::Running).await.id;
    let node = feed.with(|c| c.nodes["node-1"].clone());
    feed.with(|c| c.changes.push_back(FeedChange::NodeGone("node-1".to_owned())));
    world.until("nothing", |view| view.workloads.is_empty()).await;
    let told = world.story(id).await.len();
    for _ in 0..10 {
        world.decided().await;
    }
    assert_eq!(world.story(id).await.len(), told, "it is not made again in each batch");
    feed.put_node(node);
    world.phase("team-a.job.train", Phase::Running).await;
    assert_eq!((names(&feed, "bind").len(), names(&feed, "evict").len()), (2, 0));
}

#[tokio::test]
async fn the_place_of_a_pod_that_ends_is_not_given_away_where_the_rest_of_its_gang_is_protected() {
    let (world, feed) = on_two_nodes(&[1, 1]).await;
    feed.with(|c| c.protected = Some("t-1".to_owned()));
    feed.put(pod("team-b", "b1"));
    world.until("one evicted", |_| names(&feed, "evict") == ["t-0"]).await;
    let stays = |view: &view::View| {
        view.workloads.values().any(|w| w.allocated.gpu_millis == 1000 && !w.spec.preemptible)
    };
    world.until("the other stays", stays).await;
    for _ in 0..5 {
        world.decided().await;
    }
    assert_eq!(names(&feed, "bind").len(), 2, "t-0 has not ended yet");
    feed.delete("t-0");
    world.phase("team-b.b1", Phase::Running).await;
}

#[tokio::test]
async fn a_pod_that_waits_for_a_number_of_its_gang_may_change() {
    let (world, feed) = of_two(2, &[2]).await;
    world.phase("team-a.job.train", Phase::Running).await;
    feed.change("t-0", |pod| pod.phase = AdoptedPhase::Failed);
    feed.put(foreign("db", "node-1", 1));
    feed.put(AdoptedPod { gates: vec!["mine".to_owned()], ..of_gang("t-2", 2) });
    world.decided().await;
    feed.change("t-2", |pod| pod.gates.clear());
    feed.change("t-2", |pod| drop(pod.place.labels.insert("a".into(), "b".into())));
    world.decided().await;
    assert_eq!(names(&feed, "bind").len(), 2);
    feed.delete("db");
    world.until("bound", |_| names(&feed, "bind") == ["t-0", "t-1", "t-2"]).await;
    assert_eq!(world.handle.view().workloads.len(), 1);
}

#[tokio::test]
async fn the_pod_in_place_of_the_last_one_of_a_gang_starts_alone() {
    let (world, feed) = of_two(2, &[2]).await;
    world.phase("team-a.job.train", Phase::Running).await;
    feed.change("t-0", |pod| pod.phase = AdoptedPhase::Succeeded);
    feed.change("t-1", |pod| pod.phase = AdoptedPhase::Failed);
    world.phase("team-a.job.train", Phase::Failed).await;
    feed.put(of_gang("t-2", 2));
    world.phase("team-a.job.train.2", Phase::Running).await;
}
