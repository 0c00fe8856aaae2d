//! Service for other clients while one keeps the server busy, over real sockets.

use axum::extract::Request;
use axum::routing::{get, post};
use tokio::sync::watch;

use super::*;
use crate::ApiError;

/// A server that counts the requests whose handlers have begun.
struct Server {
    port: u16,
    begun: watch::Receiver<usize>,
}

impl Server {
    /// Takes so many connections: a quarter of one account, an eighth of one caller.
    async fn new(connections: usize) -> Self {
        let (count, begun) = watch::channel(0_usize);
        let (of_stream, of_body) = (count.clone(), count);
        let stream = move |request: Request| async move {
            let caller = request.headers()["x-caller"].to_str().unwrap().to_owned();
            request.extensions().get::<ConnectionPermit>().unwrap().belongs_to(&caller)?;
            of_stream.send_modify(|begun| *begun += 1);
            let never = futures_util::stream::pending::<Result<&str, Infallible>>();
            Ok::<_, ApiError>(Body::from_stream(never))
        };
        let login = move |request: Request| async move {
            of_body.send_modify(|begun| *begun += 1);
            crate::read_body(request, &[crate::Format::Json]).await.map(|(bytes, _)| bytes)
        };
        let router = Router::new().route("/stream", get(stream)).route("/login", post(login));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // No connection ends by itself during the test.
        let first_request = Duration::from_secs(3600);
        let limits = Limits { connections, first_request, ..Limits::default() };
        tokio::spawn(serve_within(limits, listener, None, router, Shutdown::default()));
        Self { port, begun }
    }

    async fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        // The server may refuse it meanwhile.
        let _gone = stream.write_all(request.as_bytes()).await;
        stream
    }

    async fn has_begun(&mut self, requests: usize) {
        self.begun.wait_for(|begun| *begun >= requests).await.unwrap();
    }
}

/// A login request whose `content-length` is this number of bytes.
fn login(body: &str, bytes: usize) -> String {
    format!(
        "POST /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {bytes}\r\n\r\n{body}"
    )
}

fn stream(caller: &str) -> String {
    format!("GET /stream HTTP/1.1\r\nhost: localhost\r\nx-caller: {caller}\r\n\r\n")
}

async fn whole(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn bodies_that_never_end_lock_nobody_out() {
    let mut server = Server::new(200).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        slow.push(server.send(&login("{", 100)).await);
    }
    // All places of this account are taken.
    server.has_begun(50).await;
    for _ in 0..300 {
        slow.push(server.send(&login("{", 100)).await);
    }
    for at in 0..20 {
        let answer = whole(server.send(&login("{}", 2)).await).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("{}"), "{at}");
    }
}

#[tokio::test]
async fn streams_of_one_caller_leave_places_to_others_of_the_same_account() {
    let mut server = Server::new(200).await;
    let mut open = Vec::new();
    for _ in 0..25 {
        open.push(server.send(&stream("ada")).await);
    }
    server.has_begun(25).await;
    for _ in 0..60 {
        let mut refused = server.send(&stream("ada")).await;
        let mut answer = [0; 24];
        refused.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 429 Too Many Re");
        // Held open: a refused connection is idle, and makes room.
        open.push(refused);
    }
    let answer = whole(server.send(&login("{}", 2)).await).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    open.push(server.send(&stream("ben")).await);
    server.has_begun(25 + 1 + 1).await;
}

#[tokio::test]
async fn who_has_all_places_of_an_account_is_told_how_many_these_are() {
    let mut server = Server::new(16).await;
    let _open = [server.send(&stream("ada")).await, server.send(&stream("ada")).await];
    let _others = [server.send(&stream("ben")).await, server.send(&stream("ben")).await];
    server.has_begun(4).await;
    // The client sends nothing: closing on unread bytes would lose the response as well.
    let answer = whole(server.send("").await).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: 5"), "{head}");
    let error: api_types::Error = serde_json::from_str(body).unwrap();
    assert_eq!(
        error.message,
        "4 connections of this account or address are open, the most allowed; close some, or try \
         again in 5 s"
    );
}

#[tokio::test]
async fn requests_whose_end_a_proxy_may_see_elsewhere_are_refused() {
    let server = Server::new(16).await;
    let post = "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let both = format!("{post}content-length: 2\r\n\r\n{{}}");
    let hidden = format!("{post}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{both}");
    for (request, answers) in [
        (format!("{post}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"), "400"),
        (format!("{post}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), "400"),
        (format!("{post}connection: close\ncontent-length: 2\r\n\r\n{{}}"), "400"),
        (format!("{both}{post}x: y\n\r\n"), "200 400"),
        // No request is answered after a body whose end is not checked.
        (hidden, "200"),
    ] {
        let said = whole(server.send(&request).await).await;
        let codes = said.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3));
        assert_eq!(codes.collect::<Vec<_>>().join(" "), answers, "{request}");
    }
}

#[tokio::test]
async fn large_bodies_of_one_client_are_limited_together_and_small_ones_go_on() {
    const LARGE: usize = 1 << 20;
    let server = Server::new(200).await;
    let mut slow = Vec::new();
    for _ in 0..16 {
        slow.push(server.send(&login(&"x".repeat(LARGE - 1), LARGE)).await);
    }
    let small_and_one = "x".repeat((64 << 10) + 1);
    let refused = loop {
        let answer = whole(server.send(&login(&small_and_one, small_and_one.len())).await).await;
        // The others may not have arrived yet.
        if answer.starts_with("HTTP/1.1 429") {
            break answer;
        }
    };
    assert!(refused.contains("retry-after") && refused.contains("16 MiB"), "{refused}");
    let small = whole(server.send(&login("{}", 2)).await).await;
    assert!(small.starts_with("HTTP/1.1 200"), "{small}");
}
