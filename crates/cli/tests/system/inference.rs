//! An inference with real replicas behind a real server: no replica without requests, more under
//! load, a new revision without a lost request, a killed server, and scale-down to zero.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fixture::STUCK_AFTER;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, end, free_port, wait_until};

/// A test whose replicas run the same program with the same name, and get their port.
const TEST: &str = "inference::replicas_come_with_requests_and_go_without";

/// Program of a replica: it answers requests for ever.
fn replica(port: &str, name: &str) {
    let version = std::env::var("V").unwrap_or_default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().expect("a port")));
    for stream in listener.expect("its port").incoming() {
        let (stream, name, version) =
            (stream.expect("a connection"), name.to_owned(), version.clone());
        std::thread::spawn(move || answer_all(&stream, &name, &version));
    }
}

/// Answers the requests of a connection; returns at its end.
fn answer_all(stream: &TcpStream, name: &str, version: &str) -> Option<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_lowercase());
        }
        let header = |name: &str| head.iter().find_map(|line| line.strip_prefix(name));
        let number = |name: &str| header(name).and_then(|text| text.trim().parse::<u64>().ok());
        let mut body = (&mut reader).take(number("content-length:").unwrap_or(0));
        let length = std::io::copy(&mut body, &mut std::io::sink()).ok()?;
        std::thread::sleep(Duration::from_millis(number("x-sleep-ms:").unwrap_or(0)));
        if header("upgrade:").is_some() {
            writer
                .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
                .ok()?;
            std::io::copy(&mut reader, &mut writer).ok()?;
            return None;
        }
        let user = header("x-forwarded-user:").unwrap_or_default().trim();
        let token = header("authorization:").is_some();
        let text = json!({
            "pod": name, "version": version, "target": head[0], "length": length, "user": user,
            "token": token,
        })
        .to_string();
        write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).ok()?;
    }
}

struct Client {
    port: u16,
    token_file: PathBuf,
    host: &'static str,
}

/// The host of the inference.
const SVC: &str = "svc--team-a.localhost";

impl Client {
    fn new(sandbox: &Sandbox) -> Self {
        let token_file = sandbox.state_dir().join("token");
        Self { port: sandbox.port(), token_file, host: "localhost" }
    }

    /// A client of the inference in place of the API.
    fn of_svc(&self) -> Self {
        Self { port: self.port, token_file: self.token_file.clone(), host: SVC }
    }

    /// Token of the current server.
    fn token(&self) -> String {
        fs::read_to_string(&self.token_file).expect("a token").trim().to_owned()
    }

    /// Status, head and body; `None` if there was no connection.
    fn send(&self, line: &str, headers: &str, body: &[u8]) -> Option<(u16, String, String)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.set_read_timeout(Some(STUCK_AFTER)).ok()?;
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             {headers}\r\n",
            self.host
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let code = head.split_whitespace().nth(1)?.parse().ok()?;
        Some((code, head.to_owned(), body.to_owned()))
    }

    fn api(&self, line: &str, body: &Value) -> Value {
        let headers =
            format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", self.token());
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (code, _, answer) = self.send(line, &headers, body.as_bytes()).expect("an answer");
        assert!(code < 300, "{line}: {code} {answer}");
        serde_json::from_str(&answer).unwrap_or_default()
    }

    /// Answer of a replica to a request that takes this long.
    fn ask(&self, path: &str, sleep_ms: u64) -> Value {
        let sleep = format!("X-Sleep-Ms: {sleep_ms}\r\n");
        let line = format!("GET /{path}");
        let (code, _, body) = self.of_svc().send(&line, &sleep, b"").expect("an answer");
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).expect("what the replica says")
    }

    fn shown(&self, id: &str) -> Value {
        self.api(&format!("GET /api/v1/workloads/{id}"), &Value::Null)
    }
}

