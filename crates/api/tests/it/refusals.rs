//! Every fault has a status, the published body and a message that helps.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, read};

/// Sends one wrong request and compares the status and the beginning of the message.
pub(crate) async fn refused(
    server: &Server,
    request: (&str, &str, &Value),
    status: u16,
    message: &str,
) {
    let (method, path, body) = request;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (got, answer) = server.raw(method, path, &body).await;
    let context = format!("{method} {path} {body}\n got: {got} {answer}\nwant: {message}");
    assert_eq!(got.as_u16(), status, "{context}");
    assert_eq!(answer["code"], status, "{context}");
    assert!(answer["message"].as_str().unwrap().starts_with(message), "{context}");
}

#[tokio::test]
async fn a_wrong_creation_is_refused_by_the_name_of_its_field() {
    let server = Server::with_teams().await;
    server.train("taken", 0).await;
    let job = |name: &str, spec: Value| server.job(name, &spec);
    let image = || json!({"image": "i"});
    let gpus = |n: Value| job("a", json!({"image": "i", "compute": {"gpuDevicesRequest": n}}));
    let devices = "spec.compute.gpuDevicesRequest: ";
    let said = |what: &str| format!("{devices}{what}");
    for (body, status, message) in [
        (
            json!({"name": "a", "projectId": "9", "spec": {"image": "i"}}),
            404,
            "project 9 was not found; `runai list projects`",
        ),
        (json!({"name": "a", "projectId": "x"}), 400, "projectId: `x` is not a project id"),
        (json!({"name": "a", "projectId": 1}), 400, "projectId: a string is needed"),
        (
            json!({"name": "a", "projectId": "1", "clusterId": "x"}),
            404,
            "no cluster `x`; the only one",
        ),
        (json!({"projectId": "1"}), 400, "`name` is missing"),
        (job("taken", image()), 409, "workload `taken` already exists in project `team-a`"),
        (job("A_b", image()), 400, "name `A_b` is not allowed: "),
        (job("a", json!({})), 400, "spec.image: must be set"),
        (job("a", json!({"imgae": "i"})), 400, "spec.imgae: unknown field `imgae`; did you mean"),
        (
            job("a", json!({"storage": {"dataVolume": [1]}})),
            422,
            "spec.storage.dataVolume: there are no",
        ),
        (gpus(json!(-1)), 400, &said("`-1` is negative")),
        (gpus(json!(1e20)), 400, &said("`100000000000000000000` is too large")),
        (gpus(json!(1e-7)), 400, &said("`0.0000001` is too fine")),
        (gpus(json!(1.5)), 400, &said("`1.5` is neither a fraction")),
        (gpus(json!("nan")), 400, &said("a number is needed, not \"nan\"")),
        (Value::Null, 400, "the body is empty; send a JSON object"),
    ] {
        let request = ("POST", "/api/v1/workloads/trainings", &body);
        refused(&server, request, status, message).await;
    }
}

#[tokio::test]
async fn a_wrong_project_is_refused_by_the_name_of_its_field() {
    let server = Server::with_teams().await;
    server.train("a", 0).await;
    let (all, one) = ("/api/v1/org-unit/projects", "/api/v1/org-unit/projects/1");
    let missing = "/api/v1/org-unit/projects/9";
    let empty = json!({"name": "x", "resources": []});
    let below = json!([{"gpu": {"deserved": 3, "limit": 2}}]);
    let shares = format!("{one}/resources");
    for (request, status, message) in [
        (("POST", all, &server.team("team-a")), 409, "project `team-a` already exists"),
        (("POST", all, &server.team("Team")), 400, "name `Team` is not allowed"),
        (("POST", all, &empty), 400, "resources: has no entry"),
        (("POST", all, &json!({"name": "x"})), 400, "resources: has no entry"),
        (("PUT", &shares, &json!([])), 400, "resources: has no entry"),
        (("POST", all, &json!({"name": "Bad_Name"})), 400, "name `Bad_Name` is not allowed"),
        (
            ("PUT", missing, &json!({"resources": [{}]})),
            404,
            "project 9 was not found; `runai list projects`",
        ),
        (("PATCH", shares.as_str(), &below), 400, "the GPU limit (2) is below the GPU quota (3)"),
        (("DELETE", one, &Value::Null), 409, "project `team-a` still has 1 workload (a)"),
        (("GET", "/api/v1/org-unit/projects/x", &Value::Null), 404, "project x was not found"),
    ] {
        refused(&server, request, status, message).await;
    }
}

