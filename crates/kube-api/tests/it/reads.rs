//! Lists, watches and discovery, on a real API server.

use std::collections::{BTreeMap, BTreeSet};

use kube_api::testing::Cluster;
use kube_api::types::{Node, Pod, Resource};
use kube_api::{Change, Client, DeleteOptions, ObjectRef, Query, Watch, WatchSettings};
use serde_json::json;
use tokio::task::JoinSet;

use crate::kinds::{namespace, node, pod, pod_manifest};

fn watch<R: Resource>(client: &Client, query: &Query) -> Watch<R> {
    client.watch(query.clone(), WatchSettings::default())
}

/// The objects of a full list, by name.
pub(crate) async fn synced<R: Resource>(watch: &mut Watch<R>) -> BTreeMap<String, R> {
    let mut all = BTreeMap::new();
    loop {
        match watch.next().await {
            Change::Listing => all.clear(),
            Change::Applied(object) => {
                let name = object.meta().name.clone();
                assert!(all.insert(name.clone(), object).is_none(), "{name} came twice");
            }
            Change::Synced => return all,
            Change::Interrupted(error) => panic!("{error}"),
            Change::Deleted(_) | Change::Unreadable(_) => panic!("a change within a list"),
        }
    }
}

#[tokio::test]
async fn a_list_of_several_pages_has_each_object_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    let names: BTreeSet<_> = (0..1_001).map(|number| format!("paged-{number}")).collect();
    let mut making = JoinSet::new();
    for name in names.clone() {
        let client = client.clone();
        making.spawn(async move { node(&client, &name, &json!({"test": "pages"})).await });
    }
    making.join_all().await;

    let query = Query { labels: "test=pages".to_owned(), ..Query::default() };
    let first = client.page::<Node>(&query, None).await.unwrap();
    assert_eq!((first.items.len(), first.next.is_some()), (500, true));
    let listed = client.list::<Node>(&query).await.unwrap();
    let found: Vec<_> = listed.items.iter().map(|node| node.metadata.name.clone()).collect();
    assert_eq!(found.len(), names.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), names);

    let watched = synced(&mut watch::<Node>(&client, &query)).await;
    assert_eq!(watched.into_keys().collect::<BTreeSet<_>>(), names);
}

#[tokio::test]
async fn a_watch_says_what_becomes_of_nodes_and_pods() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "watched").await;
    let nodes = Query { labels: "test=watched".to_owned(), ..Query::default() };
    let pods = Query { namespace: Some("watched".to_owned()), ..Query::default() };
    let (mut nodes, mut pods) = (watch::<Node>(&client, &nodes), watch::<Pod>(&client, &pods));
    assert!(synced(&mut nodes).await.is_empty());
    assert!(synced(&mut pods).await.is_empty());

    node(&client, "watched", &json!({"test": "watched"})).await;
    let Change::Applied(found) = nodes.next().await else { panic!("no node") };
    assert_eq!(found.spec.taints[0].key, "node.kubernetes.io/not-ready");

    let pod = pod(&client, "watched", "a").await;
    let Change::Applied(found) = pods.next().await else { panic!("no pod") };
    assert_eq!(found.metadata.uid, pod.uid);
    assert_eq!(found.spec.scheduler_name, "elastane");
    assert_eq!(found.spec.containers[0].resources.requests["nvidia.com/gpu"], "1");
    assert_eq!(found.status.phase, "Pending");

    client.bind(&pod, "watched", &BTreeMap::new(), &BTreeMap::new()).await.unwrap();
    let Change::Applied(found) = pods.next().await else { panic!("no change") };
    assert_eq!(found.spec.node_name, "watched");

    let at_once = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    client.delete::<Pod>(&pod, &at_once).await.unwrap();
    // Its deletion begins, and then it is gone.
    let Change::Applied(found) = pods.next().await else { panic!("no change") };
    assert!(found.metadata.deletion_timestamp.is_some());
    let Change::Deleted(found) = pods.next().await else { panic!("still there") };
    assert_eq!(found.metadata.uid, pod.uid);
    let node = ObjectRef { name: "watched".to_owned(), ..ObjectRef::default() };
    client.delete::<Node>(&node, &DeleteOptions::default()).await.unwrap();
    assert!(matches!(nodes.next().await, Change::Deleted(_)));
}

#[tokio::test]
async fn a_dropped_wait_loses_no_change() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "dropped").await;
    let query = Query { namespace: Some("dropped".to_owned()), ..Query::default() };
    let mut pods = watch::<Pod>(&client, &query);
    synced(&mut pods).await;

    let mut seen = BTreeSet::new();
    for number in 0..10 {
        let manifest = pod_manifest(&format!("p{number}"));
        let made = client.create::<Pod>("dropped", &manifest);
        tokio::pin!(made);
        loop {
            tokio::select! {
                biased;
                done = &mut made => {
                    done.unwrap();
                    break;
                }
                change = pods.next() => {
                    let Change::Applied(pod) = change else { panic!("no pod") };
                    seen.insert(pod.metadata.name);
                }
            }
        }
    }
    while seen.len() < 10 {
        let Change::Applied(pod) = pods.next().await else { panic!("no pod") };
        assert!(seen.insert(pod.metadata.name));
    }
}

#[tokio::test]
async fn discovery_says_which_version_and_kinds_there_are() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    let version = client.version().await.unwrap();
    assert_eq!((version.major.as_str(), version.git_version.starts_with("v1.")), ("1", true));
    let core = client.resources("", "v1").await.unwrap();
    let pods = core.iter().find(|kind| kind.name == "pods").unwrap();
    assert_eq!((pods.kind.as_str(), pods.namespaced), ("Pod", true));
    assert!(pods.verbs.iter().any(|verb| verb == "watch"));
    assert!(core.iter().any(|kind| kind.name == "pods/binding"));
    assert!(client.resources("none.example", "v1").await.unwrap().is_empty());
}
