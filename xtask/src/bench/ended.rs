//! Cost of many ended workloads for a server: memory, its start, submissions, lists. Owns: a
//! database with this many of them, made from a backup of one; and the measurements without any.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::server::Server;
use super::{line, milliseconds, percentile};

/// Default numbers of ended workloads to compare.
pub(super) const SIZES: [usize; 2] = [0, 100_000];
const STARTS: usize = 5;
const SUBMISSIONS: usize = 100;
const PAGES: usize = 20;
/// Wait for work after a response, and for a server's own work after its start.
const SETTLE: Duration = Duration::from_secs(1);
/// Keeps no ended workload in memory.
const KEPT: [&str; 2] = ["--ended-workloads-kept", "0"];
/// Lists of a person, with the project in place of `PROJECT`.
const LISTS: [(&str, &str); 7] = [
    ("count", "/api/v1/workloads/count"),
    ("page of 50", "/api/v1/workloads?limit=50"),
    ("page of 50, by name", "/api/v1/workloads?limit=50&sortBy=name"),
    ("page of 50, newest end", "/api/v1/workloads?limit=50&sortBy=completedAt&sortOrder=desc"),
    ("page of 50 of a project", "/api/v1/workloads?limit=50&filterBy=projectId==PROJECT"),
    (
        "page of 50 of a project, by name",
        "/api/v1/workloads?limit=50&filterBy=projectId==PROJECT&sortBy=name&sortOrder=desc",
    ),
    ("page of 50 that failed", "/api/v1/workloads?limit=50&filterBy=phase==Failed"),
];

/// Measures a server with each number of ended workloads.
pub(super) fn run(elastane: &Path, sizes: &[usize]) -> Result<()> {
    for &size in sizes {
        let mut server = Server::new(elastane, "4x16GiB")?.with_arguments(&KEPT);
        server.start()?;
        let project = server.create_project(4)?;
        if size > 0 {
            end_one(&mut server, &project)?;
            server.kill()?;
            multiply(&server, size)?;
            server.start()?;
        }
        measure(&mut server, &project, size)?;
    }
    Ok(())
}

