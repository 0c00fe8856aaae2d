//! Network topologies over the wire.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::refusals::refused;
use crate::server::Server;

const PATH: &str = "/api/v1/network-topologies";
const POOL: &str = "/api/v1/node-pools/1";

async fn made(server: &Server, name: &str) -> String {
    let body = json!({"name": name, "levels": ["rack"], "clusterId": server.cluster_id()});
    let (status, made) = server.post(PATH, body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!((&made["levels"], &made["phase"]), (&json!(["rack"]), &json!("Creating")));
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_topology_is_made_listed_bound_and_deleted() {
    let server = Server::with_teams().await;
    let id = made(&server, "net").await;
    made(&server, "other").await;
    let labels = json!({"labels": {"rack": "r1"}}).to_string();
    server.raw("PUT", "/elastane/v1/nodes/node-1/labels", &labels).await;
    let (status, pool) =
        server.raw("PATCH", POOL, &json!({"networkTopologyId": id}).to_string()).await;
    assert_eq!(status, 200, "{pool}");
    assert_eq!(
        (&pool["networkTopologyId"], &pool["networkTopologyName"]),
        (&json!(id), &json!("net"))
    );
    let listed = server.get(&format!("{PATH}?filterBy=name==net")).await;
    assert_eq!(listed["networkTopologies"].as_array().unwrap().len(), 1);
    let one = server.get(&format!("{PATH}/{id}")).await;
    assert_eq!(one, listed["networkTopologies"][0]);
    assert_eq!((&one["nodePools"], &one["phase"]), (&json!(["default"]), &json!("Ready")));
    assert_eq!(server.get(&format!("{PATH}/count")).await["count"], 2);

    let own = format!("{PATH}/{id}");
    let named = "node-pool `default` names it";
    refused(&server, ("DELETE", &own, &Value::Null), 409, named).await;
    let (_, pool) = server.raw("PATCH", POOL, r#"{"networkTopologyId": ""}"#).await;
    assert!(pool.get("networkTopologyId").is_none(), "{pool}");
    let (status, _) = server.raw("DELETE", &own, "").await;
    assert_eq!(status, 204);
    refused(&server, ("GET", &own, &Value::Null), 404, "network topology").await;
    refused(&server, ("DELETE", &own, &Value::Null), 404, "network topology").await;
}

#[tokio::test]
async fn a_workload_tells_its_topology() {
    let server = Server::with_teams().await;
    let id = made(&server, "net").await;
    server.raw("PATCH", POOL, &json!({ "networkTopologyId": id }).to_string()).await;
    let spec = json!({"image": "i", "distributedFramework": "PyTorch", "numWorkers": 1,
        "annotations": [{"name": "kai.scheduler/topology-preferred-placement", "value": "rack"}]});
    let (_, made) = server.post("/api/v1/workloads/distributed", server.job("d", &spec)).await;
    let path = format!("/api/v1/workloads/{}", made["workloadId"].as_str().unwrap());
    let shown = server.get(&path).await["topology"].clone();
    assert_eq!(shown, json!({"name": "net", "preferredPlacement": "rack"}));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let server = Server::with_teams().await;
    for (body, status, why) in [
        (json!({"name": "net"}), 400, "`levels` is missing"),
        (json!({"name": "net", "levels": []}), 400, "levels: there are 0"),
        (json!({"name": "net", "levels": ["rack"], "clusterId": "x"}), 404, "no cluster `x`"),
        (json!({"name": "net", "levels": ["rack"], "colour": 1}), 400, "colour"),
    ] {
        refused(&server, ("POST", PATH, &body), status, why).await;
    }
    let no = json!({"networkTopologyId": "no"});
    refused(&server, ("PATCH", POOL, &no), 404, "network topology no was not found").await;
}
