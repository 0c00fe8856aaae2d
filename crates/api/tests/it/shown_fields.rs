//! Where an inference may run, and how it is probed, are shown and stay as they are.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::server::Server;

#[tokio::test]
async fn a_changed_inference_keeps_its_nodes_and_its_probe_follows_the_port() {
    let server = Server::with_teams().await;
    let probes = json!({"readiness": {"handler": {"httpGet": {"path": "/ready", "port": 8000}}}});
    let spec = json!({"image": "i", "nodePools": ["default"], "nodeType": "dgx",
        "servingPort": {"container": 8000, "protocol": "http"}, "probes": probes});
    let all = "/api/v1/workloads/inferences";
    let (status, made) = server.post(all, server.job("a", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let one = format!("{all}/{}", made["workloadId"].as_str().unwrap());
    let change = json!({"spec": {"servingPort": {"container": 9000}}}).to_string();
    let (status, changed) = server.raw("PATCH", &one, &change).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{changed}");
    let shown = &server.get(&one).await["spec"];
    assert_eq!((&shown["nodePools"], &shown["nodeType"]), (&json!(["default"]), &json!("dgx")));
    let get = &shown["probes"]["readiness"]["handler"]["httpGet"];
    assert_eq!(*get, json!({"path": "/ready", "port": 9000, "scheme": "HTTP"}));
}

#[tokio::test]
async fn names_of_tolerations_and_the_type_of_node_are_read_back() {
    let server = Server::with_teams().await;
    let tolerations = json!([
        {"name": "t", "operator": "Equal", "key": "k", "value": "v", "effect": "NoExecute"},
        {"operator": "Exists", "key": "other"},
    ]);
    let spec = json!({"image": "i", "nodeType": "dgx", "tolerations": tolerations});
    let all = "/api/v1/workloads/trainings";
    let (status, made) = server.post(all, server.job("a", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let one = format!("{all}/{}", made["workloadId"].as_str().unwrap());
    let shown: Value = server.get(&one).await["spec"].clone();
    assert_eq!((&shown["nodeType"], &shown["tolerations"]), (&json!("dgx"), &tolerations));
}