/// An inference whose replicas are this program. Their files and environment are stored on the
/// server.
fn inference(sandbox: &Sandbox, client: &Client) -> String {
    let cluster = client.api("GET /api/v1/clusters", &Value::Null)[0]["uuid"].clone();
    client.api(
        "POST /api/v1/org-unit/projects",
        &json!({"name": "team-a", "clusterId": cluster, "resources": [{"gpu": {"deserved": 4}}]}),
    );
    let meta = json!({"name": "one-gpu", "scope": "project", "projectId": 1});
    let asset = json!({"meta": meta, "spec": {"gpuDevicesRequest": 1}});
    client.api("POST /api/v1/asset/compute", &asset);
    let meta = json!({"name": "first", "scopeType": "project", "scopeId": "1"});
    let spec = json!({"environmentVariables": [{"name": "V", "value": "1"}]});
    let template = json!({"meta": meta, "spec": spec});
    client.api("POST /api/v1/workload-templates/inferences", &template);
    let own = std::env::current_exe().expect("this program");
    let made = sandbox.shell(&format!(
        "runai inference submit svc -p team-a --template first --compute one-gpu \
         --serving-port container=8000,authorization-type=public \
         --min-replicas 0 --max-replicas 3 --initial-replicas 0 \
         --metric concurrency --metric-threshold 2 \
         --annotation autoscaling.knative.dev/window=6s \
         -c -- {} --exact --nocapture {TEST}",
        own.display()
    ));
    assert!(made.text.contains("Creating inference svc..."), "{}", made.text);
    let wrong = "runai inference submit b -p team-a --compute ten-gpus --serving-port 1 -i x";
    let wrong = sandbox.shell(wrong).text;
    assert!(wrong.contains("no compute asset `ten-gpus` is visible to team-a"), "{wrong}");
    let tab = "COMPLETE=bash _CLAP_COMPLETE_INDEX=4 runai -- runai -p team-a delete s";
    assert_eq!(sandbox.shell(tab).text.trim(), "svc", "the shell is told which there are");
    let all = client.api("GET /api/v1/workloads", &Value::Null);
    all["workloads"][0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn replicas_come_with_requests_and_go_without() {
    if let (Ok(port), Ok(name)) = (std::env::var("PORT"), std::env::var("POD_NAME")) {
        return replica(&port, &name);
    }
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x16GiB");
    let client = Client::new(&sandbox);
    let id = inference(&sandbox, &client);
    let wanted = || client.shown(&id)["requestedPods"]["number"].as_u64();
    assert_eq!(wanted(), Some(0), "nobody has asked yet");
    assert_eq!(replicas(&sandbox), 0);
    for (words, said) in [
        ("logs svc", "svc is scaled to zero, because there are no requests"),
        ("exec svc -- true", "svc is scaled to zero, because there are no requests"),
        ("suspend svc", "leaves it without replicas while no request comes"),
    ] {
        let answer = sandbox.shell(&format!("runai -p team-a {words}"));
        assert!(answer.code == Some(1) && answer.text.contains(said), "{words}: {}", answer.text);
    }

    // The first request is held until the first replica is ready.
    let first = client.ask("some/path?q=1", 0);
    assert_eq!(first["target"], "get /some/path?q=1 http/1.1");
    let me = client.shown(&id)["submittedBy"].as_str().expect("a name").to_owned();
    what_passes_through(&client, &me);
    the_declared_port_leads_to_a_replica(&sandbox, &client);

    a_revision_takes_over_under_load(&sandbox, &client, &id);

    // A restarted server finds its replicas again.
    let before = client.ask("", 0)["pod"].clone();
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 4x16GiB");
    assert_eq!(client.ask("", 0)["version"], "2");
    assert!(before.as_str().is_some_and(|pod| pod.starts_with("svc.2")));

    assert!(wait_until(|| wanted() == Some(0) && replicas(&sandbox) == 0));
    let path = format!("GET /api/v1/workloads/{id}/events?limit=500");
    let events = client.api(&path, &Value::Null);
    let told = |reason: &str| {
        let events = events["events"].as_array().expect("a list").iter();
        let of = events.filter(|event| event["reason"] == reason);
        of.map(|event| event["message"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    let scaled = told("Scaled");
    assert!(scaled[0].contains("came while there was no replica"), "{scaled:?}");
    assert!(scaled.iter().any(|text| text.contains("requests at a time")), "{scaled:?}");
    assert!(scaled.iter().any(|text| text.contains("no request for")), "{scaled:?}");
    assert_eq!(told("RevisionRetired").len(), 1);
    let deleted = sandbox.shell("runai delete svc -p team-a").text;
    assert!(deleted.contains("Job svc deleted successfully."), "{deleted}");
    let own = format!("Authorization: Bearer {}\r\n", client.token());
    let gone = || client.of_svc().send("GET /", &own, b"").is_some_and(|it| it.0 == 404);
    assert!(wait_until(gone));
}

/// Under load there are three replicas, and a new revision takes over without a lost request.
fn a_revision_takes_over_under_load(sandbox: &Sandbox, client: &Client, id: &str) {
    let over = AtomicBool::new(false);
    let pods: BTreeSet<String> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let mut pods = BTreeSet::new();
                    while !over.load(Ordering::Relaxed) {
                        let said = client.ask("", 200);
                        pods.insert(said["pod"].as_str().expect("a name").to_owned());
                    }
                    pods
                })
            })
            .collect();
        let mut answered = BTreeSet::new();
        let all_answer = wait_until(|| {
            answered.insert(client.ask("", 0)["pod"].to_string());
            answered.len() == 3
        });
        assert!(all_answer, "{answered:?}");
        assert_eq!(client.shown(id)["requestedPods"]["number"], 3);
        let said = sandbox.shell("runai inference update svc -p team-a -e V=2").text;
        assert!(said.contains("Updating inference svc..."), "{said}");
        let phases = || -> Vec<String> {
            let path = format!("GET /api/v1/workloads/inferences/{id}/revisions");
            let all = client.api(&path, &Value::Null);
            let all = all["revisions"].as_array().expect("a list").iter();
            all.map(|one| one["phase"].as_str().expect("a phase").to_owned()).collect()
        };
        let taken_over = wait_until(|| phases() == ["Stopped", "Running"]);
        assert!(taken_over, "{:?}\n{}", phases(), client.shown(id));
        let mut newer = BTreeSet::new();
        let several_answer = wait_until(|| {
            let said = client.ask("", 0);
            assert_eq!(said["version"], "2");
            newer.insert(said["pod"].as_str().expect("a name").to_owned());
            newer.len() == 2
        });
        assert!(several_answer, "{newer:?}");
        over.store(true, Ordering::Relaxed);
        let all = asking.into_iter();
        newer.extend(all.flat_map(|one| one.join().expect("every request is answered")));
        newer
    });
    let of = |revision: &str| pods.iter().filter(|pod| pod.starts_with(revision)).count();
    assert!(of("svc.1") >= 1 && of("svc.2") >= 2, "{pods:?}");
}

