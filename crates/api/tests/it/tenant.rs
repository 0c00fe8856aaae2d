//! Parts that the installation has once: the cluster, its settings, the program to download; and
//! operations that are not served.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::iam::{call, get, give, program, user};
use crate::refusals::refused;
use crate::server::{Server, bytes};

const SETTINGS: &str = "/v1/k8s/setting";

#[tokio::test]
async fn the_cluster_is_renamed_and_nothing_else() {
    let server = Server::new().await;
    let all = "/api/v1/clusters";
    let one = format!("{all}/{}", server.cluster_id());
    for name in ["lab", "lab two"] {
        let (status, _) = server.raw("PUT", &one, &json!({"name": name}).to_string()).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        assert_eq!(server.get(&one).await["name"], name);
        assert_eq!(server.get("/elastane/v1/status").await["clusterName"], name);
    }
    refused(&server, ("PUT", &one, &json!({"name": " "})), 400, "name ").await;
    let other = json!({"name": "second"});
    refused(&server, ("POST", all, &other), 409, "a server runs one cluster, and this").await;
    refused(&server, ("DELETE", &one, &Value::Null), 409, "the server is the cluster").await;
    let unknown = format!("{all}/other");
    refused(&server, ("PUT", &unknown, &other), 404, "cluster other was not found").await;
    refused(&server, ("DELETE", &unknown, &Value::Null), 404, "cluster other").await;
}

