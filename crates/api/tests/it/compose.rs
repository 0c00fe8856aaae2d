//! Workloads that name assets and templates: precedence of values, warnings, and rejections.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::assets::{keep, of_tenant};
use crate::iam::{get, give, user};
use crate::refusals::refused;
use crate::server::Server;

const TRAININGS: &str = "/api/v1/workloads/trainings";
const TEMPLATES: &str = "/api/v1/workload-templates/trainings";

/// Submits a training and answers its specification as it is shown.
async fn submit(server: &Server, body: Value) -> Value {
    let (status, made) = server.post(TRAININGS, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["spec"].clone()
}

async fn template(server: &Server, name: &str, spec: &Value) -> String {
    let body = json!({"meta": {"name": name, "scopeType": "tenant"}, "spec": spec});
    let (status, made) = server.post(TEMPLATES, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["meta"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_workload_takes_the_values_of_the_assets_it_names() {
    let server = Server::with_teams().await;
    let lab = json!({"image": "lab:1", "args": "--quick", "environmentVariables": [
        {"name": "A", "value": "lab"}, {"name": "B", "value": "lab"}],
        "stdin": true, "tty": false});
    let lab = keep(&server, "environment", &of_tenant("lab"), &lab).await;
    let half = json!({"gpuDevicesRequest": 1, "gpuRequestType": "portion",
        "gpuPortionRequest": 0.5, "cpuMemoryRequest": "2G"});
    let half = keep(&server, "compute", &of_tenant("half"), &half).await;
    let assets = json!({"environment": lab, "compute": half});
    let spec = json!({"assets": assets, "compute": {"cpuMemoryRequest": "3G"},
        "environmentVariables": [{"name": "A", "value": "own"}]});
    let made = submit(&server, server.job("a", &spec)).await;
    assert_eq!((&made["image"], &made["args"]), (&json!("lab:1"), &json!("--quick")));
    assert_eq!(made["compute"]["gpuPortionRequest"], 0.5);
    assert_eq!(made["compute"]["cpuMemoryRequest"], "3G", "own values win");
    assert_eq!((&made["stdin"], &made["tty"]), (&json!(true), &Value::Null));
    let env = json!([{"name": "A", "value": "own"}, {"name": "B", "value": "lab"}]);
    assert_eq!((&made["environmentVariables"], &made["assets"]), (&env, &assets));
}

fn tool(name: &str, kind: &str, port: u16) -> Value {
    let info = json!({"toolType": "custom", "connectionType": kind, "containerPort": port});
    json!({"name": name, "internalToolInfo": info})
}

#[tokio::test]
async fn the_tools_of_an_environment_are_ways_to_the_workload() {
    let server = Server::with_teams().await;
    let wandb = json!({"toolType": "wandb", "externalUrl": "https://wandb.ai/lab"});
    let lab = json!({"image": "i", "connections": [
        tool("lab", "ExternalUrl", 8888), tool("board", "ExternalUrl", 6006),
        tool("ssh", "NodePort", 22), tool("api", "ServingPort", 8000),
        {"name": "runs", "isExternal": true, "externalToolInfo": wandb}]});
    let lab = keep(&server, "environment", &of_tenant("lab"), &lab).await;
    let own = json!([{"container": 8888, "name": "own", "authorizationType": "authenticatedUsers"},
        {"container": 6006, "exclude": true}]);
    let spec = json!({"exposedUrls": own, "assets": {"environment": lab}});
    let made = submit(&server, server.job("a", &spec)).await;
    let open = &made["exposedUrls"];
    assert_eq!((&open[0]["name"], &open[1]), (&json!("own"), &Value::Null), "own values win");
    assert_eq!(made["ports"], json!([{"container": 22, "serviceType": "NodePort"}]));
    assert_eq!(made["servingPort"], Value::Null, "is for inferences");
    let all = server.get("/api/v1/workloads").await;
    let ways = all["workloads"][0]["externalConnections"].as_array().unwrap();
    let ways: Vec<_> = ways.iter().map(|way| [&way["name"], &way["url"]]).collect();
    let address = json!("http://a--team-a--8888.localhost/");
    assert_eq!(
        ways,
        [
            [&json!("own"), &address],
            [&json!("22"), &Value::Null],
            [&json!("runs"), &json!("https://wandb.ai/lab")],
        ]
    );
    let spec = json!({"assets": {"environment": lab}});
    let (status, made) = server.post("/api/v1/workloads/inferences", server.job("b", &spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let spec = &made["spec"];
    assert_eq!((&spec["servingPort"]["container"], &spec["ports"]), (&json!(8000), &Value::Null));
}

#[tokio::test]
async fn tools_that_no_workload_could_have_are_refused() {
    let server = Server::with_teams().await;
    let mut address = tool("a", "ExternalUrl", 80);
    address["internalToolInfo"]["externalUrlInfo"] = json!({"externalUrl": "https://a.example"});
    let page = |url: &str| json!({"toolType": "comet", "externalUrl": url});
    let page = |url: &str| json!([{"name": "a", "externalToolInfo": page(url)}]);
    for (tools, why) in [
        (json!([{"name": "a"}]), "[0]: needs internalToolInfo or externalToolInfo, and not both"),
        (json!([tool("a", "Tunnel", 80)]), "[0].internalToolInfo.connectionType: `Tunnel` is not"),
        (
            json!([tool("a", "NodePort", 0)]),
            "[0].internalToolInfo.containerPort: `0` is not a port",
        ),
        (json!([tool("a", "NodePort", 1), tool("a", "NodePort", 2)]), "[1].name: `a` is there twi"),
        (
            json!([tool("a", "NodePort", 1), tool("b", "LoadBalancer", 1)]),
            "[1].internalToolInfo.containerPort: port 1 is there twice",
        ),
        (
            json!([tool("a", "ServingPort", 1), tool("b", "ServingPort", 2)]),
            "[1].internalToolInfo.containerPort: a second serving port",
        ),
        (json!([address]), "[0].internalToolInfo.externalUrlInfo.externalUrl: the names of"),
        (page("javascript:alert(1)"), "[0].externalToolInfo.externalUrl: `javascript:alert(1)` is"),
        (page("wandb.ai/lab"), "[0].externalToolInfo.externalUrl: `wandb.ai/lab` is not an http"),
    ] {
        let spec = json!({"image": "i", "connections": tools});
        let body = json!({"meta": of_tenant("x"), "spec": spec});
        let why = format!("spec.connections{why}");
        refused(&server, ("POST", "/api/v1/asset/environment", &body), 400, &why).await;
    }
    for (url, why) in [("", "`` is not an http:// or https:// address"), ("ftp://a", "`ftp://a`")] {
        let body = server.job("a", &json!({"image": "i", "relatedUrls": [{"url": url}]}));
        let why = format!("spec.relatedUrls[0].url: {why}");
        refused(&server, ("POST", TRAININGS, &body), 400, &why).await;
    }
}

#[tokio::test]
async fn own_values_go_before_the_template_and_that_before_its_assets() {
    let server = Server::with_teams().await;
    let old = json!({"image": "old", "args": "old", "command": "old", "workingDir": "/old"});
    let old = keep(&server, "environment", &of_tenant("old"), &old).await;
    let new = json!({"image": "new", "args": "new"});
    let new = keep(&server, "environment", &of_tenant("new"), &new).await;
    let preset = json!({"image": "preset", "args": "preset", "command": "preset",
        "assets": {"environment": old}});
    let preset = template(&server, "t", &preset).await;
    let values = |made: &Value| {
        ["image", "args", "command", "workingDir"]
            .map(|f| made[f].as_str().unwrap_or("").to_owned())
    };
    let mut body = server.job("a", &json!({"image": "own"}));
    body["templateId"] = json!(preset);
    assert_eq!(values(&submit(&server, body).await), ["own", "preset", "preset", "/old"]);
    let mut body = server.job("b", &json!({"image": "own", "assets": {"environment": new}}));
    body["templateId"] = json!(preset);
    // The environment that the request names replaces that of the template.
    assert_eq!(values(&submit(&server, body).await), ["own", "new", "preset", ""]);
    let mut body = server.job("c", &json!({}));
    body["templateId"] = json!(preset);
    assert_eq!(values(&submit(&server, body).await), ["preset", "preset", "preset", "/old"]);
}

#[tokio::test]
async fn an_inherited_variable_or_label_can_be_taken_away() {
    let server = Server::with_teams().await;
    let spec = json!({"image": "i", "environmentVariables": [{"name": "A", "value": "1"}],
        "labels": [{"name": "l", "value": "1"}]});
    let preset = template(&server, "t", &spec).await;
    let gone = json!([{"name": "A", "exclude": true}]);
    let spec = json!({"environmentVariables": gone, "labels": [{"name": "l", "exclude": true}]});
    let mut body = server.job("a", &spec);
    body["templateId"] = json!(preset);
    let made = submit(&server, body).await;
    assert_eq!((&made["environmentVariables"], &made["labels"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn an_asset_says_who_uses_it() {
    let server = Server::with_teams().await;
    let lab = keep(&server, "environment", &of_tenant("lab"), &json!({"image": "i"})).await;
    let preset = template(&server, "t", &json!({"assets": {"environment": lab}})).await;
    submit(&server, server.job("a", &json!({"assets": {"environment": lab}}))).await;
    let mut body = server.job("b", &json!({}));
    body["templateId"] = json!(preset);
    submit(&server, body).await;
    let one = format!("/api/v1/asset/environment/{lab}");
    let names = |users: &Value| {
        let all = users.as_array().unwrap().iter();
        all.map(|user| user["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let used = server.get(&format!("{one}?usageInfo=true")).await["usedBy"].clone();
    assert_eq!(names(&used["trainings"]), ["a", "b"]);
    assert_eq!((names(&used["workspaces"]), names(&used["templates"])), (vec![], vec!["t".into()]));
    assert_eq!(server.get(&one).await["usedBy"], Value::Null);
    let mut other = server.job("c", &json!({"assets": {"environment": lab}}));
    other["projectId"] = json!("2");
    submit(&server, other).await;
    let (_, ann) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "2")).await;
    for path in [one.clone(), "/api/v1/asset/environment".to_owned()] {
        let (_, seen) = get(&server, &ann, &format!("{path}?usageInfo=true")).await;
        let seen = seen.get("entries").map_or(&seen, |entries| &entries[0]);
        assert_eq!(names(&seen["usedBy"]["trainings"]), ["c"], "those of team-a are not hers");
    }
    let message = "template `t` names it; change or delete the template first";
    refused(&server, ("DELETE", &one, &Value::Null), 409, message).await;
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_by_where_it_was_named() {
    let server = Server::with_teams().await;
    let b = json!({"name": "b", "scope": "project", "projectId": 2});
    let foreign = keep(&server, "environment", &b, &json!({"image": "i"})).await;
    let mut meta = of_tenant("desk");
    meta["workloadSupportedTypes"] = json!({"workspace": true});
    let desk = keep(&server, "environment", &meta, &json!({"image": "i"})).await;
    let fields = json!({"image": "i", "environmentVariables": [
        {"name": "A", "podFieldRef": {"path": "p"}}]});
    let fields = keep(&server, "environment", &of_tenant("fields"), &fields).await;
    let body = json!({"meta": {"name": "w", "scopeType": "tenant"}, "spec": {}});
    let (_, made) = server.post("/api/v1/workload-templates/workspaces", body).await;
    let of = |assets: Value| server.job("a", &json!({"assets": assets}));
    let with_template = |id: &Value| {
        let mut body = server.job("a", &json!({}));
        body["templateId"] = id.clone();
        body
    };
    for (body, status, message) in [
        (of(json!({"environment": "x"})), 404, "spec.assets.environment: environment-asset x was"),
        (of(json!({"environment": foreign})), 404, "spec.assets.environment: environment-asset"),
        (of(json!({"compute": desk})), 404, "spec.assets.compute: compute-asset"),
        (of(json!({"environment": desk})), 400, "spec.assets.environment: `desk` is not for train"),
        (
            of(json!({"environment": fields})),
            422,
            "spec.assets.environment: environmentVariables[0].podFieldRef, which `fields` sets",
        ),
        (
            of(json!({"datasources": [{"id": "x"}]})),
            404,
            "spec.assets.datasources[0]: secret-asset x was not found",
        ),
        (of(json!({"enviroment": "x"})), 400, "spec.assets.enviroment: unknown field"),
        (with_template(&json!("x")), 404, "templateId: template x was not found"),
        (with_template(&json!(7)), 400, "templateId: a string is needed"),
        (
            with_template(&made["meta"]["id"]),
            400,
            "templateId: `w` is a template of type Workspace",
        ),
    ] {
        refused(&server, ("POST", TRAININGS, &body), status, message).await;
    }
}