/// A project with a quota of two of four GPUs, and an inference that fills it with these replicas.
fn at_full_quota(replicas: u32) -> (Sandbox, Client) {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x16GiB");
    let client = Client::new(&sandbox);
    let own = std::env::current_exe().expect("this program");
    let made = sandbox.shell(&format!(
        "elastane project create team-a --gpu-quota 2 && \
         runai inference submit svc -p team-a -i ubuntu --gpu-devices-request {} -e V=1 \
         --serving-port container=8000,authorization-type=public \
         --min-replicas {replicas} --max-replicas {replicas} \
         -c -- {} --exact --nocapture {TEST} 2>&1",
        2 / replicas,
        own.display()
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    assert!(wait_until(|| version(&client) == "1"), "{}", sandbox.shell("runai list -A").text);
    (sandbox, client)
}

/// The version in an answer; empty if no replica answers.
fn version(client: &Client) -> String {
    let answer = client.of_svc().send("GET /", "", b"").filter(|(code, ..)| *code == 200);
    let said = answer.and_then(|(_, _, body)| serde_json::from_str::<Value>(&body).ok());
    said.and_then(|said| Some(said["version"].as_str()?.to_owned())).unwrap_or_default()
}

fn phases(client: &Client) -> Vec<String> {
    let all = client.api("GET /api/v1/workloads", &Value::Null);
    let mut all = all["workloads"].as_array().expect("a list").iter();
    let of_svc = all.find(|one| one["name"] == "svc").and_then(|one| one["id"].as_str());
    let id = of_svc.expect("an id");
    let path = format!("GET /api/v1/workloads/inferences/{id}/revisions");
    let all = client.api(&path, &Value::Null);
    let all = all["revisions"].as_array().expect("a list").iter();
    all.map(|one| one["phase"].as_str().expect("a phase").to_owned()).collect()
}

#[test]
fn an_only_replica_without_room_beside_it_is_replaced_when_that_is_agreed_to() {
    let (sandbox, client) = at_full_quota(1);
    // Another workload waits for the same room, and was submitted before.
    sandbox.shell("runai inference submit other -p team-a -i ubuntu --gpu-devices-request 2");
    let update = "runai inference update svc -p team-a";
    let refused = sandbox.shell(&format!("{update} -e V=2 2>&1"));
    assert_eq!(refused.code, Some(1), "{}", refused.text);
    assert!(refused.text.contains("no room for its successor beside it (P"), "{}", refused.text);
    assert!(refused.text.contains("--recreate"), "{}", refused.text);
    assert_eq!((phases(&client), version(&client).as_str()), (vec!["Running".to_owned()], "1"));

    // Nothing is stopped for a revision that would not fit even then.
    let never = sandbox.shell(&format!("{update} --gpu-devices-request 64 --recreate 2>&1"));
    assert_eq!(never.code, Some(1), "{}", never.text);
    let told = "nothing was changed: there is no room for a replica of the next revision of svc even \
                when the present one has stopped (P202";
    assert!(never.text.contains(told), "{}", never.text);
    assert_eq!((phases(&client), version(&client).as_str()), (vec!["Running".to_owned()], "1"));

    let replaced = sandbox.shell(&format!("{update} -e V=2 --recreate 2>&1"));
    assert!(replaced.text.contains("does not serve from the end of"), "{}", replaced.text);
    assert!(wait_until(|| version(&client) == "2"), "{}", sandbox.shell("runai list -A").text);
    assert!(wait_until(|| phases(&client) == ["Stopped", "Running"]), "{:?}", phases(&client));

    // A revision that never becomes ready gives its room back.
    let never = "--recreate --initialization-timeout-seconds 2 -c -- sleep 1000";
    sandbox.shell(&format!("{update} {never} 2>&1"));
    let returned = wait_until(|| {
        phases(&client) == ["Stopped", "Running", "Failed"] && version(&client) == "2"
    });
    assert!(returned, "{:?}\n{}", phases(&client), sandbox.shell("runai describe job svc").text);
}

#[test]
fn replicas_without_room_beside_them_are_replaced_one_at_a_time() {
    let (sandbox, client) = at_full_quota(2);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Every request is answered.
                client.ask("", 20);
            }
        });
        let said = sandbox.shell("runai inference update svc -p team-a -e V=2 2>&1");
        let replaced = wait_until(|| phases(&client) == ["Stopped", "Running"]);
        over.store(true, Ordering::Relaxed);
        asking.join().expect("none was refused");
        assert!(said.text.contains("replaced one at a time"), "{}", said.text);
        assert!(replaced, "{:?}", phases(&client));
    });
    assert_eq!(version(&client), "2");
}

