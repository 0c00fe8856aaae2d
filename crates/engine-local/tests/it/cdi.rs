//! A part of a simulated GPU by a CDI specification: what a container runtime makes of it, in a
//! mount namespace, without a server.
#![cfg(target_arch = "x86_64")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::bench::SUPERVISOR;

struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.0.kill();
        let _collected = self.0.wait();
    }
}

/// Script that applies the edits of a device as a container runtime does, then runs a command.
fn script(edits: &Value, command: &str) -> String {
    let mut script = "set -e; mount --make-rprivate /; mount -t tmpfs none /run\n".to_owned();
    let list = |name: &str| edits[name].as_array().cloned().unwrap_or_default();
    for mount in list("mounts") {
        let path = |name: &str| mount[name].as_str().expect("a path").to_owned();
        let (host, container) = (path("hostPath"), path("containerPath"));
        // A file within what is mounted already is there.
        writeln!(script, "[ -e {container} ] || mkdir -p {container}").expect("a text");
        writeln!(script, "mount --bind {host} {container}").expect("a text");
        let options = mount["options"].as_array().expect("options");
        let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
        let options = options.join(",");
        writeln!(script, "mount -o remount,{options} {container}").expect("a text");
    }
    for variable in list("env") {
        writeln!(script, "export '{}'", variable.as_str().expect("a text")).expect("a text");
    }
    script + command
}

/// Edits of two devices as a container runtime combines them: of two mounts in one place it takes
/// the later one, and it makes deeper mounts after the others.
fn both(one: &Value, other: &Value) -> Value {
    let list = |edits: &Value| edits["mounts"].as_array().cloned().expect("mounts");
    let place = |mount: &Value| mount["containerPath"].as_str().map(str::to_owned);
    let mut mounts = list(one);
    for mount in list(other) {
        mounts.retain(|known| place(known) != place(&mount));
        mounts.push(mount);
    }
    mounts.sort_by_key(|mount| place(mount).map(|place| place.matches('/').count()));
    serde_json::json!({ "mounts": mounts, "env": other["env"] })
}

#[test]
fn a_container_that_has_a_part_by_cdi_is_limited_without_a_server() {
    let mounts = Command::new("unshare").args(["-m", "true"]).output();
    if !mounts.is_ok_and(|output| output.status.success()) {
        return skip::skipped("mount namespaces cannot be made here");
    }
    let top = tempfile::tempdir().expect("a folder");
    let program = Path::new(SUPERVISOR);
    let parts = ["a=simulated:16GiB:8GiB", "b=simulated:16GiB:4GiB"].map(str::to_owned);
    let made = engine_fractions::cdi(top.path(), &parts, false, program).expect("made");
    let all: Value = serde_json::from_str(&made.text).expect("JSON");
    let [words] = &made.drivers[..] else { panic!("{:?}", made.drivers) };
    let _driver = Driver(Command::new(program).args(words).spawn().expect("started"));
    let prints = |device: usize, command: &str| {
        let script = script(&all["devices"][device]["containerEdits"], command);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script, SUPERVISOR]).stdin(Stdio::null());
        let output = command.output().expect("started");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).expect("text")
    };
    let begun = std::time::Instant::now();
    while !prints(1, "$0 gpu-check 1GiB").contains("1024 MiB: granted") {
        assert!(begun.elapsed().as_secs() < 120, "the simulated GPU does not answer");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = prints(0, "$0 gpu-check 9GiB 7GiB; $0 nvidia-smi");
    assert!(text.contains("8192 MiB, 7892 MiB of it free"), "{text}");
    assert!(text.contains("9216 MiB: refused: out of memory"), "{text}");
    assert!(text.contains("7168 MiB: granted") && text.contains("/ 8192MiB"), "{text}");
    let text = prints(1, "$0 gpu-check 7GiB 3GiB");
    assert!(text.contains("7168 MiB: refused") && text.contains("3072 MiB: granted"), "{text}");
    // Neither its limit nor the libraries can be changed from inside.
    for file in ["/run/elastane/fraction/control", "/run/elastane/gpu/lib/ld.so.preload"] {
        let text = prints(0, &format!("echo x >{file}"));
        assert!(text.contains("Read-only"), "{text}");
    }
    // The limit of one part would be that of the container, and the other's GPU would have none.
    for (one, other, missing) in [(0, 1, "part-a"), (1, 0, "part-b")] {
        let edits = |device: usize| &all["devices"][device]["containerEdits"];
        let script = script(&both(edits(one), edits(other)), "echo started");
        let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
        let output = output.expect("started");
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(why.contains(missing) && why.contains("Read-only"), "{why}");
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
}
