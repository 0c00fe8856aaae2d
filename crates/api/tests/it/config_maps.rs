//! Config maps of projects: what is in them, who may change it, and what runs get of it.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::assets::{keep, of_tenant};
use crate::iam::{call, give, program};
use crate::refusals::refused;
use crate::server::Server;

const ALL: &str = "/elastane/v1/projects/1/config-maps";
const TRAININGS: &str = "/api/v1/workloads/trainings";

async fn put(server: &Server, name: &str, data: Value) -> Value {
    let path = format!("{ALL}/{name}");
    let (status, made) = server.raw("PUT", &path, &json!({ "data": data }).to_string()).await;
    assert_eq!(status, StatusCode::OK, "{made}");
    made
}

#[tokio::test]
async fn a_config_map_is_what_was_put_last_until_it_is_deleted() {
    let server = Server::with_teams().await;
    put(&server, "b", json!({"name": "two\nlines"})).await;
    put(&server, "a", json!({"x": "1"})).await;
    put(&server, "a", json!({"train.yaml": "lr: 1", "y": ""})).await;
    let one = server.get(&format!("{ALL}/a")).await;
    assert_eq!(one["data"], json!({"train.yaml": "lr: 1", "y": ""}));
    let all = server.get(ALL).await["configMaps"].clone();
    let told =
        |at: usize| (all[at]["name"].clone(), all[at]["keys"].clone(), all[at]["bytes"].clone());
    assert_eq!(told(0), (json!("a"), json!(["train.yaml", "y"]), json!(16)));
    assert_eq!((told(1).0, all[0].get("data")), (json!("b"), None));
    assert_eq!(server.get("/elastane/v1/projects/2/config-maps").await["configMaps"], json!([]));
    let path = format!("{ALL}/a");
    assert_eq!(server.raw("DELETE", &path, "").await.0, StatusCode::NO_CONTENT);
    refused(&server, ("GET", &path, &Value::Null), 404, "config map a was not found").await;
    refused(&server, ("DELETE", &path, &Value::Null), 404, "config map a was not found").await;
}

#[tokio::test]
async fn what_is_no_config_map_is_refused() {
    let server = Server::with_teams().await;
    let data = |data: Value| json!({ "data": data });
    let large = "x".repeat(1 << 20);
    for (path, body, status, why) in [
        (format!("{ALL}/A"), data(json!({})), 400, "name `A` is not allowed; small letters"),
        (format!("{ALL}/a"), data(json!({"../k": "v"})), 400, "key `../k` is not allowed; letters"),
        (format!("{ALL}/a"), data(json!({"k": 1})), 400, "data.k: a string is needed, not `1`"),
        (format!("{ALL}/a"), data(json!({"k": large})), 400, "1048577 bytes are too many"),
        (format!("{ALL}/a"), data(json!({"k": large.repeat(5)})), 413, "the body is larger than"),
        (ALL.replace('1', "9") + "/a", data(json!({})), 404, "project 9 was not found"),
    ] {
        let path = path.replace("v9", "v1");
        refused(&server, ("PUT", &path, &body), status, why).await;
    }
    let almost = "x".repeat((1 << 20) - 1);
    put(&server, "a", json!({"k": almost})).await;
}