/// Each replica listens at another port; requests to its declared port reach it.
fn the_declared_port_leads_to_a_replica(sandbox: &Sandbox, client: &Client) {
    let here = free_port();
    let line = format!("exec runai inference port-forward svc -p team-a --port {here}:8000");
    let mut forward = sandbox.begin(&line);
    let direct = Client { port: here, token_file: PathBuf::new(), host: "localhost" };
    let answered = wait_until(|| {
        client.ask("", 0);
        direct.send("GET /direct", "", b"").is_some_and(|(_, _, body)| body.contains("get /direct"))
    });
    end(&mut forward);
    assert!(answered);
}

/// Number of serving processes.
fn replicas(sandbox: &Sandbox) -> usize {
    let serves = |command: &str| command.contains(TEST) && !command.contains("elastane");
    let all = sandbox.processes();
    all.iter().filter(|process| serves(&process.command)).count()
}

/// Large bodies, tokens, and upgraded connections.
fn what_passes_through(client: &Client, me: &str) {
    let large = vec![7; 30_000_000];
    let (code, _, body) = client.of_svc().send("POST /", "", &large).expect("an answer");
    assert_eq!(code, 200, "{body}");
    assert!(body.contains("\"length\":30000000"), "{body}");

    // A token of this server is valid here only; the replica gets the name of its user.
    let own = format!("Authorization: Bearer {}\r\nX-Forwarded-User: mallory\r\n", client.token());
    let foreign = "Authorization: Bearer sk-1\r\nX-Forwarded-User: mallory\r\n".to_owned();
    for (headers, user, token) in [(own, me, false), (foreign, "", true)] {
        let (_, _, body) = client.of_svc().send("GET /", &headers, b"").expect("an answer");
        let said: Value = serde_json::from_str(&body).expect("what the replica says");
        assert_eq!((said["user"].as_str(), said["token"].as_bool()), (Some(user), Some(token)));
    }

    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, client.port)).expect("the server");
    stream.set_read_timeout(Some(STUCK_AFTER)).expect("a limit");
    let head =
        format!("GET /ws HTTP/1.1\r\nHost: {SVC}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 101"), "{line}");
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line).expect("the rest of the head");
    }
    stream.write_all(b"both ways\n").expect("sent");
    reader.read_line(&mut line).expect("it back");
    assert_eq!(line.trim(), "both ways");
}
