//! Policies of distributed workloads, whose workers and master are judged apart, and of inferences.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::assets::{keep, of_tenant};
use crate::policy::{set_for, team_a, tenant};
use crate::refusals::refused;
use crate::server::Server;

const DISTRIBUTED: &str = "/api/v1/workloads/distributed";
const INFERENCES: &str = "/api/v1/workloads/inferences";
const BY: &str = "(policy `t` of the tenant)";

/// A distributed workload of two workers with a GPU each, and its master.
fn gang(server: &Server, spec: Value, master: Value) -> Value {
    let mut body = server.job(
        "d",
        &json!({"image": "i", "distributedFramework": "PyTorch",
        "numWorkers": 2, "compute": {"gpuDevicesRequest": 1}}),
    );
    body["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    body["masterSpec"] = master;
    body
}

async fn made(server: &Server, path: &str, body: Value) -> Value {
    let (status, made) = server.post(path, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made
}

#[tokio::test]
async fn workers_and_master_each_keep_their_own_rules() {
    let server = Server::with_teams().await;
    let gpus = |max: u64| json!({"compute": {"gpuDevicesRequest": {"max": max}}});
    let mut worker = gpus(2);
    worker["numWorkers"] = json!({"max": 3});
    let rules = json!({"worker": worker, "master": gpus(1)});
    set_for(&server, "distributed", tenant(), json!({"rules": rules})).await;
    let two = json!({"compute": {"gpuDevicesRequest": 2}});
    let three = json!({"compute": {"gpuDevicesRequest": 3}});
    let many = json!({"numWorkers": 2, "minReplicas": 1, "maxReplicas": 4});
    let of = "compute.gpuDevicesRequest:";
    for (body, message) in [
        (
            gang(&server, json!({}), two.clone()),
            format!("masterSpec.{of} 2 is not allowed; max is 1 {BY}"),
        ),
        (
            gang(&server, three, json!({"compute": {"gpuDevicesRequest": 0}})),
            format!("spec.{of} 3 is not allowed; max is 2 {BY}"),
        ),
        (
            gang(&server, two.clone(), Value::Null),
            format!("masterSpec.{of} 2 is not allowed; max is 1 {BY}"),
        ),
        (
            gang(&server, json!({"numWorkers": 4}), Value::Null),
            format!("spec.numWorkers: 4 is not allowed; max is 3 {BY}"),
        ),
        (
            gang(&server, many, Value::Null),
            format!("spec.numWorkers: 4 is not allowed; max is 3 {BY}"),
        ),
    ] {
        refused(&server, ("POST", DISTRIBUTED, &body), 400, &message).await;
    }
    let mut alone = gang(&server, two.clone(), Value::Null);
    alone["masterSpecSameAsWorker"] = json!(false);
    made(&server, DISTRIBUTED, alone).await;
    let job = server.job("t", &two);
    made(&server, "/api/v1/workloads/trainings", {
        let mut job = job;
        job["spec"]["image"] = json!("i");
        job
    })
    .await;
}

#[tokio::test]
async fn a_master_has_defaults_of_its_own_and_then_those_of_the_workers() {
    let server = Server::with_teams().await;
    let defaults = json!({"worker": {"workingDir": "/w", "args": "work", "numWorkers": 1},
        "master": {"workingDir": "/m"}});
    set_for(&server, "distributed", tenant(), json!({"defaults": defaults})).await;
    let body = server.job("d", &json!({"image": "i", "distributedFramework": "PyTorch"}));
    let answer = made(&server, DISTRIBUTED, body.clone()).await;
    assert_eq!(
        (&answer["spec"]["workingDir"], &answer["spec"]["numWorkers"]),
        (&json!("/w"), &json!(1))
    );
    let master = &answer["masterSpec"];
    assert_eq!((&master["workingDir"], &master["args"]), (&json!("/m"), &json!("work")));
    let mut same = body;
    (same["name"], same["masterSpecSameAsWorker"]) = (json!("e"), json!(true));
    let answer = made(&server, DISTRIBUTED, same).await;
    assert_eq!((&answer["masterSpecSameAsWorker"], answer.get("masterSpec")), (&json!(true), None));
}

#[tokio::test]
async fn a_policy_for_distributed_workloads_has_two_parts() {
    let server = Server::with_teams().await;
    let path = "/api/v2/policy/distributed";
    for (policy, message) in [
        (
            json!({"defaults": {"image": "i"}}),
            "policy.defaults.image: of distributed workloads there are the parts `worker` and `master`",
        ),
        (json!({"rules": {"worker": 1}}), "policy.rules.worker: must be an object"),
        (
            json!({"rules": {"master": {"numWorkers": {"max": 1}}}}),
            "policy.rules.master.numWorkers: there are no rules",
        ),
        (
            json!({"defaults": {"master": {"numWorkers": 1}}}),
            "policy.defaults.master.numWorkers: is one for the whole workload",
        ),
        (
            json!({"defaults": {"worker": {"args": "'"}}}),
            "policy.defaults.worker.args: `'` has a quote",
        ),
        (
            json!({"defaults": {"master": {"image": "b"}}, "rules": {"master": {"image": {"options": [{"value": "a"}]}}}}),
            "policy.defaults.master.image: \"b\" is not allowed; options are \"a\"",
        ),
        (json!({"imposedAssets": ["x"]}), "policy.imposedAssets: an object is needed, not a list"),
    ] {
        let body = json!({"meta": tenant(), "policy": policy});
        refused(&server, ("PUT", path, &body), 400, message).await;
    }
}

fn service(server: &Server, name: &str, scaling: Value) -> Value {
    let port = json!({"container": 80, "authorizationType": "public"});
    server.job(name, &json!({"image": "i", "servingPort": port, "autoscaling": scaling}))
}

#[tokio::test]
async fn an_inference_is_judged_by_what_it_will_do() {
    let server = Server::with_teams().await;
    let public = json!({"options": [{"value": "authenticatedUsers"}]});
    for (rules, message) in [
        (
            json!({"autoscaling": {"maxReplicas": {"max": 2}}}),
            format!("spec.autoscaling.maxReplicas: 3 is not allowed; max is 2 {BY}"),
        ),
        (
            json!({"autoscaling": {"initialReplicas": {"max": 2}}}),
            format!("spec.autoscaling.initialReplicas: 3 is not allowed; max is 2 {BY}"),
        ),
        (
            json!({"autoscaling": {"concurrencyHardLimit": {"max": 9}}}),
            format!("spec.autoscaling.concurrencyHardLimit: 0 is not allowed; max is 9 {BY}"),
        ),
        (
            // 0 is a bound like any other; only as a value it is no limit.
            json!({"autoscaling": {"concurrencyHardLimit": {"min": 0, "max": 9, "step": 3}}}),
            format!("spec.autoscaling.concurrencyHardLimit: 0 is not allowed; max is 9 {BY}"),
        ),
        (
            json!({"servingPort": {"authorizationType": public}}),
            format!(
                "spec.servingPort.authorizationType: \"public\" is not allowed; options are \"authenticatedUsers\" {BY}"
            ),
        ),
        (
            json!({"servingConfiguration": {"requestTimeoutSeconds": {"max": 60}}}),
            format!(
                "spec.servingConfiguration.requestTimeoutSeconds: 300 is not allowed; max is 60 {BY}"
            ),
        ),
        (
            json!({"probes": {"readiness": {"periodSeconds": {"min": 5}}}}),
            format!("spec.probes.readiness.periodSeconds: 1 is not allowed; min is 5 {BY}"),
        ),
    ] {
        set_for(&server, "inferences", tenant(), json!({"rules": rules})).await;
        let body = service(&server, "s", json!({"minReplicas": 3}));
        refused(&server, ("POST", INFERENCES, &body), 400, &message).await;
    }
    let body = json!({"meta": tenant(), "policy": {"rules": {"backoffLimit": {"max": 1}}}});
    let message = "policy.rules.backoffLimit: there are no rules for this field";
    refused(&server, ("PUT", "/api/v2/policy/inferences", &body), 400, message).await;
}

#[tokio::test]
async fn a_change_of_an_inference_is_judged_as_the_inference_was() {
    let server = Server::with_teams().await;
    let defaults = json!({"autoscaling": {"maxReplicas": 2, "metric": "concurrency", "metricThreshold": 1}, "tolerations": [{"name": "t", "key": "k"}],
        "environmentVariables": {"instances": [{"name": "A", "value": "1", "description": "d"}]}});
    let rules = json!({"autoscaling": {"maxReplicas": {"max": 2}},
        "environmentVariables": {"instances": {"canAdd": false, "locked": ["A"]}}});
    set_for(&server, "inferences", tenant(), json!({"defaults": defaults, "rules": rules})).await;
    let answer = made(&server, INFERENCES, service(&server, "s", json!({"minReplicas": 0}))).await;
    let env = json!([{"name": "A", "value": "1"}]);
    assert_eq!(
        (&answer["spec"]["autoscaling"]["maxReplicas"], &answer["spec"]["environmentVariables"]),
        (&json!(2), &env)
    );
    let one = format!("{INFERENCES}/{}", answer["workloadId"].as_str().unwrap());
    for (change, message) in [
        (
            json!({"autoscaling": {"maxReplicas": 3}}),
            format!("spec.autoscaling.maxReplicas: 3 is not allowed; max is 2 {BY}"),
        ),
        (
            json!({"environmentVariables": [{"name": "A", "exclude": true}]}),
            format!("spec.environmentVariables: `A` is locked; leave it out {BY}"),
        ),
    ] {
        refused(&server, ("PATCH", &one, &json!({"spec": change})), 400, &message).await;
    }
    let (status, changed) = server.raw("PATCH", &one, r#"{"spec": {"image": "j"}}"#).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{changed}");
    assert_eq!(
        (&changed["spec"]["image"], &changed["spec"]["environmentVariables"]),
        (&json!("j"), &env)
    );
    assert_eq!(changed["spec"]["tolerations"], answer["spec"]["tolerations"]);
}

#[tokio::test]
async fn a_policy_is_only_for_its_kind_of_workload() {
    let server = Server::with_teams().await;
    let image = json!({"image": {"options": [{"value": "x"}]}});
    for (kind, rules) in [("distributed", json!({"worker": image})), ("inferences", image.clone())]
    {
        set_for(&server, kind, team_a(), json!({"rules": rules})).await;
    }
    made(&server, "/api/v1/workloads/trainings", server.job("t", &json!({"image": "i"}))).await;
    for (path, body) in [
        (DISTRIBUTED, gang(&server, json!({}), Value::Null)),
        (INFERENCES, service(&server, "s", json!({}))),
    ] {
        let message =
            "spec.image: \"i\" is not allowed; options are \"x\" (policy `a` of the project)";
        refused(&server, ("POST", path, &body), 400, message).await;
    }
    let types = server.get("/api/v2/policy").await;
    let types: Vec<_> =
        types["policies"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["distributed", "inference"]);
}

/// A data source that is a credential as a file.
async fn source(server: &Server, name: &str) -> String {
    let pairs = json!({"keyValuePairs": [{"key": "k", "value": "v"}]});
    let credential = keep(server, "credentials/generic-secret", &of_tenant(name), &pairs).await;
    let spec = json!({"credentialAssetId": credential, "mountPath": format!("/{name}")});
    keep(server, "datasource/secrets", &of_tenant(name), &spec).await
}

fn folders(spec: &Value) -> Vec<&str> {
    let all = spec["storage"]["secretVolume"].as_array();
    all.into_iter().flatten().map(|one| one["mountPath"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_a_policy_imposes_every_workload_has() {
    let server = Server::with_teams().await;
    let (all, lead) = (source(&server, "all").await, source(&server, "lead").await);
    let imposed = json!({"worker": [all], "master": [lead]});
    set_for(&server, "distributed", tenant(), json!({"imposedAssets": imposed})).await;
    let rules = json!({"storage": {"secretVolume": {"instances": {"canAdd": false}}}});
    set_for(&server, "inferences", tenant(), json!({"imposedAssets": [all], "rules": rules})).await;
    let none = json!({"storage": {"secretVolume": [{"name": "all", "exclude": true}]}});
    let answer = made(&server, DISTRIBUTED, gang(&server, none, Value::Null)).await;
    assert_eq!(
        (folders(&answer["spec"]), folders(&answer["masterSpec"])),
        (vec!["/all"], vec!["/all", "/lead"])
    );
    let answer = made(&server, INFERENCES, service(&server, "s", json!({}))).await;
    let one = format!("{INFERENCES}/{}", answer["workloadId"].as_str().unwrap());
    let (_, changed) = server.raw("PATCH", &one, r#"{"spec": {"image": "j"}}"#).await;
    assert_eq!((folders(&answer["spec"]), folders(&changed["spec"])), (vec!["/all"], vec!["/all"]));
    let own = json!({"storage": {"secretVolume": [{"mountPath": "/x", "secret": "all"}]}});
    let message = format!("spec.storage.secretVolume: `/x` cannot be added; there are `all` {BY}");
    refused(&server, ("PATCH", &one, &json!({"spec": own})), 400, &message).await;
    let asset = format!("/api/v1/asset/datasource/secrets/{all}");
    let used = server.get(&format!("{asset}?usageInfo=true")).await["usedBy"].clone();
    assert_eq!(
        (used["distributed"][0]["name"].as_str(), used["inferences"].as_array().unwrap().len()),
        (Some("d"), 1)
    );
    let why = "policy `distributed` names it; change or delete the policy first";
    refused(&server, ("DELETE", &asset, &Value::Null), 409, why).await;
}

#[tokio::test]
async fn what_cannot_be_imposed_is_refused() {
    let server = Server::with_teams().await;
    let foreign = json!({"name": "b", "scope": "project", "projectId": 2});
    let spec = json!({"credentialAssetId": "1", "mountPath": "/b"});
    let foreign = keep(&server, "datasource/secrets", &foreign, &spec).await;
    let compute = keep(&server, "compute", &of_tenant("c"), &json!({})).await;
    for (id, status, message) in [
        (foreign.clone(), 404, format!("policy.imposedAssets: asset {foreign} was not found")),
        (compute.clone(), 404, format!("policy.imposedAssets: asset {compute} was not found")),
    ] {
        let body = json!({"meta": team_a(), "policy": {"imposedAssets": [id]}});
        refused(&server, ("PUT", "/api/v2/policy/trainings", &body), status, &message).await;
    }
}

#[tokio::test]
async fn parameter_servers_keep_the_rules_of_the_master() {
    let server = Server::with_teams().await;
    let rules = json!({"master": {"compute": {"cpuCoreRequest": {"max": 2}}}});
    set_for(&server, "distributed", tenant(), json!({"rules": rules})).await;
    let small = json!({"compute": {"gpuDevicesRequest": 0, "cpuCoreRequest": 1}});
    let mut body = gang(&server, json!({"distributedFramework": "ElasticDL"}), small);
    body["parameterServers"] = json!({"number": 1, "compute": {"cpuCoreRequest": 3}});
    let message =
        format!("parameterServers.compute.cpuCoreRequest: 3 is not allowed; max is 2 {BY}");
    refused(&server, ("POST", DISTRIBUTED, &body), 400, &message).await;
    body["parameterServers"]["compute"]["cpuCoreRequest"] = json!(2);
    made(&server, DISTRIBUTED, body).await;
}
