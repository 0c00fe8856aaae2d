//! Network topologies: made, bound to node pools, kept, and acted on.

use orchestrator::{PoolChange, new_topology};
use spec::{NodeSpec, TOPOLOGY, WorkloadSpec};
use view::Phase;

use crate::world::{World, distributed, nodes, training};

/// Four nodes of two GPUs in two racks: node-1 and node-4, node-2 and node-3.
fn racks() -> Vec<NodeSpec> {
    let mut all = nodes(4, 2);
    for (node, rack) in all.iter_mut().zip(["west", "east", "east", "west"]) {
        node.labels.insert("rack".to_owned(), rack.to_owned());
    }
    all
}

async fn create(w: &World, name: &str, levels: &[&str]) -> Result<String, String> {
    let levels: Vec<_> = levels.iter().map(ToString::to_string).collect();
    let made = w.handle.create_object("admin", new_topology(name.to_owned(), &levels)).await;
    made.map(|object| object.id.clone()).map_err(|error| error.to_string())
}

/// Gives the pool `default` this topology.
async fn bind(w: &World, topology: Option<&str>) -> Result<(), String> {
    let topology = Some(topology.map(ToOwned::to_owned));
    let change = PoolChange { topology, ..PoolChange::default() };
    let done = w.handle.update_pool("admin", "1", change).await;
    done.map(|_| ()).map_err(|error| error.to_string())
}

/// A world whose nodes are all in `default`, which has the topology `net`; one GPU of node-1 is
/// held.
async fn bound() -> (World, String) {
    let w = World::new(racks(), &[8]).await;
    let id = create(&w, "net", &["rack", "kubernetes.io/hostname"]).await.unwrap();
    bind(&w, Some(&id)).await.unwrap();
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    (w, id)
}

fn saying(mut spec: WorkloadSpec, annotations: &[(&str, &str)]) -> WorkloadSpec {
    let named = |(key, value): &(&str, &str)| (format!("kai.scheduler/{key}"), (*value).to_owned());
    spec.annotations = annotations.iter().map(named).collect();
    spec
}

/// Where the pods of a workload are.
fn places(w: &World, name: &str) -> Vec<String> {
    let pods = w.get(name).unwrap();
    let mut places: Vec<_> = pods.pods.iter().filter_map(|pod| pod.node_name.clone()).collect();
    places.sort();
    places
}

const EAST: [&str; 4] = ["node-2", "node-2", "node-3", "node-3"];

#[tokio::test]
async fn pods_that_work_together_come_to_one_rack_by_themselves() {
    let (mut w, id) = bound().await;
    w.submit(1, distributed("near", 3)).await;
    w.phase("near", Phase::Running).await;
    assert_eq!(places(&w, "near"), EAST);
    let of = w.get("near").unwrap().spec.topology.clone().unwrap();
    let nearest = Some("kubernetes.io/hostname".to_owned());
    assert_eq!((&of.id, &of.required, &of.preferred), (&id, &None, &nearest));
    w.restart().await;
    assert_eq!(w.get("near").unwrap().spec.topology.as_ref(), Some(&of));
    assert_eq!(places(&w, "near"), EAST);
}

#[tokio::test]
async fn what_a_workload_requires_it_gets_or_waits_for() {
    let (mut w, _) = bound().await;
    let rack = [("topology-required-placement", "rack")];
    w.submit(1, saying(distributed("fits", 3), &rack)).await;
    w.submit(1, saying(distributed("large", 2), &[rack[0], ("topology", "net")])).await;
    w.phase("fits", Phase::Running).await;
    assert_eq!(places(&w, "fits"), EAST);
    w.becomes("first Running 1/1\nfits Running 4/4\nlarge Running 3/3").await;
    w.submit(1, saying(distributed("none", 4), &rack)).await;
    let waits = |w: &World| w.why("none").first().map(|why| why.code.clone());
    w.until("a reason", |_| waits(&w).is_some()).await;
    w.restart().await;
    assert_eq!(w.get("none").unwrap().phase, Phase::Pending);
    w.delete("fits").await;
    w.delete("large").await;
    w.delete("first").await;
    w.becomes("none Pending 0/5").await;
    assert_eq!(waits(&w).as_deref(), Some("P108"), "five GPUs are free, but in no rack");
}

#[tokio::test]
async fn one_that_is_named_is_not_deleted() {
    let (mut w, id) = bound().await;
    w.submit(1, distributed("near", 3)).await;
    w.restart().await;
    let delete = async |w: &World| {
        let done = w.handle.delete_object("admin", TOPOLOGY, &id).await;
        done.map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = delete(&w).await.unwrap_err();
    assert!(refused.contains("where the pods of 1 workload are (near)"), "{refused}");
    w.delete("near").await;
    w.becomes("first Running 1/1").await;
    let refused = delete(&w).await.unwrap_err();
    assert!(refused.contains("node-pool `default` names it"), "{refused}");
    bind(&w, None).await.unwrap();
    delete(&w).await.unwrap();
    let again = create(&w, "net", &["rack"]).await.unwrap();
    bind(&w, Some(&again)).await.unwrap();
    w.submit(1, distributed("anew", 3)).await;
    w.phase("anew", Phase::Running).await;
    assert_eq!(places(&w, "anew"), EAST);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_what_there_is() {
    let (w, _) = bound().await;
    for (name, levels, why) in [
        ("Net", vec!["rack"], "name `Net` is not allowed"),
        ("net", vec!["rack"], "network topology `net` already exists"),
        ("new", vec![], "levels: there are 0"),
        ("new", vec!["rack", "rack"], "levels: `rack` is there twice"),
        ("new", vec!["a b"], "levels: `a b` is not a valid label key"),
        ("new", vec!["x"; 17], "levels: there are 17; write 1 to 16"),
    ] {
        let refused = create(&w, name, &levels).await.unwrap_err();
        assert!(refused.contains(why), "{name} {levels:?}: {refused}");
    }
    assert!(bind(&w, Some("no")).await.unwrap_err().contains("no network topology `no`"));
    for (said, why) in [
        (("topology", "no"), "kai.scheduler/topology: there is no `no`; there are: net"),
        (("topology-required-placement", "zone"), "`zone` is no level of net; it has rack, kub"),
    ] {
        let refused =
            w.handle.submit(1, saying(training("t", 1), &[said]), false).await.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    bind(&w, None).await.unwrap();
    let said = [("topology-preferred-placement", "rack")];
    let refused = w.handle.submit(1, saying(training("t", 1), &said), false).await.unwrap_err();
    assert!(refused.to_string().contains("its node pools have no network topology"), "{refused}");
}
