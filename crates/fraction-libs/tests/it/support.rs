//! A machine with a simulated driver, runs with pages, and the program that tries them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fraction_abi::control::{Control, Limit, Writer};
use fraction_broker::{Broker, Device, Driver};
use fraction_libs::{PRELOAD, PROXY_CUDA, PROXY_NVML, SIMULATED_CUDA, SIMULATED_NVML, with_real};
use tempfile::TempDir;

pub(crate) const MIB: u64 = 1 << 20;

/// Memory that each context of a simulated device takes.
pub(crate) const CONTEXT: u64 = 300 * MIB;

/// A machine with two simulated devices of 8 GiB.
pub(crate) struct Machine {
    pub(crate) folder: TempDir,
    pub(crate) broker: Broker,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with_contexts(CONTEXT)
    }

    /// A machine with contexts of another size.
    pub(crate) fn with_contexts(context_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("libcuda.so.1", SIMULATED_CUDA),
            ("libnvidia-ml.so.1", SIMULATED_NVML),
            ("preload.so", PRELOAD),
        ] {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let device = |at: u8| Device { uuid: [at; 16], bytes: 8192 * MIB, context_bytes };
        let driver = Driver { cuda_version: 13050, devices: vec![device(1), device(2)] };
        let broker = Broker::start(&folder.path().join("broker"), driver).unwrap();
        Self { folder, broker }
    }

    /// A run with a limit of `bytes` on the first device.
    pub(crate) fn run(&self, name: &str, bytes: u64) -> Run<'_> {
        let limit = Limit { uuid: [1; 16], bytes, uncounted: 0, context: CONTEXT };
        self.run_with(name, &[limit], 0)
    }

    pub(crate) fn run_with(&self, name: &str, limits: &[Limit], policy: u32) -> Run<'_> {
        let pages = self.folder.path().join(name);
        std::fs::create_dir(&pages).unwrap();
        let mut control = Control::new(limits, policy).as_bytes().to_vec();
        control.resize(fraction_abi::control::BYTES, 0);
        std::fs::write(pages.join("control"), control).unwrap();
        let mut claim = fraction_abi::claim::header().to_vec();
        claim.resize(fraction_abi::claim::BYTES, 0);
        std::fs::write(pages.join("claim"), claim).unwrap();
        Run { machine: self, pages }
    }

    /// The program, on this machine, without a limit.
    pub(crate) fn command(&self, how: &str, steps: &str) -> Command {
        let mut command = Command::new(probe(how));
        command.arg(how).args(steps.split_whitespace());
        command.env_clear().env("LD_LIBRARY_PATH", self.folder.path());
        command.env("ELASTANE_SIMULATED_DRIVER", self.folder.path().join("broker"));
        command
    }
}

/// A run with its pages.
pub(crate) struct Run<'a> {
    machine: &'a Machine,
    pub(crate) pages: PathBuf,
}

impl Run<'_> {
    pub(crate) fn command(&self, how: &str, steps: &str) -> Command {
        let mut command = self.machine.command(how, steps);
        command.env("LD_PRELOAD", self.machine.folder.path().join("preload.so"));
        command.env("ELASTANE_FRACTION", &self.pages);
        command
    }

    /// The program with the proxies in place of the driver's libraries, without a preload.
    pub(crate) fn with_proxies(&self, how: &str, steps: &str) -> Command {
        let (real, folder) = (self.machine.folder.path(), self.pages.join("libraries"));
        std::fs::create_dir(&folder).unwrap();
        for (name, proxy) in [("libcuda.so.1", PROXY_CUDA), ("libnvidia-ml.so.1", PROXY_NVML)] {
            let library = with_real(proxy, &real.join(name)).unwrap();
            std::fs::write(folder.join(name), library).unwrap();
        }
        let mut command = self.machine.command(how, steps);
        command.env("LD_LIBRARY_PATH", folder).env("ELASTANE_FRACTION", &self.pages);
        command
    }

    /// Output of a program of this run.
    pub(crate) fn prints(&self, how: &str, steps: &str) -> String {
        prints(&mut self.command(how, steps))
    }

    /// A program that waits wherever it pauses.
    pub(crate) fn start(&self, steps: &str) -> Started {
        let mut command = self.command("dlsym", steps);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Started { child, stdin, stdout: BufReader::new(stdout) }
    }

    /// Writer of the control page, in place of the agent.
    pub(crate) fn writer(&self) -> Writer {
        let path = self.pages.join("control");
        Writer::map(&std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap()
    }
}

/// A program that pauses.
pub(crate) struct Started {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Started {
    /// Its output until it pauses or ends, in one line.
    pub(crate) fn prints(&mut self) -> String {
        let mut lines = Vec::new();
        for line in self.stdout.by_ref().lines() {
            match line.unwrap() {
                line if line == "pause" => break,
                line => lines.push(line),
            }
        }
        lines.join(", ")
    }

    /// Has it go on to where it pauses next.
    pub(crate) fn goes_on(&mut self) -> String {
        self.stdin.write_all(b"\n").unwrap();
        self.prints()
    }

    pub(crate) fn is_killed(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.child.kill();
        let _collected = self.child.wait();
    }
}

/// Output of a program, in one line.
pub(crate) fn prints(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().collect::<Vec<_>>().join(", ")
}

/// The program, built once: linked with the driver, or finding its functions itself.
fn probe(how: &str) -> PathBuf {
    let (name, options) =
        if how == "plt" { ("linked", &["-DLINKED"][..]) } else { ("finding", &[][..]) };
    let built = fixture::shared(&format!("probe-{name}"), || {
        Ok(compile("cc", name, options).display().to_string())
    });
    built.map(PathBuf::from).unwrap()
}

/// A `libnvidia-ml.so.1` of one file beside this one.
pub(crate) fn compile_nvml(source: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(format!("{source}.so"));
    let aside = folder.join(format!("{source}.{}", std::process::id()));
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o"]).arg(&aside);
    command.arg(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).join(source));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(aside, &library).unwrap();
    library
}

/// The program, built by a compiler.
pub(crate) fn compile(compiler: &str, name: &str, options: &[&str]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("probe-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let library = folder.join("libcuda.so.1");
    std::fs::write(&library, SIMULATED_CUDA).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/probe.c");
    // Built aside, so that no other test program that runs now finds half of it.
    let (program, aside) = (folder.join("probe"), folder.join(std::process::id().to_string()));
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-Wall", "-Werror", "-Wno-unused-function"]).args(options);
    command.arg("-o").arg(&aside).arg(source);
    if options.contains(&"-DLINKED") {
        command.arg(&library);
    }
    let output = command.args(["-ldl", "-lpthread"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(aside, &program).unwrap();
    program
}
