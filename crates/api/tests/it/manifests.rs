//! Workloads as manifests of Kubernetes.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::iam::{call, give, program};
use crate::policy::{set_for, tenant};
use crate::refusals::refused;
use crate::server::Server;

const PATH: &str = "/api/v2/workloads";

fn pod(more: &Value) -> Value {
    let mut container = json!({"name": "main", "image": "i", "command": ["sh", "-c"],
        "args": ["echo a b"], "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "500m", "memory": "1Gi"}}});
    for (name, value) in more.as_object().unwrap() {
        container[name] = value.clone();
    }
    json!({"containers": [container], "restartPolicy": "Never"})
}

fn job() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": {"a": "b"}},
        "spec": {"backoffLimit": 2, "template": {"spec": pod(&json!({}))}}})
}

fn torch() -> Value {
    let of = |replicas: u32| json!({"replicas": replicas, "template": {"spec": pod(&json!({}))}});
    json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "t"},
        "spec": {"pytorchReplicaSpecs": {"Master": of(1), "Worker": of(2)}}})
}

fn groups() -> Value {
    let worker = json!({"containers": [{"image": "i", "command": ["work"], "args": ["hard"],
        "resources": {"limits": {"nvidia.com/gpu": 1}}}]});
    let leader = json!({"containers": [{"image": "l", "args": ["lead"]}]});
    json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"name": "s"}, "spec": {"replicas": 2, "leaderWorkerTemplate": {
            "size": 2, "leaderTemplate": {"spec": leader}, "workerTemplate": {"spec": worker}}}})
}

