//! Cost of a request for the server, against the number of existing objects. Owns: the CPU time of
//! the server's threads for each kind of change, with few and with many waiting workloads and node
//! pools.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::http::Connection;
use super::line;
use super::load::ask_many;
use super::server::{Server, Used};

/// Default numbers of waiting workloads to compare.
pub(super) const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
/// Default numbers of node pools to compare; at most [`NODES`].
pub(super) const POOLS: [usize; 2] = [1, 50];
const PROJECTS: usize = 60;
/// Nodes with 4 GPUs each, all held by workspaces, which are not preempted.
pub(super) const NODES: usize = 50;
const GPUS: usize = 4;
/// Kinds of waiting workloads: two sizes in each of 50 projects.
const CLASSES: usize = 100;
/// Waiting workloads of the project whose quota is changed.
const OF_ONE_PROJECT: usize = 10;
const CONNECTIONS: usize = 16;
/// Requests of each kind, one after the other.
const REQUESTS: usize = 100;
const ENDS: usize = 10;
/// Goals, in milliseconds. At 100,000 a submission may take half as much again.
const SUBMISSION_MS: f64 = 0.6;
const ASSET_MS: f64 = 0.35;
const CHANGE_MS: f64 = 0.6;
/// Wait for work after a response, such as a decision and the start of a process.
const SETTLE: Duration = Duration::from_millis(250);
/// CPU time in that time of a server that does nothing but measure.
const REST_MS: f64 = 10.0;

/// Measures each number of node pools with each number of waiting workloads.
pub(super) fn run(elastane: &std::path::Path, sizes: &[usize], pools: &[usize]) -> Result<()> {
    for &pools in pools {
        let mut server = Server::new(elastane, &format!("{NODES}x{GPUS}x16GiB"))?;
        server.start()?;
        let mut costs = Costs::prepare(&mut server, pools)?;
        for &size in sizes {
            costs.fill(size)?;
            costs.measure()?;
        }
    }
    Ok(())
}

struct Costs<'a> {
    server: &'a Server,
    connection: Connection,
    cluster: String,
    pools: usize,
    projects: Vec<String>,
    /// Running workspaces.
    holders: Vec<String>,
    /// Number of waiting workloads, without those of the project left out, and number created.
    waiting: usize,
    created: usize,
    others: usize,
}

impl<'a> Costs<'a> {
    /// A full cluster.
    fn prepare(server: &'a mut Server, pools: usize) -> Result<Self> {
        let cluster = server.cluster_id()?;
        let server = &*server;
        let connection = server.connection()?;
        let (projects, holders) = (Vec::new(), Vec::new());
        let (waiting, created, others) = (0, 0, 0);
        let mut costs = Self {
            server,
            connection,
            cluster,
            pools,
            projects,
            holders,
            waiting,
            created,
            others,
        };
        for number in 0..=PROJECTS {
            let id = costs.create_project(number)?;
            costs.projects.push(id);
        }
        for number in 0..NODES {
            let body = costs.workload("holder", costs.project(number), GPUS, number);
            let id = costs.create("/api/v1/workloads/workspaces", &body)?;
            costs.holders.push(id);
        }
        costs.await_running(NODES)?;
        for number in 1..pools {
            costs.create_pool(number)?;
        }
        for number in 0..OF_ONE_PROJECT {
            let body = costs.workload("one", costs.project(PROJECTS), 1, number);
            costs.create("/api/v1/workloads/trainings", &body)?;
        }
        Ok(costs)
    }

    fn project(&self, number: usize) -> &str {
        self.projects.get(number).map_or("", String::as_str)
    }

    fn create_project(&mut self, number: usize) -> Result<String> {
        let quota = if number < NODES { GPUS } else { 0 };
        let gpu = json!({ "deserved": quota, "overQuotaWeight": 2 });
        let body = json!({
            "name": format!("bench-{number}"), "clusterId": self.cluster, "resources": [{ "gpu": gpu }],
        });
        let answer = self.connection.expect("POST", "/api/v1/org-unit/projects", &body.to_string());
        id_in(&answer?, "id")
    }

    /// A pool with a node of its own, whose workspace goes on there.
    fn create_pool(&mut self, number: usize) -> Result<()> {
        let labels = json!({ "labels": { "bench": number.to_string() } });
        let path = format!("/elastane/v1/nodes/node-{number}/labels");
        self.connection.expect("PUT", &path, &labels.to_string())?;
        let body = json!({
            "name": format!("bench-{number}"), "labelKey": "bench",
            "labelValue": number.to_string(), "clusterId": self.cluster,
        });
        self.connection.expect("POST", "/api/v1/node-pools", &body.to_string()).map(drop)
    }

    fn workload(&self, name: &str, project: &str, gpus: usize, number: usize) -> String {
        let compute = json!({
            "gpuDevicesRequest": gpus, "cpuCoreRequest": 0.001, "cpuMemoryRequest": "1M",
        });
        let spec = json!({ "image": "ubuntu", "command": "sleep infinity", "compute": compute });
        json!({
            "name": format!("{name}-{number}"), "projectId": project, "clusterId": self.cluster,
            "spec": spec,
        })
        .to_string()
    }

    /// One of the waiting workloads, which come in classes.
    fn waiting(&self, number: usize) -> String {
        let (class, kinds) = (number % CLASSES, CLASSES / 2);
        self.workload("waits", self.project(class % kinds), 1 + class / kinds, number)
    }

    fn create(&mut self, path: &str, body: &str) -> Result<String> {
        id_in(&self.connection.expect("POST", path, body)?, "workloadId")
    }

