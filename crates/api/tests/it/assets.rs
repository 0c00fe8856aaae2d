//! Workload assets: kept, found by who can use them, changed, and refused by the name of the field.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::iam::{get, give, program};
use crate::refusals::refused;
use crate::server::Server;

const COMPUTE: &str = "/api/v1/asset/compute";

/// Creates an asset and returns its id.
pub(crate) async fn keep(server: &Server, kind: &str, meta: &Value, spec: &Value) -> String {
    let path = format!("/api/v1/asset/{kind}");
    let (status, made) = server.post(&path, json!({"meta": meta, "spec": spec})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{path} {made}");
    made["meta"]["id"].as_str().unwrap().to_owned()
}

pub(crate) fn of_tenant(name: &str) -> Value {
    json!({"name": name, "scope": "tenant"})
}

fn names(list: &Value) -> Vec<&str> {
    let entries = list["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["meta"]["name"].as_str().unwrap()).collect()
}

/// Path of each kind of asset, its name, and an example.
pub(crate) fn one_of_each() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("compute", "compute", json!({"gpuDevicesRequest": 2, "cpuMemoryRequest": "1G"})),
        ("environment", "environment", json!({"image": "i", "imagePullPolicy": "Always"})),
        ("datasource/nfs", "nfs", json!({"server": "s", "path": "/a", "mountPath": "/b"})),
        ("datasource/pvc", "pvc", json!({"path": "/b", "existingPvc": true, "claimName": "c"})),
        ("datasource/s3", "s3", json!({"bucket": "b", "path": "/b", "url": "https://s3"})),
        ("datasource/git", "git", json!({"repository": "https://g/r", "path": "/b"})),
        ("datasource/host-path", "hostPath", json!({"path": "/a", "mountPath": "/b"})),
        ("datasource/config-map", "config-map", json!({"configMap": "c", "mountPath": "/b"})),
        (
            "datasource/secrets",
            "secret-volume",
            json!({"credentialAssetId": "1", "mountPath": "/b", "defaultMode": "0400"}),
        ),
    ]
}

#[tokio::test]
async fn every_kind_is_kept_as_it_was_given() {
    let server = Server::with_teams().await;
    for (path, kind, spec) in one_of_each() {
        let id = keep(&server, path, &of_tenant("a"), &spec).await;
        let one = format!("/api/v1/asset/{path}/{id}");
        let kept = server.get(&one).await;
        assert_eq!((&kept["spec"], &kept["meta"]["kind"]), (&spec, &json!(kind)), "{path}");
        assert_eq!(kept["meta"]["createdBy"], "ada", "{path}");
        let (status, changed) = server
            .raw("PUT", &one, &json!({"meta": {"name": "b"}, "spec": spec}).to_string())
            .await;
        let name = &changed["meta"]["name"];
        assert_eq!((status, name), (StatusCode::ACCEPTED, &json!("b")), "{changed}");
        assert_eq!(changed["meta"]["updateCount"], 1, "{path}");
        let all = server.get(&format!("/api/v1/asset/{path}")).await;
        assert_eq!(names(&all), ["b"], "{path}");
        let (status, gone) = server.raw("DELETE", &one, "").await;
        assert_eq!((status, &gone["code"]), (StatusCode::ACCEPTED, &json!(202)), "{path}");
        refused(&server, ("GET", &one, &Value::Null), 404, "").await;
    }
}

#[tokio::test]
async fn a_change_of_what_is_said_of_an_asset_leaves_what_it_is() {
    let server = Server::with_teams().await;
    for (path, _, spec) in one_of_each() {
        let id = keep(&server, path, &of_tenant("a"), &spec).await;
        let one = format!("/api/v1/asset/{path}/{id}");
        let renamed =
            [json!({"meta": {"name": "b"}}), json!({"meta": {"name": "c"}, "spec": null})];
        for body in renamed {
            let (status, changed) = server.raw("PUT", &one, &body.to_string()).await;
            assert_eq!(status, StatusCode::ACCEPTED, "{path}: {changed}");
            assert_eq!(changed["meta"]["name"], body["meta"]["name"], "{path}");
            assert_eq!(server.get(&one).await["spec"], spec, "{path}");
        }
    }
}

