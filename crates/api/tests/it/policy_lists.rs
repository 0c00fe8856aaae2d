//! Rules for the items of lists: which may be added, which stay, and what each may hold.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::policy::{set_for, team_a, tenant};
use crate::refusals::refused;
use crate::server::Server;

const TRAININGS: &str = "/api/v1/workloads/trainings";
const BY: &str = "(policy `t` of the tenant)";

fn one(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn job(server: &Server, variables: Value) -> Value {
    server.job("x", &json!({"image": "i", "environmentVariables": variables}))
}

async fn with(rules: Value) -> Server {
    let server = Server::with_teams().await;
    let defaults =
        json!({"environmentVariables": {"instances": [one("HOME", "/h"), one("TZ", "UTC")]}});
    let rules = json!({"environmentVariables": {"instances": rules}});
    set_for(&server, "trainings", tenant(), json!({"defaults": defaults, "rules": rules})).await;
    server
}

#[tokio::test]
async fn a_locked_item_stays_as_it_is() {
    let server = with(json!({"locked": ["HOME", "LD_PRELOAD"]})).await;
    let gone = json!({"name": "HOME", "exclude": true});
    let secret = json!({"name": "HOME", "secret": {"name": "s"}});
    for variables in [
        json!([one("HOME", "/x")]),
        json!([gone]),
        json!([secret]),
        // The last of two with one name would count.
        json!([one("HOME", "/h"), one("HOME", "/x")]),
    ] {
        let message = format!("spec.environmentVariables: `HOME` is locked; leave it out {BY}");
        refused(&server, ("POST", TRAININGS, &job(&server, variables)), 400, &message).await;
    }
    let message = format!("spec.environmentVariables: `LD_PRELOAD` is locked; leave it out {BY}");
    let body = job(&server, json!([one("LD_PRELOAD", "x")]));
    refused(&server, ("POST", TRAININGS, &body), 400, &message).await;
    let body = job(&server, json!([one("HOME", "/h"), one("TZ", "CET"), one("A", "1")]));
    let (status, made) = server.post(TRAININGS, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let all = json!([one("A", "1"), one("HOME", "/h"), one("TZ", "CET")]);
    assert_eq!(made["spec"]["environmentVariables"], all);
}

#[tokio::test]
async fn where_nothing_can_be_added_defaults_can_be_changed_and_taken_away() {
    let server = with(json!({"canAdd": false})).await;
    let message =
        format!("spec.environmentVariables: `A` cannot be added; there are `HOME`, `TZ` {BY}");
    let body = job(&server, json!([one("A", "1")]));
    refused(&server, ("POST", TRAININGS, &body), 400, &message).await;
    let gone = json!({"name": "TZ", "exclude": true});
    let body = job(&server, json!([one("HOME", "/x"), gone, {"name": "B", "exclude": true}]));
    let (status, made) = server.post(TRAININGS, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    assert_eq!(made["spec"]["environmentVariables"], json!([one("HOME", "/x")]));
}

#[tokio::test]
async fn a_list_rule_further_out_is_not_loosened_by_defaults() {
    let server = with(json!({"canAdd": false, "locked": ["HOME"]})).await;
    for (item, what) in
        [(one("A", "1"), "`A` cannot be added"), (one("HOME", "/x"), "`HOME` is locked")]
    {
        let policy = json!({"defaults": {"environmentVariables": {"instances": [item]}}});
        let body = json!({"meta": team_a(), "policy": policy});
        let message = format!("policy.defaults.environmentVariables: {what}");
        refused(&server, ("PUT", "/api/v2/policy/trainings", &body), 400, &message).await;
    }
    let defaults = json!({"environmentVariables": [one("TZ", "CET")]});
    set_for(&server, "trainings", team_a(), json!({"defaults": defaults})).await;
    let (_, made) = server.post(TRAININGS, job(&server, json!([]))).await;
    assert_eq!(made["spec"]["environmentVariables"], json!([one("HOME", "/h"), one("TZ", "CET")]));
}

#[tokio::test]
async fn the_fields_of_each_item_have_rules() {
    let server = Server::with_teams().await;
    let effect = json!({"required": true, "options": [{"value": "NoSchedule"}]});
    let rules = json!({"tolerations": {"attributes": {"effect": effect}},
        "compute": {"extendedResources": {"instances": {"canAdd": false}}}});
    set_for(&server, "trainings", tenant(), json!({"rules": rules})).await;
    let mig = json!([{"resource": "nvidia.com/mig-1g.10gb", "quantity": "1"}]);
    for (spec, what) in [
        (json!({"tolerations": [{"key": "k"}]}), "tolerations[0].effect: is required"),
        (
            json!({"tolerations": [{"key": "k", "effect": "NoExecute"}]}),
            "tolerations[0].effect: \"NoExecute\" is not allowed; options are \"NoSchedule\"",
        ),
        (
            json!({"compute": {"extendedResources": mig}}),
            "compute.extendedResources: `nvidia.com/mig-1g.10gb` cannot be added; leave it out",
        ),
    ] {
        let mut job = server.job("x", &spec);
        job["spec"]["image"] = json!("i");
        refused(&server, ("POST", TRAININGS, &job), 400, &format!("spec.{what} {BY}")).await;
    }
}

#[tokio::test]
async fn a_list_that_is_one_value_has_options_for_each_element() {
    let server = Server::with_teams().await;
    let rules = json!({"nodePools": {"options": [{"value": "default"}]}});
    let defaults = json!({"nodePools": ["default"]});
    set_for(&server, "trainings", tenant(), json!({"rules": rules, "defaults": defaults})).await;
    let body = server.job("x", &json!({"image": "i", "nodePools": ["default", "big"]}));
    let message = format!("spec.nodePools: \"big\" is not allowed; options are \"default\" {BY}");
    refused(&server, ("POST", TRAININGS, &body), 400, &message).await;
    let (status, made) = server.post(TRAININGS, server.job("y", &json!({"image": "i"}))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
}

#[tokio::test]
async fn what_the_items_of_a_list_leave_out_has_defaults() {
    let server = Server::with_teams().await;
    let defaults = json!({"tolerations": {"instances": [{"key": "d"}],
        "attributes": {"effect": "NoSchedule", "value": "far"}}});
    let rules = json!({"tolerations": {"instances": {"locked": ["d"]}}});
    set_for(&server, "trainings", tenant(), json!({"defaults": defaults, "rules": rules})).await;
    set_for(
        &server,
        "trainings",
        team_a(),
        json!({"defaults": {"tolerations":
        {"attributes": {"value": "near"}}}}),
    )
    .await;
    let own = json!({"key": "k", "operator": "Equal", "value": "own", "effect": "NoExecute"});
    let spec = json!({"image": "i", "tolerations": [{"key": "k"}, own]});
    let (status, made) = server.post(TRAININGS, server.job("x", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let filled = |key: &str| json!({"key": key, "operator": "Equal", "value": "near", "effect": "NoSchedule"});
    assert_eq!(made["spec"]["tolerations"], json!([filled("d"), filled("k"), own]));
}

#[tokio::test]
async fn the_items_of_defaults_are_whole_with_the_attributes_beside_them() {
    let server = Server::with_teams().await;
    let folder = json!({
        "instances": [{"name": "d", "path": "/usr/share"}],
        "attributes": {"mountPath": "/d"},
    });
    let defaults = json!({"storage": {"hostPath": folder}});
    set_for(&server, "trainings", tenant(), json!({"defaults": defaults})).await;
    let (_, made) = server.post(TRAININGS, server.job("x", &json!({"image": "i"}))).await;
    assert_eq!(made["spec"]["storage"]["hostPath"][0]["mountPath"], "/d", "{made}");
}

#[tokio::test]
async fn what_runs_around_a_workload_that_says_nothing_is_judged() {
    let server = Server::with_teams().await;
    let only = |value: Value| json!({"options": [{"value": value}]});
    let rules = json!({
        "imagePullPolicy": only(json!("IfNotPresent")),
        "createHomeDir": only(json!(false)),
        "terminateAfterPreemption": only(json!(false)),
        "compute": {"largeShmRequest": only(json!(false))},
        "security": {
            "privileged": only(json!(false)), "hostIpc": only(json!(false)),
            "hostNetwork": only(json!(false)), "runAsNonRoot": only(json!(false)),
            "readOnlyRootFilesystem": only(json!(false)),
        },
        "storage": {
            "hostPath": {"attributes": {"mountPropagation": only(json!("None"))}},
            "pvc": {"attributes": {"ephemeral": only(json!(false)), "existingPvc": only(json!(false))}},
        },
        "ports": {"attributes": {"serviceType": only(json!("NodePort"))}},
    });
    set_for(&server, "trainings", tenant(), json!({"rules": rules})).await;
    let spec = json!({
        "image": "i", "ports": [{"container": 80}],
        "storage": {
            "hostPath": [{"path": "/usr/share", "mountPath": "/d"}], "pvc": [{"path": "/v"}],
        },
    });
    let (status, made) = server.post(TRAININGS, server.job("x", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let body = server.job("y", &json!({"image": "i", "security": {"hostIpc": true}}));
    let why = "spec.security.hostIpc: true is not";
    refused(&server, ("POST", TRAININGS, &body), 400, why).await;
}

#[tokio::test]
async fn a_wrong_rule_for_a_list_is_refused_by_the_name_of_its_field() {
    let server = Server::with_teams().await;
    let rules = |rules: Value| json!({"rules": rules});
    for (policy, status, message) in [
        (
            rules(json!({"labels": {"instances": {"locket": []}}})),
            400,
            "policy.rules.labels.instances.locket: unknown field `locket`; did you mean `locked`?",
        ),
        (
            rules(json!({"tolerations": {"attributes": {"efect": {}}}})),
            400,
            "policy.rules.tolerations.attributes.efect: is none of effect, key, operator, value",
        ),
        (
            json!({"defaults": {"labels": {"attributes": {"value": "x"}}}}),
            400,
            "policy.defaults.labels.attributes.value: the items of this list have nothing",
        ),
        (
            json!({"defaults": {"labels": {"instance": []}}}),
            400,
            "policy.defaults.labels.instance: unknown field `instance`; did you mean `instances`?",
        ),
    ] {
        let body = json!({"meta": tenant(), "policy": policy});
        refused(&server, ("PUT", "/api/v2/policy/trainings", &body), status, message).await;
    }
}

#[tokio::test]
async fn who_opens_ports_in_a_browser_is_for_policies_to_say() {
    let server = Server::with_teams().await;
    let audience = json!({"options": [{"value": "authorizedUsersOrGroups"}]});
    let rules = json!({"exposedUrls": {
        "instances": {"locked": ["6006"]}, "attributes": {"authorizationType": audience}}});
    let board = json!({"container": 6006, "authorizationType": "authorizedUsersOrGroups",
        "authorizedUsers": ["ada"]});
    let policy = json!({"defaults": {"exposedUrls": {"instances": [board]}}, "rules": rules});
    set_for(&server, "trainings", tenant(), policy).await;
    let urls = |urls: Value| server.job("x", &json!({"image": "i", "exposedUrls": urls}));
    let refusal = |kind: &str| {
        format!(r#"spec.exposedUrls[1].authorizationType: "{kind}" is not allowed; options are "#)
    };
    let (left_out, public) = (refusal("authenticatedUsers"), refusal("public"));
    let locked = "spec.exposedUrls: `6006` is locked";
    for (given, message) in [
        // Without a default the workload's own meaning stands.
        (json!([{"container": 80}]), left_out.as_str()),
        (json!([{"container": 80, "authorizationType": "public"}]), &public),
        (json!([{"container": 6006, "exclude": true}]), locked),
    ] {
        refused(&server, ("POST", TRAININGS, &urls(given)), 400, message).await;
    }
    let (status, made) =
        server.post(TRAININGS, urls(json!([{"container": 80, "authorizedUsers": ["ann"]}]))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let ports = |urls: &Value| {
        let urls = urls.as_array().unwrap().iter();
        urls.map(|url| url["container"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ports(&made["spec"]["exposedUrls"]), [6006, 80]);
}
