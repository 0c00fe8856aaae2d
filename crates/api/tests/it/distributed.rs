//! Distributed workloads and trainings of several pods, on the wire.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::refusals::refused;
use crate::server::Server;

const PATH: &str = "/api/v1/workloads/distributed";

fn spec() -> Value {
    json!({"image": "i", "distributedFramework": "PyTorch", "numWorkers": 2,
        "compute": {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.5}})
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

async fn made(server: &Server, body: Value) -> Value {
    let (status, made) = server.post(PATH, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made
}

#[tokio::test]
async fn a_master_and_workers_run_and_are_listed_suspended_and_deleted() {
    let server = Server::with_teams().await;
    // Published clients send these two even if they were not requested.
    let sent = with(
        with(spec(), "sshAuthMountPath", json!(concat!("/root", "/.ssh"))),
        "slotsPerWorker",
        json!(1),
    );
    let made = made(&server, server.job("d", &sent)).await;
    assert_eq!(made["masterSpecSameAsWorker"], json!(true));
    let spec = &made["spec"];
    assert_eq!(
        (&spec["numWorkers"], &spec["distributedFramework"]),
        (&json!(2), &json!("PyTorch"))
    );
    let id = made["workloadId"].as_str().unwrap();
    let shown = server.phase(id, "Running").await;
    assert_eq!(shown["type"], "Distributed");
    assert_eq!(shown["distributedFramework"], "PyTorch");
    assert_eq!(shown["requestedPods"], json!({"number": 3}));
    assert_eq!(shown["runningPods"], json!(3));
    assert_eq!(shown["workloadRequestedResources"]["gpu"]["request"], json!(1.5));
    assert_eq!(shown["podsRequestedResources"]["gpu"]["request"], json!(0.5));
    let pods = server.get(&format!("/api/v1/workloads/{id}/pods")).await;
    let names: Vec<_> = pods["pods"].as_array().unwrap().iter().map(|pod| &pod["name"]).collect();
    assert_eq!(names, ["d-master-0", "d-worker-0", "d-worker-1"]);
    let (status, _) = server.post(&format!("{PATH}/{id}/suspend"), Value::Null).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    server.phase(id, "Stopped").await;
    let (status, _) = server.post(&format!("{PATH}/{id}/resume"), Value::Null).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    server.phase(id, "Running").await;
    let (status, _) = server.raw("DELETE", &format!("{PATH}/{id}"), "").await;
    assert_eq!(status, StatusCode::ACCEPTED);
    server.until("/api/v1/workloads", |all| all["workloads"] == json!([])).await;
}

#[tokio::test]
async fn a_master_takes_over_what_it_does_not_say() {
    let server = Server::with_teams().await;
    let mut body = server.job("d", &with(spec(), "command", json!("work --hard")));
    body["masterSpec"] = json!({"args": "lead", "compute": {"cpuCoreRequest": 2}});
    let answer = made(&server, body).await;
    assert_eq!(answer["masterSpecSameAsWorker"], json!(false));
    let master = &answer["masterSpec"];
    assert_eq!((&master["image"], &master["command"]), (&json!("i"), &json!("work --hard")));
    assert_eq!(master["args"], "lead");
    assert_eq!(answer["spec"].get("args"), None);
    let compute = &master["compute"];
    assert_eq!(
        (&compute["cpuCoreRequest"], &compute["gpuPortionRequest"]),
        (&json!(2), &json!(0.5))
    );
    let mut body = server.job("e", &spec());
    body["masterSpecSameAsWorker"] = json!(false);
    let answer = made(&server, body).await;
    assert_eq!(
        (answer.get("masterSpec"), &answer["masterSpecSameAsWorker"]),
        (None, &json!(false))
    );
    let id = answer["workloadId"].as_str().unwrap();
    let shown = server.get(&format!("/api/v1/workloads/{id}")).await;
    assert_eq!(shown["requestedPods"]["number"], json!(2));
}

#[tokio::test]
async fn a_master_may_do_without_the_gpus_of_the_workers() {
    let server = Server::with_teams().await;
    let mut body = server.job("d", &with(spec(), "distributedFramework", json!("MPI")));
    body["masterSpec"] = json!({"compute": {"gpuDevicesRequest": 0}});
    let answer = made(&server, body).await;
    let compute = &answer["masterSpec"]["compute"];
    assert_eq!((&compute["gpuDevicesRequest"], compute.get("gpuRequestType")), (&json!(0), None));
    let shown = server.phase(answer["workloadId"].as_str().unwrap(), "Running").await;
    assert_eq!(shown["allocatedResources"]["gpu"], json!(1));
}

#[tokio::test]
async fn an_elastic_one_says_its_range() {
    let server = Server::with_teams().await;
    let range = with(with(spec(), "minReplicas", json!(1)), "maxReplicas", json!(4));
    let answer = made(&server, server.job("d", &range)).await;
    let id = answer["workloadId"].as_str().unwrap();
    let shown = server.get(&format!("/api/v1/workloads/{id}")).await;
    assert_eq!(shown["requestedPods"], json!({"number": 5, "min": 2, "max": 5}));
    assert_eq!(shown["additionalFields"]["elastic"], json!(true));
}

#[tokio::test]
async fn workers_beyond_the_minimum_may_be_of_another_priority() {
    let server = Server::with_teams().await;
    let range = with(with(spec(), "minReplicas", json!(1)), "maxReplicas", json!(3));
    let both = with(range, "sparePriorityClass", json!("very-low"));
    let body = server.job("d", &with(both, "priorityClass", json!("medium")));
    let answer = made(&server, body).await;
    assert_eq!(answer["spec"]["sparePriorityClass"], json!("very-low"));
    let id = answer["workloadId"].as_str().unwrap();
    server.phase(id, "Running").await;
    let pods = server.get(&format!("/api/v1/workloads/{id}/pods")).await;
    let pods = pods["pods"].as_array().unwrap();
    let classes: Vec<_> = pods.iter().map(|pod| &pod["priorityClassName"]).collect();
    assert_eq!(classes, ["medium", "medium", "very-low", "very-low"]);
}

#[tokio::test]
async fn a_training_of_many_runs_says_how_many() {
    let server = Server::with_teams().await;
    let spec = json!({"image": "i", "parallelism": 2, "completions": 5,
        "compute": {"gpuDevicesRequest": 1}});
    let (status, made) = server.post("/api/v1/workloads/trainings", server.job("h", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    assert_eq!(made["spec"]["completions"], json!(5));
    let shown = server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    let pods = json!({"number": 2, "parallelism": 2, "completions": 5});
    assert_eq!(shown["requestedPods"], pods);
    assert_eq!(shown["allocatedResources"]["gpu"], json!(2));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_its_field() {
    let server = Server::with_teams().await;
    let mpi = || with(spec(), "distributedFramework", json!("MPI"));
    let cases = [
        (json!({"image": "i"}), "spec.distributedFramework: must be set: MPI, PyTorch, TF"),
        (with(spec(), "numWorkers", json!(0)), "spec.numWorkers: 0 is too few"),
        (with(spec(), "numWorkers", json!(5000)), "a workload has 1 to 1000 pods, not 5001"),
        (
            with(spec(), "slotsPerWorker", json!(2)),
            "spec.slotsPerWorker: goes with the framework MPI",
        ),
        (with(mpi(), "minReplicas", json!(1)), "spec.minReplicas: goes with the framework PyTorch"),
        (
            with(spec(), "minReplicas", json!(3)),
            "spec.minReplicas: 3 workers at least are more than",
        ),
        (
            with(spec(), "sparePriorityClass", json!("low")),
            "spec.sparePriorityClass: is that of workers beyond minReplicas",
        ),
        (
            with(with(spec(), "minReplicas", json!(1)), "sparePriorityClass", json!("urgent")),
            "spec.sparePriorityClass: there is no priority class `urgent`",
        ),
        (
            with(
                with(with(spec(), "minReplicas", json!(1)), "sparePriorityClass", json!("low")),
                "preemptibility",
                json!("non-preemptible"),
            ),
            "spec.sparePriorityClass: is of workers that are stopped for others",
        ),
        (with(spec(), "completions", json!(3)), "spec.completions: goes with trainings only"),
        (with(spec(), "distributedFramework", json!("Horovod")), "spec.distributedFramework"),
    ];
    for (spec, why) in cases {
        refused(&server, ("POST", PATH, &server.job("d", &spec)), 400, why).await;
    }
    for (master, status, why) in [
        (json!({"priorityClass": "high"}), 400, "masterSpec.priorityClass: is one for the whole"),
        (json!({"image": ""}), 400, "masterSpec.image: is empty"),
        (json!({"storage": {"dataVolume": [1]}}), 422, "masterSpec.storage.dataVolume: there are"),
        (json!({"relatedUrls": [{"url": "http://a"}]}), 400, "masterSpec.relatedUrls: is one for"),
    ] {
        let body = with(server.job("d", &spec()), "masterSpec", master);
        refused(&server, ("POST", PATH, &body), status, why).await;
    }
    let training = server.job("t", &json!({"image": "i", "numWorkers": 2}));
    let why = "spec.numWorkers: goes with distributed workloads only";
    refused(&server, ("POST", "/api/v1/workloads/trainings", &training), 400, why).await;
}

#[tokio::test]
async fn parameter_servers_of_an_elastic_training_are_pods_of_their_own() {
    let server = Server::with_teams().await;
    let elastic = with(spec(), "distributedFramework", json!("ElasticDL"));
    let none = json!({"gpuDevicesRequest": 0, "cpuCoreRequest": 1});
    let mut body = with(server.job("d", &elastic), "masterSpec", json!({"compute": none}));
    let servers = json!({"number": 2, "podNames": "d-server-{}", "command": "serve",
        "compute": {"gpuDevicesRequest": 0, "cpuCoreRequest": 0.5}});
    body["parameterServers"] = servers.clone();
    let made = made(&server, body.clone()).await;
    for field in ["number", "podNames", "command"] {
        assert_eq!(made["parameterServers"][field], servers[field], "{made}");
    }
    assert_eq!(made["parameterServers"]["compute"]["cpuCoreRequest"], json!(0.5));
    let id = made["workloadId"].as_str().unwrap();
    server.phase(id, "Running").await;
    let pods = server.get(&format!("/api/v1/workloads/{id}/pods")).await;
    let names: Vec<_> = pods["pods"].as_array().unwrap().iter().map(|pod| &pod["name"]).collect();
    assert_eq!(names, ["d-master-0", "d-server-0", "d-server-1", "d-worker-0", "d-worker-1"]);
    for (field, value, message) in [
        ("parameterServers", json!({"number": 0}), "parameterServers.number: 0 is too few"),
        (
            "parameterServers",
            json!({"number": 1, "compute": {"cpuCoreRequest": -1}}),
            "parameterServers.compute.cpuCoreRequest: ",
        ),
        ("spec", spec(), "parameterServers: goes with the framework ElasticDL only"),
    ] {
        let body = with(with(body.clone(), "name", json!("e")), field, value);
        refused(&server, ("POST", PATH, &body), 400, message).await;
    }
}
