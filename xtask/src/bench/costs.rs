//! What a request costs the server, beside what exists already. Owns: the CPU time of the server's
//! threads for each kind of change, with few and with many waiting workloads and node pools.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::http::Connection;
use super::line;
use super::load::ask_many;
use super::server::Server;

/// Numbers of waiting workloads that are compared unless others are asked for.
pub(super) const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
const POOLS: [usize; 2] = [1, 50];
const PROJECTS: usize = 60;
/// Nodes with 4 GPUs each, all held by workspaces, which are not preempted.
const NODES: usize = 50;
const GPUS: usize = 4;
/// Kinds of waiting workloads: two sizes in each of 50 projects.
const CLASSES: usize = 100;
/// Waiting workloads of the project whose quota is changed.
const OF_ONE_PROJECT: usize = 10;
const CONNECTIONS: usize = 16;
/// Requests of each kind, one after the other.
const REQUESTS: usize = 100;
const ENDS: usize = 10;
/// For what follows an answer, such as a decision and the start of a process.
const SETTLE: Duration = Duration::from_millis(250);

/// Measures each number of node pools with each number of waiting workloads.
pub(super) fn run(elastane: &std::path::Path, sizes: &[usize]) -> Result<()> {
    for pools in POOLS {
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
    /// How many wait, those of the one project left out, and how many were created.
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
        let submission = self.cpu_ms(REQUESTS, |costs, _| {
            let body = costs.waiting(costs.created);
            costs.created += 1;
            costs.create("/api/v1/workloads/trainings", &body).map(drop)
        })?;
        self.waiting += REQUESTS;
        self.print("submission and its decision", submission.0 + submission.1, 0.6)?;
        let asset = self.cpu_ms(REQUESTS, |costs, _| {
            costs.others += 1;
            let meta = json!({ "name": format!("bench-{}", costs.others), "scope": "tenant" });
            let body = json!({ "meta": meta, "spec": { "image": "ubuntu" } }).to_string();
            costs.connection.expect("POST", "/api/v1/asset/environment", &body).map(drop)
        })?;
        self.print("asset", asset.0 + asset.1, 0.35)?;
        let quota = self.cpu_ms(REQUESTS, |costs, index| {
            let path = format!("/api/v1/org-unit/projects/{}/resources", costs.project(PROJECTS));
            let share = json!({ "gpu": { "deserved": 10 * (1 + index % 2) } });
            let body = json!([share]).to_string();
            costs.connection.expect("PATCH", &path, &body).map(drop)
        })?;
        self.print("quota of a project", quota.0, 0.6)?;
        self.print_decision(quota.1)?;
        let end = self.cpu_ms(ENDS, |costs, _| {
            let id = costs.holders.pop().context("no workspace is left")?;
            let path = format!("/api/v1/workloads/workspaces/{id}");
            costs.connection.expect("DELETE", &path, "")?;
            // The next takes its place.
            std::thread::sleep(SETTLE);
            Ok(())
        })?;
        self.print("end, and start of the next", end.0, 0.6)?;
        self.print_decision(end.1)
    }

    fn print_decision(&self, value: f64) -> Result<()> {
        line("  its decision", value, "ms", None)
    }

    fn print(&self, what: &str, value: f64, goal: f64) -> Result<()> {
        let (waiting, pools) = (self.waiting, self.pools);
        line(&format!("{what}, {waiting} wait, {pools} pools"), value, "ms", Some(goal))
    }

    /// CPU time of the server's threads for each request, and for the decision about it.
    fn cpu_ms(
        &mut self,
        requests: usize,
        ask: impl Fn(&mut Self, usize) -> Result<()>,
    ) -> Result<(f64, f64)> {
        // What came before is over.
        std::thread::sleep(SETTLE);
        let before = self.server.cpu()?;
        for index in 0..requests {
            ask(self, index)?;
        }
        std::thread::sleep(SETTLE);
        #[expect(clippy::cast_precision_loss, reason = "counts of a measurement are small")]
        let requests = requests as f64;
        let (own_ms, decision_ms) = self.server.cpu()?.since(&before);
        Ok((own_ms / requests, decision_ms / requests))
    }
}

fn id_in(answer: &str, field: &str) -> Result<String> {
    let answer: Value = serde_json::from_str(answer)?;
    let id = answer.get(field).and_then(Value::as_str);
    Ok(id.with_context(|| format!("no {field} in {answer}"))?.to_owned())
}
