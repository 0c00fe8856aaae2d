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

/// How a column orders the workloads `a` and `b` of [`two_that_differ`], ascending.
#[derive(PartialEq, Eq)]
enum Order {
    AFirst,
    BFirst,
    /// Both have the same value: they keep the order of their creation.
    Same,
}
use Order::{AFirst, BFirst, Same};

/// The published columns of the grid of workloads, each with the key that lists are sorted by.
const COLUMNS: [(&str, &str, Order); 29] = [
    ("Workload", "name", AFirst),
    ("Type", "type", BFirst),
    ("Preemptible", "preemptible", AFirst),
    ("Status", "phase", Same),
    ("Project", "projectName", AFirst),
    ("Department", "departmentName", BFirst),
    ("Created by", "submittedBy", Same),
    ("Running pods", "runningPods", AFirst),
    ("Requested pods", "requestedPods", AFirst),
    ("Creation time", "createdAt", BFirst),
    ("Completion time", "completedAt", Same),
    ("Connections", "connections", BFirst),
    ("Data sources", "datasources", BFirst),
    ("Environment", "environments", BFirst),
    ("Workload architecture", "architecture", BFirst),
    ("GPU compute request", "requestedGPU", AFirst),
    ("GPU compute allocation", "allocatedGPU", AFirst),
    ("GPU memory request", "requestedGPUMemory", AFirst),
    ("GPU memory allocation", "allocatedGPUMemory", AFirst),
    ("CPU compute request", "requestedCPU", AFirst),
    ("CPU compute allocation", "allocatedCPU", AFirst),
    ("CPU memory request", "requestedCPUMemory", AFirst),
    ("CPU memory allocation", "allocatedCPUMemory", AFirst),
    ("Cluster", "clusterId", Same),
    ("Priority", "priority", BFirst),
    ("Category", "category", AFirst),
    ("Node pool", "nodepool", Same),
    ("Image", "images", AFirst),
    ("Idle GPU devices", "idleGpus", Same),
];

/// A server with two that run: `b`, which was created first, and `a`, with less of most. What one
/// of them has not is before all values.
async fn two_that_differ() -> Server {
    let server = Server::with_teams().await;
    let lab = json!({"name": "ai-lab", "clusterId": server.cluster_id(),
                     "resources": [{"gpu": {"deserved": 2}}]});
    let (status, lab) = server.post("/api/v1/org-unit/departments", lab).await;
    assert_eq!(status, StatusCode::CREATED, "{lab}");
    let mut team = server.team("team-c");
    team["parentId"] = lab["id"].clone();
    let (status, team) = server.post("/api/v1/org-unit/projects", team).await;
    assert_eq!(status, StatusCode::CREATED, "{team}");

    let compute = json!({"gpuDevicesRequest": 1, "gpuRequestType": "memory",
                         "gpuMemoryRequest": "8G", "cpuCoreRequest": 2, "cpuMemoryRequest": "2G"});
    let spec = json!({"image": "j", "distributedFramework": "PyTorch", "numWorkers": 2,
                      "compute": compute});
    let mut b = server.job("b", &spec);
    b["projectId"] = team["id"].clone();
    let environment =
        keep(&server, "environment", &of_tenant("torch"), &json!({"image": "i"})).await;
    let export = json!({"server": "s", "path": "/x", "mountPath": "/y"});
    let data = keep(&server, "datasource/nfs", &of_tenant("corpus"), &export).await;
    let assets = json!({"environment": environment, "datasources": [{"id": data}]});
    let compute = json!({"gpuDevicesRequest": 1, "gpuRequestType": "memory",
                         "gpuMemoryRequest": "4G", "cpuCoreRequest": 1, "cpuMemoryRequest": "1G"});
    let open = json!([{"container": 8888, "toolName": "Jupyter", "toolType": "jupyter-notebook"}]);
    let a = json!({"assets": assets, "compute": compute, "exposedUrls": open});
    for (kind, body) in [("distributed", b), ("workspaces", server.job("a", &a))] {
        let (status, made) = server.post(&format!("/api/v1/workloads/{kind}"), body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    }
    server
}

#[tokio::test]
async fn each_published_column_has_a_key_in_both_directions() {
    let server = two_that_differ().await;
    for (column, key, order) in COLUMNS {
        let mut orders = Vec::new();
        for order in ["asc", "desc"] {
            let path = format!("/api/v1/workloads?sortBy={key}&sortOrder={order}");
            orders.push(names(&server.get(&path).await).join(" "));
        }
        let wanted = match order {
            AFirst => ["a b", "b a"],
            BFirst => ["b a", "a b"],
            Same => ["b a", "b a"],
        };
        assert_eq!(orders, wanted, "{column}");
        let (status, said) =
            server.raw("GET", &format!("/api/v1/workloads?filterBy={key}!=0"), "").await;
        let is_typed = ["preemptible", "createdAt", "completedAt"].contains(&key);
        assert_eq!(status.is_success(), !is_typed, "{column}: {said}");
    }
}
