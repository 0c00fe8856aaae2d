//! Metrics for Prometheus: values and labels of scenarios, requests as they were served, and the
//! format.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::task::{Context, Waker};

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};

use crate::iam::{call, get, give, program};
use crate::server::{Server, bytes};

/// The answer to a scrape that accepts this.
async fn scrape(server: &Server, accept: &str) -> (HeaderMap, String) {
    let request = server.request("GET", "/metrics").header("accept", accept);
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let headers = answer.headers().clone();
    (headers, String::from_utf8(bytes(answer).await.to_vec()).unwrap())
}

/// Value of a series; `None` if there is no such series.
async fn value(server: &Server, series: &str) -> Option<f64> {
    let (_, text) = scrape(server, "").await;
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

/// Asserts what series have.
async fn has(server: &Server, series: &[(&str, f64)]) {
    for (series, want) in series {
        let got = value(server, series).await;
        assert_eq!(got, Some(*want), "{series}\n{}", scrape(server, "").await.1);
    }
}

/// Ids of roles.
const VIEWER: u64 = 9;
const RESEARCHER: u64 = 6;

const TEAM_A: &str = "project=\"team-a\",department=\"default\"";

#[tokio::test]
async fn queues_show_what_they_deserve_hold_and_wait_for() {
    let server = Server::with_teams().await;
    let running = server.train("a", 3).await;
    server.phase(&running, "Running").await;
    let waiting = server.train("b", 2).await;
    let told = server.until(&format!("/elastane/v1/workloads/{waiting}/explain"), |_| true).await;
    let reason = told["reasons"][0]["code"].as_str().unwrap_or("P102").to_owned();
    let pool = format!("{TEAM_A},node_pool=\"default\"");
    let kind = format!("{TEAM_A},kind=\"training\"");
    has(
        &server,
        &[
            (&format!("elastane_project_gpus_quota{{{pool}}}"), 2.0),
            (&format!("elastane_project_gpus_allocated{{{pool}}}"), 3.0),
            (&format!("elastane_project_gpus_requested{{{pool}}}"), 5.0),
            ("elastane_department_gpus_quota{department=\"default\",node_pool=\"default\"}", 4.0),
            (&format!("elastane_workloads{{{kind},phase=\"Running\"}}"), 1.0),
            (&format!("elastane_workloads{{{kind},phase=\"Pending\"}}"), 1.0),
            (&format!("elastane_workloads_waiting{{{kind},reason=\"{reason}\"}}"), 1.0),
            (&format!("elastane_workloads_waiting_gpus{{{kind},reason=\"{reason}\"}}"), 2.0),
            (&format!("elastane_workload_gpus_allocated{{{kind},node_pool=\"default\"}}"), 3.0),
            ("elastane_workloads_submitted_total{kind=\"training\"}", 2.0),
            ("elastane_workload_wait_duration_seconds_count{kind=\"training\"}", 1.0),
            ("elastane_build_info{version=\"1.2.3\",runtime=\"double\"}", 1.0),
        ],
    )
    .await;
    let limit = format!("elastane_project_gpus_limit{{{pool}}}");
    assert_eq!(value(&server, &limit).await, None, "it is unlimited");
}

#[tokio::test]
async fn gpus_that_are_kept_through_a_pause_are_counted() {
    let server = Server::with_teams().await;
    let id = server.train("a", 3).await;
    let series =
        format!("elastane_workload_gpus_kept{{{TEAM_A},kind=\"training\",node_pool=\"default\"}}");
    let mut kept = Vec::new();
    // The first pauses may be over before they are read; each is twice as long as the one before.
    while kept.len() < 6 && kept.last() != Some(&3.0) {
        server.phase(&id, "Running").await;
        assert_eq!(value(&server, &series).await, Some(0.0));
        server.engine.end("a", engine::Exit::Code(1));
        server.until(&format!("/api/v1/workloads/{id}"), |one| one["phase"] != "Running").await;
        kept.extend(value(&server, &series).await);
    }
    assert_eq!(kept.last(), Some(&3.0), "{kept:?}");
}

#[tokio::test]
async fn a_reclaim_is_an_eviction_by_its_cause() {
    let server = Server::with_teams().await;
    let greedy = server.train("greedy", 4).await;
    server.phase(&greedy, "Running").await;
    let spec = json!({"image": "i", "compute": {"gpuDevicesRequest": 2}});
    let owner = json!({"name": "owner", "projectId": "2", "clusterId": server.cluster_id(),
        "spec": spec});
    let (status, made) = server.post("/api/v1/workloads/trainings", owner).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    let evicted = "elastane_evictions_total{cause=\"E101\",kind=\"training\"}";
    has(&server, &[(evicted, 1.0)]).await;
}

#[tokio::test]
async fn what_was_measured_is_shown_by_project_and_gpu() {
    let server = Server::with_teams().await;
    let id = server.train("a", 1).await;
    server.phase(&id, "Running").await;
    while server.control.sample().at.0 == 0 {
        tokio::task::yield_now().await;
    }
    let held = format!("{TEAM_A},kind=\"training\",node_pool=\"default\"");
    let gpu = "node=\"node-1\",node_pool=\"default\",gpu=\"0\"";
    has(
        &server,
        &[
            (&format!("elastane_workload_gpus_used{{{held}}}"), 0.25),
            (&format!("elastane_workload_gpu_memory_used_bytes{{{held}}}"), 4_294_967_296.0),
            (&format!("elastane_workload_memory_used_bytes{{{held}}}"), 7_340_032.0),
            (&format!("elastane_gpu_utilization_ratio{{{gpu}}}"), 0.25),
            (&format!("elastane_gpu_memory_used_bytes{{{gpu}}}"), 4_294_967_296.0),
            (&format!("elastane_gpu_allocated_ratio{{{gpu}}}"), 1.0),
        ],
    )
    .await;
    let cpus = format!("elastane_workload_cpus_used{{{held}}}");
    assert_eq!(value(&server, &cpus).await, None, "the engine does not measure it");
}

/// The labels `route` of all series of requests.
async fn routes(server: &Server) -> BTreeSet<String> {
    let (_, text) = scrape(server, "").await;
    let counts = text.lines().filter_map(|line| {
        line.strip_prefix("elastane_http_request_duration_seconds_count{route=\"")?
            .split('"')
            .next()
    });
    counts.map(str::to_owned).collect()
}

#[tokio::test]
async fn requests_count_by_the_template_of_their_route_and_never_by_their_path() {
    let server = Server::with_teams().await;
    for secret in ["1", "2", "secret-name"] {
        server.raw("GET", &format!("/api/v1/org-unit/projects/{secret}?x=y"), "").await;
    }
    for path in ["/none/secret-name", "/none/else", "/wp-admin?secret-name"] {
        server.raw("GET", path, "").await;
    }
    server.raw("DELETE", "/healthz", "").await;
    server.raw("SECRET-NAME", "/api/v1/nodes", "").await;
    let host = "secret-name--team-a--80.localhost";
    let request = Request::builder().uri("/api/v1/nodes").header("host", host);
    server.send(request.body(Body::empty()).unwrap()).await;
    get(&server, "", "/api/v1/nodes").await;
    let count = "elastane_http_request_duration_seconds_count";
    let project = "route=\"/api/v1/org-unit/projects/{projectId}\",method=\"GET\"";
    has(
        &server,
        &[
            (&format!("{count}{{{project},status=\"2xx\"}}"), 2.0),
            (&format!("{count}{{{project},status=\"4xx\"}}"), 1.0),
            (&format!("{count}{{route=\"unknown\",method=\"other\",status=\"4xx\"}}"), 5.0),
            (&format!("{count}{{route=\"workload\",method=\"other\",status=\"4xx\"}}"), 1.0),
            (&format!("{count}{{route=\"/api/v1/nodes\",method=\"GET\",status=\"4xx\"}}"), 1.0),
            // This one.
            ("elastane_http_requests_in_flight", 1.0),
        ],
    )
    .await;
    assert!(!scrape(&server, "").await.1.contains("secret-name"));
    let all = routes(&server).await;
    let known =
        |route: &String| route.starts_with('/') || route == "unknown" || route == "workload";
    assert!(all.iter().all(known), "{all:?}");
}

#[tokio::test]
async fn a_request_whose_client_went_away_is_no_longer_open() {
    let server = Server::with_teams().await;
    // It waits for the scrape, which another thread makes, and may have made at once.
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let request = server.request("GET", "/metrics").body(Body::empty()).unwrap();
        let mut going = Box::pin(server.send(request));
        if going.as_mut().poll(&mut context).is_pending() {
            break;
        }
    }
    let count = "elastane_http_request_duration_seconds_count";
    let gone = format!("{count}{{route=\"/metrics\",method=\"GET\",status=\"none\"}}");
    has(&server, &[(&gone, 1.0), ("elastane_http_requests_in_flight", 1.0)]).await;
}

