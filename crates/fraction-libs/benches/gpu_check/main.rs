//! Tries the libraries of GPU fractions on the real GPU of this machine, and prints a table. Owns:
//! what is tried, and what counts as passed. Does not know about: servers; what needs one is listed
//! as not tried. `--simulated` tries this command itself, on a simulated GPU.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod bypass;
mod compute;
mod frameworks;
mod small;
#[path = "../support/mod.rs"]
mod support;
mod watch;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fraction_abi::control::Limit;
use fraction_broker::{Broker, Device, Driver};
use fraction_libs::{PRELOAD, PROXY_CUDA, PROXY_NVML, SIMULATED_CUDA, SIMULATED_NVML, with_real};
use frameworks::FRAMEWORKS;
use support::{Result, compile, pages};
use tempfile::TempDir;
use watch::Hung;

const MIB: u64 = 1 << 20;
const NAMES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

enum Outcome {
    Passed(String),
    Failed(String),
    Untried(String),
}
use Outcome::{Failed, Passed, Untried};

fn main() -> ExitCode {
    let simulated = std::env::args().any(|word| word == "--simulated");
    match patience().and_then(|patience| Ok((Check::new(simulated)?, patience))).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            complain(&why.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
fn complain(why: &str) {
    drop(writeln!(std::io::stderr(), "gpu-check: {why}"));
}

/// How long is waited for a check: far longer than a slow machine takes for one.
fn patience() -> Result<Duration> {
    let given =
        std::env::args().find_map(|word| word.strip_prefix("--seconds=").map(str::to_owned));
    let seconds = given.map_or(Ok(1200), |text| match text.parse() {
        Ok(0) | Err(_) => {
            Err(format!("--seconds={text} is no time; write one such as --seconds=1200"))
        }
        Ok(seconds) => Ok(seconds),
    });
    Ok(Duration::from_secs(seconds?))
}

/// The table that is printed.
struct Table {
    check: Arc<Check>,
    patience: Duration,
    failures: u32,
    /// A check that goes on although it was ended: the driver would answer none after it either.
    stuck: Option<String>,
}

impl Table {
    fn run_check(
        &mut self,
        what: &str,
        check: impl FnOnce(&Check) -> Result<Outcome> + Send + 'static,
    ) -> Result<()> {
        let outcome = match &self.stuck {
            Some(before) => Untried(format!("programs of `{before}` cannot be ended")),
            None => self.outcome(what, check),
        };
        self.failures += u32::from(matches!(outcome, Failed(_)));
        let (word, detail) = match outcome {
            Passed(detail) => ("passed", detail),
            Failed(detail) => ("FAILED", detail),
            Untried(detail) => ("not tried", detail),
        };
        Ok(writeln!(std::io::stdout(), "{what:<52} {word:<10} {detail}")?)
    }

    fn outcome(
        &mut self,
        what: &str,
        check: impl FnOnce(&Check) -> Result<Outcome> + Send + 'static,
    ) -> Outcome {
        let of = Arc::clone(&self.check);
        let check = move || check(&of).unwrap_or_else(|why| Failed(why.to_string()));
        match watch::within(self.patience, check) {
            Ok(outcome) => outcome,
            Err(Hung { ended, goes_on }) => {
                let end = if goes_on { "and goes on" } else { "and ended then" };
                self.stuck = goes_on.then(|| what.to_owned());
                let seconds = self.patience.as_secs();
                Failed(format!("it HANGS: no end within {seconds} s ({end}); ended was {ended}"))
            }
        }
    }
}

fn run((check, patience): (Check, Duration)) -> Result<bool> {
    watch::adopt_daemons()?;
    let folder = check.folder.path().to_owned();
    let mut table = Table { check: Arc::new(check), patience, failures: 0, stuck: None };
    table.run_check("what a context takes", Check::measure_context)?;
    table.run_check("nvidia-smi shows half, preloaded", |check| check.smi(Way::Preload))?;
    table.run_check("nvidia-smi shows half, by proxies", |check| check.smi(Way::Proxies))?;
    table.run_check("half is granted and more refused, preloaded", |check| {
        check.limit(Way::Preload)
    })?;
    table.run_check("half is granted and more refused, by proxies", |check| {
        check.limit(Way::Proxies)
    })?;
    table.run_check("every class of memory is refused beyond half", Check::classes)?;
    table.run_check("pitched memory, arrays and mipmaps count", Check::small_classes)?;
    table.run_check("memory of another process is its own", Check::shared_memory)?;
    table.run_check("functions are found at one address", Check::addresses)?;
    table.run_check("two processes share a limit; one is killed", Check::kill)?;
    table.run_check("what is granted is what the driver shows", Check::accuracy)?;
    table.run_check("a launch and a graph of 100 cost no more", Check::launches)?;
    table.run_check("what a program alone does in 10 s", Check::measure_whole)?;
    for shares in [[50, 50], [30, 70], [10, 90]] {
        let what = format!("shares {}/{} by leases", shares[0], shares[1]);
        table.run_check(&what, move |check| check.shares(shares))?;
    }
    table.run_check("a strict share of 30 alone on the device", Check::strict)?;
    table.run_check("MPS together with the library", Check::mps)?;
    for [what, module, allocator, script] in FRAMEWORKS {
        table.run_check(what, move |check| check.python(module, allocator, script))?;
    }
    table.run_check("PyTorch, a launch and a step cost no more", Check::python_times)?;
    table.run_check("without LD_PRELOAD, by proxies", Check::without_preload)?;
    table.run_check("without the pages of its run", Check::without_pages)?;
    table.run_check("with a cleared environment, by variables", Check::without_variables)?;
    for (how, option, preloaded) in
        [("deepbind", "RTLD_DEEPBIND", true), ("namespace", "dlmopen", false)]
    {
        for (way, name, refused) in
            [(Way::Proxies, "by proxies", true), (Way::Preload, "preloaded", preloaded)]
        {
            let what = format!("the driver loaded with {option}, {name}");
            table.run_check(&what, move |check| check.apart(how, way, refused))?;
        }
    }
    table.run_check("with an own copy of the driver, preloaded", Check::own_copy)?;
    for (what, why) in LEFT_OUT {
        table.run_check(what, move |_| Ok(Untried(why.to_owned())))?;
    }
    writeln!(std::io::stdout(), "{} failed", table.failures)?;
    // A check that goes on keeps what would do it.
    let failures = table.failures;
    drop(table);
    let _gone = std::fs::remove_dir_all(folder);
    Ok(failures == 0)
}

struct Check {
    folder: TempDir,
    broker: Option<Broker>,
    uuid: [u8; 16],
    /// Name, as the driver writes it.
    name: String,
    total: u64,
    /// Memory that a context takes, in bytes; 0 until measured.
    context: AtomicU64,
    /// Work that a program alone on the device does; empty until measured.
    whole: OnceLock<f64>,
    /// Where the driver's libraries are.
    real: [PathBuf; 2],
}

/// How the libraries get into a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    None,
    Preload,
    Proxies,
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(text);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let why = why.lines().last().unwrap_or_default().to_owned();
    Err(format!("{} {text} {why}", output.status).into())
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.strip_prefix("GPU-")?.chars().filter(|c| *c != '-').collect();
    Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
}

/// Where the loader finds a library.
fn installed(name: &str) -> Result<PathBuf> {
    let search = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let found = std::env::split_paths(&search).map(|folder| folder.join(name));
    if let Some(path) = found.into_iter().find(|path| path.is_file()) {
        return Ok(path);
    }
    let list = output(Command::new("ldconfig").arg("-p"))?;
    let line = list.lines().find(|line| line.trim().starts_with(name) && line.contains("x86-64"));
    let path = line.and_then(|line| line.rsplit(" => ").next()).map(PathBuf::from);
    Ok(path.ok_or_else(|| format!("`ldconfig -p` lists no {name}"))?)
}

/// The most MiB that one of the processes holds which a probe has listed so.
fn held(printed: &str, whose: &str) -> Option<u64> {
    let words = printed.split([' ', ',']);
    words.filter_map(|word| word.strip_prefix(whose)?.parse().ok()).max()
}

impl Check {
    fn new(simulated: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        compile("tests/it/probe.c", &at("probe"), &[])?;
        compile("benches/calls.c", &at("calls"), &[])?;
        std::fs::write(at("preload.so"), PRELOAD)?;
        let (broker, real, uuid, name, total);
        if simulated {
            for (name, bytes) in NAMES.iter().zip([SIMULATED_CUDA, SIMULATED_NVML]) {
                std::fs::write(at(name), bytes)?;
            }
            (uuid, total, name) = ([1; 16], 8192 * MIB, "0".to_owned());
            let device = Device { uuid, bytes: total, context_bytes: 300 * MIB };
            let driver = Driver { cuda_version: 13000, devices: vec![device] };
            broker = Some(Broker::start(&at("broker"), driver)?);
            real = NAMES.map(at);
            writeln!(std::io::stdout(), "on a SIMULATED GPU: this says nothing about a real one")?;
        } else {
            let query = "--query-gpu=uuid,memory.total,name,driver_version";
            let mut smi = Command::new("nvidia-smi");
            smi.args([query, "--format=csv,noheader,nounits", "-i", "0"]);
            let answer = output(&mut smi).map_err(|why| {
                format!(
                    "nothing was tried, as `nvidia-smi` finds no GPU here ({why}); \
                     `make gpu-check ARGS=--simulated` tries this command on a simulated one"
                )
            })?;
            let mut words = answer.split(", ");
            name = words.next().unwrap_or_default().to_owned();
            uuid = parse_uuid(&name).ok_or_else(|| format!("no UUID in `{answer}`"))?;
            total = words.next().unwrap_or_default().parse::<u64>()? * MIB;
            real = [installed(NAMES[0])?, installed(NAMES[1])?];
            broker = None;
            writeln!(std::io::stdout(), "{answer}")?;
        }
        Ok(Self {
            folder,
            broker,
            uuid,
            name,
            total,
            context: AtomicU64::new(0),
            whole: OnceLock::new(),
            real,
        })
    }

    fn half(&self) -> u64 {
        self.total / 2 / MIB * MIB
    }

    fn pages(&self, name: &str, bytes: u64) -> Result<PathBuf> {
        let context = self.context.load(Ordering::Relaxed);
        let limit = Limit { uuid: self.uuid, bytes, uncounted: 0, context };
        let folder = self.folder.path().join("runs").join(name);
        // Removes the claims of an earlier check, whose processes have ended.
        let _absent = std::fs::remove_dir_all(&folder);
        pages(folder, limit)
    }

    /// A program of a run with these pages.
    fn command(&self, program: &Path, way: Way, pages: &Path) -> Result<Command> {
        let mut command = Command::new(program);
        let at = |name: &str| self.folder.path().join(name);
        let mut search = Vec::new();
        if way == Way::Proxies {
            let folder = at("proxies");
            std::fs::create_dir_all(&folder)?;
            for ((name, real), proxy) in NAMES.iter().zip(&self.real).zip([PROXY_CUDA, PROXY_NVML])
            {
                let library = with_real(proxy, real).ok_or("the driver's path does not fit")?;
                std::fs::write(folder.join(name), library)?;
            }
            search.push(folder);
        }
        if self.broker.is_some() {
            command.env("ELASTANE_SIMULATED_DRIVER", at("broker"));
            search.push(self.folder.path().to_owned());
        }
        if !search.is_empty() {
            command.env("LD_LIBRARY_PATH", std::env::join_paths(search)?);
        }
        command.env("CUDA_VISIBLE_DEVICES", &self.name).env("ELASTANE_FRACTION", pages);
        if way == Way::Preload {
            command.env("LD_PRELOAD", at("preload.so"));
        }
        Ok(command)
    }

    fn probe(&self, way: Way, pages: &Path, steps: &str) -> Result<String> {
        let mut command = self.command(&self.folder.path().join("probe"), way, pages)?;
        let printed = output(command.arg("dlsym").args(steps.split(' ')))?;
        Ok(printed.lines().collect::<Vec<_>>().join(", "))
    }

    fn smi(&self, way: Way) -> Result<Outcome> {
        if self.broker.is_some() {
            return Ok(Untried("there is no nvidia-smi for this simulated GPU".to_owned()));
        }
        let pages = self.pages("smi", self.half())?;
        let mut command = self.command(Path::new("nvidia-smi"), way, &pages)?;
        command.args(["--query-gpu=memory.total", "--format=csv,noheader,nounits"]);
        let shown: u64 = output(command.args(["-i", "0"]))?.parse()?;
        let detail = format!("{shown} of {} MiB", self.total / MIB);
        Ok(if shown == self.half() / MIB { Passed(detail) } else { Failed(detail) })
    }

    fn limit(&self, way: Way) -> Result<Outcome> {
        let half = self.half() / MIB;
        let pages = self.pages("limit", self.half())?;
        let steps =
            format!("init retain total info alloc:{half}M alloc:64M alloc:{half}M free info");
        let printed = self.probe(way, &pages, &steps)?;
        let whole = format!("total 0 {half}");
        // Where the context counts, half is no more than what is left.
        let ends = ["alloc 0, alloc 2, alloc 2, free 0", "alloc 2, alloc 0, alloc 2, free 0"];
        let is = printed.contains(&whole) && ends.iter().any(|end| printed.contains(end));
        Ok(if is { Passed(printed) } else { Failed(printed) })
    }

    fn classes(&self) -> Result<Outcome> {
        let half = self.half() / MIB;
        let pages = self.pages("classes", self.half())?;
        let more = half.next_multiple_of(2) + 2;
        let mut wrong = String::new();
        for step in ["managed", "async", "create", "graph", "anynode"] {
            let printed =
                self.probe(Way::Preload, &pages, &format!("init retain {step}:{more}M"))?;
            if !printed.ends_with(&format!("{step} 2")) {
                write!(wrong, "{step}: {printed}; ")?;
            }
        }
        let steps = format!("init retain pool frompool:{more}M nodes:3:{}M", half / 2);
        let printed = self.probe(Way::Preload, &pages, &steps)?;
        if !printed.ends_with("frompool 2, nodes 2") {
            write!(wrong, "{printed}; ")?;
        }
        Ok(if wrong.is_empty() { Passed(format!("{more} MiB each")) } else { Failed(wrong) })
    }

    fn addresses(&self) -> Result<Outcome> {
        let pages = self.pages("addresses", self.half())?;
        let mut command = self.command(&self.folder.path().join("calls"), Way::None, &pages)?;
        let different = output(command.arg("addresses"))?;
        let none = different.is_empty();
        Ok(if none {
            Passed("by dlsym and cuGetProcAddress".to_owned())
        } else {
            Failed(different)
        })
    }

    fn kill(&self) -> Result<Outcome> {
        let pages = self.pages("kill", self.half())?;
        let quarter = self.half() / MIB / 2;
        let mut command = self.command(&self.folder.path().join("probe"), Way::Preload, &pages)?;
        command.args(["dlsym", "init", "retain", &format!("alloc:{quarter}M"), "pause"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let ready = BufReader::new(stdout).lines().any(|line| line.is_ok_and(|l| l == "pause"));
        let steps = format!("init retain alloc:{}M", quarter + quarter / 2);
        let beside = self.probe(Way::Preload, &pages, &steps)?;
        child.kill()?;
        child.wait()?;
        let begin = Instant::now();
        let mut after = String::new();
        while !after.ends_with("alloc 0") && begin.elapsed() < Duration::from_secs(5) {
            after = self.probe(Way::Preload, &pages, &steps)?;
        }
        let detail =
            format!("beside: {beside}; {:.1} s after: {after}", begin.elapsed().as_secs_f64());
        let is = ready && beside.ends_with("alloc 2") && after.ends_with("alloc 0");
        Ok(if is { Passed(detail) } else { Failed(detail) })
    }

    fn measure_context(&self) -> Result<Outcome> {
        let pages = self.pages("context", self.total)?;
        let printed = self.probe(Way::None, &pages, "init retain info processes")?;
        let own = held(&printed, "self:").ok_or_else(|| printed.clone())?;
        self.context.store(own * MIB, Ordering::Relaxed);
        Ok(Passed(format!("{own} MiB; {printed}")))
    }

    /// Compares the memory that a program is granted before a refusal with the driver's number for
    /// it.
    fn accuracy(&self) -> Result<Outcome> {
        let pages = self.pages("accuracy", self.half())?;
        let mut command = self.command(&self.folder.path().join("probe"), Way::Preload, &pages)?;
        command.args(["dlsym", "init", "retain", "many:3000:64M", "many:64:2M", "pause"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let ready = BufReader::new(stdout).lines().any(|line| line.is_ok_and(|l| l == "pause"));
        let seen = self.probe(Way::None, &pages, "init processes");
        child.kill()?;
        child.wait()?;
        let seen = seen?;
        let shown = held(&seen, "other:").filter(|_| ready).ok_or(seen)?;
        let limit = self.half() / MIB;
        #[expect(clippy::cast_precision_loss, reason = "MiB of a device are a small number")]
        let part = shown as f64 / limit as f64 * 100.0;
        let detail = format!("{shown} of {limit} MiB, {part:.2} %");
        Ok(if (99.0..=100.0).contains(&part) { Passed(detail) } else { Failed(detail) })
    }

    /// Checks a program whose work goes through the driver's own service, which limits memory as
    /// well.
    fn mps(&self) -> Result<Outcome> {
        let control = "nvidia-cuda-mps-control";
        if self.broker.is_some()
            || output(Command::new("sh").args(["-c", &format!("command -v {control}")])).is_err()
        {
            return Ok(Untried(format!("there is no {control} for this GPU")));
        }
        let folder = self.folder.path().join("mps");
        std::fs::create_dir_all(&folder)?;
        let service = |line: &str| {
            let mut command = Command::new("timeout");
            command.args(["30", "sh", "-c", line]);
            for name in ["CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"] {
                command.env(name, &folder);
            }
            command
        };
        output(&mut service(&format!("{control} -d")))?;
        let half = self.half() / MIB;
        let steps = format!("init attribute:133 retain total info alloc:{half}M alloc:64M");
        let tried = || -> Result<[String; 2]> {
            let pages = self.pages("mps", self.half())?;
            let probe = self.folder.path().join("probe");
            let mut limited = self.command(&probe, Way::Preload, &pages)?;
            let mut own = self.command(&probe, Way::None, &pages)?;
            own.env("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={half}M"));
            let both = [&mut limited, &mut own].map(|command| {
                command.env("CUDA_MPS_PIPE_DIRECTORY", &folder).arg("dlsym");
                output(command.args(steps.split(' '))).map(|printed| printed.replace('\n', ", "))
            });
            let [limited, own] = both;
            Ok([limited?, own?])
        };
        let tried = tried();
        output(&mut service(&format!("echo quit | {control}")))?;
        let [limited, own] = tried?;
        // By this attribute the driver says that contexts are those of MPS.
        let is = limited.contains("attribute 0 1")
            && limited.contains(&format!("total 0 {half}"))
            && limited.ends_with("alloc 2, alloc 0");
        let detail = format!("{limited}; with the limit of MPS alone: {own}");
        Ok(if is { Passed(detail) } else { Failed(detail) })
    }

    /// Why a Python program with this module is not tried.
    fn lacks(&self, module: &str) -> Option<Outcome> {
        if self.broker.is_some() {
            return Some(Untried(
                "a framework would believe what a simulated GPU computes".to_owned(),
            ));
        }
        let import = format!("import {module}");
        let missing = output(Command::new("python3").args(["-c", &import])).is_err();
        missing.then(|| Untried(format!("python3 has no {module}")))
    }

    fn python(&self, module: &str, allocator: &str, script: &str) -> Result<Outcome> {
        if let Some(untried) = self.lacks(module) {
            return Ok(untried);
        }
        let pages = self.pages("python", self.half())?;
        let mut command = self.command(Path::new("python3"), Way::Preload, &pages)?;
        if !allocator.is_empty() {
            command.env("PYTORCH_CUDA_ALLOC_CONF", allocator);
        }
        command.args(["-c", script, &self.half().to_string()]);
        output(&mut command).map(Passed)
    }
}

/// Subjects that this command does not check, with the reason.
const LEFT_OUT: [(&str, &str); 7] = [
    ("vLLM", "needs a model"),
    ("time slices of channel groups", "nothing here uses them"),
    ("memory of Vulkan or OpenGL in CUDA", "needs a program of theirs"),
    ("the watchdog: memory that programs do not admit", "a server has to watch"),
    ("mounts and accounts of a run", "a server makes them, and tries them at its start"),
    ("a static program, a loader that was changed", "no container is started here"),
    ("the device file without the driver, Vulkan, video", "nothing limits them, as documented"),
];
