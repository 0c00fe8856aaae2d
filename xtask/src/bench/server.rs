//! A server under measurement. Owns: its process, its folder, and that nothing of it is left.
//! Does not know about: what is measured.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::http::Connection;

/// A server with a state directory of its own.
#[derive(Debug)]
pub(crate) struct Server {
    elastane: PathBuf,
    folder: PathBuf,
    nodes: String,
    runtime: &'static str,
    arguments: &'static [&'static str],
    address: SocketAddr,
    process: Option<Child>,
    connection: Option<Connection>,
    cluster: Option<String>,
}

impl Server {
    /// A server that has not been started, with simulated nodes.
    pub(crate) fn new(elastane: &Path, nodes: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("elastane-bench-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        Ok(Self {
            elastane: elastane.to_owned(),
            folder,
            nodes: nodes.to_owned(),
            runtime: "process",
            arguments: &[],
            address,
            process: None,
            connection: None,
            cluster: None,
        })
    }

    /// Runs containers instead of processes.
    pub(crate) fn with_containers(mut self) -> Self {
        self.runtime = "docker";
        self
    }

    /// Adds arguments for `elastane up`.
    pub(crate) const fn with_arguments(mut self, arguments: &'static [&'static str]) -> Self {
        self.arguments = arguments;
        self
    }

    /// A file of its folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Command of an operator on the state of this server.
    pub(crate) fn operate(&self, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(arguments).args(database());
        command
    }

    /// A program that finds this server.
    pub(crate) fn client(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("ELASTANE_STATE_DIR", &self.folder)
            .env("HOME", &self.folder)
            .current_dir(&self.folder);
        command
    }

    fn command(&self) -> Command {
        let mut command = self.client(&self.elastane);
        command
            .env("ELASTANE_RUNTIME", self.runtime)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts it; milliseconds until it answered.
    pub(crate) fn start(&mut self) -> Result<f64> {
        let flag = if self.nodes.matches('x').count() > 1 { "--nodes" } else { "--gpus" };
        let since = Instant::now();
        let child = self
            .command()
            .args(["up", flag, &self.nodes, "--listen", &self.address.to_string()])
            .args(self.arguments)
            .args(database())
            .spawn()
            .context("failed to start the server")?;
        self.process = Some(child);
        loop {
            if self.connect().is_ok() {
                return Ok(since.elapsed().as_secs_f64() * 1000.0);
            }
            let ended = self.process.as_mut().map(Child::try_wait).transpose()?.flatten();
            if ended.is_some() || since.elapsed() > Duration::from_secs(30) {
                bail!("the server does not answer on {} ({ended:?})", self.address);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn connect(&mut self) -> Result<()> {
        let mut connection = self.connection()?;
        let status: Value =
            serde_json::from_str(&connection.expect("GET", "/elastane/v1/status", "")?)?;
        self.cluster = status.get("clusterId").and_then(Value::as_str).map(str::to_owned);
        self.connection = Some(connection);
        Ok(())
    }

    /// Another connection, with the token of the user who started it.
    pub(crate) fn connection(&self) -> Result<Connection> {
        let token = fs::read_to_string(self.folder.join("token"))?;
        Connection::open(self.address, token.trim())
    }

    /// Kills it the hard way; what it started stays.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.connection = None;
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Sends one request; the response must be a success.
    pub(crate) fn ask(&mut self, verb: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let connection = self.connection.as_mut().context("the server is not started")?;
        let answer = connection.expect(verb, path, &body)?;
        if answer.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&answer)?) }
    }

    /// The id of the one cluster.
    pub(crate) fn cluster_id(&self) -> Result<String> {
        self.cluster.clone().context("the server did not say its cluster's id")
    }

    /// Creates a project with a quota; its id.
    pub(crate) fn create_project(&mut self, gpus: usize) -> Result<String> {
        let body = json!({
            "name": "bench",
            "clusterId": self.cluster_id()?,
            "resources": [{
                "gpu": { "deserved": gpus, "overQuotaWeight": 2 },
            }],
        });
        let answer = self.ask("POST", "/api/v1/org-unit/projects", Some(&body))?;
        let id = answer.get("id").and_then(Value::as_str);
        Ok(id.with_context(|| format!("no id in {answer}"))?.to_owned())
    }

    /// Memory the server has in RAM once it is at rest, in millions of bytes.
    pub(crate) fn resident_megabytes(&self) -> Result<f64> {
        // Every 5 s the server checks if it has grown, and releases unused memory.
        std::thread::sleep(Duration::from_secs(6));
        self.resident_now_megabytes()
    }

    /// Memory the server has in RAM now, in millions of bytes.
    pub(crate) fn resident_now_megabytes(&self) -> Result<f64> {
        megabytes(&Path::new("/proc").join(self.pid()?.to_string()))
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> Result<u32> {
        Ok(self.process.as_ref().context("the server is not started")?.id())
    }

    /// CPU time that the threads of its process have used.
    pub(crate) fn cpu(&self) -> Result<Cpu> {
        let mut threads = BTreeMap::new();
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid()?))? {
            let thread = thread?.path();
            let read = |file: &str| fs::read_to_string(thread.join(file));
            // The thread may have ended meanwhile.
            let (Ok(name), Ok(text)) = (read("comm"), read("schedstat")) else { continue };
            let first = text.split_whitespace().next().context("an empty schedstat")?;
            let part = match name.trim() {
                "scheduler" => Part::Decisions,
                // Threads of the runtime read requests, and start and remove processes.
                "tokio-rt-worker" => Part::Edge,
                _ => Part::Core,
            };
            threads.insert(thread, Thread { part, cpu_ms: first.parse::<f64>()? / 1e6 });
        }
        Ok(Cpu(threads))
    }

    /// Memory that each supervisor of its runs has in RAM, in millions of bytes.
    pub(crate) fn supervisors_megabytes(&self) -> Result<Vec<f64>> {
        let folder = self.folder.to_string_lossy();
        let mut found = Vec::new();
        for process in fs::read_dir("/proc")? {
            let process = process?.path();
            // The process may have ended meanwhile.
            let Ok(line) = fs::read_to_string(process.join("cmdline")) else { continue };
            if line.contains("\0supervise\0") && line.contains(&*folder) {
                found.push(megabytes(&process)?);
            }
        }
        Ok(found)
    }
}