/// A training that has ended, and is archived.
fn end_one(server: &mut Server, project: &str) -> Result<()> {
    super::submit_image(server, project, 0, "ubuntu", Some("true"))?;
    let since = Instant::now();
    let done = "/api/v1/workloads/count?filterBy=phase==Completed";
    while server.ask("GET", done, None)?.get("count") != Some(&json!(1)) {
        if since.elapsed() > super::PATIENCE {
            bail!("a training that does nothing has not ended");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Restores a backup of the server with its one ended workload so many times. Events and the ledger
/// are forgotten by age, and are not multiplied.
fn multiply(server: &Server, size: usize) -> Result<()> {
    let (from, to) = (server.file("one.jsonl"), server.file("many.jsonl"));
    let run = |arguments: &[&str]| -> Result<()> {
        let status = server.operate(arguments).status()?;
        if status.success() { Ok(()) } else { bail!("elastane {arguments:?}: {status}") }
    };
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path that is no text");
    run(&["backup", &text(&from)?])?;
    let mut out =
        Digested { out: BufWriter::new(File::create(&to)?), digest: Sha256::new(), rows: 0 };
    let since = Instant::now();
    for row in BufReader::new(File::open(&from)?).lines() {
        let row = row?;
        let parsed: Map<String, Value> = serde_json::from_str(&row)?;
        match parsed.iter().next() {
            Some((table, Value::Object(one))) if table == "workloads" => {
                (0..size).try_for_each(|number| out.row(table, &workload(one, number)?))?;
            }
            Some((table, Value::Object(one))) if table == "pods" => {
                (0..size).try_for_each(|number| out.row(table, &pod(one, number)))?;
            }
            Some((table, Value::Object(one))) if table == "archived_counts" => {
                let mut counted = one.clone();
                counted.insert("n".to_owned(), size.into());
                out.row(table, &counted)?;
            }
            Some((table, _)) if table == "allocations" || table == "events" => {}
            Some((table, Value::Object(one))) => out.row(table, one)?,
            _ if parsed.contains_key("format") => out.line(&row)?,
            // The end, which is written again.
            _ => {}
        }
    }
    let end = json!({ "rows": out.rows, "sha256": out.hex() }).to_string();
    out.line(&end)?;
    out.out.flush()?;
    run(&["restore", &text(&to)?, "--replace"])?;
    fs::remove_file(&to)?;
    line(&format!("{size} ended: made in"), since.elapsed().as_secs_f64(), "s", None)
}

/// A backup with the digest of what is in it.
struct Digested {
    out: BufWriter<File>,
    digest: Sha256,
    rows: u64,
}

impl Digested {
    fn row(&mut self, table: &str, row: &Map<String, Value>) -> Result<()> {
        self.rows += 1;
        self.line(&json!({ table: row }).to_string())
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        self.digest.update(&line);
        Ok(self.out.write_all(line.as_bytes())?)
    }

    fn hex(&self) -> String {
        let bytes = self.digest.clone().finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Another workload like `one`. Each ended a second after the one before.
fn workload(one: &Map<String, Value>, number: usize) -> Result<Map<String, Value>> {
    let mut row = one.clone();
    let name = format!("ended-{number}");
    let spec = row.get("spec").and_then(Value::as_str).context("no spec")?;
    let mut spec: Value = serde_json::from_str(spec)?;
    spec["name"] = json!(name);
    row.insert("spec".to_owned(), spec.to_string().into());
    row.insert("name".to_owned(), name.into());
    row.insert("id".to_owned(), id(number, "8000").into());
    row.insert("seq".to_owned(), (number + 1).into());
    let earlier = u64::try_from(number)?.saturating_mul(1000).min(1_000_000_000_000);
    for column in ["created_at", "phase_since", "completed_at"] {
        let at = row.get(column).and_then(Value::as_u64).context("no time")?;
        row.insert(column.to_owned(), at.saturating_sub(earlier).into());
    }
    Ok(row)
}

fn pod(one: &Map<String, Value>, number: usize) -> Map<String, Value> {
    let mut row = one.clone();
    row.insert("id".to_owned(), id(number, "9000").into());
    row.insert("workload_id".to_owned(), id(number, "8000").into());
    row
}

fn id(number: usize, variant: &str) -> String {
    format!("01900000-0000-7000-{variant}-{number:012x}")
}

fn measure(server: &mut Server, project: &str, size: usize) -> Result<()> {
    let what = |what: &str| format!("{size} ended: {what}");
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        server.kill()?;
        starts.push(server.start()?);
    }
    line(&what("start to ready, p50"), percentile(&mut starts, 50), "ms", None)?;
    std::thread::sleep(SETTLE);
    line(&what("resident memory"), server.resident_megabytes()?, "MB", None)?;
    let before = server.cpu()?;
    for index in 1..=SUBMISSIONS {
        super::submit(server, project, index)?;
    }
    std::thread::sleep(SETTLE);
    let used = server.cpu()?.since(&before);
    #[expect(clippy::cast_precision_loss, reason = "counts of a measurement are small")]
    let each = (used.core_ms + used.edge_ms + used.decisions_ms) / SUBMISSIONS as f64;
    line(&what("CPU of a submission"), each, "ms", None)?;
    for (list, path) in LISTS {
        let path = path.replace("PROJECT", project);
        let mut latencies = Vec::new();
        for _ in 0..PAGES {
            let since = Instant::now();
            server.ask("GET", &path, None)?;
            latencies.push(milliseconds(since));
        }
        line(&what(list), percentile(&mut latencies, 50), "ms", None)?;
    }
    line(&what("resident memory after that"), server.resident_megabytes()?, "MB", None)
}
