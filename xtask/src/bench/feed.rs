//! The stream of changes with many readers. Owns: how long a change takes from its acknowledgement
//! until a reader has it, and what the readers cost in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::http::Connection;
use super::server::Server;
use super::{line, percentile, rate, rows};

/// Workloads that are changed in turn, so that each change is of another than those before.
const WORKLOADS: usize = 1_000;
const READERS: usize = 500;
/// Changes a second, from so many connections, and for how long.
const CHANGES_PER_S: usize = 500;
const CHANGING_CONNECTIONS: usize = 25;
const SECONDS: usize = 10;
/// Stack size of a reader in bytes; little, since there are many readers.
const STACK_BYTES: usize = 256 << 10;
const PATH: &str = "/elastane/v1/changes?kinds=workload&after=now";

/// Versions that a reader got, with the time of each.
type Seen = Vec<(u64, Instant)>;

pub(super) fn run(elastane: &Path) -> Result<()> {
    rows::run(elastane)?;
    let mut server = Server::new(elastane, "4x16GiB")?;
    server.start()?;
    let project = server.create_project(4)?;
    let ids = submit_all(&server, &project)?;
    let before = server.resident_megabytes()?;
    let over = &AtomicBool::new(false);
    let (acknowledged, marks, seen, after, took) = scope(|threads| {
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let mut connection = server.connection()?;
            connection.watch(PATH)?;
            let builder = Builder::new().stack_size(STACK_BYTES);
            readers.push(builder.spawn_scoped(threads, move || read(&mut connection, over))?);
        }
        let mut marking = server.connection()?;
        marking.watch(PATH)?;
        let marks = threads.spawn(move || read_marks(&mut marking, over));
        let since = Instant::now();
        let acknowledged = change_all(&server, &ids)?;
        let took = since.elapsed();
        // The last have to arrive as well.
        sleep(Duration::from_secs(2));
        let after = server.resident_now_megabytes()?;
        over.store(true, Ordering::Relaxed);
        // A change that every reader gets, so that each can end.
        let mut connection = server.connection()?;
        mark(&mut connection, &ids, 0)?;
        let seen: Result<Vec<Seen>> = readers.into_iter().map(joined).collect();
        anyhow::Ok((acknowledged, joined(marks)?, seen?, after, took))
    })?;
    rate("changes", acknowledged.len(), took.as_secs_f64(), None)?;
    let mut delays = delays(&acknowledged, &marks, &seen);
    rate("changes received by 500 readers", delays.len(), took.as_secs_f64(), None)?;
    line("change at a reader of 500, p50", percentile(&mut delays, 50), "ms", None)?;
    line("change at a reader of 500, p99", percentile(&mut delays, 99), "ms", Some(100.0))?;
    line("resident memory for 500 readers", after - before, "MB", None)?;
    stalled(&server, before)
}

/// Readers that ask for everything and read nothing of it.
fn stalled(server: &Server, before: f64) -> Result<()> {
    let mut connections = Vec::new();
    for _ in 0..READERS {
        let mut connection = server.connection()?;
        connection.watch("/elastane/v1/changes")?;
        connections.push(connection);
    }
    sleep(Duration::from_secs(5));
    let after = server.resident_now_megabytes()?;
    line("resident memory for 500 that do not read", after - before, "MB", None)
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow::anyhow!("a reader panicked"))?
}

/// Delays from each acknowledgement to each reader, in milliseconds. A change that the next one of
/// its workload overtook is left out.
fn delays(
    acknowledged: &BTreeMap<usize, Instant>,
    marks: &BTreeMap<usize, u64>,
    seen: &[Seen],
) -> Vec<f64> {
    let by_version: BTreeMap<u64, Instant> = marks
        .iter()
        .filter_map(|(mark, version)| Some((*version, *acknowledged.get(mark)?)))
        .collect();
    let of_reader = |seen: &Seen| {
        let one = |(version, at): &(u64, Instant)| {
            let acknowledged = by_version.get(version)?;
            Some(at.saturating_duration_since(*acknowledged).as_secs_f64() * 1000.0)
        };
        seen.iter().filter_map(one).collect::<Vec<_>>()
    };
    seen.iter().flat_map(of_reader).collect()
}

