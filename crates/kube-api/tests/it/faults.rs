//! A server that crashes, and a database that forgets, for real.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_api::testing::Cluster;
use kube_api::types::{Node, Pod, Resource as _};
use kube_api::{Change, Error, ObjectRef, Query, Watch, WatchSettings};
use serde_json::json;
use tokio::task::JoinSet;

use crate::kinds::{namespace, node, pod};
use crate::reads::synced;

/// Follows a watch through what may come until all these pods are known.
async fn until_known(watch: &mut Watch<Pod>, known: &mut BTreeSet<String>, wanted: &[&str]) -> u32 {
    let mut lists = 0;
    while !wanted.iter().all(|name| known.contains(*name)) {
        match watch.next().await {
            Change::Listing => {
                known.clear();
                lists += 1;
            }
            Change::Applied(pod) => drop(known.insert(pod.meta().name.clone())),
            Change::Deleted(pod) => drop(known.remove(&pod.meta().name)),
            Change::Synced => {}
            Change::Interrupted(error) => assert!(error.is_transient(), "{error}"),
            Change::Unreadable(pod) => panic!("{pod:?}"),
        }
    }
    lists
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_survives_a_server_that_is_killed_and_a_database_that_is_compacted() {
    let Some(cluster) = Cluster::own() else { return };
    let client = cluster.client();
    namespace(&client, "a").await;
    pod(&client, "a", "before").await;
    let query = Query { namespace: Some("a".to_owned()), ..Query::default() };
    let mut pods = client.watch::<Pod>(query.clone(), WatchSettings::default());
    let mut known: BTreeSet<_> = synced(&mut pods).await.into_keys().collect();

    // More than a page of nodes: a server that did not start the list has to continue it.
    let mut making = JoinSet::new();
    for number in 0..501 {
        let client = client.clone();
        making.spawn(async move { node(&client, &format!("n{number}"), &json!({})).await });
    }
    making.join_all().await;
    let nodes = Query::default();
    let page = client.page::<Node>(&nodes, None).await.unwrap();
    node(&client, "later", &json!({})).await;

    cluster.kill();
    let one = ObjectRef { name: "x".into(), namespace: "a".into(), uid: "y".into() };
    let gone = client.bind(&one, "n1", &BTreeMap::new(), &BTreeMap::new()).await.unwrap_err();
    assert!(matches!(gone, Error::Unreachable { .. } | Error::Lost { .. }), "{gone}");
    cluster.compact();
    let Change::Interrupted(error) = pods.next().await else { panic!("it hears a dead server") };
    assert!(error.is_transient(), "{error}");
    cluster.up();

    let from = page.next.as_deref();
    let expired = client.page::<Node>(&nodes, from).await.unwrap_err();
    assert!(expired.is_expired(), "{expired}");
    assert_eq!(client.list::<Node>(&nodes).await.unwrap().items.len(), 502);

    pod(&client, "a", "after").await;
    let lists = until_known(&mut pods, &mut known, &["before", "after"]).await;
    assert_eq!(lists, 1, "a version that is compacted means one more list");
    pod(&client, "a", "last").await;
    let within = Duration::from_secs(90);
    let followed = until_known(&mut pods, &mut known, &["last"]);
    assert_eq!(tokio::time::timeout(within, followed).await.unwrap(), 0);
    assert_eq!(known, ["after", "before", "last"].map(str::to_owned).into());
}
