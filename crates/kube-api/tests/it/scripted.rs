//! The client against a server with scripted responses, which no real one gives on demand.

#![expect(clippy::unwrap_used, reason = "a script that goes wrong ends the test")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use kube_api::types::{Node, Pod};
use kube_api::{Change, Client, Config, DeleteOptions, Error, ObjectRef, Query, WatchSettings};

/// An answer to a request.
enum Said {
    /// An answer with its head.
    Whole(String),
    /// A part of one, after which the connection ends.
    Cut(String),
    /// A part of one, after which nothing comes.
    Silent(String),
    /// An answer that takes its time.
    Slow(String),
}

fn answer(status: &str, headers: &str, body: &str) -> Said {
    let length = body.len();
    Said::Whole(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"))
}

fn ok(body: &str) -> Said {
    answer("200 OK", "", body)
}

/// The head of an answer whose length is not said, and a first part.
fn stream(part: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n\r\n{part}")
}

const LISTED: &str = r#"{"metadata": {"resourceVersion": "10"}, "items": null}"#;

/// A server, and the requests that it got.
struct Script {
    port: u16,
    heard: Receiver<Heard>,
}

struct Heard {
    line: String,
    authorization: String,
}

impl Script {
    /// Answers requests in turn, on however many connections.
    fn of(script: Vec<Said>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (hears, heard) = channel();
        std::thread::spawn(move || {
            let mut script = script.into_iter();
            let mut silent = Vec::new();
            while script.len() > 0 {
                let (mut connection, _) = listener.accept().unwrap();
                while let Some(request) = request(&connection) {
                    hears.send(request).unwrap();
                    match script.next() {
                        Some(Said::Whole(text)) => connection.write_all(text.as_bytes()).unwrap(),
                        Some(Said::Cut(text)) => {
                            connection.write_all(text.as_bytes()).unwrap();
                            break;
                        }
                        Some(Said::Silent(text)) => {
                            connection.write_all(text.as_bytes()).unwrap();
                            silent.push(connection);
                            break;
                        }
                        Some(Said::Slow(text)) => {
                            std::thread::sleep(Duration::from_millis(200));
                            connection.write_all(text.as_bytes()).unwrap();
                        }
                        None => break,
                    }
                }
            }
            // Silent connections stay open as long as the test lasts.
            std::thread::park();
            drop(silent);
        });
        Self { port, heard }
    }

    fn client(&self, user: &str) -> Client {
        let folder = tempfile::tempdir().unwrap();
        Client::new(self.config(folder.path(), "", user), 1)
    }

    fn config(&self, folder: &Path, cluster: &str, user: &str) -> Config {
        let port = self.port;
        let path = folder.join("config");
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{port}'{cluster}}}}}]\n\
             users: [{{name: a, user: {{{user}}}}}]\n"
        );
        std::fs::write(&path, text).unwrap();
        Config::find(Some(&path), None, &|_| None).unwrap()
    }

    /// The lines of requests so far.
    fn lines(&self) -> Vec<String> {
        self.heard.try_iter().map(|heard| heard.line).collect()
    }
}

/// Reads a request with its body; none at the end of a connection.
fn request(connection: &TcpStream) -> Option<Heard> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => value.clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Some(Heard { line: line.trim().to_owned(), authorization })
}

fn pod() -> ObjectRef {
    ObjectRef { namespace: "a".to_owned(), name: "p".to_owned(), uid: "u".to_owned() }
}

const TOO_MANY: &str = r#"{"kind": "Status", "code": 429, "reason": "TooManyRequests",
    "message": "too many requests", "details": {"retryAfterSeconds": 1}}"#;

#[tokio::test]
async fn too_many_requests_are_sent_again_and_other_failures_only_where_nothing_is_written() {
    let busy = || answer("429 Too Many Requests", "Retry-After: 1\r\n", TOO_MANY);
    let failed = || answer("500 Internal Server Error", "", r#"{"reason": "InternalError"}"#);
    let script = Script::of(vec![busy(), ok("{}"), failed(), failed(), ok(LISTED)]);
    let client = script.client("");
    client.evict(&pod(), &DeleteOptions::default()).await.unwrap();
    assert_eq!(script.lines().len(), 2);

    let refused = client.evict(&pod(), &DeleteOptions::default()).await.unwrap_err();
    assert!(refused.is_transient(), "{refused}");
    assert_eq!(script.lines(), ["POST /api/v1/namespaces/a/pods/p/eviction HTTP/1.1"]);

    assert!(client.list::<Pod>(&Query::default()).await.unwrap().items.is_empty());
    assert_eq!(script.lines().len(), 2);
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_sent_again() {
    let script = Script::of(vec![Said::Cut("HTTP/1.1 2".to_owned()), ok("{}")]);
    let client = script.client("");
    let none = BTreeMap::new();
    let lost = client.bind(&pod(), "n", &none, &none).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { .. }), "{lost:?}");
    assert!(
        lost.to_string().starts_with("failed to create pods/binding a/p: the answer"),
        "{lost}"
    );
    assert_eq!(script.lines().len(), 1);
}

