//! Simulated GPUs that are made to fail, simulated nodes that come and go, and what nodes are
//! given.

use axum::body::Body;
use axum::http::StatusCode;
use serde_json::json;

use crate::refusals::refused;
use crate::server::{Server, bytes};

const FAILURE: &str = "/elastane/v1/nodes/node-1/gpus/1/simulated-failure";

/// Metrics as Prometheus scrapes them.
async fn gauges(server: &Server) -> String {
    let request = server.request("GET", "/metrics").body(Body::empty()).unwrap();
    let answer = server.send(request).await;
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(bytes(answer).await.to_vec()).unwrap()
}

#[tokio::test]
async fn a_failed_gpu_is_a_condition_of_its_node_until_it_is_healed() {
    let server = Server::with_teams().await;
    let (status, node) = server.raw("PUT", FAILURE, "").await;
    assert_eq!(status, StatusCode::OK, "{node}");
    let condition = &node["conditions"][1];
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("GpuLost"), &json!("E207")));
    let told = &server.get("/elastane/v1/status").await["nodes"][0]["gpuTroubles"][0];
    assert_eq!((&told["gpu"], &told["name"]), (&json!(1), &json!("GpuLost")));
    let ready = "/api/v1/nodes/telemetry?telemetryType=READY_GPUS&groupBy=Node";
    assert_eq!(server.get(ready).await["values"][0]["value"], "3");
    let lost =
        "elastane_node_gpus_out_of_service{node=\"node-1\",node_pool=\"default\",reason=\"lost\"}";
    assert!(gauges(&server).await.contains(&format!("{lost} 1.0\n")));
    let (_, node) = server.raw("DELETE", FAILURE, "").await;
    assert!(gauges(&server).await.contains(&format!("{lost} 0.0\n")));
    assert_eq!(node["conditions"].as_array().map(Vec::len), Some(1), "{node}");
}

#[tokio::test]
async fn a_gpu_that_is_not_there_cannot_fail() {
    let server = Server::with_teams().await;
    for (path, status, text) in [
        ("/elastane/v1/nodes/node-9/gpus/0/simulated-failure", 404, "node node-9"),
        ("/elastane/v1/nodes/node-1/gpus/9/simulated-failure", 400, "node-1 has no GPU 9"),
        (
            "/elastane/v1/nodes/node-1/gpus/x/simulated-failure",
            400,
            "gpu: `x` is not the number of a GPU",
        ),
    ] {
        refused(&server, ("PUT", path, &json!({})), status, text).await;
    }
}

const NODE: &str = "/elastane/v1/nodes/node-1";

