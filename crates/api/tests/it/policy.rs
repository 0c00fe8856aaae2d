//! Policies: what they fill in, what they refuse, and which policies are refused themselves.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::refusals::refused;
use crate::server::Server;

const PATH: &str = "/api/v2/policy/trainings";
const TRAININGS: &str = "/api/v1/workloads/trainings";

/// Sets the policy of a scope.
async fn set(server: &Server, meta: Value, policy: Value) -> Value {
    set_for(server, "trainings", meta, policy).await
}

/// Sets the policy of a scope for another kind of workload.
pub(crate) async fn set_for(server: &Server, kind: &str, meta: Value, policy: Value) -> Value {
    let body = json!({"meta": meta, "policy": policy}).to_string();
    let (status, made) = server.raw("PUT", &format!("/api/v2/policy/{kind}"), &body).await;
    assert_eq!(status, StatusCode::OK, "{made}");
    made
}

pub(crate) fn tenant() -> Value {
    json!({"name": "t", "scope": "tenant"})
}

pub(crate) fn team_a() -> Value {
    json!({"name": "a", "scope": "project", "projectId": 1})
}

#[tokio::test]
async fn the_nearest_default_counts_and_own_values_win() {
    let server = Server::with_teams().await;
    let defaults = json!({"image": "tenant", "workingDir": "/tenant", "args": "tenant"});
    set(&server, tenant(), json!({"defaults": defaults})).await;
    set(&server, team_a(), json!({"defaults": {"image": "a", "workingDir": "/a"}})).await;
    let body = server.job("x", &json!({"image": "own"}));
    let (_, made) = server.post(TRAININGS, body).await;
    let spec = &made["spec"];
    let got = [&spec["image"], &spec["workingDir"], &spec["args"]];
    assert_eq!(got, [&json!("own"), &json!("/a"), &json!("tenant")]);
    let mut body = server.job("y", &json!({}));
    body["projectId"] = json!("2");
    assert_eq!(server.post(TRAININGS, body).await.1["spec"]["image"], "tenant");
}

