//! Ports of workloads in a browser: which have an address, who comes there, and what passes.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::any;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::gateway::go_over;
use crate::iam::{self, program, text};
use crate::server::{Server, bytes};

const ALL: &str = "/api/v1/workloads/workspaces";
const LAB: &str = "lab--team-a--8888.localhost:7070";

/// A page with its request, and with the headers that a page may set for its own host.
fn pages() -> Router {
    Router::new().route("/ws", any(go_over)).fallback(async |uri: Uri, headers: HeaderMap| {
        let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
        let mut told: Value = headers.iter().map(|(name, v)| (name.to_string(), text(v))).collect();
        told["uri"] = json!(uri.to_string());
        let said =
            [("set-cookie", "own=1; Path=/"), ("x-own", "1"), ("clear-site-data", "\"cookies\"")];
        (said, axum::Json(told)).into_response()
    })
}

/// A workspace in a project, with these ports in a browser, that runs.
async fn workspace(server: &Server, project: &str, name: &str, urls: Value) -> String {
    let spec = json!({"image": "i", "exposedUrls": urls});
    let mut job = server.job(name, &spec);
    job["projectId"] = json!(project);
    let (status, made) = server.post(ALL, job).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let id = text(&made, "workloadId");
    server.phase(&id, "Running").await;
    id
}

/// A server with a lab that these may open.
async fn with_lab(mut audience: Value) -> (Server, String) {
    let server = Server::with_teams().await;
    server.engine.serve(pages());
    audience["container"] = json!(8888);
    let id = workspace(&server, "1", "lab", json!([audience])).await;
    (server, id)
}

/// Access for everyone.
fn public() -> Value {
    json!({"authorizationType": "public"})
}

fn open_port(port: u16) -> Value {
    json!({"container": port, "authorizationType": "public"})
}

async fn ask(server: &Server, host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = Request::builder().uri(path).header("host", host);
    let request = headers.iter().fold(request, |request, (name, v)| request.header(*name, *v));
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    let (status, head) = (answer.status().as_u16(), answer.headers().clone());
    Answer { status, head, body: String::from_utf8(bytes(answer).await.to_vec()).unwrap() }
}

struct Answer {
    status: u16,
    head: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.head[name].to_str().unwrap()
    }

    fn told(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}

