//! `nvidia-smi` of a workload on a simulated driver, whole and within a fraction.
#![cfg(target_arch = "x86_64")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Command;

use fraction_abi::claim::{self, Claim};
use fraction_abi::control::{self, Control, Limit};
use fraction_abi::ledger::Ledger;
use fraction_abi::owner::Owner;
use fraction_broker::{Broker, Device, Driver};
use fraction_libs::{PRELOAD, PROXY_NVML, SIMULATED_NVML, with_real};

const MIB: u64 = 1 << 20;

/// A simulated GPU of 8 GiB, of which a run may have half; this test holds 1324 MiB in it.
struct Run {
    folder: tempfile::TempDir,
    _broker: Broker,
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let device = Device { uuid: [1; 16], bytes: 8192 * MIB, context_bytes: 300 * MIB };
        let driver = Driver { cuda_version: 13000, devices: vec![device] };
        let broker = Broker::start(&at("broker"), driver).expect("a broker");
        let limit = Limit { uuid: [1; 16], bytes: 4096 * MIB, uncounted: 0, context: 0 };
        let mut page = Control::new(&[limit], 0).as_bytes().to_vec();
        page.resize(control::BYTES, 0);
        let mut claims = claim::header().to_vec();
        claims.resize(claim::BYTES, 0);
        let real = at("libnvidia-ml.so.1");
        let proxy = with_real(PROXY_NVML, &real).expect("a proxy");
        std::fs::create_dir(at("proxies")).expect("a folder");
        for (path, bytes) in [
            (at("control"), &page[..]),
            (at("claim"), &claims),
            (real, SIMULATED_NVML),
            (at("preload.so"), PRELOAD),
            (at("proxies/libnvidia-ml.so.1"), &proxy),
        ] {
            std::fs::write(path, bytes).expect("a file");
        }
        let path = CString::new(at("claim").as_os_str().as_bytes()).expect("a path");
        let ledger = Ledger::new(Claim::map(&path).expect("claims"));
        let seat = ledger.attach(Owner::current()).expect("a seat");
        ledger.charge(seat, 0, 1324 * MIB);
        Self { folder, _broker: broker }
    }

    fn nvidia_smi(&self, libraries: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_elastane-test-supervisor"));
        command.arg("nvidia-smi").args(arguments);
        command.env("LD_LIBRARY_PATH", self.path(libraries));
        command.env("ELASTANE_SIMULATED_DRIVER", self.path("broker"));
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn prints(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

const MEMORY: [&str; 2] = ["--query-gpu=memory.total,memory.used", "--format=csv,noheader"];

#[test]
fn nvidia_smi_shows_half_as_all_there_is() {
    let run = Run::new();
    assert_eq!(prints(&mut run.nvidia_smi("", &MEMORY)), "8192 MiB, 0 MiB\n");
    let mut limited = run.nvidia_smi("", &MEMORY);
    limited.env("LD_PRELOAD", run.path("preload.so"));
    limited.env("ELASTANE_FRACTION", run.folder.path());
    assert_eq!(prints(&mut limited), "4096 MiB, 1324 MiB\n");
    let mut limited = run.nvidia_smi("proxies", &MEMORY);
    assert_eq!(prints(limited.env("ELASTANE_FRACTION", run.folder.path())), "4096 MiB, 1324 MiB\n");
}

#[test]
fn nvidia_smi_lists_the_processes_of_the_run_and_says_simulated() {
    let run = Run::new();
    let mut table = run.nvidia_smi("proxies", &[]);
    let table = prints(table.env("ELASTANE_FRACTION", run.folder.path()));
    assert!(table.contains("SIMULATED") && table.contains("1324MiB / 4096MiB"), "{table}");
    let own = format!(" {} ", std::process::id());
    assert!(table.lines().any(|line| line.contains(&own) && line.contains("1324MiB")), "{table}");
    let list = prints(&mut run.nvidia_smi("", &["-L"]));
    assert_eq!(
        list,
        "GPU 0: Elastane Simulated GPU (UUID: GPU-01010101-0101-0101-0101-010101010101)\n",
    );
}

#[test]
fn without_its_broker_the_simulated_driver_is_an_error_that_says_what_to_check() {
    let run = Run::new();
    let output = run
        .nvidia_smi("", &[])
        .env("ELASTANE_SIMULATED_DRIVER", "/nowhere")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("elastane status"), "{said}");
}