#[tokio::test]
async fn readers_see_config_maps_and_change_none() {
    let server = Server::with_teams().await;
    put(&server, "a", json!({"k": "v"})).await;
    let (viewer, _, token) = program(&server, "viewer").await;
    give(&server, &viewer, 9, ("project", "1")).await;
    let (path, body) = (format!("{ALL}/a"), json!({"data": {}}));
    assert_eq!(call(&server, &token, ("GET", &path), &Value::Null).await.1["data"]["k"], "v");
    assert_eq!(call(&server, &token, ("PUT", &path), &body).await.0, StatusCode::FORBIDDEN);
    let (of_own, _, token) = program(&server, "own").await;
    give(&server, &of_own, 7, ("project", "1")).await;
    let (status, why) = call(&server, &token, ("PUT", &path), &body).await;
    assert_eq!(
        (status, why["message"].as_str().unwrap().contains("of others")),
        (StatusCode::FORBIDDEN, true)
    );
    let own = format!("{ALL}/own");
    assert_eq!(call(&server, &token, ("PUT", &own), &body).await.0, StatusCode::OK);
    assert_eq!(call(&server, &token, ("PUT", &own), &body).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_run_gets_files_and_variables_and_the_workload_shows_what_was_asked() {
    let server = Server::with_teams().await;
    put(&server, "settings", json!({"a": "1", "b": "2"})).await;
    let lab = json!({"image": "lab", "environmentVariables": [
        {"name": "A", "configMap": {"name": "settings", "key": "a"}}]});
    let lab = keep(&server, "environment", &of_tenant("lab"), &lab).await;
    let files = json!({"configMap": "settings", "mountPath": "/all", "defaultMode": "0400"});
    let files = keep(&server, "datasource/config-map", &of_tenant("files"), &files).await;
    let one = json!([{"configMap": "settings", "mountPath": "/etc/b.conf", "subPath": "b"}]);
    let spec = json!({
        "assets": {"environment": lab, "datasources": [{"id": files, "kind": "config-map"}]},
        "storage": {"configMapVolume": one},
    });
    let (status, made) = server.post(TRAININGS, server.job("t", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    let want = [
        "Variable(\"A\")=1",
        "File { path: \"/all/a\", mode: 256 }=1",
        "File { path: \"/all/b\", mode: 256 }=2",
        "File { path: \"/etc/b.conf\", mode: 420 }=2",
    ];
    assert_eq!(server.engine.secrets_of("t"), want);
    let told = json!({"configMapVolume": [
        {"configMap": "settings", "mountPath": "/all", "defaultMode": "0400"},
        {"configMap": "settings", "mountPath": "/etc/b.conf", "subPath": "b", "defaultMode": "0644"},
    ]});
    assert_eq!(made["spec"]["storage"], told);
    let variable = json!([{"name": "A", "configMap": {"name": "settings", "key": "a"}}]);
    assert_eq!(made["spec"]["environmentVariables"], variable);
    let path = format!("{ALL}/settings");
    assert_eq!(server.raw("DELETE", &path, "").await.0, StatusCode::NO_CONTENT, "also in use");
}

#[tokio::test]
async fn what_a_workload_wants_of_config_maps_and_is_not_there_is_told_with_what_to_type() {
    let server = Server::with_teams().await;
    put(&server, "there", json!({"a": "1", "b": "2"})).await;
    let volume = |one: Value| json!({"image": "i", "storage": {"configMapVolume": [one]}});
    let variable = |one: Value| json!({"image": "i", "environmentVariables": [one]});
    let (at, env) = ("spec.storage.configMapVolume[0]", "spec.environmentVariables[0]");
    let make = "make it with `elastane config-map set none --from-file FILE -p team-a`";
    for (spec, status, why) in [
        (
            volume(json!({"configMap": "none", "mountPath": "/x"})),
            422,
            format!("{at}: config map none is not in project team-a; {make}"),
        ),
        (
            volume(json!({"configMap": "there", "mountPath": "/x", "subPath": "c"})),
            422,
            format!("{at}.subPath: config map there has no key `c`; it has a, b"),
        ),
        (volume(json!({"configMap": "there"})), 400, format!("{at}.mountPath: must be set")),
        (
            volume(json!({"configMap": "there", "mountPath": "/x", "defaultMode": "9"})),
            400,
            format!("{at}.defaultMode: `9` is not allowed"),
        ),
        (
            variable(json!({"name": "A", "configMap": {"name": "none", "key": "a"}})),
            422,
            format!("{env}.configMap: config map none is not in project team-a; {make}"),
        ),
        (
            variable(json!({"name": "A", "configMap": {"name": "there"}})),
            400,
            format!("{env}.configMap.key: must be set"),
        ),
        (
            variable(
                json!({"name": "A", "value": "x", "configMap": {"name": "there", "key": "a"}}),
            ),
            400,
            format!("{env}: has a configMap and another value"),
        ),
    ] {
        refused(&server, ("POST", TRAININGS, &server.job("t", &spec)), status, &why).await;
    }
}
