//! Bindings, evictions, deletions and statuses, on a real API server.

use std::collections::BTreeMap;

use kube_api::testing::Cluster;
use kube_api::types::Pod;
use kube_api::{Client, DeleteOptions, Error, ObjectRef, Reason};
use serde_json::json;

use crate::kinds::{Budget, namespace, pod, pod_manifest};

fn another_one(pod: &ObjectRef) -> ObjectRef {
    ObjectRef { uid: "00000000-0000-4000-8000-000000000000".to_owned(), ..pod.clone() }
}

async fn bind(client: &Client, pod: &ObjectRef, node: &str) -> Result<(), Error> {
    client.bind(pod, node, &BTreeMap::new(), &BTreeMap::new()).await
}

fn is_conflict(done: Result<(), Error>) -> bool {
    done.is_err_and(|error| error.reason() == Some(&Reason::Conflict))
}

#[tokio::test]
async fn a_pod_is_bound_once_with_what_the_binding_says() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "bound").await;
    let one = pod(&client, "bound", "a").await;
    assert!(is_conflict(bind(&client, &another_one(&one), "n1").await));

    let labels = BTreeMap::from([("elastane.dev/test".to_owned(), "yes".to_owned())]);
    let annotations = BTreeMap::from([("elastane.dev/devices".to_owned(), "0,3".to_owned())]);
    client.bind(&one, "n1", &labels, &annotations).await.unwrap();
    let found: Pod = client.get("bound", "a").await.unwrap();
    assert_eq!(found.spec.node_name, "n1");
    assert_eq!(found.metadata.labels["elastane.dev/test"], "yes");
    assert_eq!(found.metadata.labels["app"], "a");
    assert_eq!(found.metadata.annotations["elastane.dev/devices"], "0,3");

    assert!(is_conflict(bind(&client, &one, "n2").await));
}

#[tokio::test]
async fn a_gated_pod_is_not_bound() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "gated").await;
    let mut manifest = pod_manifest("a");
    manifest["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    let gated: Pod = client.create("gated", &manifest).await.unwrap();
    assert_eq!(gated.spec.scheduling_gates[0].name, "example.com/wait");
    assert!(is_conflict(bind(&client, &ObjectRef::of(&gated), "n1").await));
}

#[tokio::test]
async fn an_eviction_ends_a_pod_with_its_grace() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "evicted").await;
    let one = pod(&client, "evicted", "a").await;
    bind(&client, &one, "n1").await.unwrap();
    let wrong = client.evict(&another_one(&one), &DeleteOptions::default()).await;
    let answer = format!("{wrong:?}");
    assert!(is_conflict(wrong), "{answer}");
    client.evict(&one, &DeleteOptions::default()).await.unwrap();
    let found: Pod = client.get("evicted", "a").await.unwrap();
    assert!(found.metadata.deletion_timestamp.is_some());
    assert_eq!(found.spec.termination_grace_period_seconds, Some(30));
}

#[tokio::test]
async fn a_disruption_budget_that_allows_none_is_an_answer_and_not_tried_again() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "budget").await;
    let one = pod(&client, "budget", "a").await;
    bind(&client, &one, "n1").await.unwrap();
    let ready = json!({
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
    });
    client.patch_status::<Pod>(&one, &ready).await.unwrap();
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    });
    client.create::<Budget>("budget", &budget).await.unwrap();

    let refused = client.evict(&one, &DeleteOptions::default()).await.unwrap_err();
    let Error::Refused { call, refusal } = &refused else { panic!("{refused}") };
    assert_eq!(call.to_string(), "create pods/eviction budget/a");
    assert!(refusal.is_disruption_budget(), "{refused}");
    assert_eq!(refusal.reason, Reason::TooManyRequests);
    let found: Pod = client.get("budget", "a").await.unwrap();
    assert_eq!(found.metadata.deletion_timestamp, None);
}

#[tokio::test]
async fn another_object_of_the_name_is_not_deleted() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "deleted").await;
    let one = pod(&client, "deleted", "a").await;
    let options = DeleteOptions::default();
    let refused = client.delete::<Pod>(&another_one(&one), &options).await.unwrap_err();
    assert_eq!(refused.reason(), Some(&Reason::Conflict), "{refused}");
    assert!(refused.to_string().starts_with("failed to delete pods deleted/a: "), "{refused}");
    let version = Some("1".to_owned());
    let older = DeleteOptions { resource_version: version, ..options.clone() };
    assert!(is_conflict(client.delete::<Pod>(&one, &older).await));

    client.delete::<Pod>(&one, &options).await.unwrap();
    let gone = client.get::<Pod>("deleted", "a").await.unwrap_err();
    assert_eq!(gone.reason(), Some(&Reason::NotFound));
}

#[tokio::test]
async fn a_condition_replaces_the_one_of_its_type() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "conditions").await;
    let one = pod(&client, "conditions", "a").await;
    for (kind, reason) in [("Other", "Is"), ("PodScheduled", "Gated"), ("PodScheduled", "Held")] {
        let condition = json!({"type": kind, "status": "False", "reason": reason});
        let status = json!({"conditions": [condition]});
        client.patch_status::<Pod>(&one, &status).await.unwrap();
    }
    let found: Pod = client.get("conditions", "a").await.unwrap();
    let mut told: Vec<_> =
        found.status.conditions.iter().map(|one| (&*one.kind, &*one.reason)).collect();
    told.sort_unstable();
    assert_eq!(told, [("Other", "Is"), ("PodScheduled", "Held")]);
    let status = json!({"reason": "Other"});
    let refused = client.patch_status::<Pod>(&another_one(&one), &status).await.unwrap_err();
    assert_eq!(refused.reason(), Some(&Reason::Conflict), "{refused:?}");
    let unchanged: Pod = client.get("conditions", "a").await.unwrap();
    assert_eq!(unchanged.metadata.resource_version, found.metadata.resource_version);
}
