//! Writers that find no room or no reader. Owns: that the server and commands do their work all the
//! same, and say how it ended. Does not know about: which writer it is (`telemetry/log`,
//! `cli-kit/message`).

use std::fs;

use crate::sandbox::Sandbox;

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
    let deleted = sandbox.shell("runai delete job nobody a 2> /dev/full");
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
