//! A Prometheus that scrapes a server with the configuration of the reference, and queries of its
//! data.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fixture::STUCK_AFTER;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::iam::{give, program};
use crate::server::Server;

/// The id of the role Viewer.
const VIEWER: u64 = 9;

/// A Prometheus, which ends with the test.
struct Prometheus {
    process: Child,
    port: u16,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The blocks of YAML in the reference: the configuration, and the rules.
fn samples() -> [String; 2] {
    let text = include_str!("../../../../docs/reference/metrics.md");
    let blocks: Vec<_> = text.split("```").filter_map(|part| part.strip_prefix("yaml\n")).collect();
    let [config, rules] = blocks[..] else { panic!("{} blocks of YAML", blocks.len()) };
    [config.to_owned(), rules.to_owned()]
}

impl Prometheus {
    /// A Prometheus with the configuration of the reference, and a service account of its own;
    /// `None` if it is not installed.
    async fn of(server: &Server, dir: &Path) -> Option<Self> {
        let (id, secret, _) = program(server, "prometheus").await;
        give(server, &id, VIEWER, ("tenant", "1")).await;
        let [config, rules] = samples();
        let own = format!("127.0.0.1:{}", server.listens().await);
        let config =
            config.replace("127.0.0.1:7070", &own).replace("interval: 15s", "interval: 1s");
        let config = config.replace("client_id: prometheus", &format!("client_id: {id}"));
        let config = config.replace("/etc/prometheus/elastane-secret", "secret");
        let files = [("prometheus.yml", config), ("elastane-rules.yml", rules), ("secret", secret)];
        for (file, text) in files {
            fs::write(dir.join(file), text).unwrap();
        }
        let promtool = Command::new("promtool")
            .args(["check", "config", "prometheus.yml"])
            .current_dir(dir)
            .output();
        let checked = String::from_utf8(promtool.ok()?.stdout).unwrap();
        assert!(checked.contains("SUCCESS: 6 rules found"), "{checked}");
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let log = fs::File::create(dir.join("log")).unwrap();
        let process = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Some(Self { process: process.ok()?, port })
    }

    async fn ask(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Value of a query with one result; `None` while it has none.
    async fn query(&self, query: &str) -> Option<f64> {
        let escape = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        let escaped: String = query.bytes().map(escape).collect();
        let answer = self.ask(&format!("/api/v1/query?query={escaped}")).await?;
        match answer["data"]["result"].as_array()?.as_slice() {
            [one] => one["value"][1].as_str()?.parse().ok(),
            _ => None,
        }
    }

    /// Waits until a query comes to that.
    async fn reads(&self, query: &str, value: Option<f64>, dir: &Path) {
        let deadline = tokio::time::Instant::now() + STUCK_AFTER;
        loop {
            let got = self.query(query).await;
            if got == value {
                return;
            }
            let log = || fs::read_to_string(dir.join("log")).unwrap_or_default();
            let late = tokio::time::Instant::now() > deadline;
            assert!(!late, "{query} is {got:?}, not {value:?}\n{}", log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn prometheus_reads_what_the_reference_says() {
    let server = Server::with_teams().await;
    let dir = tempfile::tempdir().unwrap();
    let Some(prometheus) = Prometheus::of(&server, dir.path()).await else {
        return skip::skipped("Debian's package prometheus is not installed");
    };
    let running = server.train("first", 4).await;
    server.phase(&running, "Running").await;
    let second = server.train("second", 1).await;
    let waits = "sum by (project) (elastane_workloads_waiting{project=\"team-a\"})";
    for (query, value) in [
        ("up{job=\"elastane\"}", 1.0),
        ("sum(elastane_node_gpus)", 4.0),
        ("sum(elastane_project_gpus_allocated{project=\"team-a\"})", 4.0),
        ("elastane_project_gpus_quota{project=\"team-a\",node_pool=\"default\"}", 2.0),
        (waits, 1.0),
        ("elastane_workloads_submitted_total{kind=\"training\"}", 2.0),
        ("elastane_workload_wait_duration_seconds_count{kind=\"training\"}", 1.0),
        ("elastane_http_requests_in_flight", 1.0),
        ("count(process_cpu_seconds_total)", 1.0),
    ] {
        prometheus.reads(query, Some(value), dir.path()).await;
    }
    let path = format!("/api/v1/workloads/trainings/{second}");
    let (status, _) = server.raw("DELETE", &path, &json!({}).to_string()).await;
    assert!(status.is_success(), "{status}");
    prometheus.reads(waits, None, dir.path()).await;
}