#[tokio::test]
async fn what_is_asked_and_answered_passes_unchanged() {
    let (server, _) = with_lab(public()).await;
    let sent = [
        ("cookie", "own=1; x=y"),
        ("authorization", "token sk-1"),
        ("x-forwarded-user", "mallory"),
        ("x-own", "2"),
    ];
    let answer = ask(&server, LAB, "/a%20b//c?d=%2F&e", &sent).await;
    let told = answer.told();
    let want = [
        ("uri", "/a%20b//c?d=%2F&e"),
        ("host", LAB),
        ("cookie", "own=1; x=y"),
        ("authorization", "token sk-1"),
        ("x-own", "2"),
        ("x-forwarded-host", LAB),
        ("x-forwarded-proto", "http"),
    ];
    for (name, value) in want {
        assert_eq!(told[name], value, "{name}: {told}");
    }
    assert_eq!(
        (&told["x-forwarded-user"], &told["x-forwarded-prefix"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!((answer.header("set-cookie"), answer.header("x-own")), ("own=1; Path=/", "1"));
    assert!(!answer.head.contains_key("clear-site-data"), "siblings' visits go on");
}

#[tokio::test]
async fn hosts_of_workloads_and_of_the_server_are_apart() {
    let (server, _) = with_lab(public()).await;
    workspace(&server, "2", "lab", json!([open_port(8888)])).await;
    workspace(&server, "1", "shut", json!([])).await;
    let bearer = format!("Bearer {}", server.token);
    // Whatever the path is, it is the workload's.
    for path in ["/api/v1/workloads", "/serve/a/b/", "/elastane/v1/docs", "/healthz", "/"] {
        assert_eq!(ask(&server, LAB, path, &[]).await.told()["uri"], path);
    }
    let other = "lab--team-b--8888.localhost:7070";
    assert_eq!(ask(&server, other, "/", &[]).await.told()["host"], other);
    for (host, path, status) in [
        ("lab--team-a--80.localhost", "/healthz", 404),
        ("shut--team-a--8888.localhost", "/healthz", 404),
        ("nobody--team-a--8888.localhost", "/healthz", 404),
        ("a--b.localhost", "/healthz", 404),
        ("lab.localhost", "/healthz", 403),
        ("lab--team-a--8888.example.org", "/", 403),
        ("localhost", "/healthz", 200),
        ("localhost", "/lab--team-a--8888/", 404),
    ] {
        let sent = [("authorization", bearer.as_str())];
        let answer = ask(&server, host, path, &sent).await;
        assert_eq!(answer.status, status, "{host} {path}: {}", answer.body);
    }
}

#[tokio::test]
async fn strangers_are_not_told_which_workloads_there_are() {
    let (server, _) = with_lab(json!({"authorizationType": "authenticatedUsers"})).await;
    let there = ask(&server, LAB, "/", &[]).await;
    assert_eq!(there.status, 401, "{}", there.body);
    for nobody in
        ["nobody--team-a--8888.localhost", "lab--team-x--8888.localhost", "a--b.localhost"]
    {
        let answer = ask(&server, nobody, "/", &[]).await;
        assert_eq!((answer.status, answer.body), (401, there.body.clone()), "{nobody}");
    }
}

#[tokio::test]
async fn only_users_open_what_nothing_is_said_of() {
    let (server, id) = with_lab(json!({})).await;
    let stranger = ask(&server, LAB, "/", &[]).await;
    assert!(stranger.status == 401 && stranger.body.contains("Bearer"), "{}", stranger.body);
    let bearer = format!("Bearer {}", server.token);
    let told = ask(&server, LAB, "/", &[("authorization", &bearer)]).await.told();
    assert_eq!(told["x-forwarded-user"], "ada");
    let cookie = visit(&server, &server.token, &id).await;
    ask(&server, LAB, "/", &[("cookie", &cookie)]).await.told();
    let typed = server.get(&format!("{ALL}/{id}")).await;
    assert_eq!(typed["spec"]["exposedUrls"][0]["authorizationType"], "authenticatedUsers");
}

#[tokio::test]
async fn pages_of_other_sites_open_no_websocket_of_a_public_port() {
    let (server, _) = with_lab(public()).await;
    let own = "http://lab--team-a--8888.localhost:7070";
    for (origin, status) in [(own, 200), ("http://evil.example", 403), ("null", 403)] {
        let sent = [("upgrade", "websocket"), ("connection", "upgrade"), ("origin", origin)];
        assert_eq!(ask(&server, LAB, "/x", &sent).await.status, status, "{origin}");
    }
}

#[tokio::test]
async fn a_token_that_ended_opens_not_even_what_is_public() {
    let (server, _) = with_lab(public()).await;
    let (bot, _, token) = program(&server, "bot").await;
    server.raw("DELETE", &format!("/api/v1/service-accounts/{bot}"), "").await;
    let bearer = format!("Bearer {token}");
    assert_eq!(ask(&server, LAB, "/", &[("authorization", &bearer)]).await.status, 401);
}

#[tokio::test]
async fn no_page_keeps_a_service_worker() {
    let (server, _) = with_lab(public()).await;
    let answer = ask(&server, LAB, "/sw.js", &[("service-worker", "script")]).await;
    assert!(answer.status == 403 && answer.body.contains("service worker"), "{}", answer.body);
}

#[tokio::test]
async fn addresses_are_shown_and_are_no_others() {
    let (server, id) = with_lab(json!({"name": "lab", "toolType": "jupyter-notebook"})).await;
    let own = "http://lab--team-a--8888.localhost/";
    assert_eq!(server.get(&format!("/api/v1/workloads/{id}")).await["urls"], json!([own]));
    let typed = server.get(&format!("{ALL}/{id}")).await;
    let url = json!({"container": 8888, "name": "lab", "toolType": "jupyter-notebook",
                     "authorizationType": "authenticatedUsers"});
    assert_eq!(typed["spec"]["exposedUrls"], json!([url]));
    let given = json!([{"container": 80, "url": "http://given--team-a--80.localhost"}]);
    workspace(&server, "1", "given", given).await;
}

#[tokio::test]
async fn what_can_have_no_address_is_refused() {
    let server = Server::with_teams().await;
    let long = "a".repeat(60);
    for (name, urls, why) in [
        ("a", json!([{}]), "spec.exposedUrls[0].container: must be set"),
        ("a", json!([{"container": 0}]), "spec.exposedUrls[0].container: `0` is not a port"),
        (
            "a",
            json!([{"container": 70000}]),
            "spec.exposedUrls[0].container: `70000` is not a port",
        ),
        ("a", json!([{"container": 1}, {"container": 1}]), "spec.exposedUrls[1].container: port 1"),
        (
            "a",
            json!([{"container": 1, "name": "x"}, {"container": 2, "name": "x"}]),
            "spec.exposedUrls[1].name: `x` is there twice",
        ),
        (
            "a",
            json!([{"container": 1, "url": "http://a"}]),
            "spec.exposedUrls[0].url: `http://a` is not its address, which is http://a--team-a--1.",
        ),
        (
            "a",
            json!([{"container": 1, "authorizedGroups": ["g"]}]),
            "spec.exposedUrls[0].authorizedGroups",
        ),
        (
            "a",
            json!([{"container": 1, "authorizationType": "public", "authorizedUsers": ["u"]}]),
            "spec.exposedUrls[0].authorizedUsers: goes with",
        ),
        (
            "a",
            json!([{"container": 1, "authorizationType": "authorizedUsers"}]),
            "spec.exposedUrls[0].authorizedUsers: must name a user or group",
        ),
        ("a--b", json!([{"container": 1}]), "name: `a--b` has `--` in it"),
        ("xn", json!([{"container": 1}]), "name: no host may begin with xn--"),
        (&long, json!([{"container": 1}]), "name: the host aaaa"),
    ] {
        let job = server.job(name, &json!({"image": "i", "exposedUrls": urls}));
        let (status, said) = server.post(ALL, job).await;
        assert!(status.is_client_error(), "{urls}");
        assert!(text(&said, "message").starts_with(why), "{said}");
    }
    let kept = json!([{"container": 1, "exclude": true}]);
    let job = server.job("a--b", &json!({"image": "i", "exposedUrls": kept}));
    assert_eq!(server.post(ALL, job).await.0, StatusCode::ACCEPTED, "none is asked for");
}

#[tokio::test]
async fn those_come_who_may_and_their_tokens_stay_here() {
    let (server, _) = with_lab(json!({"authorizedUsers": ["bot"]})).await;
    let (_, _, bot) = program(&server, "bot").await;
    let (_, eve) = iam::user(&server, "eve@x.org").await;
    for (token, status, why) in [
        ("", 401, "addresses of workloads need a login"),
        ("nonsense", 401, "addresses of workloads need a login"),
        (&eve, 403, "eve@x.org is not one of its authorizedUsers"),
        (&bot, 403, "bot came after its authorizedUsers were named"),
    ] {
        let bearer = format!("Bearer {token}");
        let answer = ask(&server, LAB, "/", &[("authorization", &bearer)]).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.body.contains(why), "{}", answer.body);
    }
    workspace(&server, "1", "l2", json!([{"container": 8888, "authorizedUsers": ["bot"]}])).await;
    let bearer = format!("Bearer {bot}");
    let sent = [("authorization", bearer.as_str())];
    let told = ask(&server, "l2--team-a--8888.localhost", "/", &sent).await.told();
    assert_eq!((&told["x-forwarded-user"], &told["authorization"]), (&json!("bot"), &Value::Null));
    let refused = server
        .until("/api/v1/audit/log?numberOfSamples=500", |log| {
            log.to_string().contains("lab--team-a")
        })
        .await;
    assert!(refused.to_string().contains("eve@x.org"), "{refused}");
}

#[tokio::test]
async fn a_workload_that_does_not_run_says_so() {
    let (server, id) = with_lab(public()).await;
    server.post(&format!("{ALL}/{id}/suspend"), Value::Null).await;
    server.phase(&id, "Stopped").await;
    let bearer = format!("Bearer {}", server.token);
    for (sent, why) in [
        (vec![], "nothing answers at this address now"),
        (vec![("authorization", bearer.as_str())], "lab is Stopped"),
    ] {
        let answer = ask(&server, LAB, "/", &sent).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, "10"), "{}", answer.body);
        assert!(answer.body.contains(why), "{}", answer.body);
    }
    let page = ask(&server, LAB, "/", &[("accept", "text/html,*/*")]).await;
    assert_eq!((page.status, page.header("refresh")), (503, "5"));
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(page.body.contains("<p>nothing answers") && !page.body.contains("<script"));
    server.post(&format!("{ALL}/{id}/resume"), Value::Null).await;
    server.phase(&id, "Running").await;
    ask(&server, LAB, "/", &[]).await.told();
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_says_so() {
    let server = Server::with_teams().await;
    workspace(&server, "1", "lab", json!([{"container": 8888}])).await;
    let bearer = format!("Bearer {}", server.token);
    let answer = ask(&server, LAB, "/", &[("authorization", &bearer)]).await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("listens on port 8888"), "{}", answer.body);
}