#[tokio::test]
async fn a_wrong_address_or_query_is_refused() {
    let server = Server::with_teams().await;
    for (path, status, message) in [
        ("/api/v1/workloads/00000000-0000-4000-8000-000000000000", 404, "workload 000"),
        ("/api/v1/workloads/x/pods", 404, "workload x was not found"),
        ("/api/v1/workloads/x/events", 404, "workload x was not found"),
        ("/api/v1/workloads/trainings/x", 404, "training x was not found"),
        ("/api/v1/clusters/x", 404, "cluster x was not found"),
        ("/api/v1/workloads?limit=0", 400, "limit: `0` is not allowed; write 1 to 500"),
        ("/api/v1/workloads?filterBy=size==1", 400, "filterBy: unknown field `size`"),
        ("/api/v1/workloads/x/pods?deleted=true", 404, "workload x was not found"),
        ("/elastane/v1/events?after=x", 400, "after: `x` is not the number of an event"),
        ("/elastane/v1/events?since=1", 400, "unknown parameter `since`; allowed is after"),
        ("/api/v1/nothing", 404, "there is no route `/api/v1/nothing`"),
        ("/api/v1/token", 405, "`/api/v1/token` does not answer GET"),
    ] {
        refused(&server, ("GET", path, &Value::Null), status, message).await;
    }
    let message = "`/api/v1/clusters` does not answer DELETE";
    refused(&server, ("DELETE", "/api/v1/clusters", &Value::Null), 405, message).await;
    let message = "workloads are created under /api/v1/workloads/trainings";
    refused(&server, ("POST", "/api/v1/workloads", &json!({})), 405, message).await;
}