#[tokio::test]
async fn the_path_of_a_claim_changes_alone() {
    let server = Server::with_teams().await;
    let spec = json!({"path": "/a", "claimInfo": {"size": "1G"}, "readOnly": true});
    let id = keep(&server, "datasource/pvc", &of_tenant("a"), &spec).await;
    let one = format!("/api/v1/asset/datasource/pvc/{id}");
    let body = json!({"meta": {"name": "a"}, "spec": {"path": "/b"}});
    let (status, changed) = server.raw("PUT", &one, &body.to_string()).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{changed}");
    let after = json!({"path": "/b", "claimInfo": {"size": "1G"}, "readOnly": true});
    assert_eq!(server.get(&one).await["spec"], after);
    let body = json!({"spec": {"path": "/b", "existingPvc": true}});
    refused(&server, ("PUT", &one, &body), 400, "spec.claimName: must").await;
    let body = json!({"spec": {"path": "b"}});
    refused(&server, ("PUT", &one, &body), 400, "spec.path").await;
}

#[tokio::test]
async fn a_project_can_use_what_lies_around_it() {
    let server = Server::with_teams().await;
    for (name, meta) in [
        ("everybody", json!({"scope": "tenant"})),
        ("here", json!({"scope": "cluster", "clusterId": server.cluster_id()})),
        ("department", json!({"scope": "department", "departmentId": "1"})),
        ("team-a", json!({"scope": "project", "projectId": 1})),
        ("team-b", json!({"scope": "project", "projectId": 2})),
    ] {
        let mut meta = meta;
        meta["name"] = json!(name);
        keep(&server, "compute", &meta, &json!({})).await;
    }
    let cluster = server.cluster_id();
    for (query, want) in [
        ("", vec!["everybody", "here", "department", "team-a", "team-b"]),
        ("projectId=1", vec!["everybody", "here", "department", "team-a"]),
        ("projectId=2&scope=project", vec!["team-b"]),
        ("departmentId=1", vec!["everybody", "here", "department"]),
        (&format!("clusterId={cluster}"), vec!["everybody", "here"]),
        (
            "departmentId=1&includeDescendants=true",
            vec!["everybody", "here", "department", "team-a", "team-b"],
        ),
        ("scope=tenant", vec!["everybody"]),
        ("name=here", vec!["here"]),
        ("name=here&scope=tenant", vec![]),
    ] {
        assert_eq!(names(&server.get(&format!("{COMPUTE}?{query}")).await), want, "{query}");
    }
    let team = &server.get(&format!("{COMPUTE}?name=team-a")).await["entries"][0]["meta"];
    let (project, name) = (&team["projectId"], &team["projectName"]);
    assert_eq!((project, name), (&json!(1), &json!("team-a")));
}

#[tokio::test]
async fn data_sources_are_listed_together() {
    let server = Server::with_teams().await;
    let path = json!({"path": "/a", "mountPath": "/b"});
    let git = keep(
        &server,
        "datasource/git",
        &of_tenant("code"),
        &json!({"repository": "r", "path": "/c"}),
    )
    .await;
    keep(&server, "datasource/host-path", &of_tenant("data"), &path).await;
    keep(&server, "environment", &of_tenant("other"), &json!({"image": "i"})).await;
    let all = "/api/v1/asset/datasource";
    assert_eq!(names(&server.get(all).await), ["code", "data"]);
    let only = server.get(&format!("{all}?assetIds={git},x")).await;
    assert_eq!(names(&only), ["code"]);
}

