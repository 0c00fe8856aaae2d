//! Measurements of the built binaries. Owns: what is measured and how it is printed. Does not know
//! about: goals as conditions; a slow machine fails no build. The server keeps its state in the
//! PostgreSQL of the address in `ELASTANE_BENCH_DATABASE`, or else in a file.

pub(crate) mod build;
mod cli;
mod costs;
mod ended;
mod feed;
mod http;
mod lists;
mod load;
mod rows;
pub(crate) mod server;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use server::Server;

const SUBMITS: usize = 200;
const STARTS: usize = 20;
const CONTAINERS: usize = 20;
const WORKLOADS: usize = 1000;
/// Workloads that run while nothing happens, and for how long that is watched: CPU time is counted
/// in hundredths of a second, and what runs use is looked at every 15 s.
const RUNNING: usize = 20;
const QUIET: Duration = Duration::from_secs(60);
/// Short workloads that follow one another, and how long each sleeps.
const SHORT: usize = 500;
const SHORT_MS: f64 = 500.0;
/// The default socket of a daemon.
const DOCKER_SOCKET: &str = "/var/run/docker.sock";
/// Room for every submit to run at once, so that the latency is that of the way, not of a queue.
const NODES: &str = "8x32x16GiB";
const PATIENCE: Duration = Duration::from_secs(60);

/// Measurements to run, and the binaries for them.
#[derive(Debug, Default)]
pub(crate) struct Options {
    binaries: Option<PathBuf>,
    /// The one part to run; `None` for all.
    only: Option<String>,
    /// Numbers of waiting workloads, instead of the usual ones.
    sizes: Option<Vec<usize>>,
    /// Numbers of node pools, instead of the usual ones.
    pools: Option<Vec<usize>>,
}

impl Options {
    /// Reads `--bin DIR --only PART --sizes N,N --pools N,N`.
    ///
    /// # Errors
    /// An option is unknown or has no value, or a number is none or too large.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        for pair in arguments.chunks(2) {
            match *pair {
                ["--bin", folder] => options.binaries = Some(folder.into()),
                ["--only", part] if PARTS.contains(&part) => options.only = Some(part.to_owned()),
                ["--only", part] => bail!("--only {part}: one of {}", PARTS.join(", ")),
                ["--sizes", list] => {
                    let sizes = numbers(list).context("--sizes: numbers such as 100,1000")?;
                    options.sizes = Some(sizes);
                }
                ["--pools", list] => {
                    let (most, pools) = (costs::NODES, numbers(list));
                    let pools = pools.ok().filter(|all| all.iter().all(|n| (1..=most).contains(n)));
                    options.pools =
                        Some(pools.with_context(|| format!("--pools: numbers from 1 to {most}"))?);
                }
                _ => bail!("bench takes --bin DIR, --only PART, --sizes N,N and --pools N,N"),
            }
        }
        Ok(options)
    }
}

