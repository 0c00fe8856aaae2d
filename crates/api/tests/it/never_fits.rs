//! Workloads that no node could hold: accepted with a warning, or rejected with `strict`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::server::Server;

const TRAININGS: &str = "/api/v1/workloads/trainings";
const WHY: &str = "asks for 99 GPUs on one node";

fn gpus(server: &Server, name: &str, gpus: u32, strict: bool) -> Value {
    let mut body = server.job(name, &json!({"image": "i", "compute": {"gpuDevicesRequest": gpus}}));
    body["strict"] = json!(strict);
    body
}

#[tokio::test]
async fn what_no_node_could_hold_is_warned_of_or_refused() {
    let server = Server::with_teams().await;
    let (status, refused) = server.post(TRAININGS, gpus(&server, "large", 99, true)).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains(WHY), "{refused}");
    let (status, made) = server.post(TRAININGS, gpus(&server, "large", 99, false)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "the name is not taken: {made}");
    assert!(made["warnings"][0].as_str().unwrap().contains(WHY), "{made}");
    let (status, made) = server.post(TRAININGS, gpus(&server, "small", 1, true)).await;
    assert_eq!((status, &made["warnings"]), (StatusCode::ACCEPTED, &Value::Null), "{made}");
}

#[tokio::test]
async fn so_it_is_with_manifests() {
    let server = Server::with_teams().await;
    let container =
        json!({"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 99}}});
    let pod = json!({"containers": [container], "restartPolicy": "Never"});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": pod}}});
    let body = json!({"metadata": {"projectId": "1"}, "manifest": job});
    let (status, made) = server.post("/api/v2/workloads", body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    assert!(made["warnings"][0].as_str().unwrap().contains(WHY), "{made}");
}

#[tokio::test]
async fn excluded_nodes_and_mig_profiles_that_do_not_exist_are_warned_of() {
    let server = Server::with_teams().await;
    let expressions = json!([{"key": "kubernetes.io/hostname", "operator": "NotIn",
        "values": ["nowhere", "node-1"]}]);
    let affinity = json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]});
    let by_label = json!([{"key": "hostname", "operator": "NotIn", "values": ["node-1"]}]);
    let by_label = json!({"nodeSelectorTerms": [{"matchExpressions": by_label}]});
    let instance = json!([{"resource": "nvidia.com/mig-1g.10gb", "quantity": "1"}]);
    for (name, spec, last) in [
        (
            "away",
            json!({"image": "i", "nodeAffinityRequired": affinity}),
            "there is no node `nowhere` to exclude; `runai node list` shows the nodes",
        ),
        (
            "labelled",
            json!({"image": "i", "nodeAffinityRequired": by_label}),
            "no node has the label `hostname` by which nodes are excluded; the label of their \
             names is `kubernetes.io/hostname`",
        ),
        (
            "mig",
            json!({"image": "i", "compute": {"extendedResources": instance}}),
            "no GPU here is divided into MIG instances, such as 1g.10gb",
        ),
    ] {
        let (_, made) = server.post(TRAININGS, server.job(name, &spec)).await;
        let warnings = made["warnings"].as_array().unwrap();
        assert_eq!(warnings.last(), Some(&json!(last)), "{made}");
    }
}
