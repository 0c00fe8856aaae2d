//! CPU and memory limits as a user sees them, on a machine whose kernel enforces them and on one
//! that does not.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::sandbox::{Sandbox, groups_of, wait_until};

fn says(sandbox: &Sandbox, line: &str, code: i32, parts: &[&str]) {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
    for part in parts {
        assert!(output.text.contains(part), "{line} lacks {part:?}\n{}", output.text);
    }
}

fn with_server(line: &str) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server(line);
    says(&sandbox, "elastane project create team-a --gpu-quota 2", 0, &["created"]);
    says(&sandbox, "runai config project team-a", 0, &["team-a"]);
    sandbox
}

/// A server that enforces limits; skipped on other machines.
fn keeping() -> Option<Sandbox> {
    let sandbox = with_server("elastane up --gpus 2x1GiB");
    let (_, text) = sandbox.get("/elastane/v1/status").expect("an answer");
    let status: Value = serde_json::from_str(&text).expect("json");
    let limits = &status["limits"];
    if limits["cpu"] == true && limits["memory"] == true {
        return Some(sandbox);
    }
    skip::missing(&format!("this machine keeps no limits: {}", limits["why"]))
}

/// The control groups of all runs of a sandbox.
fn groups(sandbox: &Sandbox) -> Vec<PathBuf> {
    groups_of(&sandbox.state_dir())
}

#[test]
fn a_workload_that_grows_is_killed_at_its_limit_and_told_so() {
    let Some(sandbox) = keeping() else { return };
    let grow = "sh -c 'x=xxxxxxxx; while :; do x=$x$x; done'";
    let submit = "runai submit grow -i x --memory-limit 64Mi --backoff-limit 0 --command --";
    says(&sandbox, &format!("{submit} {grow}"), 0, &["grow"]);
    let why = "out of memory: killed because it had more than its limit of 64MiB";
    says(
        &sandbox,
        "runai wait grow",
        1,
        &[why, "submit it again with a larger one (--memory-limit"],
    );
    says(&sandbox, "runai describe job grow", 0, &["E205", why]);
    says(&sandbox, "runai submit small -i x --memory-limit 64Mi --command -- true", 0, &["small"]);
    says(&sandbox, "runai wait small", 0, &[]);
}

#[test]
fn limits_outlive_the_server_and_end_with_the_workload() {
    let Some(mut sandbox) = keeping() else { return };
    let submit = "runai submit slow -i x --cpu-limit 0.5 --command -- sleep 600";
    says(&sandbox, submit, 0, &["slow"]);
    says(&sandbox, "runai wait slow --for running", 0, &[]);
    let quota = |sandbox: &Sandbox| {
        let of = |group: PathBuf| {
            let read = |name| fs::read_to_string(group.join(name)).ok();
            let processes = read("cgroup.procs").unwrap_or_default();
            assert_eq!(processes.lines().count(), 1, "{} holds it", group.display());
            read("cpu.cfs_quota_us").or_else(|| read("cpu.max"))
        };
        groups(sandbox).into_iter().find_map(of).expect("a group")
    };
    assert!(quota(&sandbox).starts_with("50000"), "{}", quota(&sandbox));
    sandbox.kill_server();
    assert!(quota(&sandbox).starts_with("50000"), "while no server is there");
    sandbox.start_server("elastane up --gpus 2x1GiB");
    says(&sandbox, "runai describe job slow", 0, &["STATUS: RUNNING"]);
    says(&sandbox, "runai delete slow", 0, &["deleted"]);
    assert!(wait_until(|| groups(&sandbox).is_empty()), "its group is gone");
}

#[test]
fn where_the_machine_keeps_no_limits_a_workload_runs_and_everyone_is_told() {
    // A machine without visible control groups.
    let hidden =
        "unshare --mount sh -c 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec \"$@\"' sh";
    if Sandbox::new().shell(&format!("{hidden} true")).code != Some(0) {
        return skip::skipped("control groups cannot be hidden from a process here");
    }
    let sandbox = with_server(&format!("{hidden} elastane up --gpus 2x1GiB"));
    let text = sandbox.server_text();
    let told = "limits of CPU time and memory are not kept; `elastane status` says why";
    assert!(text.contains(told) && !text.contains("control groups"), "{text}");
    says(&sandbox, "elastane status", 0, &["Limits     not all are kept: ", "control groups"]);
    let submit = "runai submit big -i x --memory-limit 64Mi --cpu-limit 2 --command -- sleep 600";
    says(&sandbox, submit, 0, &["big"]);
    says(&sandbox, "runai wait big --for running", 0, &[]);
    let warning = "it may use more than its limit of 2 cores and 64MiB of memory";
    let told = || sandbox.shell("runai describe job big").text.contains(warning);
    assert!(wait_until(told), "{}", sandbox.shell("runai describe job big").text);
    says(&sandbox, "elastane status", 0, &["not all are kept: control groups cannot be made"]);
}
