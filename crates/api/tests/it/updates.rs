//! Changes to trainings, workspaces and distributed trainings that exist.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::server::Server;

const TRAININGS: &str = "/api/v1/workloads/trainings";

async fn patch(server: &Server, path: &str, spec: Value) -> (StatusCode, Value) {
    server.raw("PATCH", path, &json!({ "spec": spec }).to_string()).await
}

async fn refused(server: &Server, path: &str, spec: Value, status: u16, why: &str) {
    let (code, body) = patch(server, path, spec).await;
    assert_eq!(code.as_u16(), status, "{body}");
    let message = body["message"].as_str().unwrap();
    assert!(message.contains(why), "{message}");
}

#[tokio::test]
async fn priority_limits_and_labels_change_and_the_rest_stays() {
    let server = Server::with_teams().await;
    let path = format!("{TRAININGS}/{}", server.train("t", 1).await);
    let before = server.get(&path).await;
    let change = json!({
        "priorityClass": "high", "preemptibility": "preemptible", "backoffLimit": 2,
        "autoDeletionTimeAfterCompletionSeconds": 60, "terminateAfterPreemption": true,
        "labels": [{"name": "team", "value": "x"}], "annotations": [{"name": "why", "value": "y"}],
    });
    for _ in 0..2 {
        let (status, answer) = patch(&server, &path, change.clone()).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    }
    let mut want = before["spec"].clone();
    for (field, value) in change.as_object().unwrap() {
        want[field] = value.clone();
    }
    assert_eq!(server.get(&path).await["spec"], want);
    let gone = json!({"labels": [{"name": "team", "value": "", "exclude": true}]});
    let (_, answer) = patch(&server, &path, gone).await;
    assert_eq!(answer["spec"]["labels"], json!([]));
    let log = server.get("/api/v1/audit/log?filterBy=entity_type==workload").await;
    assert!(log.to_string().contains("workload.update"), "{log}");
}