    fn await_running(&mut self, count: usize) -> Result<()> {
        let since = Instant::now();
        let path = "/api/v1/workloads/count?filterBy=phase==Running";
        loop {
            let answer: Value = serde_json::from_str(&self.connection.expect("GET", path, "")?)?;
            let running = answer.get("count").and_then(Value::as_u64);
            if running.is_some_and(|running| running >= count as u64) {
                return Ok(());
            }
            anyhow::ensure!(since.elapsed() < super::PATIENCE, "of {count} workloads {answer} run");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Creates waiting workloads up to a number.
    fn fill(&mut self, size: usize) -> Result<()> {
        let (first, missing) = (self.created, size.saturating_sub(self.waiting));
        ask_many(self.server, missing, CONNECTIONS, |connection, index| {
            let body = self.waiting(first + index);
            connection.expect("POST", "/api/v1/workloads/trainings", &body).map(drop)
        })?;
        self.created += missing;
        self.waiting += missing;
        // The server has ended one that was idle for so long.
        self.connection = self.server.connection()?;
        Ok(())
    }

    fn measure(&mut self) -> Result<()> {
        let submission = self.cpu(REQUESTS, |costs, _| {
            let body = costs.waiting(costs.created);
            costs.created += 1;
            costs.create("/api/v1/workloads/trainings", &body).map(drop)
        })?;
        self.waiting += REQUESTS;
        let more = if self.waiting > 100_000 { 1.5 } else { 1.0 };
        self.print_request("submission", &submission, SUBMISSION_MS * more)?;
        let asset = self.cpu(REQUESTS, |costs, _| {
            costs.others += 1;
            let meta = json!({ "name": format!("bench-{}", costs.others), "scope": "tenant" });
            let body = json!({ "meta": meta, "spec": { "image": "ubuntu" } }).to_string();
            costs.connection.expect("POST", "/api/v1/asset/environment", &body).map(drop)
        })?;
        self.print("asset", asset.core_ms + asset.edge_ms + asset.decisions_ms, ASSET_MS)?;
        let quota = self.cpu(REQUESTS, |costs, index| {
            let path = format!("/api/v1/org-unit/projects/{}/resources", costs.project(PROJECTS));
            let share = json!({ "gpu": { "deserved": 10 * (1 + index % 2) } });
            let body = json!([share]).to_string();
            costs.connection.expect("PATCH", &path, &body).map(drop)
        })?;
        self.print_request("quota of a project", &quota, CHANGE_MS)?;
        self.measure_ends()
    }

    fn measure_ends(&mut self) -> Result<()> {
        let mut waiting = Vec::new();
        for number in 0..REQUESTS {
            let body = self.workload("ends", self.project(PROJECTS), 1, number);
            waiting.push(self.create("/api/v1/workloads/trainings", &body)?);
        }
        let waits = self.cpu(REQUESTS, |costs, _| {
            let id = waiting.pop().context("no training is left")?;
            let path = format!("/api/v1/workloads/trainings/{id}");
            costs.connection.expect("DELETE", &path, "").map(drop)
        })?;
        self.print_request("end of one that waits", &waits, CHANGE_MS)?;
        let runs = self.cpu(ENDS, |costs, _| {
            let id = costs.holders.pop().context("no workspace is left")?;
            let path = format!("/api/v1/workloads/workspaces/{id}");
            costs.connection.expect("DELETE", &path, "")?;
            // The next ones take its place.
            std::thread::sleep(SETTLE);
            Ok(())
        })?;
        self.print("end of one that runs, and 4 starts", runs.core_ms, CHANGE_MS)?;
        line("  decisions", runs.decisions_ms, "ms", None)?;
        line("  requests and processes", runs.edge_ms, "ms", None)
    }

    fn print_request(&self, what: &str, used: &Used, goal: f64) -> Result<()> {
        self.print(what, used.core_ms + used.edge_ms, goal)?;
        line("  its decision", used.decisions_ms, "ms", None)
    }

    fn print(&self, what: &str, value: f64, goal: f64) -> Result<()> {
        let (waiting, pools) = (self.waiting, self.pools);
        line(&format!("{what}, {waiting} wait, {pools} pools"), value, "ms", Some(goal))
    }

    /// Waits until the server does nothing: what came before, such as a new segment of the
    /// recording after many submissions, is over.
    fn await_rest(&self) -> Result<()> {
        let since = Instant::now();
        loop {
            let before = self.server.cpu()?;
            std::thread::sleep(SETTLE);
            let used = self.server.cpu()?.since(&before);
            let used_ms = used.core_ms + used.decisions_ms + used.edge_ms;
            if used_ms < REST_MS || since.elapsed() > super::PATIENCE {
                return Ok(());
            }
        }
    }

    /// CPU time of the server's threads for each request and what follows it.
    fn cpu(
        &mut self,
        requests: usize,
        mut ask: impl FnMut(&mut Self, usize) -> Result<()>,
    ) -> Result<Used> {
        self.await_rest()?;
        let before = self.server.cpu()?;
        for index in 0..requests {
            ask(self, index)?;
        }
        std::thread::sleep(SETTLE);
        #[expect(clippy::cast_precision_loss, reason = "counts of a measurement are small")]
        let requests = requests as f64;
        let all = self.server.cpu()?.since(&before);
        Ok(Used {
            core_ms: all.core_ms / requests,
            decisions_ms: all.decisions_ms / requests,
            edge_ms: all.edge_ms / requests,
        })
    }
}

fn id_in(answer: &str, field: &str) -> Result<String> {
    let answer: Value = serde_json::from_str(answer)?;
    let id = answer.get(field).and_then(Value::as_str);
    Ok(id.with_context(|| format!("no {field} in {answer}"))?.to_owned())
}
