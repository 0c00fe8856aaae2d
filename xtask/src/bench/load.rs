//! The REST interface under load: creations, reads, watchers. Owns: how many ask at once, and that
//! nothing that was acknowledged is missing or there twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::http::Connection;
use super::server::Server;
use super::{line, milliseconds, percentile, rate};

const CREATIONS: usize = 1_000;
const CREATING_CONNECTIONS: usize = 32;
const WORKLOADS: usize = 10_000;
const READING_CONNECTIONS: usize = 8;
const READS: usize = 20_000;
const LISTS: usize = 400;
const WATCHERS: usize = 500;
const SHOUTS: usize = 20;
/// The filtered and sorted page that a person looks at.
const LIST: &str =
    "/api/v1/workloads?filterBy=phase==Pending,name=@1&sortBy=name&sortOrder=desc&limit=50";

/// Measures a server with few GPUs, so that most of what is created waits.
pub(super) fn run(elastane: &Path) -> Result<()> {
    let mut server = Server::new(elastane, "4x16GiB")?;
    server.start()?;
    let project = server.create_project(4)?;
    let load = Load { server: &server, project: &project, cluster: server.cluster_id()? };
    load.creations()?;
    load.create(CREATIONS..WORKLOADS, CREATING_CONNECTIONS)?;
    load.all_there(WORKLOADS)?;
    load.reads()?;
    load.watchers()?;
    line("resident memory, 10,000 workloads", server.resident_megabytes()?, "MB", Some(80.0))
}

struct Load<'a> {
    server: &'a Server,
    project: &'a str,
    cluster: String,
}

impl Load<'_> {
    fn body(&self, index: usize) -> String {
        let compute =
            json!({ "gpuDevicesRequest": 1, "cpuCoreRequest": 0.001, "cpuMemoryRequest": "1M" });
        let spec = json!({ "image": "ubuntu", "command": "sleep infinity", "compute": compute });
        json!({ "name": name(index), "projectId": self.project, "clusterId": self.cluster, "spec": spec })
            .to_string()
    }

    /// Creates the numbered workloads; how long each took, in milliseconds.
    fn create(&self, numbers: std::ops::Range<usize>, connections: usize) -> Result<Vec<f64>> {
        let count = numbers.len();
        ask_many(self.server, count, connections, |connection, index| {
            let body = self.body(numbers.start + index);
            connection.expect("POST", "/api/v1/workloads/trainings", &body).map(drop)
        })
    }

    fn creations(&self) -> Result<()> {
        let since = Instant::now();
        let mut latencies = self.create(0..CREATIONS, CREATING_CONNECTIONS)?;
        let seconds = since.elapsed().as_secs_f64();
        rate("creations, 32 connections", CREATIONS, seconds, Some(1_000.0))?;
        line("creation, p50", percentile(&mut latencies, 50), "ms", None)?;
        line("creation, p99", percentile(&mut latencies, 99), "ms", Some(50.0))?;
        self.all_there(CREATIONS)
    }

    /// Every workload is listed, once, and creating it again is a conflict.
    fn all_there(&self, count: usize) -> Result<()> {
        let mut connection = self.server.connection()?;
        let mut seen = BTreeSet::new();
        let mut listed = 0;
        while listed < count {
            let page = format!("/api/v1/workloads?limit=500&offset={listed}");
            let answer: Value = serde_json::from_str(&connection.expect("GET", &page, "")?)?;
            let rows = answer.get("workloads").and_then(Value::as_array).context("no workloads")?;
            if rows.is_empty() {
                break;
            }
            listed += rows.len();
            seen.extend(rows.iter().filter_map(|row| row.get("name")?.as_str().map(str::to_owned)));
        }
        let (code, _) = connection.ask("POST", "/api/v1/workloads/trainings", &self.body(0))?;
        if seen.len() != count || listed != count || code != 409 {
            bail!("{count} created, {listed} listed, {} names; created again: {code}", seen.len());
        }
        Ok(())
    }

    fn reads(&self) -> Result<()> {
        let mut connection = self.server.connection()?;
        let answer: Value = serde_json::from_str(&connection.expect("GET", LIST, "")?)?;
        let first = answer.pointer("/workloads/0/id").and_then(Value::as_str);
        let one = format!("/api/v1/workloads/{}", first.context("nothing waits")?);
        for (what, path, count, goal) in [
            ("reads of a workload", one.as_str(), READS, Some(5_000.0)),
            ("lists of 10,000, filtered, sorted", LIST, LISTS, None),
        ] {
            let since = Instant::now();
            let mut latencies =
                ask_many(self.server, count, READING_CONNECTIONS, |connection, _| {
                    connection.expect("GET", path, "").map(drop)
                })?;
            rate(what, count, since.elapsed().as_secs_f64(), goal)?;
            line(&format!("{what}, p99"), percentile(&mut latencies, 99), "ms", Some(50.0))?;
        }
        Ok(())
    }

    /// Measures the time from the acknowledgement of a creation until the last of all watchers has
    /// read it.
    fn watchers(&self) -> Result<()> {
        let mut connections = Vec::new();
        for _ in 0..WATCHERS {
            let mut connection = self.server.connection()?;
            connection.watch("/elastane/v1/events")?;
            connections.push(connection);
        }
        let mut creating = self.server.connection()?;
        let mut latencies = Vec::new();
        for shout in 0..SHOUTS {
            let index = WORKLOADS + shout;
            creating.expect("POST", "/api/v1/workloads/trainings", &self.body(index))?;
            let since = Instant::now();
            let wanted = name(index);
            for connection in &mut connections {
                connection.read_until(&wanted)?;
            }
            latencies.push(milliseconds(since));
        }
        line("event at the last of 500 watchers, p50", percentile(&mut latencies, 50), "ms", None)?;
        line(
            "event at the last of 500 watchers, p99",
            percentile(&mut latencies, 99),
            "ms",
            Some(50.0),
        )
    }
}

/// Sends `count` requests over several connections at once; returns the time of each, in
/// milliseconds.
pub(super) fn ask_many(
    server: &Server,
    count: usize,
    connections: usize,
    ask: impl Fn(&mut Connection, usize) -> Result<()> + Sync,
) -> Result<Vec<f64>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<f64>> {
        let mut connection = server.connection()?;
        let mut latencies = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(latencies);
            }
            let since = Instant::now();
            ask(&mut connection, index)?;
            latencies.push(milliseconds(since));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            let latencies = worker.join().map_err(|_| anyhow::anyhow!("a connection panicked"))?;
            all.extend(latencies?);
        }
        Ok(all)
    })
}

fn name(index: usize) -> String {
    format!("load-{index}-end")
}