#[tokio::test]
async fn a_submission_that_breaks_rules_is_refused_with_all_of_them() {
    let server = Server::with_teams().await;
    let gpus = json!({"compute": {"gpuDevicesRequest": {"min": 1, "max": 3, "step": 2},
                                  "cpuMemoryRequest": {"max": "4G"}},
                      "workingDir": {"required": true}, "image": {"options": [{"value": "i"}]},
                      "priorityClass": {"canEdit": false}});
    let defaults = json!({"workingDir": "/w", "priorityClass": "low"});
    set(&server, tenant(), json!({"rules": gpus, "defaults": defaults})).await;
    let nearer = json!({"rules": {"compute": {"gpuDevicesRequest": {"max": 9}}}});
    set(&server, team_a(), nearer).await;
    let by = "(policy `t` of the tenant)";
    let job = |gpus: u64, rest: Value| {
        let mut spec = json!({"image": "i", "compute": {"gpuDevicesRequest": gpus}});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        server.job("x", &spec)
    };
    let devices = "spec.compute.gpuDevicesRequest:";
    for (body, message) in [
        (job(4, json!({})), format!("{devices} 4 is not allowed; max is 3 {by}")),
        (job(0, json!({})), format!("{devices} 0 is not allowed; min is 1 {by}")),
        (job(2, json!({})), format!("{devices} 2 is not allowed; step is 2 {by}")),
        (
            job(4, json!({"image": "x"})),
            format!(
                "{devices} 4 is not allowed; max is 3 {by}; spec.image: \"x\" is not allowed; \
                     options are \"i\" {by}"
            ),
        ),
        (
            job(1, json!({"priorityClass": "high"})),
            format!(
                "spec.priorityClass: \"high\" is not allowed: it cannot be edited, only \
                     \"low\" is allowed {by}"
            ),
        ),
        (
            server.job("x", &json!({"image": "i", "compute": {"cpuMemoryRequest": "5G"}})),
            format!("spec.compute.cpuMemoryRequest: \"5G\" is not allowed; max is \"4G\" {by}"),
        ),
    ] {
        refused(&server, ("POST", TRAININGS, &body), 400, &message).await;
    }
    let (status, made) = server.post(TRAININGS, job(3, json!({"priorityClass": "low"}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let job = server.job("w", &json!({"image": "x"}));
    let (status, _) = server.post("/api/v1/workloads/workspaces", job).await;
    assert_eq!(status, StatusCode::ACCEPTED, "it is for trainings");
}

#[tokio::test]
async fn a_policy_is_checked_set_replaced_and_deleted() {
    let server = Server::with_teams().await;
    let body = json!({"meta": team_a(), "policy": {"rules": {"image": {"required": true}}}});
    let dry = format!("{PATH}?validateOnly=true");
    assert_eq!(server.raw("PUT", &dry, &body.to_string()).await.0, StatusCode::OK);
    assert_eq!(server.get("/api/v2/policy").await, json!({"policies": []}));
    let first = set(&server, team_a(), body["policy"].clone()).await;
    let second = set(&server, team_a(), json!({"defaults": {"image": "i"}})).await;
    assert_eq!(first["meta"]["id"], second["meta"]["id"]);
    let one = format!("{PATH}?scope=project&projectId=1");
    assert_eq!(server.get(&one).await["policy"], json!({"defaults": {"image": "i"}}));
    let all = server.get("/api/v2/policy?workloadType=training").await;
    let listed = &all["policies"][0];
    assert_eq!((&listed["type"], &listed["meta"]["name"]), (&json!("training"), &json!("a")));
    assert_eq!(server.raw("DELETE", &one, "").await.0, StatusCode::NO_CONTENT);
    refused(&server, ("GET", &one, &Value::Null), 404, "there is no policy for trainings").await;
}

#[tokio::test]
async fn a_wrong_policy_is_refused_by_the_name_of_its_field() {
    let server = Server::with_teams().await;
    let rules = |rules: Value| json!({"rules": rules});
    let later = json!({"defaults": {"storage": {"dataVolume": [{"id": "d"}]}}});
    for (policy, status, message) in [
        (
            rules(json!({"image": {"requird": true}})),
            400,
            "policy.rules.image.requird: unknown field",
        ),
        (
            rules(json!({"category": {"required": true}})),
            400,
            "policy.rules.category: there are no rules",
        ),
        (rules(json!({"image": {"max": 4}})), 400, "policy.rules.image: max: goes with numbers"),
        (rules(json!({"compute": 1})), 400, "policy.rules.compute: must be an object"),
        (
            rules(json!({"compute": {"cpuCoreRequest": {"min": 2, "max": 1}}})),
            400,
            "policy.rules.compute.cpuCoreRequest: min is more than max",
        ),
        (
            rules(json!({"backoffLimit": {"step": 0}})),
            400,
            "policy.rules.backoffLimit: step: must be more than 0",
        ),
        (
            json!({"rules": {"image": {"options": [{"value": "a"}]}}, "defaults": {"image": "b"}}),
            400,
            "policy.defaults.image: \"b\" is not allowed; options are \"a\"",
        ),
        (json!({"defaults": {"imgae": "b"}}), 400, "policy.defaults.imgae: unknown field"),
        (json!({"defaults": {"args": "'"}}), 400, "policy.defaults.args: `'` has a quote"),
        (later, 422, "policy.defaults.storage.dataVolume: not supp"),
        (json!({"imposedAssets": ["x"]}), 404, "policy.imposedAssets: asset x was not found"),
        (json!({"status": {"validation": {}}}), 400, "policy.status: is the server's to say"),
        (json!({"imposedAssets": "x"}), 400, "policy.imposedAssets: a list is needed, not"),
        (
            rules(json!({"compute": {"gpuDeviceRequest": {}}})),
            400,
            "policy.rules.compute.gpuDeviceRequest: there are no rules for this field; did you mean `compute.gpuDevicesRequest`?",
        ),
        (
            json!({"defaults": {"numWorkers": 2}}),
            400,
            "policy.defaults.numWorkers: goes with distr",
        ),
        (
            json!({"defaults": {"assets": {"compute": "x"}}}),
            400,
            "policy.defaults.assets: a policy",
        ),
        (
            rules(json!({"backoffLimit": {"defaultFrom": {"field": "compute.cpuMemoryRequest"}}})),
            400,
            "policy.rules.backoffLimit: defaultFrom.field: `compute.cpuMemoryRequest` is not a field",
        ),
        (
            rules(json!({"backoffLimit": {"defaultFrom": {"field": "backoffLimit", "factor": 0}}})),
            400,
            "policy.rules.backoffLimit: defaultFrom.factor: must be more than 0",
        ),
    ] {
        let body = json!({"meta": tenant(), "policy": policy});
        refused(&server, ("PUT", PATH, &body), status, message).await;
    }
}

#[tokio::test]
async fn a_policy_is_asked_for_by_its_scope() {
    let server = Server::with_teams().await;
    for (method, path, message) in [
        ("GET", "", "scope: must be set"),
        ("DELETE", "?scope=project", "projectId: must be set with scope project"),
        ("GET", "?scope=all", "scope: `all` is not a valid scope"),
        (
            "GET",
            "?valdateOnly=true",
            "unknown parameter `valdateOnly`; did you mean `validateOnly`",
        ),
    ] {
        refused(&server, (method, &format!("{PATH}{path}"), &Value::Null), 400, message).await;
    }
}

#[tokio::test]
async fn what_is_left_out_is_judged_as_it_will_be_taken() {
    let server = Server::with_teams().await;
    let by = "(policy `t` of the tenant)";
    let options = |values: Value| {
        json!({"options": values.as_array().unwrap().iter()
        .map(|value| json!({"value": value})).collect::<Vec<_>>()})
    };
    for (rules, spec, message) in [
        (
            json!({"backoffLimit": {"max": 3}}),
            json!({"image": "i"}),
            format!("spec.backoffLimit: 6 is not allowed; max is 3 {by}"),
        ),
        (
            json!({"priorityClass": options(json!(["low"]))}),
            json!({"image": "i"}),
            format!("spec.priorityClass: \"train\" is not allowed; options are \"low\" {by}"),
        ),
        (
            json!({"preemptibility": options(json!(["non-preemptible"]))}),
            json!({"image": "i"}),
            format!(
                "spec.preemptibility: \"preemptible\" is not allowed; options are \
                 \"non-preemptible\" {by}"
            ),
        ),
        (
            json!({"compute": {"cpuCoreRequest": {"min": 2}, "cpuMemoryRequest": {"max": "50M"}}}),
            json!({"image": "i"}),
            format!(
                "spec.compute.cpuCoreRequest: 0.1 is not allowed; min is 2 {by}; \
                 spec.compute.cpuMemoryRequest: \"100M\" is not allowed; max is \"50M\" {by}"
            ),
        ),
        (
            json!({"image": options(json!(["good"]))}),
            json!({"command": "true"}),
            format!("spec.image: is not given; options are \"good\" {by}"),
        ),
        (
            json!({"compute": {"gpuPortionRequest": {"max": 0.5}}}),
            json!({"image": "i", "compute": {"gpuDevicesRequest": 1}}),
            format!("spec.compute.gpuPortionRequest: 1 is not allowed; max is 0.5 {by}"),
        ),
        (
            json!({"compute": {"gpuRequestType": options(json!(["portion"]))}}),
            json!({"image": "i", "compute": {"gpuRequestType": "memory", "gpuMemoryRequest": "16G"}}),
            format!(
                "spec.compute.gpuRequestType: \"memory\" is not allowed; options are \
                 \"portion\" {by}"
            ),
        ),
    ] {
        set(&server, tenant(), json!({"rules": rules})).await;
        let job = server.job("x", &spec);
        refused(&server, ("POST", TRAININGS, &job), 400, &message).await;
    }
    let (status, _) = server.post(TRAININGS, server.job("cpu", &json!({"image": "i"}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "of GPUs nothing is asked for");
}

#[tokio::test]
async fn a_share_that_cannot_be_edited_cannot_be_dropped_either() {
    let server = Server::with_teams().await;
    let half = json!({"gpuRequestType": "portion", "gpuPortionRequest": 0.5});
    let rules = json!({"compute": {"gpuPortionRequest": {"canEdit": false}}});
    set(&server, tenant(), json!({"defaults": {"compute": half}, "rules": rules})).await;
    let whole =
        json!({"image": "i", "compute": {"gpuRequestType": "memory", "gpuMemoryRequest": "16G"}});
    let message = "spec.compute.gpuPortionRequest: it cannot be edited, only 0.5 is allowed \
                   (policy `t` of the tenant)";
    refused(&server, ("POST", TRAININGS, &server.job("x", &whole)), 400, message).await;
    let (status, made) = server.post(TRAININGS, server.job("y", &json!({"image": "i"}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    assert_eq!(made["spec"]["compute"]["gpuPortionRequest"], 0.5);
}

#[tokio::test]
async fn a_blocked_field_is_not_used_and_what_no_workload_has_breaks_no_rule() {
    let server = Server::with_teams().await;
    let rules = json!({
        "security": {"supplementalGroups": {"blocked": true}},
        "storage": {"dataVolume": {"instances": {"canAdd": false}},
            "emptyDirVolume": {"attributes": {"medium": {"options": [{"value": ""}]}}}},
        "compute": {"migProfile": {"canEdit": false, "options": [{"value": "1g.5gb"}]}},
    });
    set(&server, tenant(), json!({"rules": rules})).await;
    let message = "spec.security.supplementalGroups: \"7\" is not allowed: the field is blocked; \
                   leave it out (policy `t` of the tenant)";
    let groups = json!({"image": "i", "security": {"supplementalGroups": "7"}});
    refused(&server, ("POST", TRAININGS, &server.job("x", &groups)), 400, message).await;
    for (name, medium) in [("left", json!({})), ("node", json!({"medium": ""}))] {
        let mut folder = medium;
        folder["path"] = json!("/scratch");
        let spec = json!({"image": "i", "storage": {"emptyDirVolume": [folder]}});
        let (status, made) = server.post(TRAININGS, server.job(name, &spec)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    }
    let memory = json!({"image": "i", "storage":
        {"emptyDirVolume": [{"path": "/scratch", "medium": "Memory"}]}});
    let message = "spec.storage.emptyDirVolume[0].medium: \"Memory\" is not allowed; options are";
    refused(&server, ("POST", TRAININGS, &server.job("m", &memory)), 400, message).await;
    let both = json!({"backoffLimit": {"blocked": true, "required": true}});
    let body = json!({"meta": tenant(), "policy": {"rules": both}});
    refused(&server, ("PUT", PATH, &body), 400, "policy.rules.backoffLimit: blocked: goes").await;
}

#[tokio::test]
async fn what_cannot_be_edited_is_the_default_that_is_inherited() {
    let server = Server::with_teams().await;
    set(&server, tenant(), json!({"defaults": {"backoffLimit": 1}})).await;
    set(&server, team_a(), json!({"rules": {"backoffLimit": {"canEdit": false}}})).await;
    let (status, made) = server.post(TRAININGS, server.job("x", &json!({"image": "i"}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let job = server.job("y", &json!({"image": "i", "backoffLimit": 2}));
    let message = "spec.backoffLimit: 2 is not allowed: it cannot be edited, only 1 is allowed \
                   (policy `a` of the project)";
    refused(&server, ("POST", TRAININGS, &job), 400, message).await;
}

#[tokio::test]
async fn a_policy_whose_defaults_outer_rules_refuse_is_refused() {
    let server = Server::with_teams().await;
    set(&server, tenant(), json!({"rules": {"backoffLimit": {"max": 2}}})).await;
    let body = json!({"meta": team_a(), "policy": {"defaults": {"backoffLimit": 5}}});
    let message =
        "policy.defaults.backoffLimit: 5 is not allowed; max is 2 (policy `t` of the tenant)";
    refused(&server, ("PUT", PATH, &body), 400, message).await;
}

#[tokio::test]
async fn a_policy_set_by_many_at_once_is_set() {
    let server = Server::with_teams().await;
    let body = json!({"meta": tenant(), "policy": {"defaults": {"backoffLimit": 1}}}).to_string();
    let all = (0..8).map(|_| server.raw("PUT", PATH, &body));
    for (status, answer) in futures_util::future::join_all(all).await {
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    let path = "/api/v2/policy?projectId=1";
    assert_eq!(server.get(path).await["policies"], json!([]), "the tenant's is not the project's");
}

#[tokio::test]
async fn a_change_of_a_policy_leaves_the_rest_as_it_is() {
    let server = Server::with_teams().await;
    let patch = async |policy: Value, reset: Value| {
        let body = json!({"meta": team_a(), "policy": policy, "reset": reset}).to_string();
        server.raw("PATCH", PATH, &body).await
    };
    let (status, _) = patch(json!({}), json!([])).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "there is none yet");
    let rules = json!({"image": {"required": true}, "backoffLimit": {"min": 1, "max": 3}});
    let defaults = json!({"backoffLimit": 2, "workingDir": "/w"});
    set(&server, team_a(), json!({"rules": rules, "defaults": defaults})).await;
    let more = json!({"rules": {"backoffLimit": {"max": 4}}, "defaults": {"args": "x"}});
    let (_, changed) = patch(more, json!(["workingDir", "image"])).await;
    let want = json!({"rules": {"backoffLimit": {"min": 1, "max": 4}},
        "defaults": {"backoffLimit": 2, "args": "x"}});
    assert_eq!(changed["policy"], want);
    for (policy, reset, message) in [
        (json!({"defaults": {"backoffLimit": 9}}), json!([]), "policy.defaults.backoffLimit: 9 is"),
        (json!({}), json!(["compute.gpu"]), "reset[0]: `compute.gpu` has no default and no rule"),
    ] {
        let (status, answer) = patch(policy, reset).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer["message"].as_str().unwrap().starts_with(message), "{answer}");
    }
    // Published clients send all fields there are; what is `null` is not said.
    let nothing = json!({"rules": {"backoffLimit": {"max": null, "sourceOfRule": null}},
        "defaults": {"args": null}, "imposedAssets": null, "status": null});
    assert_eq!(patch(nothing, json!(null)).await.1["policy"], want);
    let (_, gone) = patch(json!({}), json!(["backoffLimit"])).await;
    assert_eq!(gone["policy"], json!({"rules": {}, "defaults": {"args": "x"}}));
}

#[tokio::test]
async fn a_rule_further_out_holds_whichever_was_set_first() {
    let server = Server::with_teams().await;
    set(&server, team_a(), json!({"defaults": {"backoffLimit": 5}})).await;
    let rules = json!({"backoffLimit": {"canEdit": false}});
    set(&server, tenant(), json!({"defaults": {"backoffLimit": 1}, "rules": rules})).await;
    let message = "spec.backoffLimit: 5 is not allowed: it cannot be edited, only 1 is allowed \
                   (policy `t` of the tenant)";
    let job = server.job("x", &json!({"image": "i"}));
    refused(&server, ("POST", TRAININGS, &job), 400, message).await;
}

#[tokio::test]
async fn a_default_may_be_another_value_times_a_factor() {
    let server = Server::with_teams().await;
    let from =
        |field: &str, factor: Value| json!({"defaultFrom": {"field": field, "factor": factor}});
    let cores = from("compute.gpuDevicesRequest", json!(1.5));
    let memory = from("compute.gpuMemoryRequest", json!(2));
    let rules = json!({"compute": {"cpuCoreRequest": cores, "cpuMemoryRequest": memory}});
    set(&server, tenant(), json!({"rules": rules})).await;
    let two = json!({"gpuDevicesRequest": 2});
    let share =
        json!({"gpuDevicesRequest": 1, "gpuRequestType": "memory", "gpuMemoryRequest": "4G"});
    let own = json!({"gpuDevicesRequest": 2, "cpuCoreRequest": 1});
    for (name, compute, cores, memory) in
        [("a", two, json!(3), "100M"), ("b", share, json!(1.5), "8G"), ("c", own, json!(1), "100M")]
    {
        let job = server.job(name, &json!({"image": "i", "compute": compute}));
        let (status, made) = server.post(TRAININGS, job).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        let compute = &made["spec"]["compute"];
        assert_eq!(
            (&compute["cpuCoreRequest"], &compute["cpuMemoryRequest"]),
            (&cores, &json!(memory))
        );
    }
}