#[tokio::test]
async fn what_the_scheduler_is_told_is_kept_and_gates_are_taken_away() {
    let server = Server::with_teams().await;
    let asked = json!({"image": "i", "schedulingGates": ["data/ready"], "timeLimitSeconds": 3600,
        "preemptionDelaySeconds": 60, "compute": {"gpuDevicesRequest": 1, "gpuPortionLimit": 0.5,
        "gpuRequestType": "portion", "gpuPortionRequest": 0.25}});
    let (_, made) = server.post(TRAININGS, server.job("t", &asked)).await;
    let path = format!("{TRAININGS}/{}", made["workloadId"].as_str().unwrap());
    let told = server.get(&path).await["spec"].clone();
    for field in ["schedulingGates", "timeLimitSeconds", "preemptionDelaySeconds"] {
        assert_eq!(told[field], asked[field], "{told}");
    }
    assert_eq!(told["compute"]["gpuPortionLimit"], 0.5);
    let id = made["workloadId"].as_str().unwrap();
    server.phase(id, "Pending").await;
    let explained = server.get(&format!("/elastane/v1/workloads/{id}/explain")).await;
    let reason = "its pod is held back by a scheduling gate: data/ready";
    assert_eq!(explained["pendingReasons"][0]["message"], reason, "{explained}");
    let advice = &explained["diagnosis"]["advice"][0];
    let command = "runai workload update t -p team-a --scheduling-gate ''";
    assert_eq!((&advice["kind"], &advice["commands"]), (&json!("ungate"), &json!([command])));
    let why = "gate `more` cannot be added to workload `t`";
    refused(&server, &path, json!({"schedulingGates": ["data/ready", "more"]}), 409, why).await;
    let (status, answer) = patch(&server, &path, json!({"schedulingGates": []})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
}

#[tokio::test]
async fn the_most_of_a_gpu_changes_within_what_is_asked_for() {
    let server = Server::with_teams().await;
    let asked = json!({"image": "i", "compute": {"gpuDevicesRequest": 1, "gpuRequestType": "memory",
        "gpuMemoryRequest": "4G", "gpuMemoryLimit": "8G"}});
    let (_, made) = server.post(TRAININGS, server.job("t", &asked)).await;
    let path = format!("{TRAININGS}/{}", made["workloadId"].as_str().unwrap());
    let limit = |value: &str| json!({"compute": {"gpuMemoryLimit": value}});
    for value in ["6G", "4G", "500G"] {
        let (status, answer) = patch(&server, &path, limit(value)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        assert_eq!(answer["spec"]["compute"]["gpuMemoryLimit"], value, "{answer}");
        assert_eq!(answer["spec"]["compute"]["gpuMemoryRequest"], "4G");
    }
    for (value, why) in [
        ("0", "`0` is too little; use 100M or more"),
        ("-1G", "is not a size"),
        ("NaN", "is not a size"),
        ("3G", "3G is less than the 4G that is asked for; raise it"),
    ] {
        refused(&server, &path, limit(value), 400, why).await;
    }
    let portion = json!({"compute": {"gpuPortionLimit": 0.5}});
    refused(&server, &path, portion.clone(), 400, "gpuPortionLimit: goes with").await;
    let more = json!({"compute": {"gpuMemoryRequest": "5G"}});
    refused(&server, &path, more, 409, "gpuPortionLimit, gpuMemoryLimit can.").await;
    let whole = format!("{TRAININGS}/{}", server.train("whole", 1).await);
    refused(&server, &whole, portion, 400, "gpuPortionLimit: goes with").await;
}

#[tokio::test]
async fn what_cannot_change_is_refused_by_name_with_what_can() {
    let server = Server::with_teams().await;
    let id = server.train("t", 1).await;
    let path = format!("{TRAININGS}/{id}");
    for (field, value) in [
        ("image", json!("j")),
        ("compute", json!({"gpuDevicesRequest": 2})),
        ("environmentVariables", json!([{"name": "A", "value": "1"}])),
        ("nodePools", json!(["default"])),
    ] {
        let mut spec = json!({"priorityClass": "high"});
        spec[field] = value;
        let why = format!("spec.{field}: cannot change while `t` exists; priorityClass, ");
        refused(&server, &path, spec, 409, &why).await;
    }
    assert_eq!(server.get(&path).await["spec"]["priorityClass"], "train", "all or nothing");
    let (status, answer) = patch(&server, &path, json!({"image": "i"})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "the value that it has: {answer}");
    let unknown = "there is no priority class `urgent`";
    refused(&server, &path, json!({"priorityClass": "urgent"}), 400, unknown).await;
    refused(&server, &path, json!({"labels": [{"name": "-", "value": ""}]}), 400, "spec.labels")
        .await;
    refused(&server, &path, json!({"backoffLimit": 1001}), 400, "0 to 1000").await;
    let level = json!({"name": "kai.scheduler/topology-required-placement", "value": "rack"});
    refused(&server, &path, json!({"annotations": [level]}), 409, "decides where").await;
    let other = format!("/api/v1/workloads/workspaces/{id}");
    refused(&server, &other, json!({"backoffLimit": 1}), 404, "workspace").await;
}

#[tokio::test]
async fn workspaces_and_distributed_trainings_change_alike() {
    let server = Server::with_teams().await;
    for (kind, spec) in [
        ("workspaces", json!({"image": "i"})),
        ("distributed", json!({"image": "i", "distributedFramework": "PyTorch", "numWorkers": 1})),
    ] {
        let all = format!("/api/v1/workloads/{kind}");
        let (status, made) = server.post(&all, server.job(&kind[..4], &spec)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        let path = format!("{all}/{}", made["workloadId"].as_str().unwrap());
        let (status, answer) = patch(&server, &path, json!({"priorityClass": "very-low"})).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        assert_eq!(answer["spec"]["priorityClass"], "very-low");
        assert_eq!(answer["masterSpec"], made["masterSpec"]);
    }
}

#[tokio::test]
async fn a_policy_refuses_what_it_would_refuse_at_submission() {
    let server = Server::with_teams().await;
    let path = format!("{TRAININGS}/{}", server.train("t", 1).await);
    let rules =
        json!({"backoffLimit": {"max": 3}, "priorityClass": {"options": [{"value": "high"}]}});
    let policy = json!({
        "meta": {"name": "p", "scope": "project", "projectId": 1},
        "policy": {"rules": rules},
    });
    let (status, made) = server
        .raw("PUT", "/api/v2/policy/trainings?scope=project&projectId=1", &policy.to_string())
        .await;
    assert!(status.is_success(), "{made}");
    refused(&server, &path, json!({"backoffLimit": 9}), 400, "backoffLimit").await;
    // Both values were wrong already when the policy came, and one is mended now.
    let (status, answer) = patch(&server, &path, json!({"priorityClass": "high"})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let (status, answer) = patch(&server, &path, json!({"backoffLimit": 3})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
}

#[tokio::test]
async fn workloads_are_found_by_labels_and_nodes_and_sorted_as_they_are_shown() {
    let server = Server::with_teams().await;
    let b = server.train("b", 1).await;
    let a = server.train("a", 1).await;
    let label = json!({"labels": [{"name": "team", "value": "x"}]});
    patch(&server, &format!("{TRAININGS}/{b}"), label).await;
    let running = |shown: &Value| shown["phase"] == "Running";
    let shown = server.until(&format!("/api/v1/workloads/{a}"), running).await;
    let node = shown["additionalFields"]["nodes"][0].as_str().unwrap().to_owned();
    let (status, body) = server.raw("POST", &format!("{TRAININGS}/{b}/suspend"), "").await;
    assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    let stopped = |shown: &Value| shown["phase"] == "Stopped";
    server.until(&format!("/api/v1/workloads/{b}"), stopped).await;
    for (query, names) in [
        ("filterBy=labels==team=x", vec!["b"]),
        ("filterBy=labels!=team=x", vec!["a"]),
        ("filterBy=labels==team=y", vec![]),
        (&format!("filterBy=nodes=={node}"), vec!["a"]),
        ("filterBy=phase==Running%7CStopped", vec!["b", "a"]),
        ("sortBy=qualifiedName", vec!["a", "b"]),
        ("sortBy=activity", vec!["a", "b"]),
        ("sortBy=activity&sortOrder=desc", vec!["b", "a"]),
    ] {
        let page = server.get(&format!("/api/v1/workloads?{query}")).await;
        let all = page["workloads"].as_array().unwrap();
        let found: Vec<_> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{query}");
    }
}
