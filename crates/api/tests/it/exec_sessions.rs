//! Coming to a pod over a WebSocket: what passes, who may, and when it ends.

use api_types::channel;
use axum::http::StatusCode;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::assets::{keep, of_tenant};
use crate::iam::{call, give, user};
use crate::server::Server;

/// A server that listens, with a workload that runs.
struct Place {
    server: Server,
    address: std::net::SocketAddr,
    id: String,
}

impl Place {
    async fn new() -> Self {
        let server = Server::with_teams().await;
        let id = server.train("a1", 1).await;
        server.phase(&id, "Running").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(http_kit::serve(
            listener,
            None,
            server.router.clone(),
            server.shutdown.clone(),
        ));
        Self { server, address, id }
    }

    /// This place with another workload, which the administrator submits.
    async fn with(self, name: &str, spec: Value) -> Self {
        let token = self.server.token.clone();
        self.with_of(&token, name, spec).await
    }

    async fn with_of(self, token: &str, name: &str, mut spec: Value) -> Self {
        spec["image"] = json!("i");
        let route = ("POST", "/api/v1/workloads/trainings");
        let (status, made) = call(&self.server, token, route, &self.server.job(name, &spec)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        let id = made["workloadId"].as_str().unwrap().to_owned();
        self.server.phase(&id, "Running").await;
        Self { id, ..self }
    }

    async fn come(&self, what: &str) -> Visit {
        self.come_as(&self.server.token, what).await.unwrap()
    }

    /// The visit, or the status and message of the refusal.
    async fn come_as(&self, token: &str, what: &str) -> Result<Visit, (u16, Value)> {
        let url = format!("ws://{}/elastane/v1/workloads/{}/{what}", self.address, self.id);
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let stream = TcpStream::connect(self.address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Visit(socket)),
            Err(Error::Http(answer)) => {
                let body = answer.body().as_deref().unwrap_or_default();
                Err((answer.status().as_u16(), serde_json::from_slice(body).unwrap_or_default()))
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// The status of what a page asks for: with its Origin, and headers as they are.
async fn page(place: &Place, id: &str, query: &str, headers: &[(&str, &str)]) -> u16 {
    let path = format!("/elastane/v1/workloads/{id}/exec?command=sh{query}");
    let url = format!("ws://{}{path}", place.address);
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        let name: axum::http::HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let stream = TcpStream::connect(place.address).await.unwrap();
    match client_async(request, stream).await {
        Ok(_) => 101,
        Err(Error::Http(answer)) => answer.status().as_u16(),
        Err(error) => panic!("{query}: {error}"),
    }
}

#[tokio::test]
async fn a_page_comes_by_a_ticket_that_is_good_once_and_pages_of_other_sites_do_not() {
    let place = Place::new().await;
    let id = place.id.clone();
    let other = place.server.train("a2", 1).await;
    let own = format!("http://{}", place.address);
    let bearer = format!("Bearer {}", place.server.token);
    let ticket = async |token: &str| {
        let path = format!("/elastane/v1/workloads/{id}/websocket-tickets");
        let (status, made) = call(&place.server, token, ("POST", &path), &Value::Null).await;
        let ticket = made["ticket"].as_str().unwrap_or_default();
        (status.as_u16(), format!("&elastane_ticket={ticket}"))
    };
    let (_, first) = ticket(&place.server.token).await;
    let evil = [("origin", "http://evil.example"), ("authorization", bearer.as_str())];
    assert_eq!(page(&place, &id, &first, &evil).await, 403, "a page of another site");
    assert_eq!(page(&place, &id, &first, &[("origin", "null")]).await, 403, "a page of no site");
    let from_here = [("origin", own.as_str())];
    assert_eq!(page(&place, &id, "", &from_here).await, 401, "no ticket");
    assert_eq!(page(&place, &id, "&elastane_ticket=x", &from_here).await, 401);
    assert_eq!(page(&place, &id, &first, &from_here).await, 101);
    assert_eq!(page(&place, &id, &first, &from_here).await, 401, "it was used");
    let (_, second) = ticket(&place.server.token).await;
    assert_eq!(page(&place, &other, &second, &from_here).await, 401, "of another workload");
    assert_eq!(page(&place, &id, &second, &from_here).await, 401, "and used up by that");
    let program = [("origin", own.as_str()), ("authorization", bearer.as_str())];
    assert_eq!(page(&place, &id, "", &program).await, 101, "no page sends a token");
    assert_eq!(page(&place, &id, "", &[("authorization", &bearer)]).await, 101);
}

struct Visit(WebSocketStream<TcpStream>);

impl Visit {
    async fn say(&mut self, about: u8, bytes: &[u8]) {
        self.send(&[&[about], bytes].concat()).await;
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.send(Message::Binary(bytes.to_vec().into())).await.unwrap();
    }

    async fn next(&mut self) -> Vec<u8> {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Binary(bytes) => return bytes.to_vec(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn hears(&mut self, about: u8) -> String {
        let message = self.next().await;
        assert_eq!(message[0], about, "{message:?}");
        String::from_utf8(message[1..].to_vec()).unwrap()
    }

    async fn closes(&mut self) -> CloseFrame {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Close(frame) => return frame.unwrap(),
                Message::Binary(_) | Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_command_is_told_and_heard_to_its_end() {
    let place = Place::new().await;
    let line = "exec?command=ls&command=-l%20a&stdin=true&tty=true&rows=7&columns=9&term=dumb";
    let mut visit = place.come(line).await;
    let told = visit.hears(channel::ERRORS).await;
    assert!(told.starts_with("ls -l a Some(TerminalSize { rows: 7, columns: 9 })"), "{told}");
    assert!(told.ends_with(r#"{"TERM": "dumb"}"#), "{told}");
    visit.say(channel::INPUT, b"hello").await;
    assert_eq!(visit.hears(channel::OUTPUT).await, "hello");
    visit.say(channel::SIZE, br#"{"rows":1,"columns":2}"#).await;
    assert_eq!(visit.hears(channel::OUTPUT).await, "TerminalSize { rows: 1, columns: 2 }");
    visit.say(channel::INPUT_ENDS, b"").await;
    assert_eq!(visit.hears(channel::END).await, r#"{"exitCode":3}"#);
    assert_eq!(u16::from(visit.closes().await.code), 1000);
}

#[tokio::test]
async fn what_was_submitted_with_an_input_is_typed_at() {
    let mut place = Place::new().await;
    let job = place.server.job("a2", &json!({"image": "i", "stdin": true, "tty": true}));
    let (_, made) = place.server.post("/api/v1/workloads/trainings", job).await;
    assert_eq!((&made["spec"]["stdin"], &made["spec"]["tty"]), (&json!(true), &json!(true)));
    place.id = made["workloadId"].as_str().unwrap().to_owned();
    place.server.phase(&place.id, "Running").await;
    let mut visit = place.come("attach?stdin=true&tty=true&rows=7&columns=9").await;
    visit.hears(channel::ERRORS).await;
    visit.say(channel::INPUT, b"hello").await;
    assert_eq!(visit.hears(channel::OUTPUT).await, "hello");
}

#[tokio::test]
async fn a_port_is_a_connection_in_both_directions() {
    let place = Place::new().await;
    let mut visit = place.come("portforward?port=80").await;
    let piece = vec![7; 200_000];
    visit.send(&piece).await;
    let mut back = Vec::new();
    while back.len() < piece.len() {
        back.extend(visit.next().await);
    }
    assert!(back == piece);
    visit.send(b"").await;
    assert_eq!(visit.next().await, b"", "the other side ends as well");
    assert_eq!(u16::from(visit.closes().await.code), 1000);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let place = Place::new().await;
    for (what, status, why) in [
        ("exec", 400, "command: say which program to run"),
        ("exec?command=", 400, "command: say which program to run"),
        ("exec?command=a&tty=maybe", 400, "tty: `maybe` is not allowed; write true or false"),
        ("exec?command=a&rows=0", 400, "rows: `0` is not allowed; write 1 to 10000"),
        ("exec?command=a&term=a%20b", 400, "term: a name of a kind of terminal"),
        ("exec?command=a&shell=b", 400, "unknown parameter `shell`"),
        ("exec?command=a&pod=nobody", 404, "pod nobody was not found"),
        ("attach?stdin=true", 409, "it was started without an input"),
        ("attach?command=a", 400, "unknown parameter `command`"),
        ("portforward", 400, "port: say which, 1 to 65535"),
        ("portforward?port=65536", 400, "port: `65536` is not allowed; write 1 to 65535"),
        ("portforward?port=81", 409, "no process of this pod listens on port 81"),
    ] {
        let (got, answer) = place.come_as(&place.server.token, what).await.err().unwrap();
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(got == status && message.starts_with(why), "{what}: {got} {answer}");
    }
    let path = format!("/elastane/v1/workloads/{}/exec?command=a", place.id);
    let (status, answer) = place.server.raw("GET", &path, "").await;
    let message = answer["message"].as_str().unwrap();
    assert!(status == StatusCode::BAD_REQUEST && message.contains("speaks WebSocket"), "{answer}");
}

#[tokio::test]
async fn a_message_that_means_nothing_ends_it() {
    let place = Place::new().await;
    for wrong in [&b""[..], b"\x01x", b"\x04{}"] {
        let mut visit = place.come("exec?command=a&stdin=true").await;
        visit.send(wrong).await;
        let frame = visit.closes().await;
        assert_eq!((u16::from(frame.code), &*frame.reason), (1008, "not a message of this route"));
    }
}

#[tokio::test]
async fn it_ends_with_the_session_of_the_caller() {
    let place = Place::new().await;
    let (id, token) = user(&place.server, "ann@example.org").await;
    give(&place.server, "ann@example.org", 6, ("project", "1")).await;
    let place = place.with_of(&token, "hers", json!({})).await;
    let mut visit = place.come_as(&token, "exec?command=a&stdin=true").await.unwrap();
    visit.hears(channel::ERRORS).await;
    let (status, _) = place.server.post(&format!("/api/v1/users/{id}/logout"), Value::Null).await;
    assert!(status.is_success());
    assert_eq!(u16::from(visit.closes().await.code), 1008);
    let (status, _) = place.come_as(&token, "exec?command=a").await.err().unwrap();
    assert_eq!(status, 401);
}

/// A researcher of project 1, by its token.
async fn researcher(server: &Server) -> String {
    let (_, token) = user(server, "ann@example.org").await;
    give(server, "ann@example.org", 6, ("project", "1")).await;
    token
}

fn folder(path: &str) -> Value {
    json!({"storage": {"hostPath": [{"path": path, "mountPath": "/x"}]}})
}

#[tokio::test]
async fn nobody_comes_to_what_it_could_not_have_asked_for() {
    let mut place = Place::new().await;
    let ann = researcher(&place.server).await;
    let export = json!({"server": "nas", "path": "/home", "mountPath": "/x"});
    let source = json!({"path": "/etc", "mountPath": "/x"});
    let given = keep(&place.server, "datasource/host-path", &of_tenant("etc"), &source).await;
    for (name, comes, spec) in [
        ("a", false, json!({"security": {"privileged": true}})),
        ("b", false, folder("/etc")),
        ("c", false, json!({"storage": {"nfs": [export]}})),
        ("d", true, folder("/usr/share")),
        ("e", true, json!({"assets": {"datasources": [{"id": given}]}})),
    ] {
        place = place.with(name, spec).await;
        let came = place.come_as(&ann, "exec?command=a").await;
        let status = came.err().map(|(status, _)| status);
        assert_eq!(status, (!comes).then_some(403), "{name}");
        place.come("exec?command=a").await;
    }
}

#[tokio::test]
async fn a_namesake_of_who_made_a_strong_workload_does_not_come_to_it() {
    let place = Place::new().await;
    let (id, token) = user(&place.server, "ann@example.org").await;
    give(&place.server, "ann@example.org", 1, ("tenant", "1")).await;
    let place = place.with_of(&token, "hers", folder("/etc")).await;
    let (status, _) = place.server.raw("DELETE", &format!("/api/v1/users/{id}"), "").await;
    assert!(status.is_success());
    let namesake = researcher(&place.server).await;
    let (status, _) = place.come_as(&namesake, "exec?command=a").await.err().unwrap();
    assert_eq!(status, 403);
}

#[tokio::test]
async fn who_is_no_administrator_any_more_leaves_a_strong_workload() {
    let place = Place::new().await.with("a", folder("/etc")).await;
    let ann = researcher(&place.server).await;
    let rule = give(&place.server, "ann@example.org", 1, ("tenant", "1")).await;
    let mut visit = place.come_as(&ann, "exec?command=a&stdin=true").await.unwrap();
    visit.hears(channel::ERRORS).await;
    let path = format!("/api/v1/authorization/access-rules/{rule}");
    assert!(place.server.raw("DELETE", &path, "").await.0.is_success());
    assert_eq!(u16::from(visit.closes().await.code), 1008);
}

#[tokio::test]
async fn it_ends_with_the_server() {
    let place = Place::new().await;
    let mut visits = Vec::new();
    for what in ["exec?command=a&stdin=true", "attach", "portforward?port=80"] {
        visits.push(place.come(what).await);
    }
    place.server.shutdown.trigger();
    for mut visit in visits {
        let frame = visit.closes().await;
        assert_eq!((u16::from(frame.code), &*frame.reason), (1001, "the server stops"));
    }
}

#[tokio::test]
async fn who_came_is_in_the_audit_log() {
    let place = Place::new().await;
    place.come("exec?command=cat&command=secret").await;
    place.come("portforward?port=80").await;
    place.come_as(&place.server.token, "portforward?port=81").await.err().unwrap();
    let seen = |log: &Value| {
        let text = log.to_string();
        text.contains("workload.exec") && text.contains("listens on port 81")
    };
    let path = "/api/v1/audit/log?numberOfSamples=500";
    let log = place.server.until(path, seen).await.to_string();
    assert!(
        log.contains("team-a/a1: cat") && log.contains("team-a/a1: 80") && !log.contains("secret"),
        "{log}"
    );
}