#[tokio::test]
async fn a_training_is_no_workspace() {
    let server = Server::with_teams().await;
    let id = server.train("a", 0).await;
    let path = format!("/api/v1/workloads/workspaces/{id}");
    let (status, _) = server.raw("DELETE", &path, "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    server.phase(&id, "Running").await;
}

#[tokio::test]
async fn a_body_has_a_size() {
    let server = Server::with_teams().await;
    let body = server.job("a", &json!({"image": "x".repeat(1 << 20)})).to_string();
    let (status, answer) = server.raw("POST", "/api/v1/workloads/trainings", &body).await;
    assert_eq!((status.as_u16(), &answer["code"]), (413, &json!(413)));
    assert_eq!(answer["message"], "the body is larger than 1048576 bytes");
}

#[tokio::test]
async fn nothing_but_token_and_health_answers_without_a_token() {
    let server = Server::new().await;
    let routes = [
        ("GET", "/api/v1/clusters"),
        ("GET", "/api/v1/org-unit/projects"),
        ("POST", "/api/v1/workloads/trainings"),
        ("GET", "/api/v1/workloads/pods"),
        ("GET", "/elastane/v1/status"),
        ("GET", "/elastane/v1/events"),
        ("GET", "/elastane/v1/workloads/x/logs"),
        ("POST", "/elastane/v1/down"),
        ("DELETE", "/api/v1/clusters"),
    ];
    for (method, path) in routes {
        for header in [None, Some("Bearer "), Some("Bearer a.b.c"), Some("Basic YTpi")] {
            let mut request =
                Request::builder().method(method).uri(path).header("host", "localhost");
            if let Some(header) = header {
                request = request.header("authorization", header);
            }
            let answer = server.send(request.body(Body::empty()).unwrap()).await;
            let challenge = answer.headers().contains_key("www-authenticate");
            let (status, body) = read(answer).await;
            let refused = (status.as_u16(), body["code"].as_u64(), challenge);
            assert_eq!(refused, (401, Some(401), true), "{method} {path} {header:?}");
        }
    }
    let request = Request::get("/healthz").header("host", "localhost").body(Body::empty());
    assert_eq!(read(server.send(request.unwrap()).await).await.0, StatusCode::OK);
}

#[tokio::test]
async fn wrong_secrets_and_grants_get_no_token() {
    let server = Server::new().await;
    for (body, status, message) in [
        (
            json!({"grantType": "client_credentials", "clientId": "elastane-admin", "clientSecret": "x"}),
            401,
            "client id and secret do not match",
        ),
        (json!({"grantType": "password", "username": "u"}), 401, "user name and password do not"),
        (json!({"grantType": "refresh_token"}), 401, "the refresh token is not valid"),
        (json!({"grantType": "exchange_token"}), 404, "this server has no login provider"),
        (json!({"grantType": "magic"}), 400, "grantType `magic` is not"),
        (json!({}), 400, "grantType `` is not"),
        (json!({"grantType": 1}), 400, "`grantType` must be a string"),
        (json!([]), 400, "an object is needed, not a list"),
    ] {
        let request = Request::builder().method(Method::POST).uri("/api/v1/token");
        let request = request.header("host", "localhost");
        let request = request.header("content-type", "application/json");
        let request = request.body(Body::from(body.to_string()));
        let (got, answer) = read(server.send(request.unwrap()).await).await;
        assert_eq!(got.as_u16(), status, "{body} {answer}");
        assert!(answer["message"].as_str().unwrap().starts_with(message), "{body} {answer}");
    }
}

#[tokio::test]
async fn pages_of_other_hosts_are_not_served() {
    let server = Server::new().await;
    for (host, status) in [
        (Some("localhost"), 200),
        (Some("127.0.0.1:9"), 200),
        (Some("GPU-box:9"), 200),
        (Some("evil.example"), 403),
        (Some("localhost.evil.example"), 403),
        (Some("192.168.0.7"), 403),
        (None, 400),
    ] {
        let mut request = Request::get("/healthz");
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let (got, answer) = read(server.send(request.body(Body::empty()).unwrap()).await).await;
        assert_eq!(got.as_u16(), status, "{host:?} {answer}");
    }
}

#[tokio::test]
async fn a_form_of_another_site_is_not_read_as_json() {
    let server = Server::with_teams().await;
    let path = "/api/v1/workloads/trainings";
    let body = server.job("forged", &json!({"image": "i"})).to_string();
    for (media_type, said) in [
        (Some("text/plain"), "a body of the content type `text/plain` is not read here; send"),
        (Some("application/x-www-form-urlencoded"), "a body of the content type"),
        (Some("multipart/form-data; boundary=x"), "a body of the content type"),
        (None, "the body has no content type; send `Content-Type: application/json`"),
    ] {
        let request = server.request("POST", path);
        let request = media_type.into_iter().fold(request, |to, is| to.header("content-type", is));
        let answer = server.send(request.body(Body::from(body.clone())).unwrap()).await;
        let (status, answer) = read(answer).await;
        assert_eq!((status.as_u16(), &answer["code"]), (415, &json!(415)), "{media_type:?}");
        assert!(answer["message"].as_str().unwrap().starts_with(said), "{answer}");
    }
    assert_eq!(server.get("/api/v1/workloads/count").await["count"], 0, "none was made");
    assert_eq!(server.post(path, serde_json::from_str(&body).unwrap()).await.0, 202);
}

#[tokio::test]
async fn a_request_that_names_two_hosts_is_refused_on_every_route() {
    let server = Server::new().await;
    for path in ["/", "/healthz", "/api/v1/token", "/serve/a/b/", "/api/v1/workloads"] {
        for (target, hosts) in [
            (path.to_owned(), &["localhost", "localhost"][..]),
            (path.to_owned(), &["localhost", "evil.example"]),
            (path.to_owned(), &["a--p--80.localhost", "localhost"]),
            (format!("http://evil.example{path}"), &["localhost"]),
            (format!("http://a--p--80.localhost{path}"), &["localhost"]),
        ] {
            let request = Request::get(&target);
            let request = hosts.iter().fold(request, |request, host| request.header("host", *host));
            let answer = server.send(request.body(Body::empty()).unwrap()).await;
            let (status, answer) = read(answer).await;
            assert_eq!(
                (status.as_u16(), &answer["code"]),
                (400, &json!(400)),
                "{target} {hosts:?}"
            );
        }
    }
    let name = Request::get("/serve/a/b/").header("host", "evil.example");
    let answer = server.send(name.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN, "former routes check it, too");
}

#[tokio::test]
async fn every_refusal_is_json() {
    let server = Server::with_teams().await;
    for (method, path, status) in [
        ("GET", "/api/v1/workloads/%ff", 400),
        ("GET", "/api/v1/org-unit/projects/%ff%fe", 400),
        ("GET", "/serve/%ff/x/", 410),
        ("GET", "/api/v1/nothing", 404),
        ("PATCH", "/api/v1/clusters", 405),
        ("PUT", "/healthz", 405),
        ("GET", "/", 404),
        ("GET", "/elastane/v1/workloads/x/exec", 400),
    ] {
        let (got, answer) = server.raw(method, path, "").await;
        assert_eq!((got.as_u16(), &answer["code"]), (status, &json!(status)), "{method} {path}");
        assert!(!answer["message"].as_str().unwrap().is_empty(), "{method} {path}");
    }
}

#[tokio::test]
async fn parameters_that_do_nothing_are_refused() {
    let server = Server::new().await;
    for path in [
        "/api/v1/service-accounts",
        "/api/v1/access-keys",
        "/api/v1/administration/access-keys",
        "/api/v1/authorization/roles",
        "/api/v1/authorization/permissions",
    ] {
        let with = format!("{path}?filterBy=name==a");
        refused(&server, ("GET", &with, &Value::Null), 400, "unknown parameter `filterBy`").await;
    }
}

#[tokio::test]
async fn arrays_are_no_objects_and_text_has_no_control_characters() {
    let server = Server::with_teams().await;
    let job = |spec: Value| server.job("a", &spec);
    let trainings = "/api/v1/workloads/trainings";
    for (path, body, message) in [
        ("/api/v1/users", json!(["a@x.org", false]), "an object is needed, not a list"),
        (
            trainings,
            job(json!({"image": "i", "compute": [1]})),
            "spec.compute: an object is needed, not a list",
        ),
        (trainings, job(json!({"image": "a\nb"})), "spec.image: has a control character"),
        (trainings, job(json!({"image": "i", "args": "a\0"})), "spec.args: has a"),
        (
            trainings,
            job(json!({"image": "i", "labels": [{"name": "a", "value": "b\u{1b}"}]})),
            "spec.labels[0].value: has a control character",
        ),
        (
            trainings,
            job(json!({"image": "i", "workingDir": "/a\r"})),
            "spec.workingDir: has a control character",
        ),
    ] {
        refused(&server, ("POST", path, &body), 400, message).await;
    }
    let lines = job(json!({"image": "i", "args": "'a\n\tb'",
        "environmentVariables": [{"name": "A", "value": "b\nc"}]}));
    let (status, made) = server.post(trainings, lines).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_told_apart_with_the_nearest_one() {
    let server = Server::with_teams().await;
    let spec = |field: &str, value: Value| {
        let mut spec = json!({"image": "i"});
        spec[field] = value;
        server.job("a", &spec)
    };
    let (trainings, project) = ("/api/v1/workloads/trainings", "/api/v1/org-unit/projects/1");
    let rule = json!({
        "subjectId": "bob@example.org", "subjectType": "user", "roleId": 1,
        "scopeId": "1", "scopeType": "project",
    });
    let cluster = server.get("/api/v1/clusters").await[0]["uuid"].clone();
    let new = json!({"name": "new", "clusterId": cluster, "parentId": "9", "resources": [{}]});
    for (method, path, body, message) in [
        (
            "POST",
            trainings,
            spec("priorityClass", json!("trian")),
            "spec.priorityClass: there is no priority class `trian`; did you mean `train`?",
        ),
        (
            "POST",
            trainings,
            spec("nodePools", json!(["defalt"])),
            "nodePools: there is no node pool `defalt`; did you mean `default`?",
        ),
        (
            "POST",
            trainings,
            spec("nodePools", json!(["other"])),
            "nodePools: there is no node pool `other`; there is only default",
        ),
        (
            "PUT",
            project,
            json!({"defaultNodePools": ["defualt"]}),
            "defaultNodePools: there is no node pool `defualt`; did you mean `default`?",
        ),
        ("POST", "/api/v1/org-unit/projects", new, "parentId: there is no department `9`"),
        (
            "POST",
            "/api/v1/authorization/access-rules",
            rule,
            "subjectId: there is no user `bob@example.org`",
        ),
    ] {
        refused(&server, (method, path, &body), 400, message).await;
        let (_, answer) = server.raw(method, path, &body.to_string()).await;
        assert_eq!(answer["unknownName"], true, "{answer}");
    }
}

#[tokio::test]
async fn a_wrong_reason_code_is_answered_with_the_nearest() {
    let server = Server::new().await;
    for code in ["P102", "p102"] {
        let page = server.get(&format!("/elastane/v1/codes/{code}")).await;
        assert_eq!((&page["code"], &page["name"]), (&json!("P102"), &json!("NotEnoughGpus")));
    }
    for (wrong, why) in [
        ("p1o2", "there is no reason code p1o2; did you mean `P102`?"),
        ("nonsense", "there is no reason code nonsense; a code is a letter and three digits"),
    ] {
        let path = format!("/elastane/v1/codes/{wrong}");
        refused(&server, ("GET", &path, &Value::Null), 404, why).await;
    }
}

#[tokio::test]
async fn a_pod_of_kubernetes_is_not_found_without_a_cluster() {
    let server = Server::new().await;
    let path = "/elastane/v1/kubernetes/pods/team-a/train1";
    let why = "there is no pod team-a/train1: this server places no pods of Kubernetes";
    refused(&server, ("GET", path, &Value::Null), 404, why).await;
}
