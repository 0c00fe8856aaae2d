//! A moved state directory: it works at its new place, or is refused if that is impossible.

use crate::sandbox::{Sandbox, wait_until};

const UP: &str = "elastane up --gpus 1x1GiB";

fn line(sandbox: &Sandbox, line: &str, code: i32, part: &str) {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
    assert!(output.text.contains(part), "{line}\n{}", output.text);
}

fn runs(sandbox: &Sandbox) -> bool {
    sandbox.processes().iter().any(|process| process.command == "sleep 1000")
}

#[test]
fn a_state_directory_is_moved_at_rest_and_not_under_processes() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server(UP);
    let lines = "elastane project create team-a --gpu-quota 1\n\
                 runai submit ended -i ubuntu -p team-a --command -- echo hello\n\
                 runai wait ended -p team-a\n\
                 runai submit left -i ubuntu -p team-a --command -- sleep 1000";
    line(&sandbox, lines, 0, "submitted successfully");
    sandbox.await_status("runai list -p team-a", "left", "Running");
    assert!(wait_until(|| runs(&sandbox)));
    sandbox.kill_server();
    let elsewhere = format!("mv $ELASTANE_STATE_DIR ../new; {UP} --state-dir ../new");
    let said = "while 1 of its workloads ran";
    line(&sandbox, &format!("{elsewhere} --listen 127.0.0.1:0"), 1, said);
    assert!(runs(&sandbox), "nothing was stopped");
    line(&sandbox, "mv ../new $ELASTANE_STATE_DIR", 0, "");
    sandbox.start_server(UP);
    sandbox.await_status("runai list -p team-a", "left", "Running");
    line(&sandbox, "elastane down", 0, "elastane is down");
    sandbox.kill_server();
    line(&sandbox, "mv $ELASTANE_STATE_DIR ../new", 0, "");
    sandbox.start_server(&format!("{UP} --state-dir ../new"));
    assert!(wait_until(|| runs(&sandbox)), "{}", sandbox.server_text());
    line(&sandbox, "ELASTANE_STATE_DIR=../new runai logs ended -p team-a", 0, "hello");
    let copy = format!("cp -r ../new ../copy; {UP} --state-dir ../copy --listen 127.0.0.1:0");
    line(&sandbox, &copy, 1, "is a copy of");
}
