//! `runai top` against a real server: simulated GPUs are held, and nobody measures them.

use std::time::Duration;

use crate::sandbox::{Sandbox, wait_until};

#[test]
fn top_shows_what_nodes_and_jobs_use() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x1GiB");
    let says = |line: &str, code: i32| {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
        output.text
    };
    says("elastane project create team-a --gpu-quota 2; runai config project team-a", 0);
    says("runai submit busy -i x -g 1 --command -- sh -c 'while :; do :; done'", 0);
    says("runai wait busy --for running", 0);
    // The server looks every 15 s. What is asked for is there at once; what is used has its part of that.
    let is_used = || says("runai top job", 0).contains("m (");
    assert!(wait_until(Duration::from_secs(60), is_used), "{}", says("runai top job", 0));
    let nodes = says("runai top node -d", 0);
    assert!(nodes.contains("GPU MEMORY") && nodes.contains("IDLE TIME"), "{nodes}");
    assert!(nodes.lines().any(|line| line.starts_with("0    -")), "simulated:\n{nodes}");
    let none = says("runai top node nobody", 4);
    assert!(none.contains("No match found for node(s) '[nobody]'"), "{none}");
    assert!(says("runai top job -p nobody", 4).contains("nobody"));
}