#[tokio::test]
async fn an_asset_can_be_for_some_workloads_only() {
    let server = Server::with_teams().await;
    let mut meta = of_tenant("lab");
    meta["workloadSupportedTypes"] = json!({"workspace": true});
    keep(&server, "environment", &meta, &json!({"image": "i"})).await;
    keep(&server, "environment", &of_tenant("any"), &json!({"image": "i"})).await;
    for (query, want) in [
        ("isTraining=true", vec!["any"]),
        ("isTraining=false", vec!["lab"]),
        ("isWorkspace=true", vec!["lab", "any"]),
    ] {
        let all = server.get(&format!("/api/v1/asset/environment?{query}")).await;
        assert_eq!(names(&all), want, "{query}");
    }
}

#[tokio::test]
async fn a_viewer_of_a_project_sees_what_can_be_used_there() {
    let server = Server::with_teams().await;
    let tenant = keep(&server, "compute", &of_tenant("all"), &json!({})).await;
    let of = |name: &str, id: u64| json!({"name": name, "scope": "project", "projectId": id});
    keep(&server, "compute", &of("mine", 1), &json!({})).await;
    let theirs = keep(&server, "compute", &of("theirs", 2), &json!({})).await;
    let (account, _, token) = program(&server, "viewer").await;
    give(&server, &account, 9, ("project", "1")).await;
    assert_eq!(names(&get(&server, &token, COMPUTE).await.1), ["all", "mine"]);
    assert_eq!(get(&server, &token, &format!("{COMPUTE}/{tenant}")).await.0, 200);
    assert_eq!(get(&server, &token, &format!("{COMPUTE}/{theirs}")).await.0, 404);
    let (_, all) = get(&server, &token, "/api/v1/asset/datasource").await;
    assert_eq!(all, json!({"entries": []}));
}

#[tokio::test]
async fn an_asset_ends_with_its_project() {
    let server = Server::with_teams().await;
    let meta = json!({"name": "a", "scope": "project", "projectId": 2});
    let id = keep(&server, "compute", &meta, &json!({})).await;
    let (status, _) = server.raw("DELETE", "/api/v1/org-unit/projects/2", "").await;
    assert!(status.is_success());
    let one = format!("{COMPUTE}/{id}");
    refused(&server, ("GET", &one, &Value::Null), 404, "compute-asset").await;
}

#[tokio::test]
async fn a_name_is_taken_once_in_its_scope() {
    let server = Server::with_teams().await;
    let first = keep(&server, "compute", &of_tenant("a"), &json!({})).await;
    keep(&server, "compute", &of_tenant("b"), &json!({})).await;
    keep(&server, "environment", &of_tenant("a"), &json!({"image": "i"})).await;
    let in_project = json!({"name": "a", "scope": "project", "projectId": 1});
    keep(&server, "compute", &in_project, &json!({})).await;
    let again = json!({"meta": of_tenant("a"), "spec": {}});
    let taken = "compute asset `a` already exists; choose another name";
    refused(&server, ("POST", COMPUTE, &again), 409, taken).await;
    let renamed = json!({"meta": {"name": "b"}, "spec": {}});
    let taken = "compute asset `b` already exists";
    refused(&server, ("PUT", &format!("{COMPUTE}/{first}"), &renamed), 409, taken).await;
}