#[tokio::test]
async fn half_a_list_is_none() {
    let half = r#"{"metadata": {"resourceVersion": "10"}, "items": [{"metadata": {"#;
    let cut = format!("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{half}");
    let script = Script::of(vec![Said::Cut(cut), ok(LISTED), ok(half)]);
    let client = script.client("");
    assert_eq!(client.list::<Pod>(&Query::default()).await.unwrap().resource_version, "10");
    let broken = client.list::<Pod>(&Query::default()).await.unwrap_err();
    assert!(matches!(broken, Error::Unreadable { .. }), "{broken:?}");
}

#[tokio::test]
async fn a_list_whose_pages_are_compacted_under_it_begins_again() {
    let page = r#"{"metadata": {"resourceVersion": "10", "continue": "c=="},
        "items": [{"metadata": {"name": "old"}}]}"#;
    let gone = r#"{"code": 410, "reason": "Expired", "message": "the list is too old"}"#;
    let last =
        r#"{"metadata": {"resourceVersion": "20"}, "items": [{"metadata": {"name": "new"}}]}"#;
    let script = Script::of(vec![ok(page), answer("410 Gone", "", gone), ok(last)]);
    let listed = script.client("").list::<Node>(&Query::default()).await.unwrap();
    let names: Vec<_> = listed.items.iter().map(|node| &*node.metadata.name).collect();
    assert_eq!((names, &*listed.resource_version), (vec!["new"], "20"));
    let lines = script.lines();
    assert_eq!(lines[1], "GET /api/v1/nodes?limit=500&continue=c%3D%3D HTTP/1.1");
    assert_eq!(lines[2], lines[0]);
}

#[tokio::test]
async fn one_odd_object_makes_no_list_and_no_watch_unreadable() {
    let list = r#"{"metadata": {"resourceVersion": "10"}, "items": [
        {"metadata": {"name": "odd", "namespace": "a"}, "spec": {"nodeName": 7}},
        {"metadata": {"name": "good", "labels": null}, "spec": {"containers": null}}]}"#;
    let lines = r#"{"type": "ADDED", "object": {"metadata": {"name": "odd"}, "spec": 7}}
{"type": "ADDED", "object": {"metadata": {"name": "good", "resourceVersion": "11"}}}
"#;
    let script = Script::of(vec![ok(list), Said::Silent(stream(lines))]);
    let mut watch = script.client("").watch::<Pod>(Query::default(), WatchSettings::default());
    let mut seen = Vec::new();
    while seen.len() < 6 {
        seen.push(match watch.next().await {
            Change::Listing => "list".to_owned(),
            Change::Synced => "synced".to_owned(),
            Change::Applied(pod) => pod.metadata.name,
            Change::Unreadable(object) => format!("unreadable {}", object.meta.name),
            Change::Deleted(_) | Change::Interrupted(_) => panic!("after {seen:?}"),
        });
    }
    assert_eq!(seen, ["list", "good", "unreadable odd", "synced", "unreadable odd", "good"]);
}

fn expect_list(change: [Change<Node>; 2]) {
    assert!(matches!(change, [Change::Listing, Change::Synced]), "{change:?}");
}