#[tokio::test]
async fn watchers_count_while_they_are_connected() {
    let server = Server::with_teams().await;
    let request = server.request("GET", "/elastane/v1/events").body(Body::empty()).unwrap();
    let watcher = server.send(request).await;
    has(&server, &[("elastane_event_watchers", 1.0)]).await;
    drop(watcher);
    has(&server, &[("elastane_event_watchers", 0.0)]).await;
}

#[tokio::test]
async fn a_request_keeps_the_id_it_came_with_if_that_is_one() {
    let server = Server::new().await;
    let long = "x".repeat(129);
    for (id, kept) in [
        ("7f9c-a.b_C:1/2", true),
        (&long[..128], true),
        (&long, false),
        ("", false),
        ("two words", false),
        ("semi;colon", false),
        ("quote\"", false),
    ] {
        let request = server.request("GET", "/healthz").header("x-request-id", id);
        let answer = server.send(request.body(Body::empty()).unwrap()).await;
        let got = answer.headers()["x-request-id"].to_str().unwrap();
        assert_eq!(got == id, kept, "{id}: {got}");
        assert!(!got.is_empty());
    }
}

#[tokio::test]
async fn openmetrics_ends_with_its_mark_and_names_units() {
    let server = Server::with_teams().await;
    let (headers, text) = scrape(&server, "application/openmetrics-text;version=1.0.0").await;
    let form = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(headers["content-type"], form);
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert!(text.contains("# UNIT elastane_decision_duration_seconds seconds\n"), "{text}");
    let (headers, text) = scrape(&server, "text/plain").await;
    assert_eq!(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
}

#[tokio::test]
async fn metrics_need_a_token() {
    let server = Server::new().await;
    let (status, refused) = call(&server, "", ("GET", "/metrics"), &Value::Null).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{refused}");
}

#[tokio::test]
async fn who_may_not_read_all_projects_sees_the_nodes_only() {
    let server = Server::with_teams().await;
    server.train("a", 1).await;
    let seen = async |name, role, scope| {
        let (account, _, token) = program(&server, name).await;
        give(&server, &account, role, scope).await;
        let request = Request::get("/metrics").header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {token}"));
        let answer = server.send(request.body(Body::empty()).unwrap()).await;
        String::from_utf8(bytes(answer).await.to_vec()).unwrap()
    };
    let all = seen("prometheus", VIEWER, ("tenant", "1")).await;
    assert!(all.contains("elastane_node_gpus{") && all.contains("team-a"), "{all}");
    let some = seen("researcher", RESEARCHER, ("project", "2")).await;
    assert!(some.contains("elastane_node_gpus{"), "{some}");
    for word in ["team-a", "team-b", "elastane_workload", "process_", "http"] {
        assert!(!some.contains(word), "{word}: {some}");
    }
}

#[tokio::test]
async fn every_metric_is_in_the_reference() {
    let server = Server::with_teams().await;
    let id = server.train("a", 3).await;
    server.phase(&id, "Running").await;
    server.train("b", 2).await;
    while server.control.sample().at.0 == 0 {
        tokio::task::yield_now().await;
    }
    let (_, text) = scrape(&server, "").await;
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let reference = include_str!("../../../../docs/reference/metrics.md");
    // Families are written as `elastane_node_cpus`, `…_allocated`.
    let is_there = |name: &str| {
        let ends = |at: usize| reference.contains(&format!("`…{}`", &name[at..]));
        reference.contains(&format!("`{name}`")) || name.match_indices('_').any(|(at, _)| ends(at))
    };
    let missing: Vec<_> = names.filter(|name| !is_there(name)).collect();
    assert_eq!(missing, [""; 0]);
    assert!(text.lines().count() > 100, "{text}");
}

#[tokio::test]
async fn the_linter_of_prometheus_finds_nothing() {
    let mut promtool = Command::new("promtool");
    let piped = promtool.args(["check", "metrics"]);
    let piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut linter) = piped.spawn() else {
        return skip::skipped("promtool is not installed (Debian's package prometheus)");
    };
    let server = Server::with_teams().await;
    let id = server.train("a", 3).await;
    server.phase(&id, "Running").await;
    server.train("b", 2).await;
    while server.control.sample().at.0 == 0 {
        tokio::task::yield_now().await;
    }
    let (_, text) = scrape(&server, "").await;
    linter.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let found = linter.wait_with_output().unwrap();
    let said = [found.stdout, found.stderr].concat();
    assert!(found.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}