async fn submit(server: &Server, manifest: &Value) -> Value {
    let body = json!({"metadata": {"projectId": "1"}, "manifest": manifest});
    let (status, made) = server.post(PATH, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["workload"].clone()
}

fn id(workload: &Value) -> String {
    workload["metadata"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_job_runs_and_shows_its_manifest() {
    let server = Server::with_teams().await;
    let made = submit(&server, &job()).await;
    let shown = server.phase(&id(&made), "Running").await;
    assert_eq!((&shown["type"], &shown["name"]), (&json!("Training"), &json!("j")));
    assert_eq!(shown["allocatedResources"]["gpu"], 1);
    assert_eq!(shown["command"], "sh -c");
    assert_eq!(shown["environmentVariables"], json!({"A": "1"}));
    assert_eq!(shown["podsRequestedResources"]["cpu"]["request"], json!(0.5));
    let read = server.get(&format!("{PATH}/{}", id(&made))).await;
    assert_eq!(read["syncInfo"]["status"], "Synced");
    let workload = &read["workload"];
    assert_eq!(workload["rawManifest"], job());
    assert_eq!(workload["workloadManifest"]["metadata"]["namespace"], "runai-team-a");
    let gvk = json!({"group": "batch", "version": "v1", "kind": "Job"});
    assert_eq!(
        (&workload["metadata"]["gvk"], &workload["desiredPhase"]),
        (&gvk, &json!("Running"))
    );
    let (status, gone) = server.raw("DELETE", &format!("{PATH}/{}", id(&made)), "").await;
    assert_eq!((status, &gone["workload"]["rawManifest"]), (StatusCode::ACCEPTED, &job()));
}

#[tokio::test]
async fn pods_and_training_operators_become_what_they_say() {
    let server = Server::with_teams().await;
    let spec = pod(&json!({"resources": {}}));
    let one = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    let encoded = STANDARD.encode(one.to_string());
    let metadata = json!({"projectId": "1", "category": "Build"});
    let body = json!({"metadata": metadata, "manifestBase64Encoded": encoded});
    let (status, made) = server.post(PATH, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let shown = server.phase(&id(&made["workload"]), "Running").await;
    assert_eq!((&shown["type"], &shown["category"]), (&json!("Workspace"), &json!("Build")));

    let made = submit(&server, &torch()).await;
    let shown = server.phase(&id(&made), "Running").await;
    assert_eq!((&shown["type"], &shown["runningPods"]), (&json!("Distributed"), &json!(3)));
    assert_eq!(shown["distributedFramework"], "PyTorch");
    assert_eq!(made["metadata"]["gvk"]["kind"], "PyTorchJob");
}

#[tokio::test]
async fn a_leader_without_a_template_is_as_the_workers_also_where_a_policy_has_defaults() {
    let server = Server::with_teams().await;
    let policy = json!({"defaults": {"master": {"workingDir": "/m"}}});
    set_for(&server, "distributed", tenant(), policy).await;
    let mut set = groups();
    set["spec"]["leaderWorkerTemplate"].as_object_mut().unwrap().remove("leaderTemplate");
    let made = submit(&server, &set).await;
    let typed = server.get(&format!("/api/v1/workloads/distributed/{}", id(&made))).await;
    let master = &typed["masterSpec"];
    assert_eq!((&master["image"], &master["workingDir"]), (&json!("i"), &json!("/m")));
    assert_eq!((&master["command"], &master["args"]), (&json!("work"), &json!("hard")));
}

#[tokio::test]
async fn a_set_of_groups_runs_each_of_a_leader_and_workers() {
    let server = Server::with_teams().await;
    let made = submit(&server, &groups()).await;
    let (id, gvk) = (id(&made), &made["metadata"]["gvk"]);
    let of =
        json!({"group": "leaderworkerset.x-k8s.io", "version": "v1", "kind": "LeaderWorkerSet"});
    assert_eq!(*gvk, of);
    let shown = server.phase(&id, "Running").await;
    assert_eq!(
        (&shown["type"], &shown["distributedFramework"]),
        (&json!("Distributed"), &json!("LWS"))
    );
    assert_eq!(
        (&shown["runningPods"], &shown["allocatedResources"]["gpu"]),
        (&json!(4), &json!(2))
    );
    let pods = server.get(&format!("/api/v1/workloads/{id}/pods")).await;
    let pods = pods["pods"].as_array().unwrap();
    let told: Vec<_> = pods.iter().map(|pod| (&pod["name"], &pod["role"])).collect();
    let want = json!(["s-0", "s-0-1", "s-1", "s-1-1"]);
    assert_eq!(
        told.iter().map(|pod| pod.0).collect::<Vec<_>>(),
        want.as_array().unwrap().iter().collect::<Vec<_>>()
    );
    assert_eq!((told[0].1, told[1].1), (&json!("leader"), &json!("worker")));
    let typed = server.get(&format!("/api/v1/workloads/distributed/{id}")).await;
    assert_eq!(typed["podGroups"], json!({"number": 2, "recreate": true}));
    let (spec, master) = (&typed["spec"], &typed["masterSpec"]);
    assert_eq!((&spec["numWorkers"], &spec["restartPolicy"]), (&json!(1), &json!("Always")));
    assert_eq!((&master["image"], &master["args"]), (&json!("l"), &json!("lead")));
    assert_eq!(master.get("command"), None, "a template has nothing of the other");
    let mut suspended = groups();
    suspended["spec"]["suspend"] = json!(true);
    let body = json!({"manifest": suspended}).to_string();
    let (status, _) = server.raw("PUT", &format!("{PATH}/{id}"), &body).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    server.phase(&id, "Stopped").await;
    let body = json!({"manifest": groups()}).to_string();
    server.raw("PUT", &format!("{PATH}/{id}"), &body).await;
    server.phase(&id, "Running").await;

    // What was submitted can be submitted again.
    let spec = json!({"image": "i", "distributedFramework": "LWS", "numWorkers": 3});
    let mut body = server.job("again", &spec);
    body["podGroups"] = json!({"number": 2, "recreate": false});
    let (status, made) = server.post("/api/v1/workloads/distributed", body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    assert_eq!(made["podGroups"], json!({"number": 2, "recreate": false}));
    let shown = server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    assert_eq!(shown["runningPods"], 8);
}

#[tokio::test]
async fn what_groups_cannot_have_is_refused_by_name() {
    let server = Server::with_teams().await;
    let template = "/spec/leaderWorkerTemplate";
    let with = |at: &str, value: Value| {
        let mut manifest = groups();
        let (above, name) = at.rsplit_once('/').unwrap();
        manifest.pointer_mut(above).unwrap()[name] = value;
        manifest
    };
    for (at, value, why) in [
        ("/spec/replicas", json!(0), "manifest.spec.replicas: 0 is too few; use 1 or more"),
        ("/spec/replicas", json!(101), "manifest.spec.replicas: 101 is too many; 1 to 100 are"),
        ("/spec/startupPolicy", json!("LeaderReady"), "manifest.spec.startupPolicy: `LeaderReady`"),
        (
            "/spec/rolloutStrategy",
            json!({}),
            "manifest.spec.rolloutStrategy: is refused: what runs",
        ),
        ("/spec/networkConfig", json!({}), "manifest.spec.networkConfig: is refused: a pod finds"),
        ("/spec/hpa", json!({}), "manifest.spec.hpa: unknown field"),
        (
            "/metadata/annotations",
            json!({"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}),
            "manifest.metadata.annotations: `leaderworkerset.sigs.k8s.io/exclusive-topology` is",
        ),
        (
            &format!("{template}/size"),
            json!(1),
            "manifest.spec.leaderWorkerTemplate.size: is a leader and its workers: write 2",
        ),
        (
            &format!("{template}/subGroupPolicy"),
            json!({"subGroupSize": 2}),
            "manifest.spec.leaderWorkerTemplate.subGroupPolicy: is refused: a group has no",
        ),
        (
            &format!("{template}/restartPolicy"),
            json!("Always"),
            "manifest.spec.leaderWorkerTemplate.restartPolicy: `Always` is not known; Recreate",
        ),
        (
            &format!("{template}/workerTemplate/spec/restartPolicy"),
            json!("Never"),
            "manifest.spec.leaderWorkerTemplate.workerTemplate.spec.restartPolicy: is not Always",
        ),
    ] {
        let body = json!({"metadata": {"projectId": "1"}, "manifest": with(at, value)});
        refused(&server, ("POST", PATH, &body), 400, why).await;
    }
    let lws = json!({"image": "i", "distributedFramework": "LWS"});
    let torch = json!({"image": "i", "distributedFramework": "PyTorch"});
    let named = json!({"image": "i", "distributedFramework": "LWS", "podNames": "p-{}"});
    for (spec, field, value, why) in [
        (&torch, "podGroups", json!({"number": 2}), "podGroups: goes with the framework LWS only"),
        (&lws, "podGroups", json!({"number": 0}), "podGroups.number: 0 is too few"),
        (&lws, "masterSpecSameAsWorker", json!(false), "masterSpecSameAsWorker: a group needs a"),
        (&named, "podGroups", json!({"number": 2}), "spec.podNames: goes without groups"),
    ] {
        let mut body = server.job("d", spec);
        body[field] = value;
        refused(&server, ("POST", "/api/v1/workloads/distributed", &body), 400, why).await;
    }
}

#[tokio::test]
async fn a_put_suspends_resumes_and_changes_the_priority_and_nothing_else() {
    let server = Server::with_teams().await;
    let path = format!("{PATH}/{}", id(&submit(&server, &job()).await));
    let put = async |manifest: &Value| {
        let body = json!({"manifest": manifest, "metadata": {"category": "Train"}}).to_string();
        server.raw("PUT", &path, &body).await
    };
    let mut suspended = job();
    suspended["spec"]["suspend"] = json!(true);
    let (status, answer) = put(&suspended).await;
    assert_eq!(
        (status, &answer["workload"]["desiredPhase"]),
        (StatusCode::ACCEPTED, &json!("Stopped"))
    );
    assert_eq!(server.get(&path).await["workload"]["rawManifest"], suspended);
    let (_, answer) = put(&job()).await;
    assert_eq!(answer["workload"]["desiredPhase"], "Running");
    let mut other = job();
    other["spec"]["backoffLimit"] = json!(3);
    let body = json!({ "manifest": other });
    let why = "manifest.spec.backoffLimit: cannot be changed";
    refused(&server, ("PUT", &path, &body), 409, why).await;
    let body = json!({"metadata": {"category": "Build"}});
    refused(&server, ("PUT", &path, &body), 409, "metadata.category: cannot be changed").await;
    let body = json!({"metadata": {"priority": "urgent"}});
    refused(&server, ("PUT", &path, &body), 400, "metadata.priority: `urgent` is not").await;
    let (status, answer) =
        server.raw("PUT", &path, r#"{"metadata": {"priority": "very-high"}}"#).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!(answer["workload"]["metadata"]["priority"], "very-high");
    assert_eq!(answer["workload"]["rawManifest"], job());
}

#[tokio::test]
async fn what_means_nothing_here_is_refused_by_name() {
    let server = Server::with_teams().await;
    let with = |at: &str, value: Value| {
        let mut manifest = job();
        *manifest.pointer_mut(at).unwrap() = value;
        manifest
    };
    let spec = "/spec/template/spec";
    let container = |value: Value| with(spec, pod(&value));
    for (manifest, why) in [
        (
            with("/kind", json!("CronJob")),
            "manifest.kind: `CronJob` of `batch/v1` is not known; Pod",
        ),
        (
            json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": "urgent"}, "value": 1000, "globalDefault": false
            }),
            "manifest.kind: a PriorityClass is not submitted: the classes are fixed, and are very-low",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}),
            "manifest.kind: `ConfigMap` of `v1` is not known; Pod",
        ),
        (with("/spec", json!({})), "manifest.spec: `template` is missing"),
        (with("/spec/backoffLimit", json!("x")), "manifest.spec.backoffLimit"),
        (
            with(spec, json!({"containers": []})),
            "manifest.spec.template.spec.containers: has 0; a pod",
        ),
        (
            with(spec, json!({"containers": [], "volumes": []})),
            "manifest.spec.template.spec.volumes: unknown field",
        ),
        (
            container(json!({"resources": {"limits": {"cpu": 1}}})),
            "manifest.spec.template.spec.containers[0].resources.limits.cpu: is refused",
        ),
        (
            container(json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]})),
            "manifest.spec.template.spec.containers[0].env[0].valueFrom",
        ),
        (
            container(json!({"ports": [{"containerPort": 80}]})),
            "manifest.spec.template.spec.containers[0].ports: unknown field",
        ),
        (json!({"apiVersion": "batch/v1"}), "manifest: `kind` is missing"),
        (json!([]), "manifest"),
    ] {
        let body = json!({"metadata": {"projectId": "1"}, "manifest": manifest});
        refused(&server, ("POST", PATH, &body), 400, why).await;
    }
    for (body, why) in [
        (json!({"metadata": {"projectId": "1"}}), "manifest: is required"),
        (json!({"metadata": {}, "manifest": job()}), "metadata.projectId: is required"),
        (
            json!({"metadata": {"projectId": "1"}, "manifestBase64Encoded": "YTog"}),
            "manifestBase64Encoded: is not JSON",
        ),
        (
            json!({"metadata": {"projectId": "1"}, "manifest": job(), "manifestBase64Encoded": "e30="}),
            "manifestBase64Encoded: goes without",
        ),
    ] {
        refused(&server, ("POST", PATH, &body), 400, why).await;
    }
    let plain = format!("{PATH}/{}", server.train("plain", 0).await);
    refused(&server, ("GET", &plain, &Value::Null), 404, "workload ").await;
}

#[tokio::test]
async fn a_manifest_gives_nobody_more_rights() {
    let server = Server::with_teams().await;
    let (other, _, in_b) = program(&server, "in-b").await;
    give(&server, &other, 6, ("project", "2")).await;
    let body = json!({"metadata": {"projectId": "1"}, "manifest": job()});
    let (status, _) = call(&server, &in_b, ("POST", PATH), &body).await;
    assert_eq!(status, 403);
    let path = format!("{PATH}/{}", id(&submit(&server, &job()).await));
    for method in ["GET", "PUT", "DELETE"] {
        let (status, _) = call(&server, &in_b, (method, &path), &json!({})).await;
        assert_eq!(status, 404, "{method}");
    }
}