/// Numbers with commas between them.
fn numbers(list: &str) -> Result<Vec<usize>> {
    Ok(list.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

/// Parts that can be measured alone.
const PARTS: [&str; 11] = [
    "costs",
    "load",
    "lists",
    "feed",
    "ended",
    "fractions",
    "elastic",
    "accuracy",
    "fairness",
    "build",
    "ui",
];

/// Measures the binaries in a folder and prints a line for each number.
///
/// # Errors
/// The binaries are missing or do not work.
pub(crate) fn run(default: &Path, options: &Options) -> Result<()> {
    match options.only.as_deref() {
        Some("fractions") => return library("elastane-fraction-libs", "fractions", &[]),
        Some("elastic") => return library("elastane-elastic-master", "elastic", &[]),
        Some("fairness") => return library("elastane-benchmarks", "fairness", &[]),
        Some("build") => return build::run(),
        Some("accuracy") => return library("elastane-elastic-master", "elastic", &["accuracy"]),
        _ => {}
    }
    let binaries = options.binaries.as_deref().unwrap_or(default);
    let elastane = binaries.join("elastane");
    if !elastane.exists() {
        bail!("{} is missing; `make bench` builds it first", elastane.display());
    }
    let elastane = elastane.canonicalize()?;
    let sizes = options.sizes.as_deref().unwrap_or(&costs::SIZES);
    let pools = options.pools.as_deref().unwrap_or(&costs::POOLS);
    match options.only.as_deref() {
        Some("costs") => return costs::run(&elastane, sizes, pools),
        Some("load") => return load::run(&elastane),
        Some("feed") => return feed::run(&elastane),
        Some("ui") => return interface(&elastane),
        Some("ended") => {
            return ended::run(&elastane, options.sizes.as_deref().unwrap_or(&ended::SIZES));
        }
        Some(_) => {
            let usual = [lists::WORKLOADS];
            return lists::run(&elastane, options.sizes.as_deref().unwrap_or(&usual));
        }
        None => {}
    }
    starts(&elastane)?;
    cli::run(&elastane, &elastane.with_file_name("runai"))?;
    submits(&elastane)?;
    many_short(&elastane)?;
    containers(&elastane)?;
    memory(&elastane)?;
    at_rest(&elastane)?;
    load::run(&elastane)?;
    feed::run(&elastane)?;
    lists::run(&elastane, &[lists::WORKLOADS])?;
    costs::run(&elastane, sizes, pools)?;
    ended::run(&elastane, &ended::SIZES)?;
    library("elastane-fraction-libs", "fractions", &[])?;
    library("elastane-elastic-master", "elastic", &[])?;
    library("elastane-elastic-master", "elastic", &["accuracy"])?;
    bytes_of(binaries)?;
    build::run()
}

/// Runs a measurement without a server: a benchmark of a package, or a part of it.
fn library(package: &str, bench: &str, part: &[&str]) -> Result<()> {
    let mut command = std::process::Command::new("cargo");
    command.args(["bench", "--locked", "--quiet", "--package", package, "--bench", bench]);
    command.arg("--").args(part);
    let status = command.status().context("cargo cannot start")?;
    if status.success() { Ok(()) } else { bail!("{package}: {status}") }
}

/// The web interface in a browser, by `ui/bench`.
fn interface(elastane: &Path) -> Result<()> {
    let folder = elastane.parent().context("the binaries are in no folder")?;
    let mut command = std::process::Command::new("npm");
    command.args(["run", "--silent", "bench"]).current_dir("ui").env("ELASTANE_BIN", folder);
    let status =
        command.status().context("npm cannot start; `make ui-check` says what is needed")?;
    if status.success() { Ok(()) } else { bail!("ui/bench: {status}") }
}

/// Prints one measured value, beside its goal if it has one.
fn line(what: &str, value: f64, unit: &str, goal: Option<f64>) -> Result<()> {
    let beside = goal.map_or_else(String::new, |goal| {
        let ratio = value / goal;
        let verdict = if ratio <= 1.0 { "" } else { "  above the goal" };
        format!("   goal {goal:>4} {unit}   ratio {ratio:.2}{verdict}")
    });
    let mut out = std::io::stdout().lock();
    let digits = if value < 10.0 { 2 } else { 1 };
    writeln!(out, "{what:<44} {value:>7.digits$} {unit}{beside}")?;
    Ok(())
}

/// Prints the number per second, beside the goal if there is one.
fn rate(what: &str, count: usize, seconds: f64, goal: Option<f64>) -> Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "counts of a measurement are small")]
    let value = count as f64 / seconds;
    let beside = goal.map_or_else(String::new, |goal| {
        let verdict = if value >= goal { "" } else { "  below the goal" };
        format!("   goal {goal:>4}/s   ratio {:.2}{verdict}", value / goal)
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what:<44} {value:>7.0} /s{beside}")?;
    Ok(())
}

/// The value that `percent` of the values do not exceed.
fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(f64::NAN)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn starts(elastane: &Path) -> Result<()> {
    let mut fresh = Vec::new();
    let mut again = Vec::new();
    for _ in 0..STARTS {
        let mut server = Server::new(elastane, "4x16GiB")?;
        fresh.push(server.start()?);
        server.kill()?;
        again.push(server.start()?);
    }
    line("start to ready, fresh, p50", percentile(&mut fresh, 50), "ms", Some(30.0))?;
    line("start to ready, after a kill, p50", percentile(&mut again, 50), "ms", Some(30.0))
}

fn submits(elastane: &Path) -> Result<()> {
    let mut server = Server::new(elastane, NODES)?;
    server.start()?;
    let project = server.create_project(SUBMITS)?;
    let mut latencies = Vec::new();
    let mut acknowledged = Vec::new();
    for index in 0..SUBMITS {
        let since = Instant::now();
        let id = submit(&mut server, &project, index)?;
        acknowledged.push(milliseconds(since));
        await_running(&mut server, &id)?;
        latencies.push(milliseconds(since));
    }
    line("submit to acknowledged, p50", percentile(&mut acknowledged, 50), "ms", None)?;
    line("submit to running, p50", percentile(&mut latencies, 50), "ms", Some(50.0))?;
    line("submit to running, p99", percentile(&mut latencies, 99), "ms", None)
}

