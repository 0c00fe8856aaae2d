//! Streams: events without a gap, and output of workloads.

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, Response, StatusCode};
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::iam::{give, user};
use crate::server::{Server, bytes, read};

/// A reader of server-sent events.
struct Events {
    body: BodyDataStream,
    text: String,
}

impl Events {
    fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let line = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
                let (id, data) = (line("id: ").unwrap(), line("data: ").unwrap());
                let event: Value = serde_json::from_str(data).unwrap();
                assert_eq!(id, event["seq"].to_string());
                self.text = rest.to_owned();
                return Some(event);
            }
            let chunk = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn subscribe(server: &Server, path: &str, last: Option<&str>) -> Events {
    let mut request = server.request("GET", path);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    Events::of(server.send(request.body(Body::empty()).unwrap()).await)
}

#[tokio::test]
async fn events_come_from_now_on() {
    let server = Server::with_teams().await;
    let mut events = subscribe(&server, "/elastane/v1/events", None).await;
    server.train("a1", 1).await;
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "Started") {
        let event = events.next().await.unwrap();
        assert_eq!(event["workloadName"], "a1");
        kinds.push(event["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds, ["Submitted", "Scheduled", "Started"]);
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was_and_misses_nothing() {
    let server = Server::with_teams().await;
    // More than one batch of the log, so that reading up takes several.
    for number in 0..300 {
        server.train(&format!("w{number}"), 0).await;
    }
    let seen = server.get("/elastane/v1/status").await["eventSeq"].as_u64().unwrap();
    assert!(seen > 600, "{seen}");
    let mut events = subscribe(&server, "/elastane/v1/events?after=999999", Some("1")).await;
    server.train("last", 0).await;
    let mut expected = 2;
    loop {
        let event = events.next().await.unwrap();
        assert_eq!(event["seq"], expected, "without a gap, each once");
        expected += 1;
        if event["workloadName"] == "last" && event["kind"] == "Started" {
            break;
        }
    }
}

#[tokio::test]
async fn streams_end_with_the_server() {
    let server = Server::with_teams().await;
    let id = server.train("a1", 1).await;
    server.phase(&id, "Running").await;
    let mut events = subscribe(&server, "/elastane/v1/events", None).await;
    let path = format!("/elastane/v1/workloads/{id}/logs?follow=true&tail=3");
    let output = server.send(server.request("GET", &path).body(Body::empty()).unwrap()).await;
    let mut output = output.into_body().into_data_stream();
    assert_eq!(output.next().await.unwrap().unwrap(), "output of a1, tail Some(3)\n");
    server.shutdown.trigger();
    let end = output.next().await;
    assert!(matches!(end, Some(Err(_))), "cut off, so that its reader asks again");
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn events_end_with_the_session_also_when_nothing_happens() {
    let server = Server::with_teams().await;
    let (id, token) = user(&server, "ann@example.org").await;
    give(&server, "ann@example.org", 6, ("project", "1")).await;
    let request = Request::get("/elastane/v1/events")
        .header("host", "localhost")
        .header("authorization", format!("Bearer {token}"));
    let mut events = Events::of(server.send(request.body(Body::empty()).unwrap()).await);
    let (status, _) = server.post(&format!("/api/v1/users/{id}/logout"), Value::Null).await;
    assert!(status.is_success());
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn the_listener_closes_with_readers_still_connected() {
    let server = Server::with_teams().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut reader = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (router, shutdown) = (server.router.clone(), server.shutdown.clone());
    let serving = tokio::spawn(http_kit::serve(listener, None, router, shutdown));
    let request = format!(
        "GET /elastane/v1/events?after=0 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        server.token
    );
    reader.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains("ProjectCreated") {
        let mut chunk = [0; 1024];
        let length = reader.read(&mut chunk).await.unwrap();
        assert!(length > 0, "closed after {text}");
        text.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
    }
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    server.shutdown.trigger();
    serving.await.unwrap();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream is ended, not cut");
}

#[tokio::test]
async fn output_belongs_to_a_workload() {
    let server = Server::with_teams().await;
    let id = server.train("a1", 1).await;
    server.phase(&id, "Running").await;
    let own = format!("/elastane/v1/workloads/{id}");
    let request = server.request("GET", &format!("{own}/logs")).body(Body::empty()).unwrap();
    let output = server.send(request).await;
    assert_eq!(output.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(bytes(output).await, "output of a1, tail None\n");
    let path = format!("{own}/logs?sinceTime=1970-01-01T00:00:07Z&timestamps=true");
    let stamped = server.send(server.request("GET", &path).body(Body::empty()).unwrap()).await;
    assert_eq!(bytes(stamped).await, "since 7000 output of a1, tail None\n");
    for (query, status) in [
        ("logs?pod=nobody", 404),
        ("logs?tail=-1", 400),
        ("logs?follow=maybe", 400),
        ("logs?lines=3", 400),
        ("logs?offset=-1", 400),
        ("logs?sinceSeconds=-1", 400),
        ("logs?sinceTime=yesterday", 400),
        ("logs?sinceSeconds=5&sinceTime=2026-01-31T12:00:00Z", 400),
        ("logs?timestamps=perhaps", 400),
        ("logs?previous=perhaps", 400),
        ("logs?previous=true", 409),
    ] {
        let request = server.request("GET", &format!("{own}/{query}")).body(Body::empty());
        let (got, answer) = read(server.send(request.unwrap()).await).await;
        assert_eq!(got.as_u16(), status, "{query}: {answer}");
    }
}