#[tokio::test]
async fn a_drain_that_stops_work_is_shown_and_needs_force() {
    const EFFECTS: &str = "/elastane/v1/quota-effects";
    let server = Server::with_teams().await;
    let drains = json!({"scheduling": "draining"});
    let (_, none) = server.post(EFFECTS, json!({"drainNode": "node-1"})).await;
    assert_eq!(none, json!({"lines": [], "needsForce": false}));
    server.train("t", 1).await;
    server.until("/api/v1/workloads", |all| all["workloads"][0]["phase"] == "Running").await;
    let (_, effects) = server.post(EFFECTS, json!({"drainNode": "node-1"})).await;
    let waits = "t of team-a would be stopped and wait for a place";
    assert!(effects["lines"][0].as_str().unwrap().starts_with(waits), "{effects}");
    assert_eq!(effects["needsForce"], true, "{effects}");
    refused(&server, ("PATCH", NODE, &drains), 409, waits).await;
    let told = &server.get("/elastane/v1/status").await["nodes"][0];
    assert_eq!(told["scheduling"], "enabled", "nothing was changed");
    // A place elsewhere is enough.
    let node = json!({"name": "node-9", "gpus": 1});
    server.post("/elastane/v1/simulated-nodes", node).await;
    let (_, effects) = server.post(EFFECTS, json!({"drainNode": "node-1"})).await;
    let moves = "t of team-a would start again on node-9";
    assert!(effects["lines"][0].as_str().unwrap().starts_with(moves), "{effects}");
    assert_eq!(effects["needsForce"], false, "{effects}");
    let (status, _) = server.raw("PATCH", NODE, &drains.to_string()).await;
    assert_eq!(status, StatusCode::OK);
    let (_, none) = server.post(EFFECTS, json!({"drainNode": "node-1"})).await;
    assert_eq!(none, json!({"lines": [], "needsForce": false}), "it is drained already");
    refused(&server, ("POST", EFFECTS, &json!({"drainNode": "node-7"})), 404, "node node-7").await;
    let last = "/elastane/v1/nodes/node-9?force=true";
    let (status, _) = server.raw("PATCH", last, &drains.to_string()).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn what_waits_for_a_failed_gpu_is_advised_to_bring_it_back() {
    let server = Server::with_teams().await;
    let failure = |gpu: u32| format!("{NODE}/gpus/{gpu}/simulated-failure");
    for gpu in [1, 2, 3] {
        server.raw("PUT", &failure(gpu), "").await;
    }
    let id = server.train("t", 2).await;
    let explain = format!("/elastane/v1/workloads/{id}/explain");
    let explained = server.until(&explain, |it| !it["diagnosis"].is_null()).await;
    let advice = explained["diagnosis"]["advice"].as_array().unwrap();
    let repair = advice.iter().find(|one| one["kind"] == "repair").unwrap();
    assert_eq!(repair["commands"], json!(["elastane simulate gpu-heal node-1 1"]));
    let message = repair["message"].as_str().unwrap();
    assert!(message.starts_with("bring back into service GPU 1 of node-1 (E207 "), "{message}");
    let lines = explained["diagnosis"]["lines"].as_array().unwrap();
    for one in advice {
        let at = usize::try_from(one["line"].as_u64().unwrap()).unwrap();
        let line = lines[at].as_str().unwrap();
        assert_eq!(line.strip_prefix("  "), one["message"].as_str(), "the line of the advice");
    }
    server.raw("DELETE", &failure(1), "").await;
    server.until("/api/v1/workloads", |all| all["workloads"][0]["phase"] == "Running").await;
}

#[tokio::test]
async fn several_failed_gpus_are_brought_back_together_if_no_single_one_is_enough() {
    let server = Server::with_teams().await;
    for gpu in [1, 2, 3] {
        server.raw("PUT", &format!("{NODE}/gpus/{gpu}/simulated-failure"), "").await;
    }
    let id = server.train("t", 3).await;
    let explain = format!("/elastane/v1/workloads/{id}/explain");
    let explained = server.until(&explain, |it| !it["diagnosis"].is_null()).await;
    let advice = explained["diagnosis"]["advice"].as_array().unwrap();
    let repair = advice.iter().find(|one| one["kind"] == "repair").unwrap();
    let message = repair["message"].as_str().unwrap();
    assert!(message.starts_with("bring back into service GPUs 1, 2, 3 of node-1 ("), "{message}");
    let commands = repair["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for gpu in [1, 2, 3] {
        server.raw("DELETE", &format!("{NODE}/gpus/{gpu}/simulated-failure"), "").await;
    }
    server.until("/api/v1/workloads", |all| all["workloads"][0]["phase"] == "Running").await;
}

#[tokio::test]
async fn a_node_is_cordoned_tainted_and_labelled_and_that_is_taken_back() {
    let server = Server::with_teams().await;
    let patch = json!({
        "scheduling": "draining",
        "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
        "labels": {"zone": "a"},
    });
    let (status, node) = server.raw("PATCH", NODE, &patch.to_string()).await;
    assert_eq!((status, &node["status"]), (StatusCode::OK, &json!("Ready,SchedulingDisabled")));
    assert_eq!((&node["taints"], &node["labels"]["zone"]), (&patch["taints"], &json!("a")));
    let told = &server.get("/elastane/v1/status").await["nodes"][0];
    assert_eq!((&told["scheduling"], &told["taints"]), (&json!("draining"), &patch["taints"]));
    let cordoned = server.get("/api/v1/nodes?filterBy=status=@SchedulingDisabled").await;
    assert_eq!(cordoned["nodes"].as_array().map(Vec::len), Some(1), "{cordoned}");
    let back = json!({
        "scheduling": "enabled", "removedTaints": [{"key": "team"}], "labels": {"zone": null}
    });
    let (_, node) = server.raw("PATCH", NODE, &back.to_string()).await;
    assert_eq!((&node["status"], &node["taints"]), (&json!("Ready"), &json!([])));
    assert_eq!(node["labels"].get("zone"), None);
    let log = server.get("/api/v1/audit/log?limit=2").await.to_string();
    assert!(log.contains("node.drain") && log.contains("node.uncordon"), "{log}");
    for (path, patch, status, text) in [
        ("/elastane/v1/nodes/node-9", json!({}), 404, "node node-9"),
        (NODE, json!({"labels": {"zone": null}}), 400, "node-1 was not given a label `zone`"),
        (
            NODE,
            json!({"labels": {"node-pool": "x"}}),
            400,
            "label node-pool says in which pool a node is",
        ),
        (
            NODE,
            json!({"labels": {"kubernetes.io/hostname": "x"}}),
            400,
            "label kubernetes.io/hostname is the name of the node",
        ),
    ] {
        refused(&server, ("PATCH", path, &patch), status, text).await;
    }
}

#[tokio::test]
async fn simulated_nodes_come_and_go() {
    let server = Server::with_teams().await;
    const NODES: &str = "/elastane/v1/simulated-nodes";
    let new = json!({"name": "extra", "gpus": 2, "gpuMemoryBytes": 80_u64 << 30, "cpuMillis": 500});
    let (status, node) = server.raw("POST", NODES, &new.to_string()).await;
    assert_eq!((status, &node["gpuInfo"]["gpuCount"]), (StatusCode::CREATED, &json!(2)), "{node}");
    assert_eq!(server.get("/elastane/v1/status").await["gpus"], 6.0);
    assert!(gauges(&server).await.contains("node_gpus{node=\"extra\""));
    let (status, _) = server.raw("DELETE", "/elastane/v1/simulated-nodes/extra", "").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/api/v1/nodes/count").await["count"], 2);
    assert!(!gauges(&server).await.contains("node=\"extra\""));
    let with = |field: &str, value: serde_json::Value| {
        let mut node = new.clone();
        node[field] = value;
        node
    };
    for (node, status, text) in [
        (with("name", json!("node-1")), 409, "there is a node node-1 already"),
        (with("name", json!("A B")), 400, "name `A B` is not allowed"),
        (with("gpus", json!(65)), 400, "`extra` has 65 GPUs per node; 1 to 64"),
        (with("more", json!(["extra"])), 409, "there is a node extra already"),
        (with("more", json!(["more", "node-1"])), 409, "there is a node node-1 already"),
        (with("gpuMemoryBytes", json!(16)), 400, "`extra` has no usable memory size per GPU"),
        (with("cpuMillis", json!(u64::MAX)), 400, "cpu: a node has 0.001 to 1000000 cores"),
        (with("memoryBytes", json!(0)), 400, "memory: a node has"),
        (
            with("labels", json!({"node-pool": "x"})),
            400,
            "label node-pool says in which pool a node is",
        ),
    ] {
        refused(&server, ("POST", NODES, &node), status, text).await;
    }
    refused(&server, ("DELETE", "/elastane/v1/simulated-nodes/no", &json!({})), 404, "node no")
        .await;
}