#[tokio::test]
async fn settings_are_kept_for_administrators() {
    let server = Server::new().await;
    assert_eq!(server.get(SETTINGS).await, json!([]));
    for (value, kind, text, is_on) in [
        (json!("https://a.b"), "String", "https://a.b", true),
        (json!(false), "Boolean", "false", false),
        (json!(true), "Boolean", "true", true),
        (json!({"idleTimeout": 5}), "Object", r#"{"idleTimeout":5}"#, true),
    ] {
        let body = json!({"key": "logoutRedirectUri", "value": value}).to_string();
        let (status, said) = server.raw("PUT", SETTINGS, &body).await;
        assert_eq!((status, &said["msg"]), (StatusCode::OK, &json!("done")));
        assert_eq!(server.get(&format!("{SETTINGS}/logoutRedirectUri")).await, is_on);
        let kept = &server.get(SETTINGS).await[0];
        assert_eq!((&kept["type"], &kept["value"]), (&json!(kind), &json!(text)));
    }
    assert_eq!(server.get(SETTINGS).await.as_array().unwrap().len(), 1);
    let unknown = format!("{SETTINGS}/x");
    refused(&server, ("GET", &unknown, &Value::Null), 404, "setting x was not found").await;
    let (id, _, token) = program(&server, "viewer").await;
    give(&server, &id, 9, ("tenant", "1")).await;
    assert_eq!(get(&server, &token, SETTINGS).await.0, 403);
}

#[tokio::test]
async fn ranks_are_those_that_shares_have() {
    let server = Server::new().await;
    let ranks = server.get("/api/v1/org-unit/priorities").await["priorities"].clone();
    let names: Vec<_> =
        ranks.as_array().unwrap().iter().map(|rank| rank["name"].as_str().unwrap()).collect();
    let rising = ["VeryLow", "Low", "MediumLow", "Medium", "MediumHigh", "High", "VeryHigh"];
    assert_eq!(names, rising);
    assert_eq!(ranks[2]["isDefault"], true);
    for name in names {
        let mut team = server.team(&name.to_lowercase());
        team["resources"][0]["priority"] = json!(name);
        let (status, made) = server.post("/api/v1/org-unit/projects", team).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
    }
}

#[tokio::test]
async fn what_is_not_served_says_what_to_use() {
    let server = Server::new().await;
    for (method, path, instead) in [
        ("GET", "/api/v1/ai-applications", "applications made of several workloads"),
        ("POST", "/v1/k8s/clusters/1/projects", "use /api/v1/org-unit/projects"),
        ("PATCH", "/api/v1/apps/7", "use /api/v1/service-accounts"),
        ("GET", "/api/v2/policy/nim-services", "NIM services are submitted as inferences here"),
    ] {
        let message = format!("this operation is not served; {instead}");
        refused(&server, (method, path, &Value::Null), 501, &message).await;
        let (status, _) = call(&server, "", (method, path), &Value::Null).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
    }
}

/// Status and text of an open route.
async fn open(server: &Server, path: &str, host: &str) -> (u16, String) {
    let request = Request::builder().uri(path).header("host", host).body(Body::empty()).unwrap();
    let answer = server.send(request).await;
    let status = answer.status().as_u16();
    (status, String::from_utf8(bytes(answer).await.to_vec()).unwrap())
}

#[tokio::test]
async fn the_program_is_downloaded_for_the_machine_of_the_server() {
    let server = Server::new().await;
    let dist = "/api/v1/cli-exposer/dist";
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let own = format!("{dist}/linux/{machine}/runai");
    let (status, said) = open(&server, &own, "gpu-box").await;
    assert!(status == 404 && said.contains("started without `runai`"), "{said}");
    let content = "program ".repeat(100_000);
    std::fs::write(server.dir.path().join("runai"), &content).unwrap();
    let (status, got) = open(&server, &own, "gpu-box").await;
    assert!(status == 200 && got == content, "{status}, {} bytes", got.len());
    for other in ["darwin/arm64", "windows/amd64", "linux/riscv64"] {
        let (status, said) = open(&server, &format!("{dist}/{other}/runai"), "gpu-box").await;
        assert!(status == 404 && said.contains(&format!("no `runai` for {other}")), "{said}");
    }
}

#[tokio::test]
async fn installers_name_the_server_as_it_was_asked() {
    let server = Server::new().await;
    let of = "/api/v1/cli-exposer/installer";
    for system in ["linux", "unix"] {
        let (status, script) = open(&server, &format!("{of}/{system}"), "gpu-box:7070").await;
        assert!(status == 200 && script.starts_with("#!/bin/sh"), "{script}");
        assert!(script.contains("http://gpu-box:7070") && !script.contains('@'), "{script}");
        let (_, line) = open(&server, &format!("{of}/{system}/commands"), "gpu-box:7070").await;
        assert_eq!(line, format!("curl -fsSL http://gpu-box:7070{of}/{system} | sh\n"));
    }
    for other in ["mac", "mac/commands", "windows/commands"] {
        assert_eq!(open(&server, &format!("{of}/{other}"), "gpu-box").await.0, 404, "{other}");
    }
    assert_eq!(open(&server, "/api/v1/cli-exposer/docs/manual", "gpu-box").await.0, 404);
}

#[tokio::test]
async fn what_a_request_says_of_the_cluster_is_read() {
    let server = Server::new().await;
    let one = format!("/api/v1/clusters/{}", server.cluster_id());
    for (method, path, code, says) in [
        ("DELETE", format!("{one}?force=true"), 409, "cannot go on without"),
        ("DELETE", format!("{one}?force=now"), 400, "force: `now`"),
        ("GET", format!("{one}?verbosity=loud"), 400, "full or brief"),
        ("GET", format!("{one}?colour=red"), 400, "unknown parameter `colour`"),
        ("GET", format!("{one}/cluster-install-info?version=2.18"), 200, "nothing to install"),
        (
            "GET",
            "/api/v1/clusters/x/cluster-install-info".to_owned(),
            404,
            "cluster x was not found",
        ),
        ("GET", "/api/v1/users?filter=colour:red".to_owned(), 400, "runai.is_local:true or"),
    ] {
        let (status, body) = server.raw(method, &path, "").await;
        assert_eq!(status.as_u16(), code, "{path} {body}");
        assert!(body.to_string().contains(says), "{path} {body}");
    }
    let file = format!("/v1/k8s/clusters/{}/installfile?format=yaml", server.cluster_id());
    let answer = server.send(server.request("GET", &file).body(Body::empty()).unwrap()).await;
    let text = bytes(answer).await;
    assert_eq!(text, "# nothing to install: this server is the cluster `local`\n");
}

#[tokio::test]
async fn people_and_rules_are_found_by_the_older_parameters() {
    let server = Server::with_teams().await;
    let (bot, _, _) = program(&server, "bot").await;
    user(&server, "ann@x.org").await;
    for subject in [&bot, "ann@x.org"] {
        give(&server, subject, 9, ("project", "1")).await;
    }
    let found = async |query: &str| {
        let page = server.get(&format!("/api/v1/authorization/access-rules?{query}")).await;
        page["accessRules"].as_array().unwrap().len()
    };
    let cluster = server.cluster_id();
    for (query, want) in [
        (format!("subjectIds={bot},ann@x.org"), 2),
        ("subjectIds=ann@x.org".to_owned(), 1),
        ("subjectIdFilter=x.org".to_owned(), 1),
        ("subjectType=user&lastUpdated=2026-01-01".to_owned(), 1),
        ("lastUpdated=2099-01-01T00:00:00Z".to_owned(), 0),
        (format!("clusterId={cluster}&roleId=9"), 2),
        ("clusterId=another".to_owned(), 0),
    ] {
        assert_eq!(found(&query).await, want, "{query}");
    }
    for query in ["lastUpdated=soon", "includeDeleted=maybe", "roleId=8,9"] {
        let path = format!("/api/v1/authorization/access-rules?{query}");
        assert_eq!(server.raw("GET", &path, "").await.0, 400, "{query}");
    }
    for (filter, want) in [("true", 1), ("false", 0)] {
        let users = server.get(&format!("/api/v1/users?filter=runai.is_local:{filter}")).await;
        assert_eq!(users.as_array().unwrap().len(), want, "{users}");
    }
}

#[tokio::test]
async fn the_storage_class_of_the_machine_is_listed() {
    let server = Server::new().await;
    let cluster = server.cluster_id();
    for path in ["/api/v1/storage-classes", "/api/v2/storage-classes"] {
        let all = server.get(&format!("{path}?clusterId={cluster}&includeNone=true")).await;
        let class = &all["items"][0];
        assert_eq!(all["items"].as_array().unwrap().len(), 1, "{path}");
        assert_eq!(
            (&class["storageClassName"], &class["clusterId"]),
            (&json!("local"), &json!(cluster))
        );
        assert_eq!(class["spec"]["isDefault"], true);
        assert_eq!(
            class["customization"]["accessMode"]["default"],
            json!({"readWriteMany": true,
            "readWriteOnce": false, "readOnlyMany": false})
        );
        let named = async |name: &str| server.get(&format!("{path}?name={name}")).await;
        assert_eq!(named("local").await, all, "{path}");
        assert_eq!(named("fast").await, json!({"items": []}), "{path}");
        let other = format!("{path}?clusterId=other");
        refused(&server, ("GET", &other, &Value::Null), 404, "no cluster `other`").await;
    }
    let names = server.get(&format!("/v1/k8s/clusters/{cluster}/storage-classes")).await;
    assert_eq!(names, json!({"storageClasses": ["local"]}));
    // A member sees what there is to claim.
    let (id, _, token) = program(&server, "viewer").await;
    give(&server, &id, 9, ("tenant", "1")).await;
    assert_eq!(get(&server, &token, "/api/v2/storage-classes").await.0, 200);
}
