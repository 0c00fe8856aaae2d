//! Silent connections cannot lock others out.

use std::time::Duration;

use http_kit::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Server;

/// Most connections of a test.
const MANY: usize = 8200;
/// Files that other tests may have open meanwhile.
const OTHERS: usize = 1500;

/// How many connections there can be with both of their ends in this process.
fn many() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).unwrap();
    let files =
        limit.maximum.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    (files.saturating_sub(OTHERS) / 2).min(MANY)
}

async fn listens(server: &Server, limits: Limits) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (router, shutdown) = (server.router.clone(), server.shutdown.clone());
    tokio::spawn(http_kit::serve_within(limits, listener, None, router, shutdown));
    port
}

async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).await.unwrap()
}

/// The status line of an answer over this connection.
async fn ask(stream: &mut TcpStream) -> String {
    try_to_ask(stream).await.unwrap()
}

/// [`ask`] over a connection that may be closed.
async fn try_to_ask(stream: &mut TcpStream) -> std::io::Result<String> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..read]).lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_is_not_http_is_answered_without_a_body_and_closed() {
    let server = Server::new().await;
    let port = server.listens().await;
    let many = "X: y\r\n".repeat(200);
    for (sent, status) in [
        ("nonsense\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost localhost\r\n\r\n", 400),
        (&*format!("GET / HTTP/1.1\r\n{many}\r\n"), 431),
    ] {
        let (mut stream, mut answer) = (connect(port).await, String::new());
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("content-length: 0") && answer.ends_with("\r\n\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn thousands_of_silent_connections_lock_nobody_out() {
    let many = many();
    assert!(many >= 200, "the limit of open files is too low for this test");
    let server = Server::new().await;
    let connections = many - 100;
    // No connection ends by itself during the test.
    let limits =
        Limits { connections, first_request: Duration::from_secs(3600), ..Limits::default() };
    let port = listens(&server, limits).await;
    let mut known = connect(port).await;
    assert_eq!(ask(&mut known).await, "HTTP/1.1 200 OK");
    let mut silent = Vec::with_capacity(many);
    for at in 0..many {
        let mut stream = connect(port).await;
        if at % 2 == 0 {
            // The head of a request that never ends.
            let _gone = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: lo").await;
        }
        silent.push(stream);
    }
    for at in 0..20 {
        assert_eq!(ask(&mut connect(port).await).await, "HTTP/1.1 200 OK", "{at}");
    }
    assert_eq!(ask(&mut known).await, "HTTP/1.1 200 OK", "it asked before, and stays");
}

#[tokio::test]
async fn who_asks_nothing_for_a_while_is_not_waited_for() {
    let server = Server::new().await;
    let first_request = Duration::from_millis(50);
    let port = listens(&server, Limits { first_request, ..Limits::default() }).await;
    for said in [&b""[..], b"GET", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "] {
        let mut stream = connect(port).await;
        stream.write_all(said).await.unwrap();
        let mut rest = Vec::new();
        assert_eq!(stream.read_to_end(&mut rest).await.unwrap_or(0), 0, "{said:?}");
    }
    // On a machine that has much to do it may come too late.
    let mut stream = loop {
        let mut stream = connect(port).await;
        if try_to_ask(&mut stream).await.is_ok_and(|answer| answer == "HTTP/1.1 200 OK") {
            break stream;
        }
    };
    tokio::time::sleep(first_request * 4).await;
    assert_eq!(ask(&mut stream).await, "HTTP/1.1 200 OK", "it asked in time");
}

async fn ask_for_events(server: &Server, stream: &mut TcpStream) {
    let head = format!(
        "GET /elastane/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        server.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_token_holds_an_eighth_of_the_places_with_streams_and_is_told() {
    let server = Server::with_teams().await;
    let port = listens(&server, Limits { connections: 32, ..Limits::default() }).await;
    let mut held = Vec::new();
    for at in 0..8 {
        let mut stream = connect(port).await;
        ask_for_events(&server, &mut stream).await;
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        let status = if at < 4 { "HTTP/1.1 200" } else { "HTTP/1.1 429" };
        let said = String::from_utf8_lossy(&answer[..read]);
        assert!(said.starts_with(status), "{at}: {said}");
        held.push(stream);
    }
    assert_eq!(ask(&mut connect(port).await).await, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn where_all_are_answered_the_next_one_is_told() {
    let server = Server::with_teams().await;
    let port = listens(&server, Limits { connections: 1, ..Limits::default() }).await;
    let mut busy = connect(port).await;
    ask_for_events(&server, &mut busy).await;
    assert!(busy.read(&mut [0; 4096]).await.unwrap() > 0, "the stream began");
    let mut answer = String::new();
    connect(port).await.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(serde_json::from_str::<api_types::Error>(body).unwrap().code, 503);
}
