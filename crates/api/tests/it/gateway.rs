//! Data that passes between a client and a replica of an inference, and data that does not.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::any;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::iam;
use crate::server::{Server, read};

const ALL: &str = "/api/v1/workloads/inferences";

/// A replica that echoes its request, and speaks for the whole origin. At `/ws` it goes over to
/// another protocol.
fn echo() -> Router {
    Router::new().route("/ws", any(go_over)).fallback(async |headers: HeaderMap| {
        let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
        let told: Value = headers.iter().map(|(name, v)| (name.to_string(), text(v))).collect();
        let said = [
            ("set-cookie", "a=b"),
            ("clear-site-data", "\"*\""),
            ("strict-transport-security", "max-age=1"),
            ("x-own", "1"),
        ];
        (said, axum::Json(told)).into_response()
    })
}

pub(crate) async fn go_over(mut request: Request<Body>) -> impl IntoResponse {
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded.await.unwrap()));
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
    });
    (StatusCode::SWITCHING_PROTOCOLS, [("connection", "upgrade"), ("upgrade", "echo")])
}

fn spec(audience: &Value, replicas: u32) -> Value {
    let mut port = audience.clone();
    port["container"] = json!(8000);
    json!({
        "image": "i", "servingPort": port,
        "autoscaling": {"minReplicas": replicas, "metric": "throughput", "metricThreshold": 10},
        "servingConfiguration": {"requestTimeoutSeconds": 60},
    })
}

/// Access for everyone.
fn public() -> Value {
    json!({"authorizationType": "public"})
}

/// An inference without a replica, whose absence is reported soon.
fn at_once(audience: &Value) -> Value {
    let mut spec = spec(audience, 0);
    spec["servingConfiguration"]["requestTimeoutSeconds"] = json!(1);
    spec
}

