//! The audit log: every change and every refusal is in it, with who and from where; no secret is.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::iam::{call, get, give, grant_client, grant_password, program, text};
use crate::server::{Server, bytes};

const LOG: &str = "/api/v1/audit/log";

/// The rows that match, the newest first.
async fn rows(server: &Server, filter: &str) -> Vec<Value> {
    let path = format!("{LOG}?numberOfSamples=500&filterBy={filter}");
    server.get(&path).await["audit_logs"].as_array().unwrap().clone()
}

/// Refusals are written after the answer.
async fn refusal(server: &Server, filter: &str) -> Value {
    let path = format!("{LOG}?filterBy={filter}");
    server.until(&path, |page| page["total"].as_u64() > Some(0)).await["audit_logs"][0].clone()
}

#[tokio::test]
async fn a_change_is_told_with_who_and_how() {
    let server = Server::with_teams().await;
    let id = server.train("t", 0).await;
    let row = &rows(&server, "entity_type==workload").await[0];
    for (field, want) in [
        ("subject", json!("ada")),
        ("subject_type", json!("User")),
        ("action", json!("create")),
        ("http_method", json!("POST")),
        ("url", json!("/api/v1/workloads/trainings")),
        ("entity_name", json!("team-a/t")),
        ("entity_id", json!(id)),
        ("result", json!("Succeeded")),
        ("tenant_id", json!("1")),
        ("metadata", json!({"operation": "workload.submit"})),
    ] {
        assert_eq!(row[field], want, "{field}: {row}");
    }
    let again = server.job("t", &json!({"image": "i"}));
    let request = server.request_with_json("POST", "/api/v1/workloads/trainings");
    let answer = server.send(request.body(Body::from(again.to_string())).unwrap()).await;
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let row = &rows(&server, &format!("request_id=={id}")).await[0];
    assert_eq!(row["result"], "Failed");
    assert!(text(&row["metadata"], "reason").contains("already exists"), "{row}");
}