fn submit_all(server: &Server, project: &str) -> Result<Vec<String>> {
    let (cluster, mut connection) = (server.cluster_id()?, server.connection()?);
    let mut ids = Vec::new();
    for index in 0..WORKLOADS {
        let compute =
            json!({ "gpuDevicesRequest": 1, "cpuCoreRequest": 0.001, "cpuMemoryRequest": "1M" });
        let spec = json!({ "image": "ubuntu", "command": "sleep infinity", "compute": compute });
        let body = json!({
            "name": format!("feed-{index}"), "projectId": project, "clusterId": cluster,
            "spec": spec,
        });
        let path = "/api/v1/workloads/trainings";
        let made: Value =
            serde_json::from_str(&connection.expect("POST", path, &body.to_string())?)?;
        let id = made.get("workloadId").and_then(Value::as_str);
        ids.push(id.context("no workloadId")?.to_owned());
    }
    Ok(ids)
}

/// Changes a workload so that the change can be distinguished from others.
fn mark(connection: &mut Connection, ids: &[String], number: usize) -> Result<()> {
    let annotation = json!({ "name": "mark", "value": number.to_string() });
    let body = json!({ "spec": { "annotations": [annotation] } });
    let path = format!("/api/v1/workloads/trainings/{}", ids[number % ids.len()]);
    connection.expect("PATCH", &path, &body.to_string()).map(drop)
}

/// Makes all changes, each at its time; when each was acknowledged.
fn change_all(server: &Server, ids: &[String]) -> Result<BTreeMap<usize, Instant>> {
    let began = Instant::now();
    let work = |first: usize| -> Result<Vec<(usize, Instant)>> {
        let mut connection = server.connection()?;
        let mut acknowledged = Vec::new();
        for number in (first..CHANGES_PER_S * SECONDS).step_by(CHANGING_CONNECTIONS) {
            let share = u32::try_from(number)?;
            let at = began + Duration::from_secs(1) * share / u32::try_from(CHANGES_PER_S)?;
            sleep(at.saturating_duration_since(Instant::now()));
            mark(&mut connection, ids, number + 1)?;
            acknowledged.push((number + 1, Instant::now()));
        }
        Ok(acknowledged)
    };
    let work = &work;
    scope(|threads| {
        let all: Vec<_> =
            (0..CHANGING_CONNECTIONS).map(|first| threads.spawn(move || work(first))).collect();
        let all: Result<Vec<_>> = all.into_iter().map(joined).collect();
        Ok(all?.into_iter().flatten().collect())
    })
}

/// Reads until it is over.
fn read(connection: &mut Connection, over: &AtomicBool) -> Result<Seen> {
    let mut seen = Seen::new();
    let mut line = Vec::new();
    while !over.load(Ordering::Relaxed) {
        connection.read_line_into(&mut line)?;
        if let Some(version) = version(&line) {
            seen.push((version, Instant::now()));
        }
    }
    Ok(seen)
}

/// The versions that the marks have.
fn read_marks(connection: &mut Connection, over: &AtomicBool) -> Result<BTreeMap<usize, u64>> {
    let (mut marks, mut newest) = (BTreeMap::new(), 0);
    let mut line = Vec::new();
    while !over.load(Ordering::Relaxed) {
        connection.read_line_into(&mut line)?;
        newest = version(&line).unwrap_or(newest);
        let Some(data) = line.strip_prefix(b"data: ") else { continue };
        let frame: Value = serde_json::from_slice(data)?;
        let mark = frame.pointer("/object/additionalFields/annotations/mark");
        if let Some(mark) = mark.and_then(Value::as_str) {
            marks.insert(mark.parse()?, newest);
        }
    }
    if marks.is_empty() {
        bail!("no change was read");
    }
    Ok(marks)
}

/// The version in a line with a position.
fn version(line: &[u8]) -> Option<u64> {
    let position = std::str::from_utf8(line.strip_prefix(b"id: ")?).ok()?;
    position.trim_end().split_once('-')?.1.parse().ok()
}
