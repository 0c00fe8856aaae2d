//! `runai wait`, against a real server that restarts meanwhile.

use crate::sandbox::{Sandbox, finish, wait_until};

#[test]
fn a_wait_ends_with_its_workload_whatever_the_server_does() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x1GiB");
    let says = |sandbox: &Sandbox, line: &str, code: i32, part: &str| {
        let output = sandbox.shell(line);
        assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
        assert!(output.text.contains(part), "{line}\n{}", output.text);
    };
    says(&sandbox, "elastane project create team-a --gpu-quota 2", 0, "created");
    says(&sandbox, "runai config project team-a", 0, "team-a");
    let submit = |rest: &str| format!("runai submit {rest}");
    says(&sandbox, &submit("bad -i x --backoff-limit 0 --command -- sh -c 'exit 3'"), 0, "bad");
    says(&sandbox, "runai wait bad", 1, "bad has failed: exit code 3");
    says(&sandbox, &submit("long -i x -g 1 --command -- sleep 600"), 0, "long");
    says(&sandbox, "runai wait long --for running", 0, "");
    says(&sandbox, "runai training wait long --timeout 1s", 1, "long is still Running");
    let gone = "mkfifo gone; true < gone & runai wait long --for deleted --timeout 1s 2> gone";
    says(&sandbox, gone, 1, "");
    says(&sandbox, "runai wait nobody", 4, "nobody does not exist");
    let go = sandbox.home().join("go");
    let script = format!("until test -e {}; do sleep 0.1; done", go.display());
    says(&sandbox, &submit(&format!("short -i x --command -- sh -c '{script}'")), 0, "");
    let waiting = sandbox.begin("runai wait short 2> told");
    let told = || sandbox.shell("grep Running told").code == Some(0);
    assert!(wait_until(told), "it says where it is");
    sandbox.kill_server();
    says(&sandbox, "runai wait short --timeout 1s", 3, "start it with");
    sandbox.start_server("elastane up --gpus 2x1GiB");
    says(&sandbox, "runai exec short -- true", 0, "");
    // Created from outside: a command that ends its own pod may be ended with it.
    std::fs::write(go, "").expect("a file");
    let output = finish(waiting);
    assert_eq!(output.code, Some(0), "{}", output.text);
    says(&sandbox, "runai delete long", 0, "deleted");
    says(&sandbox, "runai wait long --for deleted", 0, "");
}