/// The flag of the database, if one is given.
fn database() -> impl Iterator<Item = String> {
    let url = std::env::var("ELASTANE_BENCH_DATABASE").ok();
    url.into_iter().flat_map(|url| ["--database".to_owned(), url])
}

/// CPU time of the threads of a server, by their folders in `/proc`.
pub(crate) struct Cpu(BTreeMap<PathBuf, Thread>);

/// Purpose of a thread.
#[derive(Clone, Copy)]
enum Part {
    /// The state and the database.
    Core,
    Decisions,
    /// Connections and processes.
    Edge,
}

struct Thread {
    part: Part,
    cpu_ms: f64,
}

/// CPU time in milliseconds, by what it was for.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// The state and the database.
    pub(crate) core_ms: f64,
    pub(crate) decisions_ms: f64,
    /// Connections, and the starts and ends of processes.
    pub(crate) edge_ms: f64,
}

impl Cpu {
    /// CPU time used since `before` by the threads that still live.
    pub(crate) fn since(&self, before: &Self) -> Used {
        let mut used = Used::default();
        for (id, thread) in &self.0 {
            let before_ms = before.0.get(id).map_or(0.0, |before| before.cpu_ms);
            // A thread that began since may have the number of one that has ended.
            let is_new = before_ms > thread.cpu_ms;
            let used_ms = if is_new { thread.cpu_ms } else { thread.cpu_ms - before_ms };
            match thread.part {
                Part::Core => used.core_ms += used_ms,
                Part::Decisions => used.decisions_ms += used_ms,
                Part::Edge => used.edge_ms += used_ms,
            }
        }
        used
    }
}

/// Resident memory of a process in MB, by its folder in `/proc`.
fn megabytes(process: &Path) -> Result<f64> {
    let status = fs::read_to_string(process.join("status"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = kib.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    Ok(kib.context("no VmRSS in /proc")? * 1024.0 / 1e6)
}

impl Drop for Server {
    fn drop(&mut self) {
        // Stops the workloads too. When even that fails there is nothing left to do but to go on.
        let _ = self.command().arg("down").status();
        let _ = self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