#[tokio::test]
async fn a_wrong_meta_is_refused_by_the_name_of_its_field() {
    let server = Server::with_teams().await;
    let long = "x".repeat(251);
    for (meta, status, message) in [
        (json!({"scope": "tenant"}), 400, "meta: `name` is missing"),
        (json!({"name": "a"}), 400, "meta: `scope` is missing"),
        (json!({"name": "", "scope": "tenant"}), 400, "name `` is not allowed"),
        (json!({"name": "a", "scope": "all"}), 400, "meta.scope: `all` is not allowed; write"),
        (json!({"name": "a", "scope": "system"}), 400, "meta.scope: `system` is the program's own"),
        (json!({"name": "a", "scope": "project"}), 400, "meta.projectId: must be set with scope"),
        (
            json!({"name": "a", "scope": "project", "projectId": "1"}),
            400,
            "meta.projectId: a whole number from 0 is needed",
        ),
        (json!({"name": "a", "scope": "project", "projectId": 9}), 404, "project 9 was not found"),
        (
            json!({"name": "a", "scope": "tenant", "projectId": 1}),
            400,
            "meta.projectId: goes with scope project only",
        ),
        (json!({"name": "a", "scope": "department"}), 400, "meta.departmentId: must be set"),
        (
            json!({"name": "a", "scope": "department", "departmentId": "7"}),
            404,
            "department 7 was not found",
        ),
        (json!({"name": "a", "scope": "cluster", "clusterId": "x"}), 404, "no cluster `x`"),
        (
            json!({"name": "a", "scope": "tenant", "description": long}),
            400,
            "meta.description: has 251 characters; 1 to 250",
        ),
        (
            json!({"name": "a", "scope": "tenant", "private": true}),
            422,
            "meta.private: not supported yet",
        ),
        (
            json!({"name": "a", "scope": "tenant", "naem": 1}),
            400,
            "meta.naem: unknown field `naem`",
        ),
    ] {
        let body = json!({"meta": meta, "spec": {}});
        refused(&server, ("POST", COMPUTE, &body), status, message).await;
    }
}

#[tokio::test]
async fn a_wrong_specification_is_refused_by_the_name_of_its_field() {
    let server = Server::with_teams().await;
    let nfs = |path: &str| json!({"server": "s", "path": path, "mountPath": "/b"});
    let tool = |info: Value| json!({"connections": [{"name": "t", "internalToolInfo": info}]});
    for (kind, spec, message) in [
        ("compute", json!({"gpuDevicesRequest": -1}), "spec.gpuDevicesRequest: `-1` is negative"),
        ("compute", json!({"gpuRequestType": "portion"}), "spec.gpuRequestType: portion needs"),
        ("compute", json!({"cpuMemoryRequest": "x"}), "spec.cpuMemoryRequest: "),
        ("compute", json!({"gpus": 1}), "spec.gpus: unknown field `gpus`"),
        ("environment", json!({"image": ""}), "spec.image: is empty; leave it out instead"),
        ("environment", json!({"command": "a 'b"}), "spec.command: `a 'b` has a quote"),
        (
            "environment",
            json!({"imagePullPolicy": "Often"}),
            "spec.imagePullPolicy: `Often` is not allowed; write Always",
        ),
        (
            "environment",
            json!({"connections": [{"name": "t"}]}),
            "spec.connections[0]: needs internalToolInfo or externalToolInfo",
        ),
        (
            "environment",
            tool(json!({"toolType": "custom", "connectionType": "NodePort", "containerPort": 0})),
            "spec.connections[0].internalToolInfo.containerPort: `0` is not a port",
        ),
        (
            "environment",
            tool(json!({"toolType": "custom", "connectionType": "Tube", "containerPort": 1})),
            "spec.connections[0].internalToolInfo.connectionType: `Tube` is not allowed; LoadBa",
        ),
        ("datasource/nfs", json!({"path": "/a", "mountPath": "/b"}), "spec.server: must be set"),
        ("datasource/nfs", nfs("a"), "spec.path: `a` is not an absolute path"),
        ("datasource/pvc", json!({"path": "/a", "existingPvc": true}), "spec.claimName: must be"),
        ("datasource/pvc", json!({"path": "/a"}), "spec.claimInfo.size: must be set"),
        (
            "datasource/pvc",
            json!({"path": "/a", "claimInfo": {"size": "much"}}),
            "spec.claimInfo.size: ",
        ),
        ("datasource/s3", json!({"path": "/a"}), "spec.bucket: must be set"),
        ("datasource/git", json!({"path": "/a"}), "spec.repository: must be set"),
        ("datasource/host-path", json!({"path": "/a"}), "spec.mountPath: must be set"),
        (
            "datasource/host-path",
            json!({"path": "/a", "mountPath": "/b", "mountPropagation": "up"}),
            "spec.mountPropagation: `up` is not allowed",
        ),
        (
            "datasource/config-map",
            json!({"configMap": "c", "mountPath": "/b", "defaultMode": "0999"}),
            "spec.defaultMode: `0999` is not allowed; four octal digits",
        ),
        ("datasource/secrets", json!({"mountPath": "/b"}), "spec.credentialAssetId: must be set"),
    ] {
        let (path, body) =
            (format!("/api/v1/asset/{kind}"), json!({"meta": of_tenant("a"), "spec": spec}));
        refused(&server, ("POST", &path, &body), 400, message).await;
    }
}

