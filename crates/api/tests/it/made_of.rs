//! Workloads name what they were made of, as it was at their submission, and lists are sorted and
//! filtered by it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::assets::{keep, of_tenant};
use crate::server::Server;

const TRAININGS: &str = "/api/v1/workloads/trainings";

/// A training of an environment, a compute resource, a data source, and one of a template.
async fn made(server: &Server) -> [Value; 2] {
    let environment =
        keep(server, "environment", &of_tenant("torch"), &json!({"image": "i"})).await;
    let gpus =
        json!({"gpuDevicesRequest": 1, "gpuRequestType": "memory", "gpuMemoryRequest": "4G"});
    let compute = keep(server, "compute", &of_tenant("small"), &gpus).await;
    let export = json!({"server": "s", "path": "/x", "mountPath": "/y"});
    let data = keep(server, "datasource/nfs", &of_tenant("corpus"), &export).await;
    let assets = json!({"environment": environment, "compute": compute,
                        "datasources": [{"id": data}]});
    let meta = json!({"name": "std", "scopeType": "project", "scopeId": "1"});
    let template = json!({"meta": meta, "spec": {"assets": {"environment": environment}}});
    let (_, kept) = server.post("/api/v1/workload-templates/trainings", template).await;
    let mut of_template = server.job("b", &json!({}));
    of_template["templateId"] = kept["meta"]["id"].clone();
    let mut all = Vec::new();
    for body in [server.job("a", &json!({"assets": assets})), of_template] {
        let (status, answer) = server.post(TRAININGS, body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        let id = answer["workloadId"].as_str().unwrap();
        all.push(server.get(&format!("/api/v1/workloads/{id}")).await);
    }
    all.try_into().unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    list["workloads"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_workload_names_what_it_was_made_of_as_it_was_then() {
    let server = Server::with_teams().await;
    let [a, b] = made(&server).await;
    let environment = &a["environments"][0];
    assert_eq!(environment["name"], "torch");
    let source = &a["datasources"][0];
    assert_eq!((&source["name"], &source["type"]), (&json!("corpus"), &json!("nfs")));
    assert_eq!(a["additionalFields"]["computeResource"]["name"], "small");
    let of_b = &b["additionalFields"];
    assert_eq!(
        (&of_b["template"]["name"], &of_b["computeResource"]),
        (&json!("std"), &Value::Null)
    );
    assert_eq!(&b["environments"][0], environment);

    let renamed = json!({"meta": {"name": "other"}, "spec": {"image": "i"}}).to_string();
    let path = format!("/api/v1/asset/environment/{}", environment["id"].as_str().unwrap());
    let (status, said) = server.raw("PUT", &path, &renamed).await;
    assert!(status.is_success(), "{said}");
    let list = server.get("/api/v1/workloads?sortBy=name").await;
    assert_eq!(list["workloads"][0]["environments"][0]["name"], "torch");
}

#[tokio::test]
async fn lists_are_filtered_and_sorted_by_each_column() {
    let server = Server::with_teams().await;
    made(&server).await;
    for (condition, found) in [
        ("environments==torch", vec!["a", "b"]),
        ("template==std", vec!["b"]),
        ("computeResource==small", vec!["a"]),
        ("datasources==corpus", vec!["a"]),
        ("images==i", vec!["a", "b"]),
        ("architecture==Standard", vec!["a", "b"]),
        ("architecture==Distributed", vec![]),
        ("requestedGPUMemory%3E=1000000000", vec!["a"]),
        ("requestedPods==1", vec!["a", "b"]),
    ] {
        let list = server.get(&format!("/api/v1/workloads?sortBy=name&filterBy={condition}")).await;
        assert_eq!(names(&list), found, "{condition}");
    }
    let cluster = server.cluster_id();
    for (condition, found) in [("==", 2), ("!=", 0)] {
        let path = format!("/api/v1/workloads?filterBy=clusterId{condition}{cluster}");
        assert_eq!(names(&server.get(&path).await).len(), found, "{condition}");
        let count = server.get(&path.replace('?', "/count?")).await;
        assert_eq!(count["count"], found, "{condition}");
    }
    let list = server.get("/api/v1/workloads?sortBy=requestedGPU&sortOrder=desc").await;
    assert_eq!(names(&list), ["a", "b"]);
}

/// The published columns of the grid of workloads, each with the key that lists are sorted by.
const COLUMNS: [(&str, &str); 29] = [
    ("Workload", "name"),
    ("Type", "type"),
    ("Preemptible", "preemptible"),
    ("Status", "phase"),
    ("Project", "projectName"),
    ("Department", "departmentName"),
    ("Created by", "submittedBy"),
    ("Running pods", "runningPods"),
    ("Requested pods", "requestedPods"),
    ("Creation time", "createdAt"),
    ("Completion time", "completedAt"),
    ("Connections", "connections"),
    ("Data sources", "datasources"),
    ("Environment", "environments"),
    ("Workload architecture", "architecture"),
    ("GPU compute request", "requestedGPU"),
    ("GPU compute allocation", "allocatedGPU"),
    ("GPU memory request", "requestedGPUMemory"),
    ("GPU memory allocation", "allocatedGPUMemory"),
    ("CPU compute request", "requestedCPU"),
    ("CPU compute allocation", "allocatedCPU"),
    ("CPU memory request", "requestedCPUMemory"),
    ("CPU memory allocation", "allocatedCPUMemory"),
    ("Cluster", "clusterId"),
    ("Priority", "priority"),
    ("Category", "category"),
    ("Node pool", "nodepool"),
    ("Image", "images"),
    ("Idle GPU devices", "idleGpus"),
];

#[tokio::test]
async fn each_published_column_has_a_key_in_both_directions() {
    let server = Server::with_teams().await;
    // Names in reverse, so that the order of creation is none of the columns'.
    for (name, gpus) in [("b", 2), ("a", 1)] {
        let id = server.train(name, gpus).await;
        server.phase(&id, "Running").await;
    }
    for (column, key) in COLUMNS {
        let mut orders = Vec::new();
        for order in ["asc", "desc"] {
            let path = format!("/api/v1/workloads?sortBy={key}&sortOrder={order}");
            orders.push(names(&server.get(&path).await).join(" "));
        }
        let by_size = ["name", "requestedGPU", "allocatedGPU", "allocatedGPUMemory"];
        let wanted = if by_size.contains(&key) { ["a b", "b a"] } else { ["b a", "b a"] };
        let is_time = key == "createdAt";
        assert!(is_time || orders == wanted, "{column}: {orders:?}");
        let (status, said) =
            server.raw("GET", &format!("/api/v1/workloads?filterBy={key}!=0"), "").await;
        let is_typed = ["preemptible", "createdAt", "completedAt"].contains(&key);
        assert_eq!(status.is_success(), !is_typed, "{column}: {said}");
    }
}