async fn made(server: &Server, name: &str, spec: &Value) -> String {
    let (status, made) = server.post(ALL, server.job(name, spec)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["workloadId"].as_str().unwrap().to_owned()
}

/// A server with an inference that answers everybody.
async fn serving() -> Server {
    let server = Server::with_teams().await;
    server.engine.serve(echo());
    made(&server, "svc", &spec(&public(), 1)).await;
    server
}

/// The host of `svc`.
const SVC: &str = "svc--team-a.localhost:7070";

async fn asked(server: &Server, headers: &[(&str, &str)]) -> (HeaderMap, Value) {
    let request = Request::builder().uri("/").header("host", SVC);
    let request = headers.iter().fold(request, |request, (name, v)| request.header(*name, *v));
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    let head = answer.headers().clone();
    let (status, said) = read(answer).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    (head, said)
}

/// Status and message of a request that may not pass.
async fn refusal(server: &Server, name: &str, token: &str) -> (u16, String) {
    let host = format!("{name}--team-a.localhost");
    let (status, answer) = iam::call_at(server, &host, token, ("GET", "/"), &Value::Null).await;
    (status.as_u16(), iam::text(&answer, "message"))
}

#[tokio::test]
async fn nobody_takes_away_or_adds_to_what_the_server_says() {
    let server = serving().await;
    let named = "close, X-Forwarded-User, X-Forwarded-For, X-Forwarded-Host, X-Own";
    let bearer = format!("Bearer {}", server.token);
    let sent = [
        ("authorization", bearer.as_str()),
        ("connection", named),
        ("x-own", "1"),
        ("x_forwarded_user", "mallory"),
        ("x-forwarded_user", "mallory"),
        ("x-forwarded-email", "mallory"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=mallory"),
        ("x-other", "2"),
    ];
    let (_, told) = asked(&server, &sent).await;
    let mut names: Vec<_> = told.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let ours = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
    let all = [&ours[..], &["x-forwarded-user", "x-other", "x-request-id"]].concat();
    assert_eq!(names[1..], all, "{told}");
    let (user, proto) = (&told["x-forwarded-user"], &told["x-forwarded-proto"]);
    assert_eq!((user, proto), (&json!("ada"), &json!("http")));
}

#[tokio::test]
async fn an_inference_speaks_for_its_own_host_alone() {
    let server = serving().await;
    let (head, told) = asked(&server, &[("cookie", "a=b")]).await;
    assert_eq!((&told["cookie"], &head["set-cookie"]), (&json!("a=b"), &"a=b".parse().unwrap()));
    assert!(!head.contains_key("clear-site-data"), "siblings' visits go on");
}

#[tokio::test]
async fn nothing_of_an_inference_is_answered_at_the_address_of_the_server() {
    let server = serving().await;
    let token = server.token.clone();
    for path in ["/serve/team-a/svc", "/serve/team-a/svc/", "/serve/team-a/svc/a/b?c=d"] {
        for (method, token) in [("GET", ""), ("POST", token.as_str())] {
            let (status, told) = iam::call(&server, token, (method, path), &Value::Null).await;
            assert_eq!(status, StatusCode::GONE, "{method} {path}");
            assert!(told.to_string().contains("http://svc--team-a.localhost/ "), "{told}");
        }
    }
    // The answer is the same for an inference that does not exist, and repeats only valid names.
    let (_, told) = iam::get(&server, "", "/serve/x/nothing/").await;
    assert!(told.to_string().contains("http://nothing--x.localhost/ "), "{told}");
    for path in ["/serve/%3Cb%3E/x/", "/serve/a--b/x/"] {
        let (status, told) = iam::get(&server, "", path).await;
        assert!(status == 410 && told.to_string().contains("`runai describe"), "{told}");
    }
}

#[tokio::test]
async fn a_name_that_makes_no_host_is_replaced_by_the_id() {
    let server = Server::with_teams().await;
    server.engine.serve(echo());
    for name in ["a--b", "xn"] {
        let id = made(&server, name, &spec(&json!({}), 1)).await;
        let host = format!("inference--{id}--id.localhost");
        let shown = server.get(&format!("/api/v1/workloads/{id}")).await;
        assert_eq!(shown["urls"], json!([format!("http://{host}/")]));
        let (status, told) =
            iam::call_at(&server, &host, &server.token, ("GET", "/"), &Value::Null).await;
        assert_eq!((status, &told["host"]), (StatusCode::OK, &json!(host)));
    }
    let training = server.train("t", 1).await;
    let host = format!("inference--{training}--id.localhost");
    let (status, _) = iam::call_at(&server, &host, &server.token, ("GET", "/"), &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "it is not an inference");
}

#[tokio::test]
async fn a_browser_opens_an_inference_by_a_ticket() {
    let server = Server::with_teams().await;
    server.engine.serve(echo());
    let users = json!({"authorizationType": "authenticatedUsers"});
    let id = made(&server, "svc", &spec(&users, 1)).await;
    let tickets = format!("/elastane/v1/workloads/{id}/tickets");
    let (_, ticket) = server.post(&tickets, json!({})).await;
    let url = iam::text(&ticket, "url");
    let path = url.strip_prefix("http://svc--team-a.localhost").unwrap();
    let request = Request::get(path).header("host", SVC).body(Body::empty()).unwrap();
    let entered = server.send(request).await;
    assert_eq!(entered.status(), StatusCode::SEE_OTHER, "{url}");
    let visit = entered.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap();
    let (_, told) = asked(&server, &[("cookie", visit)]).await;
    assert_eq!((&told["x-forwarded-user"], &told["cookie"]), (&json!("ada"), &Value::Null));
}

#[tokio::test]
async fn a_token_of_this_server_stays_here_and_is_refused_when_it_has_ended() {
    let server = serving().await;
    let (id, _, token) = iam::program(&server, "bot").await;
    let bearer = format!("Bearer {token}");
    let (_, told) = asked(&server, &[("authorization", &bearer)]).await;
    assert_eq!((&told["authorization"], &told["x-forwarded-user"]), (&Value::Null, &json!("bot")));
    server.raw("DELETE", &format!("/api/v1/service-accounts/{id}"), "").await;
    assert_eq!(refusal(&server, "svc", &token).await.0, 401, "also where no token is needed");
    let (_, told) = asked(&server, &[("authorization", "Bearer sk-1")]).await;
    assert_eq!(told["authorization"], "Bearer sk-1", "it is the replica's own");
}

#[tokio::test]
async fn whoever_has_no_token_is_not_told_which_inferences_there_are() {
    let server = serving().await;
    made(&server, "closed", &spec(&json!({"authorizationType": "authenticatedUsers"}), 0)).await;
    let closed = refusal(&server, "closed", "").await;
    assert_eq!(closed.0, 401);
    assert_eq!(refusal(&server, "nothing", "").await, closed);
    assert_eq!(refusal(&server, "nothing", &server.token).await.0, 404);
}

#[tokio::test]
async fn only_users_ask_an_inference_that_says_nothing_of_it() {
    let server = Server::with_teams().await;
    made(&server, "svc", &at_once(&json!({}))).await;
    made(&server, "ours", &at_once(&json!({"authorizedUsers": ["ada"]}))).await;
    let (_, eve) = iam::user(&server, "eve@x.org").await;
    // A request that passes finds no replica in time.
    for (name, token, status) in [
        ("svc", "", 401),
        ("svc", &*eve, 503),
        ("svc", &*server.token, 503),
        ("ours", &*eve, 403),
        ("ours", &*server.token, 503),
    ] {
        assert_eq!(refusal(&server, name, token).await.0, status, "{name}");
    }
}

#[tokio::test]
async fn those_named_are_who_had_the_name_then() {
    let server = Server::with_teams().await;
    let (_, eve) = iam::user(&server, "eve@x.org").await;
    let named = json!({"authorizationType": "authorizedUsers",
                       "authorizedUsers": ["Eve@X.org", "new@x.org"]});
    let id = made(&server, "svc", &at_once(&named)).await;
    let (_, new) = iam::user(&server, "new@x.org").await;
    // An admitted caller finds no replica in time.
    assert_eq!(refusal(&server, "svc", &eve).await.0, 503);
    let (status, why) = refusal(&server, "svc", &new).await;
    assert!(status == 403 && why.contains("came after its authorizedUsers"), "{status} {why}");
    // A change names users that exist now.
    let change = json!({"spec": {"image": "j"}}).to_string();
    server.raw("PATCH", &format!("{ALL}/{id}"), &change).await;
    assert_eq!(refusal(&server, "svc", &new).await.0, 503);
}

#[tokio::test]
async fn a_password_that_was_given_out_opens_no_inference() {
    let server = Server::with_teams().await;
    made(&server, "svc", &at_once(&json!({"authorizationType": "authenticatedUsers"}))).await;
    let (_, made) = server.post("/api/v1/users", json!({"email": "ann@x.org"})).await;
    let given = iam::text(&made, "tempPassword");
    let (_, granted) = iam::grant_password(&server, "ann@x.org", &given).await;
    let (status, why) = refusal(&server, "svc", &iam::text(&granted, "accessToken")).await;
    assert!(status == 403 && why.contains("POST /api/v1/me/password"), "{status} {why}");
}

#[tokio::test]
async fn why_there_is_no_replica_is_told_to_those_who_may_read_it() {
    let server = Server::with_teams().await;
    let mut many = at_once(&public());
    many["compute"] = json!({"gpuDevicesRequest": 4});
    many["autoscaling"]["minReplicas"] = json!(1);
    made(&server, "svc", &many).await;
    let (_, why) = refusal(&server, "svc", &server.token).await;
    assert!(why.contains("it waits: "), "{why}");
    let (_, eve) = iam::user(&server, "eve@x.org").await;
    for token in ["", &eve] {
        let (status, why) = refusal(&server, "svc", token).await;
        assert_eq!((status, why.as_str()), (503, "no replica was ready within 1 s"));
    }
}

/// A connection to the replica that speaks another protocol by now.
async fn gone_over(port: u16, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!(
        "GET /ws HTTP/1.1\r\nHost: {SVC}\r\nConnection: Upgrade\r\n\
         Upgrade: echo\r\nAuthorization: Bearer {token}\r\n\r\n"
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
    let server = serving().await;
    let port = server.listens().await;
    let (id, _, token) = iam::program(&server, "bot").await;
    let mut of_bot = gone_over(port, &token).await;
    let mut of_all = gone_over(port, "").await;
    server.raw("DELETE", &format!("/api/v1/service-accounts/{id}"), "").await;
    let mut rest = Vec::new();
    assert_eq!(of_bot.read_to_end(&mut rest).await.unwrap_or(0), 0);
    of_all.write_all(b"y").await.unwrap();
    assert_eq!(of_all.read_u8().await.unwrap(), b'y', "others' go on");
    server.shutdown.trigger();
    assert_eq!(of_all.read_to_end(&mut rest).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn one_for_this_machine_only_is_not_there_for_strangers_elsewhere() {
    let server = serving().await;
    made(&server, "here", &spec(&json!({"clusterLocalAccessOnly": true}), 0)).await;
    let nothing = refusal(&server, "nothing", "").await;
    assert_eq!(refusal(&server, "here", "").await, nothing);
    let (status, why) = refusal(&server, "here", &server.token).await;
    assert!(status == 403 && why.contains("its own machine only"), "{status} {why}");
}

/// Status of a request that came over a connection from this address.
async fn status_from(server: &Server, peer: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let bearer = format!("Bearer {}", server.token);
    let request = Request::builder().uri("/").header("host", SVC);
    let request = request.header("authorization", bearer);
    let request = headers.iter().fold(request, |request, (name, v)| request.header(*name, *v));
    let mut request = request.body(Body::empty()).unwrap();
    let peer: std::net::SocketAddr = format!("{peer}:1").parse().unwrap();
    request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
    let (status, told) = read(server.send(request).await).await;
    (status.as_u16(), told)
}

#[tokio::test]
async fn only_listed_proxies_say_where_a_request_comes_from() {
    let server = serving().await;
    for (peer, said, told) in [
        ("192.0.2.1", "203.0.113.9", "192.0.2.1"),
        ("10.0.0.1", "203.0.113.9", "203.0.113.9, 10.0.0.1"),
        ("10.0.0.1", "127.0.0.1, 203.0.113.9", "127.0.0.1, 203.0.113.9, 10.0.0.1"),
    ] {
        let (_, answer) = status_from(&server, peer, &[("x-forwarded-for", said)]).await;
        assert_eq!(answer["x-forwarded-for"], told, "{peer} {said}");
    }
    let is_logged = |log: &Value| log.to_string().contains("203.0.113.9");
    let path = "/api/v1/audit/log?numberOfSamples=500";
    let bad = [("x-forwarded-for", "203.0.113.9"), ("authorization", "Bearer x")];
    let mut request = Request::get("/api/v1/workloads").header("host", "localhost");
    for (name, value) in bad {
        request = request.header(name, value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    let peer: std::net::SocketAddr = "10.0.0.1:1".parse().unwrap();
    request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
    assert_eq!(server.send(request).await.status(), StatusCode::UNAUTHORIZED);
    server.until(path, is_logged).await;
}

#[tokio::test]
async fn what_came_over_a_proxy_that_is_not_listed_is_not_of_this_machine() {
    let server = Server::with_teams().await;
    server.engine.serve(echo());
    made(&server, "svc", &spec(&json!({"clusterLocalAccessOnly": true}), 1)).await;
    for (peer, headers, status) in [
        ("127.0.0.1", &[][..], 200),
        ("127.0.0.1", &[("x-forwarded-for", "127.0.0.1")], 403),
        ("127.0.0.1", &[("forwarded", "for=127.0.0.1")], 403),
        ("192.0.2.1", &[("x-forwarded-for", "127.0.0.1")], 403),
        ("10.0.0.1", &[("x-forwarded-for", "203.0.113.9")], 403),
        ("10.0.0.1", &[("x-forwarded-for", "127.0.0.1")], 403),
    ] {
        let (got, answer) = status_from(&server, peer, headers).await;
        assert_eq!(got, status, "{peer} {headers:?}: {answer}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_open_no_websocket_of_an_inference() {
    let server = serving().await;
    let (own, other) = ("http://svc--team-a.localhost:7070", "http://localhost:7070");
    for (origin, status) in [(own, 200), (other, 403), ("http://evil.example", 403)] {
        let sent = [("upgrade", "websocket"), ("connection", "upgrade"), ("origin", origin)];
        assert_eq!(status_from(&server, "127.0.0.1", &sent).await.0, status, "{origin}");
    }
}
