//! Output to a full disk or a closed pipe. Owns: that the server and commands do their work
//! nevertheless, and report its result. Does not know about: the individual writers
//! (`telemetry/log`, `cli-kit/message`).

use std::fs;

use crate::sandbox::{Sandbox, wait_until};

/// A machine whose state is on a small disk, with a workload that does not write.
fn on_a_small_disk() -> Option<Sandbox> {
    let mut sandbox = Sandbox::new();
    if !sandbox.with_disk(96) {
        return skip::missing("no file system can be mounted here");
    }
    sandbox.start_server("elastane up --gpus 4x1GiB");
    does(&sandbox, "elastane project create team-a && runai config project team-a");
    does(&sandbox, "runai submit good -i x -g 1 --command -- sleep 1000");
    sandbox.await_status("runai list jobs", "good", "Running");
    Some(sandbox)
}

fn does(sandbox: &Sandbox, line: &str) -> String {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(0), "{line}\n{}\n{}", output.text, sandbox.server_text());
    output.text
}

/// Submits a job that fills the disk by this script, and waits until it is killed for that.
fn is_killed(sandbox: &Sandbox, fills: &str) {
    let script = format!("'{fills}; sleep 1000'");
    let submit = "runai submit fill -i x -g 1 --backoff-limit 0 --command -- sh -c";
    does(sandbox, &format!("{submit} {script}"));
    sandbox.await_text("runai describe job fill", "E219");
}

#[test]
fn of_all_runs_that_share_a_disk_the_one_that_fills_it_is_killed() {
    let Some(sandbox) = on_a_small_disk() else { return };
    is_killed(&sandbox, "while head -c 1000000 /dev/zero >> big; do sleep 0.02; done");
    sandbox.await_status("runai list jobs", "fill", "Failed");
    sandbox.await_status("runai list jobs", "good", "Running");
    sandbox.await_text("elastane status", "is almost full:");
    sandbox.await_text("runai list jobs", "are kept for the server");
    let (_, metrics) = sandbox.get("/metrics").expect("an answer");
    assert!(metrics.contains("\nelastane_disk_full{} 1.0\n"), "{metrics}");
    does(&sandbox, "runai delete job fill");
    let is_over = || !sandbox.shell("elastane status").text.contains("is almost full");
    assert!(wait_until(is_over), "{}", sandbox.shell("elastane status").text);
    sandbox.await_status("runai list jobs", "good", "Running");
}

#[test]
fn a_run_that_makes_files_without_end_is_killed_although_there_are_bytes_left() {
    let Some(sandbox) = on_a_small_disk() else { return };
    is_killed(&sandbox, "n=0; while :; do touch file$n; n=$((n+1)); done");
    does(&sandbox, "runai delete job fill");
    sandbox.await_status("runai list jobs", "good", "Running");
}

#[test]
fn a_run_that_holds_what_it_deleted_open_is_killed_for_it() {
    let Some(sandbox) = on_a_small_disk() else { return };
    let fills = "exec 3>big; rm big; while head -c 1000000 /dev/zero >&3; do sleep 0.02; done";
    is_killed(&sandbox, fills);
    sandbox.await_status("runai list jobs", "good", "Running");
}

#[test]
fn one_that_fills_the_disk_faster_than_anybody_looks_is_killed_all_the_same() {
    let Some(sandbox) = on_a_small_disk() else { return };
    is_killed(&sandbox, "cat /dev/zero > big");
    does(&sandbox, "runai delete job fill");
    sandbox.await_status("runai list jobs", "good", "Running");
    does(&sandbox, "runai suspend good");
}

#[test]
fn with_nothing_left_workloads_are_stopped_and_deleted_and_the_server_goes_down() {
    let Some(mut sandbox) = on_a_small_disk() else { return };
    // No run wrote the file, so none is killed, and the disk stays full.
    let filled = format!("cat /dev/zero > {}/filler", sandbox.state_dir().display());
    let log = sandbox.state_dir().join("elastane.db-wal");
    assert!(wait_until(|| fs::metadata(&log).is_ok_and(|log| log.len() > 6 << 20)), "room is made");
    let last = sandbox.state_dir().join("spare/31");
    assert!(wait_until(|| last.exists()), "and beside the database");
    sandbox.shell(&filled);
    does(&sandbox, "runai suspend good");
    sandbox.await_status("runai list jobs", "good", "Suspended");
    // A server can also start there.
    sandbox.kill_server();
    sandbox.shell(&filled);
    sandbox.start_server("elastane up");
    does(&sandbox, "runai delete job good");
    let gone = || !sandbox.shell("runai list jobs").text.contains("good");
    assert!(wait_until(gone), "{}", sandbox.server_text());
    does(&sandbox, "elastane down");
}

#[test]
fn a_server_whose_output_finds_no_room_goes_on_and_counts_what_it_loses() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --log debug --gpus 1x1GiB > /dev/full 2>&1");
    for line in [
        "elastane project create team-a --gpu-quota 1",
        "runai submit a -p team-a -i x -g 1 --command -- sleep 600",
    ] {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(0), "{line}\n{}", output.text);
    }
    sandbox.await_status("runai list jobs -p team-a", "a", "Running");
    let (code, metrics) = sandbox.get("/metrics").expect("an answer");
    let lost = metrics.lines().find_map(|line| line.strip_prefix("elastane_log_lines_lost_total "));
    let lost = lost.unwrap_or_else(|| panic!("{code} {metrics}"));
    assert!(lost.parse::<u64>().is_ok_and(|lost| lost > 0), "{lost}");
    let down = sandbox.shell("elastane down > /dev/full");
    assert_eq!(down.code, Some(1), "an answer that finds no room is an error: {}", down.text);
    assert!(down.text.contains("No space left on device"), "{}", down.text);
}

#[test]
fn a_command_whose_complaints_find_no_room_does_the_rest_and_tells_by_its_exit_code() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let made = sandbox.shell(
        "elastane project create team-a && runai config project team-a \
         && runai submit a -i x --command -- sleep 600",
    );
    assert_eq!(made.code, Some(0), "{}", made.text);
    let deleted = sandbox.shell("runai delete job absent a 2> /dev/full");
    assert_eq!(deleted.code, Some(4), "{}", deleted.text);
    assert!(deleted.text.contains("a deleted"), "{}", deleted.text);

    let scenario = "version: 1\nnodes: [{name: n, gpus: 1}]\nqueues: [{name: p}]\n\
                    steps:\n  - submit: {name: a, project: p, gpu: 2}\n    \
                    expect: {queues: {p: {gpu: 2}}}\n";
    fs::write(sandbox.home().join("wrong.yaml"), scenario).expect("a file");
    for stderr in ["> /dev/full", "> >(true)", ">&-"] {
        let line = format!("bash -c 'elastane simulate wrong.yaml 2{stderr}'");
        assert_eq!(sandbox.shell(&line).code, Some(1), "{line}");
    }
}
