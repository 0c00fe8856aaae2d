//! Simulated GPUs that are made to fail, over the wire.

use axum::body::Body;
use axum::http::StatusCode;
use serde_json::json;

use crate::refusals::refused;
use crate::server::{Server, bytes};

const FAILURE: &str = "/elastane/v1/nodes/node-1/gpus/1/simulated-failure";

/// What a Prometheus reads.
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