#[tokio::test]
async fn a_watch_that_is_silent_is_opened_again_from_the_last_bookmark() {
    let bookmark = r#"{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "15"}}}
{"type": "#;
    let added = r#"{"type": "ADDED", "object": {"metadata": {"name": "n", "resourceVersion": "16"}}}
"#;
    let script =
        Script::of(vec![ok(LISTED), Said::Silent(stream(bookmark)), Said::Silent(stream(added))]);
    let settings = WatchSettings { silence_max: Duration::from_millis(300) };
    let mut watch = script.client("").watch::<Node>(Query::default(), settings);
    expect_list([watch.next().await, watch.next().await]);
    let Change::Applied(node) = watch.next().await else { panic!("no node") };
    assert_eq!(node.metadata.name, "n");
    let versions: Vec<_> = script
        .lines()
        .into_iter()
        .filter_map(|line| Some(line.split_once("resourceVersion=")?.1.to_owned()))
        .collect();
    assert_eq!(versions, ["10 HTTP/1.1", "15 HTTP/1.1"]);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_an_interruption() {
    let script = Script::of(vec![
        ok(LISTED),
        Said::Silent("HTTP/1.1 ".to_owned()),
        Said::Cut(String::new()),
        Said::Cut(stream("")),
        Said::Silent(stream("")),
    ]);
    let settings = WatchSettings { silence_max: Duration::from_millis(300) };
    let mut watch = script.client("").watch::<Node>(Query::default(), settings);
    expect_list([watch.next().await, watch.next().await]);
    for why in ["none within 300ms", "connection closed before", "it ended at once"] {
        let Change::Interrupted(error) = watch.next().await else { panic!("heard") };
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_version_that_is_gone_means_another_list_and_no_alarm() {
    let gone = r#"{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
"#;
    let script = Script::of(vec![
        ok(LISTED),
        Said::Silent(stream(gone)),
        ok(LISTED),
        Said::Silent(stream(gone)),
        ok(LISTED),
        answer("410 Gone", "", r#"{"code": 410, "reason": "Gone"}"#),
        ok(LISTED),
    ]);
    let mut watch = script.client("").watch::<Node>(Query::default(), WatchSettings::default());
    for _ in 0..2 {
        expect_list([watch.next().await, watch.next().await]);
    }
    // A server that has forgotten each version at once gets requests less and less often.
    for _ in 0..2 {
        let Change::Interrupted(error) = watch.next().await else { panic!("no alarm") };
        assert!(error.is_expired(), "{error}");
        expect_list([watch.next().await, watch.next().await]);
    }
}

#[tokio::test]
async fn a_caller_that_looks_in_now_and_then_asks_once() {
    let Said::Whole(listed) = ok(LISTED) else { panic!("no answer") };
    let script = Script::of(vec![Said::Slow(listed), Said::Silent(stream(""))]);
    let mut watch = script.client("").watch::<Node>(Query::default(), WatchSettings::default());
    let mut changes = Vec::new();
    while changes.len() < 2 {
        let looked = tokio::time::timeout(Duration::from_millis(5), watch.next()).await;
        changes.extend(looked);
    }
    assert!(matches!(changes[..], [Change::Listing, Change::Synced]), "{changes:?}");
    assert_eq!(script.lines().len(), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "old\n").unwrap();
    let refused = || answer("401 Unauthorized", "", r#"{"code": 401, "reason": "Unauthorized"}"#);
    let script = Script::of(vec![ok(LISTED), refused(), ok(LISTED), refused(), refused()]);
    let client = Client::new(script.config(folder.path(), "", "tokenFile: token"), 1);
    client.list::<Pod>(&Query::default()).await.unwrap();
    std::fs::write(folder.path().join("token"), "new\n").unwrap();
    client.list::<Pod>(&Query::default()).await.unwrap();
    let tokens: Vec<_> = script.heard.try_iter().map(|heard| heard.authorization).collect();
    assert_eq!(tokens, ["Bearer old", "Bearer old", "Bearer new"]);
    let refused = client.list::<Pod>(&Query::default()).await.unwrap_err();
    assert_eq!(refused.reason(), Some(&kube_api::Reason::Unauthorized));
}

#[tokio::test]
async fn a_plug_in_is_asked_when_what_it_printed_expires_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = r#"#!/bin/sh
n=$(($(cat "$0.n" 2> /dev/null || echo 0) + 1)); echo $n > "$0.n"
[ "$NAME" = value ] || exit 1
case $n in 1) at=2001-01-01T00:00:00Z;; *) at=2999-01-01T00:00:00Z;; esac
echo '{"kind": "ExecCredential", "status": {"token": "t'$n'", "expirationTimestamp": "'$at'"}}'
"#;
    std::fs::write(folder.path().join("plugin"), plugin).unwrap();
    let user = "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, \
                args: [PLUGIN], env: [{name: NAME, value: value}]}";
    let user = user.replace("PLUGIN", &folder.path().join("plugin").display().to_string());
    let refused = answer("401 Unauthorized", "", "{}");
    let script = Script::of(vec![ok(LISTED), ok(LISTED), ok(LISTED), refused, ok(LISTED)]);
    let client = Client::new(script.config(folder.path(), "", &user), 1);
    for _ in 0..4 {
        client.list::<Pod>(&Query::default()).await.unwrap();
    }
    let tokens: Vec<_> = script.heard.try_iter().map(|heard| heard.authorization).collect();
    assert_eq!(tokens, ["Bearer t1", "Bearer t2", "Bearer t2", "Bearer t2", "Bearer t3"]);
}

#[tokio::test]
async fn a_plug_in_that_fails_says_why() {
    let script = Script::of(Vec::new());
    for (args, why) in [
        ("echo no login >&2; exit 3", "exit status: 3: no login; run `login` first"),
        ("echo hello", "it printed no ExecCredential: "),
        (r#"echo {\"status\": {}}"#, "it printed neither a token nor a certificate"),
    ] {
        let user = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1beta1, command: sh, \
             args: [-c, '{args}'], installHint: run `login` first}}"
        );
        let failed = script.client(&user).list::<Pod>(&Query::default()).await.unwrap_err();
        assert!(failed.to_string().contains(why), "{failed}");
    }
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel() {
    let script =
        Script::of(vec![Said::Whole("HTTP/1.1 200 Connected\r\n\r\n".to_owned()), ok(LISTED)]);
    let folder = tempfile::tempdir().unwrap();
    let cluster = format!(", proxy-url: 'http://me:secret@127.0.0.1:{}'", script.port);
    let client = Client::new(script.config(folder.path(), &cluster, ""), 1);
    client.list::<Pod>(&Query::default()).await.unwrap();
    let lines = script.lines();
    assert_eq!(lines[0], format!("CONNECT 127.0.0.1:{} HTTP/1.1", script.port));
    assert_eq!(lines[1], "GET /api/v1/pods?limit=500 HTTP/1.1");
}
