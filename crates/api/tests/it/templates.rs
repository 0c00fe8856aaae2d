//! Workload templates: kept, listed, changed, and refused by the name of the field.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::assets::{keep as asset, of_tenant};
use crate::iam::{get, give, user};
use crate::policy::{set_for, tenant};
use crate::refusals::refused;
use crate::server::Server;

const ALL: &str = "/api/v1/workload-templates";

async fn keep(server: &Server, of_type: &str, name: &str, spec: &Value) -> String {
    let meta = json!({"name": name, "scopeType": "project", "scopeId": "1"});
    let path = format!("{ALL}/{of_type}");
    let (status, made) = server.post(&path, json!({"meta": meta, "spec": spec})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["meta"]["id"].as_str().unwrap().to_owned()
}

fn names(list: &Value) -> Vec<&str> {
    let entries = list["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["meta"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_type_has_templates_of_its_own() {
    let server = Server::with_teams().await;
    for (path, of_type, spec) in [
        ("trainings", "Training", json!({"image": "i"})),
        ("workspaces", "Workspace", json!({"image": "i"})),
        ("distributed", "Distributed", json!({"numWorkers": 2})),
        ("inferences", "Inference", json!({"servingPort": {"container": 80}})),
    ] {
        let id = keep(&server, path, path, &spec).await;
        let kept = server.get(&format!("{ALL}/{path}/{id}")).await;
        assert_eq!((&kept["spec"], &kept["meta"]["workloadType"]), (&spec, &json!(of_type)));
        let scope = (&kept["meta"]["scopeId"], &kept["meta"]["projectId"]);
        assert_eq!(scope, (&json!("1"), &json!(1)));
        assert_eq!(server.get(&format!("{ALL}/{id}")).await, kept);
        assert_eq!(names(&server.get(&format!("{ALL}/{path}")).await), [path]);
    }
    let list = server.get(&format!("{ALL}?sortBy=name&limit=2")).await;
    assert_eq!(names(&list), ["distributed", "inferences"]);
    assert_eq!(list["pagination"], json!({"total": 4, "next": 2}));
    let count = server.get(&format!("{ALL}/count?filterBy=workloadType==Training")).await;
    assert_eq!(count["count"], 1);
    assert_eq!(names(&server.get(&format!("{ALL}?search=work")).await), ["workspaces"]);
}

#[tokio::test]
async fn a_template_is_replaced_changed_and_deleted() {
    let server = Server::with_teams().await;
    let id = keep(&server, "trainings", "a", &json!({"image": "i", "args": "x"})).await;
    let one = format!("{ALL}/trainings/{id}");
    let patch = json!({"meta": {"description": "d"}, "spec": {"args": "y"}});
    let (_, made) = server.raw("PATCH", &one, &patch.to_string()).await;
    let want = (&json!({"image": "i", "args": "y"}), &json!("d"));
    assert_eq!((&made["spec"], &made["meta"]["description"]), want);
    let (_, made) = server.raw("PUT", &one, &json!({"spec": {"args": "z"}}).to_string()).await;
    assert_eq!((&made["spec"], &made["meta"]["name"]), (&json!({"args": "z"}), &json!("a")));
    assert_eq!(server.raw("DELETE", &one, "").await.0, StatusCode::NO_CONTENT);
    refused(&server, ("GET", &one, &Value::Null), 404, "template").await;
}

#[tokio::test]
async fn what_a_template_names_must_be_there_for_it_and_stays() {
    let server = Server::with_teams().await;
    let foreign = json!({"name": "x", "scope": "project", "projectId": 2});
    let foreign = asset(&server, "compute", &foreign, &json!({})).await;
    let own = json!({"name": "y", "scope": "project", "projectId": 1});
    let own = asset(&server, "compute", &own, &json!({})).await;
    let source = json!({"server": "s", "path": "/a", "mountPath": "/b"});
    let source = asset(&server, "datasource/nfs", &of_tenant("z"), &source).await;
    let naming = |assets: Value| {
        json!({"meta": {"name": "t", "scopeType": "project", "scopeId": "1"},
            "spec": {"assets": assets}})
    };
    for path in ["trainings", "distributed"] {
        let path = format!("{ALL}/{path}");
        let body = naming(json!({"compute": foreign}));
        let why = "spec.assets.compute: compute-asset";
        refused(&server, ("POST", &path, &body), 404, why).await;
        let body = naming(json!({"datasources": [{"id": "x"}]}));
        let why = "spec.assets.datasources: asset x was not found";
        refused(&server, ("POST", &path, &body), 404, why).await;
        let body = naming(json!({"compute": own, "datasources": [{"id": source}]}));
        let (status, made) = server.post(&path, body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        let why = "template `t` names it; change or delete the template first";
        for asset in [format!("compute/{own}"), format!("datasource/nfs/{source}")] {
            let asset = format!("/api/v1/asset/{asset}");
            refused(&server, ("DELETE", &asset, &Value::Null), 409, why).await;
        }
        let one = format!("{path}/{}", made["meta"]["id"].as_str().unwrap());
        let (status, changed) =
            server.raw("PATCH", &one, &json!({"spec": {"assets": null}}).to_string()).await;
        assert_eq!(status, StatusCode::OK, "{changed}");
        server.raw("DELETE", &one, "").await;
    }
    let delete = format!("/api/v1/asset/compute/{own}");
    assert_eq!(server.raw("DELETE", &delete, "").await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn of_changes_at_once_none_is_lost() {
    let server = Server::with_teams().await;
    let id = keep(&server, "trainings", "a", &json!({"image": "i"})).await;
    let one = format!("{ALL}/trainings/{id}");
    let parts = [
        json!({"spec": {"args": "x"}}),
        json!({"spec": {"command": "c"}}),
        json!({"spec": {"workingDir": "/w"}}),
        json!({"spec": {"compute": {"gpuDevicesRequest": 1}}}),
        json!({"meta": {"description": "d"}}),
    ];
    let all = parts.map(|part| part.to_string());
    let all = all.iter().map(|part| server.raw("PATCH", &one, part));
    for (status, changed) in futures_util::future::join_all(all).await {
        assert_eq!(status, StatusCode::OK, "{changed}");
    }
    let kept = server.get(&one).await;
    let want = json!({"image": "i", "args": "x", "command": "c", "workingDir": "/w",
        "compute": {"gpuDevicesRequest": 1}});
    assert_eq!((&kept["spec"], &kept["meta"]["description"]), (&want, &json!("d")));
    let clear = json!({"meta": {"description": ""}}).to_string();
    let (_, cleared) = server.raw("PATCH", &one, &clear).await;
    assert_eq!((&cleared["spec"], &cleared["meta"]["description"]), (&want, &Value::Null));
}

#[tokio::test]
async fn a_name_is_free_or_not_in_its_scope() {
    let server = Server::with_teams().await;
    keep(&server, "trainings", "a", &json!({})).await;
    for (query, status) in [
        ("templateName=a&scopeType=project&scopeId=1", StatusCode::CONFLICT),
        ("templateName=a&scopeType=project&scopeId=2", StatusCode::NO_CONTENT),
        ("templateName=b&scopeType=project&scopeId=1", StatusCode::NO_CONTENT),
        ("templateName=a&scopeType=tenant", StatusCode::NO_CONTENT),
    ] {
        let got = server.raw("GET", &format!("{ALL}/name-availability?{query}"), "").await;
        assert_eq!(got.0, status, "{query}: {}", got.1);
    }
    let (_, ann) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "1")).await;
    for (id, status) in [("1", 409), ("2", 403)] {
        let query = format!("templateName=a&scopeType=project&scopeId={id}");
        let (got, _) = get(&server, &ann, &format!("{ALL}/name-availability?{query}")).await;
        assert_eq!(got, status, "a stranger asks nothing of project {id}");
    }
    let body = json!({"meta": {"name": "a", "scopeType": "project", "scopeId": "1"}});
    let path = format!("{ALL}/workspaces");
    refused(&server, ("POST", &path, &body), 409, "template `a` already exists").await;
}

#[tokio::test]
async fn a_wrong_template_is_refused_by_the_name_of_its_field() {
    let server = Server::with_teams().await;
    let id = keep(&server, "trainings", "a", &json!({})).await;
    let path = format!("{ALL}/trainings");
    let with = |spec: Value| json!({"meta": {"name": "b", "scopeType": "tenant"}, "spec": spec});
    let of = |meta: Value| json!({"meta": meta});
    for (body, status, message) in [
        (with(json!({"imgae": "i"})), 400, "spec.imgae: unknown field `imgae`"),
        (
            with(json!({"priorityClass": "x"})),
            400,
            "spec.priorityClass: there is no priority class `x`",
        ),
        (with(json!({"compute": {"gpuDevicesRequest": 0.5}})), 400, "spec.compute.gpuDevicesR"),
        (with(json!({"args": "'"})), 400, "spec.args: `'` has a quote that is not closed"),
        (of(json!({"name": "b"})), 400, "meta: `scopeType` is missing"),
        (of(json!({"name": "b", "scopeType": "project"})), 400, "meta.scopeId: must be set with"),
        (
            of(json!({"name": "b", "scopeType": "project", "scopeId": "x"})),
            400,
            "meta.scopeId: `x` is not a project id",
        ),
        (
            of(json!({"name": "b", "scopeType": "department", "scopeId": "x"})),
            404,
            "department x was not found",
        ),
        (of(json!({"name": "b", "scopeType": "system"})), 400, "meta.scope: `system` is the prog"),
        (
            of(json!({"name": "b", "scopeType": "tenant", "description": ""})),
            400,
            "meta.description: has 0 characters",
        ),
    ] {
        refused(&server, ("POST", &path, &body), status, message).await;
    }
    for (method, path, status, message) in [
        ("GET", format!("{ALL}/workspaces/{id}"), 404, "template "),
        ("DELETE", format!("{ALL}/workspaces/{id}"), 404, "template "),
        ("GET", format!("{ALL}/x"), 404, "template x was not found"),
        ("GET", format!("{ALL}?filterBy=size==1"), 400, "filterBy: unknown field `size`"),
        ("GET", format!("{ALL}/name-availability"), 400, "templateName: must be set"),
        (
            "GET",
            format!("{ALL}/name-availability?templateName=a&scopeType=x"),
            400,
            "scopeType: `x` is not a valid scope",
        ),
        ("GET", format!("{ALL}/name-availability?nmae=a"), 400, "unknown parameter `nmae`"),
        ("PUT", format!("{ALL}/inferences/{id}"), 405, ""),
    ] {
        refused(&server, (method, &path, &Value::Null), status, message).await;
    }
}

/// Keeps a template of distributed workloads with a master and answers its id.
async fn gang(server: &Server, master: &Value) -> String {
    let spec = json!({"image": "i", "distributedFramework": "PyTorch", "args": "work"});
    let meta = json!({"name": "g", "scopeType": "tenant"});
    let body = json!({"meta": meta, "spec": spec, "master": {"spec": master}});
    let (status, made) = server.post(&format!("{ALL}/distributed"), body).await;
    assert_eq!((status, &made["master"]["spec"]), (StatusCode::ACCEPTED, master), "{made}");
    made["meta"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_distributed_workload_takes_its_master_from_the_template_and_the_rest_from_policies() {
    let server = Server::with_teams().await;
    let defaults =
        json!({"worker": {"numWorkers": 2, "args": "policy"}, "master": {"workingDir": "/m"}});
    set_for(&server, "distributed", tenant(), json!({"defaults": defaults})).await;
    let id = gang(&server, &json!({"args": "lead", "command": "c"})).await;
    let submit = async |name: &str, more: Value| {
        let mut body = json!({"name": name, "projectId": "1", "templateId": id});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, made) = server.post("/api/v1/workloads/distributed", body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        made
    };
    let plain = submit("a", json!({})).await;
    assert_eq!((&plain["spec"]["args"], &plain["spec"]["numWorkers"]), (&json!("work"), &json!(2)));
    let of =
        |made: &Value| ["args", "command", "workingDir"].map(|f| made["masterSpec"][f].clone());
    assert_eq!(of(&plain), ["lead", "c", "/m"].map(Value::from));
    let own = submit("b", json!({"masterSpec": {"args": "own"}})).await;
    assert_eq!(of(&own), ["own", "c", "/m"].map(Value::from));
    let same = submit("c", json!({"masterSpecSameAsWorker": true})).await;
    assert_eq!(same["masterSpecSameAsWorker"], json!(true));
    let inference = json!({"meta": {"name": "s", "scopeType": "tenant"},
        "spec": {"image": "i", "servingPort": {"container": 80}}});
    let (_, kept) = server.post(&format!("{ALL}/inferences"), inference).await;
    let body = json!({"name": "s", "projectId": "1", "templateId": kept["meta"]["id"]});
    let (status, made) = server.post("/api/v1/workloads/inferences", body).await;
    assert_eq!(
        (status, &made["spec"]["servingPort"]["container"]),
        (StatusCode::ACCEPTED, &json!(80))
    );
}

#[tokio::test]
async fn a_change_of_a_template_can_take_values_away() {
    let server = Server::with_teams().await;
    let one = format!("{ALL}/distributed/{}", gang(&server, &json!({"args": "lead"})).await);
    let clear = json!({"fieldsToClear": ["spec.image", "master.spec.args"], "spec": {"args": "x"},
        "master": {"spec": {"command": "c"}}});
    let (_, made) = server.raw("PATCH", &one, &clear.to_string()).await;
    let spec = json!({"distributedFramework": "PyTorch", "args": "x"});
    assert_eq!((&made["spec"], &made["master"]["spec"]), (&spec, &json!({"command": "c"})));
    let same = json!({"masterSpecSameAsWorker": true});
    let (_, made) = server.raw("PATCH", &one, &same.to_string()).await;
    assert_eq!((made.get("master"), &made["masterSpecSameAsWorker"]), (None, &json!(true)));
    for (method, body, status, message) in [
        (
            "PATCH",
            json!({"fieldsToClear": ["spec.imgae"]}),
            400,
            "fieldsToClear[0]: `spec.imgae` is not",
        ),
        (
            "PUT",
            json!({"fieldsToClear": ["spec.args"]}),
            400,
            "fieldsToClear: goes with PATCH only",
        ),
        (
            "PUT",
            json!({"master": {"spec": {"tty": true, "labels": []}}}),
            400,
            "master.spec.labels: is one",
        ),
        (
            "PUT",
            json!({"master": {"spec": {"args": "'"}}}),
            400,
            "master.spec.args: `'` has a quote",
        ),
        (
            "PUT",
            json!({"master": {"assets": {"compute": "x"}}}),
            422,
            "master.assets: not supported",
        ),
        (
            "PUT",
            json!({"master": {"spec": {}}, "masterSpecSameAsWorker": true}),
            400,
            "master.spec: goes",
        ),
    ] {
        refused(&server, (method, &one, &body), status, message).await;
    }
    let path = format!("{ALL}/trainings");
    let body = json!({"meta": {"name": "x", "scopeType": "tenant"}, "master": {"spec": {}}});
    let message = "master.spec: goes with distributed workloads only";
    refused(&server, ("POST", &path, &body), 400, message).await;
}

#[tokio::test]
async fn a_template_has_the_fields_of_its_kind_of_workload() {
    let server = Server::with_teams().await;
    let with = |spec: Value| json!({"meta": {"name": "b", "scopeType": "tenant"}, "spec": spec});
    for (kind, spec, message) in [
        ("distributed", json!({"numWorker": 2}), "spec.numWorker: unknown field `numWorker`; did"),
        ("distributed", json!({"completions": 2}), "spec.completions: goes with trainings only"),
        (
            "inferences",
            json!({"servingPort": {"contaner": 1}}),
            "spec.servingPort.contaner: unknown",
        ),
        (
            "inferences",
            json!({"backoffLimit": 1}),
            "spec.backoffLimit: goes with workloads that end",
        ),
        (
            "workspaces",
            json!({"numWorkers": 2}),
            "spec.numWorkers: goes with distributed workloads",
        ),
    ] {
        refused(&server, ("POST", &format!("{ALL}/{kind}"), &with(spec)), 400, message).await;
    }
}