/// Measures the time from the first submission to the last end, and prints it beside the time of
/// the sleeps alone.
fn many_short(elastane: &Path) -> Result<()> {
    const GPUS: usize = 4;
    let mut server = Server::new(elastane, &format!("{GPUS}x16GiB"))?;
    server.start()?;
    let project = server.create_project(GPUS)?;
    let since = Instant::now();
    let command = format!("sleep {}", SHORT_MS / 1000.0);
    for index in 0..SHORT {
        submit_image(&mut server, &project, index, "ubuntu", Some(&command))?;
    }
    let done = "/api/v1/workloads/count?filterBy=phase==Completed";
    let ended = |server: &mut Server| -> Result<bool> {
        let count = server.ask("GET", done, None)?;
        Ok(count.get("count").and_then(Value::as_u64) == Some(SHORT as u64))
    };
    while !ended(&mut server)? {
        if since.elapsed() > PATIENCE * 10 {
            bail!("not all of {SHORT} short workloads have ended");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of a measurement are small")]
    let ideal = SHORT_MS * SHORT.div_ceil(GPUS) as f64;
    line("500 x 0.5 s on 4 GPUs, by the ideal", milliseconds(since) / ideal, "", None)
}

/// The quickstart, which needs no image from elsewhere.
fn containers(elastane: &Path) -> Result<()> {
    if std::env::var_os("DOCKER_HOST").is_none() && !Path::new(DOCKER_SOCKET).exists() {
        let mut out = std::io::stdout().lock();
        writeln!(out, "submit to running, containers: left out, as there is no {DOCKER_SOCKET}")?;
        return Ok(());
    }
    let mut server = Server::new(elastane, NODES)?.with_containers();
    server.start().context("`elastane up --runtime docker` tells more")?;
    let project = server.create_project(CONTAINERS)?;
    let mut latencies = Vec::new();
    for index in 0..CONTAINERS {
        let since = Instant::now();
        let id = submit_image(&mut server, &project, index, "gcr.io/run-ai-demo/quickstart", None)?;
        await_running(&mut server, &id)?;
        latencies.push(milliseconds(since));
        // Unlike the files of processes, containers are not in the folder that is deleted with the
        // server.
        server.ask("DELETE", &format!("/api/v1/workloads/trainings/{id}"), None)?;
    }
    await_none(&mut server)?;
    line("submit to running, containers, p50", percentile(&mut latencies, 50), "ms", None)
}

fn submit(server: &mut Server, project: &str, index: usize) -> Result<String> {
    submit_image(server, project, index, "ubuntu", Some("sleep infinity"))
}

fn submit_image(
    server: &mut Server,
    project: &str,
    index: usize,
    image: &str,
    command: Option<&str>,
) -> Result<String> {
    let body = json!({
        "name": format!("bench-{index}"),
        "projectId": project,
        "clusterId": server.cluster_id()?,
        "spec": {
            "image": image,
            "command": command,
            "compute": { "gpuDevicesRequest": 1, "cpuCoreRequest": 0.001, "cpuMemoryRequest": "1M" },
        },
    });
    let answer = server.ask("POST", "/api/v1/workloads/trainings", Some(&body))?;
    let id = answer.get("workloadId").and_then(Value::as_str);
    Ok(id.with_context(|| format!("no workloadId in {answer}"))?.to_owned())
}

fn await_running(server: &mut Server, id: &str) -> Result<()> {
    let since = Instant::now();
    loop {
        let answer = server.ask("GET", &format!("/api/v1/workloads/{id}"), None)?;
        match answer.get("phase").and_then(Value::as_str) {
            Some("Running") => return Ok(()),
            Some("Failed" | "Completed") => bail!("the workload ended: {answer}"),
            _ if since.elapsed() > PATIENCE => bail!("the workload does not run: {answer}"),
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Waits until every workload is gone with all it left.
fn await_none(server: &mut Server) -> Result<()> {
    let since = Instant::now();
    loop {
        let answer = server.ask("GET", "/api/v1/workloads", None)?;
        match answer.get("workloads").and_then(Value::as_array) {
            Some(none) if none.is_empty() => return Ok(()),
            _ if since.elapsed() > PATIENCE => bail!("workloads are not deleted: {answer}"),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn memory(elastane: &Path) -> Result<()> {
    let mut server = Server::new(elastane, "4x16GiB")?;
    server.start()?;
    let project = server.create_project(4)?;
    line("resident memory at rest", server.resident_megabytes()?, "MB", Some(22.0))?;
    for index in 0..WORKLOADS {
        submit(&mut server, &project, index)?;
    }
    line("resident memory, 1,000 workloads", server.resident_megabytes()?, "MB", Some(35.0))
}

/// Measures the cost of running workloads while nothing happens: CPU of the server, memory of a
/// supervisor.
fn at_rest(elastane: &Path) -> Result<()> {
    let mut server = Server::new(elastane, &format!("{RUNNING}x16GiB"))?;
    server.start()?;
    let project = server.create_project(RUNNING)?;
    for index in 0..RUNNING {
        let id = submit(&mut server, &project, index)?;
        await_running(&mut server, &id)?;
    }
    std::thread::sleep(Duration::from_secs(5));
    let before = build::process_cpu_s(server.pid()?)?;
    std::thread::sleep(QUIET);
    let cpu_ms = (build::process_cpu_s(server.pid()?)? - before) * 1000.0 / QUIET.as_secs_f64();
    line("CPU per second, 20 running", cpu_ms, "ms", Some(0.5))?;
    let mut supervisors = server.supervisors_megabytes()?;
    line("resident memory of a supervisor", percentile(&mut supervisors, 50), "MB", Some(3.0))
}

fn bytes_of(binaries: &Path) -> Result<()> {
    for (name, goal) in [("elastane", 40.0), ("runai", 8.0)] {
        let megabytes = build::megabytes(&binaries.join(name))?;
        line(&format!("size of {name}"), megabytes, "MB", Some(goal))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert!((percentile(&mut values, 50) - 3.0).abs() < f64::EPSILON);
        assert!((percentile(&mut values, 99) - 5.0).abs() < f64::EPSILON);
        assert!((percentile(&mut [7.0], 1) - 7.0).abs() < f64::EPSILON);
    }
}
