//! Cost of the libraries of GPU fractions, and shares that leases give in real time. Owns: the
//! measurements, each beside one without the libraries, and their output. Does not know about:
//! goals as conditions; a slow machine fails no build.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod support;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use fraction_abi::control::Limit;
use fraction_broker::{Broker, Device, Driver};
use fraction_lease::{Policy, Run, Share, Turner};
use fraction_libs::{PRELOAD, SIMULATED_CUDA};
use support::{Result, compile};
use tempfile::TempDir;

const GIB: u64 = 1 << 30;
const UUID: [u8; 16] = [1; 16];
const STARTS: usize = 60;
/// How long runs compete, and how long each of their kernels is.
const WORK_MS: u64 = 4000;
const KERNEL_US: u64 = 500;

fn main() -> Result<()> {
    let bench = Bench::new()?;
    bench.calls()?;
    bench.starts()?;
    bench.shares()
}

struct Bench {
    folder: TempDir,
    program: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (program, empty) = (folder.path().join("calls"), folder.path().join("empty"));
        std::fs::create_dir(&empty)?;
        compile("benches/calls.c", &program, &[])?;
        let soname = "-Wl,-soname,libcuda.so.1";
        compile("benches/driver.c", &empty.join("libcuda.so.1"), &["-shared", "-fPIC", soname])?;
        std::fs::write(folder.path().join("preload.so"), PRELOAD)?;
        std::fs::write(folder.path().join("libcuda.so.1"), SIMULATED_CUDA)?;
        Ok(Self { folder, program })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The pages of a run that may have half of the memory.
    fn pages(&self, name: &str) -> Result<PathBuf> {
        let limit = Limit { uuid: UUID, bytes: 4 * GIB, uncounted: 0, context: 0 };
        support::pages(self.path(name), limit)
    }

    /// Single calls on a driver that does next to nothing.
    fn calls(&self) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("calls").arg(self.path("preload.so"));
        command.env("LD_LIBRARY_PATH", self.path("empty"));
        let output = command.env("ELASTANE_FRACTION", self.pages("pages")?).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        for line in String::from_utf8(output.stdout)?.lines() {
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default();
            let mut number = || words.next().unwrap_or_default().parse::<f64>();
            let (real, hooked) = (number()?, number()?);
            match name {
                "launch" => added("launch, without turns", real, hooked, Some(2.0))?,
                "alloc+free" => added("allocate and free", real, hooked, Some(330.0))?,
                "cuMemGetInfo" => added("cuMemGetInfo", real, hooked, Some(130.0))?,
                "dlsym" => added("dlsym of a function of the driver", real, hooked, None)?,
                _ => added("dlsym of another function", real, hooked, None)?,
            }
        }
        Ok(())
    }

    /// Programs that have nothing to do with a GPU.
    fn starts(&self) -> Result<()> {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            for (times, preload) in [(&mut without, None), (&mut with, Some("preload.so"))] {
                let mut command = Command::new("/bin/true");
                command.env_clear().envs(preload.map(|name| ("LD_PRELOAD", self.path(name))));
                let begin = Instant::now();
                command.status()?;
                times.push(begin.elapsed().as_secs_f64() * 1e6);
            }
        }
        let least = |times: Vec<f64>| times.into_iter().fold(f64::INFINITY, f64::min);
        let (without, with) = (least(without), least(with));
        let mut out = io::stdout().lock();
        let more = with - without;
        writeln!(
            out,
            "{:<44} {without:>7.0} us, with the library {with:>7.0} us: +{more:.0} us",
            "start of a program"
        )?;
        Ok(())
    }

    /// Runs that want a simulated device all the time, in real time.
    fn shares(&self) -> Result<()> {
        let device = Device { uuid: UUID, bytes: 8 * GIB, context_bytes: 0 };
        let driver = Driver { cuda_version: 13000, devices: vec![device] };
        let _broker = Broker::start(&self.path("broker"), driver)?;
        let whole = self.compete(&[(100, true)], Policy::Fair, false)?[0];
        for policy in [Policy::Strict, Policy::Fair] {
            for shares in [[50, 50], [30, 70], [10, 90]] {
                let runs = shares.map(|share| (share, true));
                self.print(
                    &format!("{policy:?} {}/{}", shares[0], shares[1]),
                    &runs,
                    policy,
                    whole,
                )?;
            }
        }
        self.print("Fair 30, the other idle", &[(30, true), (70, false)], Policy::Fair, whole)?;
        self.print("Strict 30, the other idle", &[(30, true), (70, false)], Policy::Strict, whole)
    }

    fn print(&self, name: &str, runs: &[(u32, bool)], policy: Policy, whole: f64) -> Result<()> {
        let counts = self.compete(runs, policy, true)?;
        let sum: f64 = counts.iter().sum();
        let of = |count: &f64| format!("{:.1}", count / whole * 100.0);
        let each: Vec<String> = counts.iter().map(of).collect();
        let (each, sum) = (each.join(" and "), sum / whole * 100.0);
        let what = format!("leases, {name}");
        writeln!(
            io::stdout().lock(),
            "{what:<44} {each} % of the device alone, together {sum:.1} %"
        )?;
        Ok(())
    }

    /// How many kernels of each run ended.
    fn compete(&self, runs: &[(u32, bool)], policy: Policy, turns: bool) -> Result<Vec<f64>> {
        let turner = Turner::start()?;
        let mut children: Vec<Child> = Vec::new();
        for (at, (share, works)) in runs.iter().enumerate() {
            let pages = self.pages(&format!("run-{at}"))?;
            let share = Share { millionths: share * 10_000, policy };
            let run = Run { pages: pages.clone(), device: UUID, share };
            if turns {
                turner.set(&run)?;
            }
            if *works {
                children.push(self.work(&pages)?);
            }
        }
        let mut counts = Vec::new();
        for child in children {
            let text = String::from_utf8(child.wait_with_output()?.stdout)?;
            let count = text.trim().strip_prefix("0 ").ok_or_else(|| format!("work: {text}"))?;
            counts.push(count.parse()?);
        }
        Ok(counts)
    }

    fn work(&self, pages: &Path) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["work", &WORK_MS.to_string(), &KERNEL_US.to_string()]).env_clear();
        let variables: [(&str, OsString); 4] = [
            ("LD_LIBRARY_PATH", self.folder.path().into()),
            ("LD_PRELOAD", self.path("preload.so").into()),
            ("ELASTANE_FRACTION", pages.into()),
            ("ELASTANE_SIMULATED_DRIVER", self.path("broker").into()),
        ];
        Ok(command.envs(variables).stdout(Stdio::piped()).spawn()?)
    }
}

/// Prints the additional time of a call, and its goal.
fn added(what: &str, real: f64, hooked: f64, goal: Option<f64>) -> io::Result<()> {
    let more = hooked - real;
    let beside = goal.map_or_else(String::new, |goal| {
        let verdict = if more <= goal { "" } else { "  above the goal" };
        format!("   goal +{goal:.0} ns{verdict}")
    });
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{what:<44} {real:>7.1} ns, with the library {hooked:>7.1} ns: +{more:.1} ns{beside}"
    )
}
