//! Rows of the stream of changes, as a browser reads them. Owns: how many bytes a long list is, and
//! how many a reader gets while the reason of all waiting workloads changes each second.

use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::http::Connection;
use super::line;
use super::load::ask_many;
use super::server::{Server, Used};

const WAITING: usize = 10_000;
const CONNECTIONS: usize = 32;
const SECONDS: u64 = 10;
/// Number of explanations, of which the median counts.
const TIMES: usize = 5;
const ROWS: &str = "/elastane/v1/changes?shape=row&kinds=workload,reason";
/// Every kind, as the web interface reads them.
const ALL: &str = "/elastane/v1/changes?shape=row";

/// Measures a node of which half is held, so that the rest is too small for the waiting workloads.
pub(super) fn run(elastane: &Path) -> Result<()> {
    let mut server = Server::new(elastane, "4x16GiB")?;
    server.start()?;
    let project = server.create_project(4)?;
    submit(&server, &project, 1, "half", 2)?;
    submit(&server, &project, WAITING, "waits", 3)?;
    explain(&mut server)?;
    let mut rows = server.connection()?;
    rows.watch(ROWS)?;
    line("list of 10,000 waiting workloads", mega(bytes_of_list(&mut rows)?), "MB", Some(6.0))?;
    let mut reader = server.connection()?;
    reader.watch(ALL)?;
    line("that list with pods and all else", mega(bytes_of_list(&mut reader)?), "MB", None)?;
    let since = Instant::now();
    let bytes = changing(&mut server, &mut reader)?;
    let kilobytes_s = mega(bytes) * 1000.0 / since.elapsed().as_secs_f64();
    line("a reason of 10,000 each second", kilobytes_s, "kB/s", Some(50.0))
}

/// Explains a workload that waits: its known parts, then what has to be tried out.
fn explain(server: &mut Server) -> Result<()> {
    let list = server.ask("GET", "/api/v1/workloads?limit=1&filterBy=phase==Pending", None)?;
    let id = list.pointer("/workloads/0/id").and_then(Value::as_str).context("none waits")?;
    let path = |parts: &str| format!("/elastane/v1/workloads/{id}/explain?parts={parts}");
    let mut asked = |parts: &str| -> Result<(f64, f64)> {
        let (mut wall_ms, mut cpu_ms) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let (before, since) = (server.cpu()?, Instant::now());
            server.ask("GET", &path(parts), None)?;
            wall_ms.push(since.elapsed().as_secs_f64() * 1000.0);
            let Used { core_ms, decisions_ms, edge_ms, .. } = server.cpu()?.since(&before);
            cpu_ms.push(core_ms + decisions_ms + edge_ms);
        }
        Ok((median(wall_ms), median(cpu_ms)))
    };
    let (known_ms, _) = asked("known")?;
    line("explain one of them, what is known", known_ms, "ms", Some(20.0))?;
    let (_, diagnosis_ms) = asked("diagnosis")?;
    line("explain one of them, the diagnosis", diagnosis_ms / 1000.0, "CPU s", Some(0.5))
}

fn submit(server: &Server, project: &str, count: usize, name: &str, gpus: u64) -> Result<()> {
    let cluster = server.cluster_id()?;
    ask_many(server, count, CONNECTIONS, |connection, index| {
        let compute = json!({ "gpuDevicesRequest": gpus, "cpuCoreRequest": 0.001 });
        let spec = json!({ "image": "ubuntu", "command": "sleep infinity", "compute": compute });
        let body = json!({
            "name": format!("{name}-{index}"), "projectId": project, "clusterId": cluster,
            "spec": spec,
        });
        connection.expect("POST", "/api/v1/workloads/trainings", &body.to_string()).map(drop)
    })
    .map(drop)
}

/// Takes a free GPU out of service or back, once a second: the numbers of the reason change, its
/// code stays. The bytes that the reader got.
fn changing(server: &mut Server, reader: &mut Connection) -> Result<usize> {
    let gpus = server.ask("GET", "/elastane/v1/gpus", None)?;
    let mut all = gpus.get("gpus").and_then(Value::as_array).into_iter().flatten();
    let free = all.rfind(|gpu| gpu.get("allocated").and_then(Value::as_f64) == Some(0.0));
    let named = |field: &str| free.and_then(|gpu| gpu.get(field));
    let node = named("nodeName").and_then(Value::as_str).context("no free GPU")?;
    let index = named("index").and_then(Value::as_u64).context("a GPU without a number")?;
    let path = format!("/elastane/v1/nodes/{node}/gpus/{index}/simulated-failure");
    let (mut bytes, mut reasons, mut text) = (0, 0, Vec::new());
    for second in 0..SECONDS {
        let since = Instant::now();
        let verb = if second % 2 == 0 { "PUT" } else { "DELETE" };
        server.ask(verb, &path, Some(&json!({})))?;
        sleep(Duration::from_secs(1).saturating_sub(since.elapsed()));
        let (got, of_reasons) = available(reader, &mut text)?;
        bytes += got;
        reasons += of_reasons;
    }
    if reasons < SECONDS {
        bail!("only {reasons} reasons came in {SECONDS} s");
    }
    Ok(bytes)
}

/// Bytes and reasons read since the last call. `text` keeps the begun line.
fn available(reader: &mut Connection, text: &mut Vec<u8>) -> Result<(usize, u64)> {
    reader.set_timeout(Duration::from_millis(50))?;
    let (mut bytes, mut reasons) = (0, 0);
    loop {
        match reader.read_on_into(text) {
            Ok(()) => {
                bytes += text.len();
                let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
                reasons += u64::from(has(br#""kind":"reason""#));
                text.clear();
            }
            Err(error) => match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
                Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok((bytes, reasons)),
                _ => return Err(error),
            },
        }
    }
}

/// Bytes of a stream up to the end of its list.
fn bytes_of_list(reader: &mut Connection) -> Result<usize> {
    let (mut bytes, mut text) = (0, Vec::new());
    loop {
        reader.read_line_into(&mut text)?;
        bytes += text.len();
        if String::from_utf8_lossy(&text).contains(r#""type":"synced""#) {
            return Ok(bytes);
        }
    }
}

/// Millions of bytes.
fn mega(bytes: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let bytes = bytes as f64;
    bytes / 1e6
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