#[tokio::test]
async fn who_was_not_let_in_to_an_inference_is_told() {
    let server = Server::with_teams().await;
    let spec = json!({"image": "i", "servingPort": {"container": 80,
                      "authorizationType": "authenticatedUsers"}});
    server.post("/api/v1/workloads/inferences", server.job("svc", &spec)).await;
    let stranger = Request::builder().uri("/x").header("host", "svc--team-a.localhost");
    let answer = server.send(stranger.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    let row = refusal(&server, "url==http://svc--team-a.localhost/x").await;
    assert!(
        text(&row["metadata"], "reason").contains("addresses of workloads need a login"),
        "{row}"
    );
}

#[tokio::test]
async fn every_change_of_every_family_is_told() {
    let server = Server::with_teams().await;
    let (id, _, _) = program(&server, "ci").await;
    let rule = give(&server, &id, 6, ("project", "1")).await;
    server.post("/api/v1/users", json!({"email": "a@x.org"})).await;
    server.raw("DELETE", &format!("/api/v1/authorization/access-rules/{rule}"), "").await;
    server.post(&format!("/api/v1/service-accounts/{id}/secret"), Value::Null).await;
    server.raw("DELETE", "/api/v1/org-unit/projects/2", "").await;
    let all = rows(&server, "result==Succeeded").await;
    let done: Vec<String> =
        all.iter().rev().map(|row| text(&row["metadata"], "operation")).collect();
    let want = [
        "project.create",
        "project.create",
        "service-account.create",
        "login.create",
        "access-rule.create",
        "user.create",
        "access-rule.delete",
        "service-account.update",
        "project.delete",
    ];
    assert_eq!(done, want);
}

#[tokio::test]
async fn refusals_are_told() {
    let server = Server::with_teams().await;
    let (id, secret, token) = program(&server, "ci").await;
    give(&server, &id, 9, ("project", "1")).await;
    assert_eq!(get(&server, &token, "/api/v1/org-unit/projects/2").await.0, 403);
    let row = refusal(&server, "url==/api/v1/org-unit/projects/2").await;
    assert_eq!((&row["subject"], &row["result"]), (&json!("ci"), &json!("Failed")));
    assert_eq!((&row["http_status_code"], &row["subject_type"]), (&json!(403), &json!("App")));
    assert!(text(&row["metadata"], "reason").starts_with("ci may not read projects"), "{row}");
    assert_eq!(row["action"], "sign-in", "nothing was changed");
    // A wrong secret, a revoked token, a forged one, none at all.
    assert_eq!(grant_client(&server, &id, "wrong").await.0, 401);
    let row = refusal(&server, "url==/api/v1/token,result==Failed").await;
    assert_eq!((&row["subject"], &row["http_status_code"]), (&json!(id), &json!(401)));
    server.raw("DELETE", &format!("/api/v1/service-accounts/{id}"), "").await;
    assert_eq!(get(&server, &token, "/api/v1/nodes").await.0, 401);
    let row = refusal(&server, "url==/api/v1/nodes").await;
    assert_eq!((&row["subject"], &row["http_status_code"]), (&json!("ci"), &json!(401)));
    assert_eq!(get(&server, "a.b.c", "/api/v1/clusters").await.0, 401);
    let row = refusal(&server, "url==/api/v1/clusters").await;
    assert_eq!((&row["subject"], &row["http_status_code"]), (&json!(""), &json!(401)));
    assert_eq!(grant_client(&server, &id, &secret).await.0, 401, "the secret is replayed");
    // Published clients refuse a whole page for a method they do not know.
    let odd = Request::builder().method("PURGE").uri("/api/v1/nodes/count");
    let odd = odd.header("host", "localhost");
    assert_eq!(server.send(odd.body(Body::empty()).unwrap()).await.status(), 401);
    assert_eq!(refusal(&server, "url==/api/v1/nodes/count").await["http_method"], Value::Null);
}

#[tokio::test]
async fn no_secret_is_in_the_log() {
    let server = Server::new().await;
    let (_, made) = server.post("/api/v1/users", json!({"email": "a@x.org"})).await;
    let password = text(&made, "tempPassword");
    let (_, granted) = grant_password(&server, "a@x.org", &password).await;
    let token = text(&granted, "accessToken");
    let body = json!({"currentPassword": password, "newPassword": "correct horse"});
    call(&server, &token, ("POST", "/api/v1/me/password"), &body).await;
    grant_password(&server, "a@x.org", "wrong horse").await;
    let (id, secret, _) = program(&server, "ci").await;
    get(&server, &token, &format!("/api/v1/users?search={secret}")).await;
    refusal(&server, "url==/api/v1/users,result==Failed").await;
    let log = server.get(&format!("{LOG}?limit=500")).await.to_string();
    assert!(log.contains(&id) || log.contains("ci"));
    for secret in [&password, &token, &secret, "correct horse", "wrong horse"] {
        assert!(!log.contains(secret), "{secret}");
    }
    assert!(!log.contains("argon") && !log.contains("sha256"), "{log}");
}

#[tokio::test]
async fn the_log_is_paged_filtered_and_bounded_in_time() {
    let server = Server::with_teams().await;
    let page = server.get(&format!("{LOG}?numberOfSamples=1")).await;
    assert_eq!((&page["total"], &page["next"]), (&json!(2), &json!(1)));
    assert_eq!(page["audit_logs"][0]["entity_name"], "team-b", "the newest first");
    let page = server.get(&format!("{LOG}?numberOfSamples=1&offset=1")).await;
    assert_eq!(
        (&page["audit_logs"][0]["entity_name"], &page["next"]),
        (&json!("team-a"), &Value::Null)
    );
    for (query, total) in [
        ("start=2020-01-01T00:00:00Z", 2),
        ("end=2020-01-01T00:00:00Z", 0),
        ("start=2099-01-01T00:00:00Z", 0),
        ("sortBy=timestamp&sortOrder=asc", 2),
        ("search=TEAM-A", 1),
    ] {
        assert_eq!(server.get(&format!("{LOG}?{query}")).await["total"], total, "{query}");
    }
    for query in ["start=yesterday", "filterBy=who==ann", "numberOfSamples=0", "x=1"] {
        let (status, body) = server.raw("GET", &format!("{LOG}?{query}"), "").await;
        assert_eq!((status.as_u16(), &body["code"]), (400, &json!(400)), "{query}");
    }
}

#[tokio::test]
async fn the_log_can_be_downloaded() {
    let server = Server::with_teams().await;
    let fetch = async |kind: &str| {
        let path = format!("{LOG}/file?fileType={kind}");
        let answer = server.send(server.request("GET", &path).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let about = (header("content-type"), header("content-disposition"));
        (about, String::from_utf8(bytes(answer).await.to_vec()).unwrap())
    };
    let ((kind, name), text) = fetch("CSV").await;
    assert_eq!((kind.as_str(), name.as_str()), ("text/csv", "attachment; filename=\"audit.csv\""));
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().nth(1).unwrap().contains("\"team-b\",\"2\",\"Succeeded\""), "{text}");
    let ((kind, _), text) = fetch("json").await;
    assert_eq!(kind, "application/json");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap().as_array().unwrap().len(), 2);
    let request = Request::get(format!("{LOG}/file?fileType=pdf"))
        .header("host", "localhost")
        .header("authorization", format!("Bearer {}", server.token));
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_is_done_to_one_thing_is_found_by_its_id() {
    let server = Server::with_teams().await;
    let (_, made) = server.post("/api/v1/service-accounts", json!({"name": "bot"})).await;
    let id = text(&made, "clientId");
    server.raw("DELETE", &format!("/api/v1/service-accounts/{id}"), "").await;
    let told: Vec<_> = rows(&server, &format!("entity_id=={id}")).await;
    let told: Vec<_> = told.iter().map(|row| text(&row["metadata"], "operation")).collect();
    assert_eq!(told, ["service-account.delete", "service-account.create"]);
    let again = server.team("team-a");
    assert_eq!(server.post("/api/v1/org-unit/projects", again).await.0, StatusCode::CONFLICT);
    let projects = rows(&server, "entity_type==project,entity_name==team-a").await;
    let ids: Vec<_> = projects.iter().map(|row| row["entity_id"].clone()).collect();
    assert_eq!(ids, [Value::Null, json!("1")], "what was refused never had one");
}

#[tokio::test]
async fn a_page_that_is_read_alone_is_the_page_of_all_rows() {
    let server = Server::with_teams().await;
    for number in 0..7 {
        server.train(&format!("t{number}"), 0).await;
    }
    let pages = ["limit=3", "limit=3&offset=3", "limit=2&offset=8", "offset=9", "offset=60000"];
    for page in pages {
        let alone = server.get(&format!("{LOG}?{page}")).await;
        let of_all = server.get(&format!("{LOG}?{page}&filterBy=timestamp%3E=2000-01-01")).await;
        assert_eq!(alone, of_all, "{page}");
        assert!(alone["total"].as_u64() > Some(7), "{alone}");
    }
}