#[tokio::test]
async fn a_wrong_query_or_id_is_refused() {
    let server = Server::with_teams().await;
    for (path, status, message) in [
        ("?projectId=x", 400, "projectId: `x` is not allowed; write a whole number"),
        ("?projectId=9", 404, "project 9 was not found"),
        ("?departmentId=9", 404, "department 9 was not found"),
        ("?clusterId=x", 404, "no cluster `x`"),
        ("?scope=all", 400, "scope: `all` is not allowed; write system or tenant or cluster"),
        ("?usageInfo=1", 400, "usageInfo: `1` is not allowed; write true or false"),
        ("?nmae=a", 400, "unknown parameter `nmae`; did you mean `name`?"),
        ("/x?name=a", 400, "unknown parameter `name`"),
        ("/x", 404, "compute-asset x was not found"),
    ] {
        refused(&server, ("GET", &format!("{COMPUTE}{path}"), &Value::Null), status, message).await;
    }
}

#[tokio::test]
async fn the_history_of_a_claim_says_who_made_it_and_who_changed_it_last() {
    let server = Server::with_teams().await;
    let claim = json!({"path": "/b", "existingPvc": true, "claimName": "c"});
    let id = keep(&server, "datasource/pvc", &of_tenant("data"), &claim).await;
    let one = format!("/api/v1/asset/datasource/pvc/{id}");
    let told = async |query: &str| -> (Vec<String>, Value) {
        let page = server.get(&format!("{one}/history{query}")).await;
        let message = |record: &Value| record["spec"]["event"]["message"].as_str().unwrap().into();
        let records = page["records"].as_array().unwrap();
        assert!(records.iter().all(|record| record["meta"]["type"] == "Event"), "{page}");
        (records.iter().map(message).collect(), page["next"].clone())
    };
    assert_eq!(told("").await, (vec!["created by ada".to_owned()], Value::Null));
    let change = json!({"meta": {"name": "data"}, "spec": claim}).to_string();
    assert_eq!(server.raw("PUT", &one, &change).await.0, StatusCode::ACCEPTED);
    assert_eq!(told("?offset=1").await, (vec!["change 1, by ada".to_owned()], Value::Null));
    assert_eq!(told("?limit=1").await, (vec!["created by ada".to_owned()], json!(1)));
    let other = keep(&server, "datasource/nfs", &of_tenant("n"), &one_of_each()[2].2).await;
    let path = format!("/api/v1/asset/datasource/pvc/{other}/history");
    assert_eq!(server.raw("GET", &path, "").await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.raw("GET", &format!("{one}/history?search=x"), "").await.0, 400);
}

#[tokio::test]
async fn null_is_an_empty_specification_where_nothing_has_to_be_said() {
    let server = Server::with_teams().await;
    let made = keep(&server, "compute", &of_tenant("nothing"), &Value::Null).await;
    let shown = server.get(&format!("{COMPUTE}/{made}")).await;
    assert_eq!(shown["spec"], json!({}), "{shown}");
    let asset = json!({"meta": of_tenant("git"), "spec": null});
    let (status, said) = server.post("/api/v1/asset/datasource/git", asset).await;
    assert_eq!(status.as_u16(), 400, "{said}");
    assert!(said["message"].as_str().unwrap().contains("spec.repository: must be set"), "{said}");
}