#[tokio::test]
async fn faults_of_an_engine_are_for_those_who_see_the_workload() {
    let server = Server::with_teams().await;
    workspace(&server, "1", "lab", json!([open_port(83)])).await;
    let bearer = format!("Bearer {}", server.token);
    for (sent, why) in [
        (vec![], "nothing answers at this address now"),
        (vec![("authorization", bearer.as_str())], "connect to port 83"),
    ] {
        let answer = ask(&server, "lab--team-a--83.localhost", "/", &sent).await;
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(answer.body.contains(why), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_pod_that_waits_is_not_why_another_does_not_answer() {
    let server = Server::with_teams().await;
    let spec = json!({"image": "i", "parallelism": 2, "completions": 2,
        "compute": {"gpuDevicesRequest": 3}, "exposedUrls": [{"container": 8888}]});
    let (_, made) = server.post("/api/v1/workloads/trainings", server.job("t", &spec)).await;
    server.phase(&text(&made, "workloadId"), "Running").await;
    let bearer = format!("Bearer {}", server.token);
    let sent = [("authorization", bearer.as_str())];
    let answer = ask(&server, "t--team-a--8888.localhost", "/", &sent).await;
    assert!(answer.body.contains("listens on port 8888"), "{}", answer.body);
}

/// A connection to the lab that speaks another protocol by now.
async fn gone_over(port: u16, header: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!(
        "GET /ws HTTP/1.1\r\nHost: {LAB}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\
         {header}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    stream.write_all(b"x").await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'x');
    stream
}

#[tokio::test]
async fn what_a_connection_went_over_to_ends_with_the_token_and_with_the_server() {
    let (server, _) = with_lab(json!({"authorizationType": "authenticatedUsers"})).await;
    let port = server.listens().await;
    let (id, _, token) = program(&server, "bot").await;
    let mut of_bot = gone_over(port, &format!("Authorization: Bearer {token}")).await;
    let mut of_ada = gone_over(port, &format!("Authorization: Bearer {}", server.token)).await;
    server.raw("DELETE", &format!("/api/v1/service-accounts/{id}"), "").await;
    let mut rest = Vec::new();
    assert_eq!(of_bot.read_to_end(&mut rest).await.unwrap_or(0), 0);
    of_ada.write_all(b"y").await.unwrap();
    assert_eq!(of_ada.read_u8().await.unwrap(), b'y', "others' go on");
    server.shutdown.trigger();
    assert_eq!(of_ada.read_to_end(&mut rest).await.unwrap_or(0), 0);
}

const TICKETS: &str = "/elastane/v1/workloads";

/// The address with a ticket to the lab, for this token.
async fn ticket(server: &Server, token: &str, id: &str) -> String {
    let route = ("POST", &*format!("{TICKETS}/{id}/tickets"));
    let (status, made) = iam::call(server, token, route, &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{made}");
    text(&made, "url")
}

/// Opens a ticket; returns the cookie that a browser keeps.
async fn visit(server: &Server, token: &str, id: &str) -> String {
    let url = ticket(server, token, id).await;
    let (_, path) = url.split_once(".localhost").unwrap();
    let entered = ask(server, LAB, path, &[]).await;
    assert_eq!(entered.status, 303, "{}", entered.body);
    let cookie = entered.header("set-cookie");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_ticket_opens_once_and_a_visit_goes_on() {
    let (server, id) = with_lab(json!({"authorizationType": "authenticatedUsers"})).await;
    let url = ticket(&server, &server.token, &id).await;
    let path = url.strip_prefix("http://lab--team-a--8888.localhost").unwrap();
    let path = path.replacen("/?", "/a%20b?c=1&", 1);
    let entered = ask(&server, LAB, &path, &[]).await;
    assert_eq!(entered.status, 303, "{}", entered.body);
    assert_eq!(entered.header("location"), "http://lab--team-a--8888.localhost/a%20b?c=1");
    let kept = entered.header("set-cookie");
    assert!(kept.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax"), "{kept}");
    let cookies = format!("own=1; {}", kept.split(';').next().unwrap());
    let told = ask(&server, LAB, "/", &[("cookie", &cookies)]).await.told();
    let user = json!("ada");
    assert_eq!((&told["cookie"], &told["x-forwarded-user"]), (&json!("own=1"), &user));
    let again = ask(&server, LAB, &path, &[]).await;
    assert!(again.status == 401 && again.body.contains("was opened already"), "{}", again.body);
    // A browser that reloads the page is logged in already.
    assert_eq!(ask(&server, LAB, &path, &[("cookie", &cookies)]).await.status, 303);
}

#[tokio::test]
async fn a_visit_is_one_of_its_host_and_its_pages() {
    let (server, id) = with_lab(json!({"authorizationType": "authenticatedUsers"})).await;
    let other = json!([{"container": 8888, "authorizationType": "authenticatedUsers"}]);
    workspace(&server, "2", "lab", other).await;
    let cookie = visit(&server, &server.token, &id).await;
    for (host, origin, status) in [
        (LAB, "http://lab--team-a--8888.localhost:7070", 200),
        (LAB, "http://lab--team-b--8888.localhost:7070", 403),
        (LAB, "http://localhost:7070", 403),
        (LAB, "null", 403),
        ("lab--team-b--8888.localhost", "http://lab--team-b--8888.localhost", 401),
    ] {
        let sent = [("cookie", cookie.as_str()), ("origin", origin)];
        assert_eq!(ask(&server, host, "/", &sent).await.status, status, "{host} {origin}");
    }
    let two = format!("{cookie}; {}", visit(&server, &server.token, &id).await);
    let answer = ask(&server, LAB, "/", &[("cookie", &two)]).await;
    assert_eq!(answer.status, 401, "one of them may be set by a sibling");
    let bearer = format!("Bearer {}", server.token);
    let sent = [("authorization", bearer.as_str()), ("origin", "http://elsewhere")];
    assert_eq!(ask(&server, LAB, "/", &sent).await.status, 200, "the request had a token");
}

#[tokio::test]
async fn a_visit_ends_with_the_token_it_is_from() {
    let (server, id) = with_lab(json!({"authorizationType": "authenticatedUsers"})).await;
    let port = server.listens().await;
    let (bot, _, token) = program(&server, "bot").await;
    iam::give(&server, &bot, 9, ("project", "1")).await;
    let late = ticket(&server, &token, &id).await;
    let cookie = visit(&server, &token, &id).await;
    ask(&server, LAB, "/", &[("cookie", &cookie)]).await.told();
    let mut over = gone_over(port, &format!("Cookie: {cookie}")).await;
    server.raw("DELETE", &format!("/api/v1/service-accounts/{bot}"), "").await;
    assert_eq!(ask(&server, LAB, "/", &[("cookie", &cookie)]).await.status, 401);
    let (_, path) = late.split_once(".localhost").unwrap();
    assert_eq!(ask(&server, LAB, path, &[]).await.status, 401);
    let mut rest = Vec::new();
    assert_eq!(over.read_to_end(&mut rest).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn tickets_are_for_those_who_see_the_workload_and_may_open_it() {
    let (server, id) = with_lab(json!({"authorizedUsers": ["ada"]})).await;
    let (bot, _, token) = program(&server, "bot").await;
    let path = format!("{TICKETS}/{id}/tickets");
    let refused = async || iam::call(&server, &token, ("POST", &path), &json!({})).await.1;
    assert!(text(&refused().await, "message").contains("may not read"));
    iam::give(&server, &bot, 9, ("project", "1")).await;
    assert!(text(&refused().await, "message").contains("is not one of its authorizedUsers"));
    visit(&server, &server.token, &id).await;
    let is_there = |log: &Value| log.to_string().contains("team-a/lab: 8888");
    server.until("/api/v1/audit/log?numberOfSamples=500", is_there).await;
}

#[tokio::test]
async fn a_ticket_says_which_port_is_meant() {
    let (server, _) = with_lab(public()).await;
    let mut two = json!([open_port(8888), open_port(6006)]);
    two[0]["name"] = json!("lab");
    let two = workspace(&server, "1", "two", two).await;
    let none = workspace(&server, "1", "none", json!([])).await;
    let ask = async |id: &str, url: Value| {
        server.post(&format!("{TICKETS}/{id}/tickets"), json!({"url": url})).await
    };
    for (url, port) in [("lab", 8888), ("8888", 8888), ("6006", 6006)] {
        let (_, made) = ask(&two, json!(url)).await;
        assert_eq!(made["url"], format!("http://two--team-a--{port}.localhost/"), "no ticket");
    }
    for (id, url, status, why) in [
        (&two, Value::Null, 400, "url: say which of those of two: lab, 6006"),
        (&two, json!("tensorboard"), 400, "url: say which of those of two: lab, 6006"),
        (&none, Value::Null, 409, "none has no port that is opened in a browser"),
        (&none, json!("80"), 409, "none has no port that is opened in a browser"),
    ] {
        let (got, said) = ask(id, url).await;
        assert_eq!(got.as_u16(), status, "{said}");
        assert!(text(&said, "message").starts_with(why), "{said}");
    }
}
