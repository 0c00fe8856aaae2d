//! The nodes of a server across restarts, and a start that is ended. Owns: the faults that would
//! stop workloads without an error.

use std::os::unix::net::UnixListener;

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Output, Sandbox, finish, wait_until};

/// A server with a workload on the last of two nodes.
fn with_a_workload_on_node_2() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 2x1x16GiB");
    let lines = "elastane project create team-a --gpu-quota 2; runai config project team-a\n\
                 runai submit one -i ubuntu -g 1 --command -- sleep 1000\n\
                 runai submit two -i ubuntu -g 1 --command -- sleep 1000";
    assert_eq!(sandbox.shell(lines).code, Some(0));
    let both = || sandbox.shell("runai list | tail -n +3 | grep -c Running").text == "2\n";
    assert!(wait_until(both), "{}", sandbox.shell("runai list").text);
    sandbox.kill_server();
    sandbox
}

/// Process ids of the running workloads.
fn sleeps(sandbox: &Sandbox) -> Vec<u32> {
    let all = sandbox.processes();
    all.iter().filter(|one| one.command == "sleep 1000").map(|one| one.pid).collect()
}

fn up(sandbox: &Sandbox, flags: &str) -> Output {
    let port = sandbox.port();
    sandbox.shell(&format!("exec elastane up {flags} --listen 127.0.0.1:{port}"))
}

#[test]
fn a_server_starts_with_the_nodes_of_the_one_before_unless_others_are_given() {
    let mut sandbox = with_a_workload_on_node_2();
    let before = sleeps(&sandbox);
    sandbox.start_server("elastane up");
    let said = sandbox.server_text();
    assert!(said.contains("node-2: 1x simulated 16GiB"), "{said}");
    assert!(said.contains("Workloads  2 running, taken over"), "{said}");
    assert_eq!(sleeps(&sandbox), before);
    sandbox.kill_server();
    // More nodes, and more GPUs on existing ones, remove nothing.
    sandbox.start_server("elastane up --nodes 3x2x16GiB");
    assert_eq!(sleeps(&sandbox), before);
}

#[test]
fn nodes_on_which_workloads_would_lose_their_place_are_refused_with_their_names() {
    let mut sandbox = with_a_workload_on_node_2();
    let before = sleeps(&sandbox);
    for flags in ["--nodes 1x2x16GiB", "--gpus 4x16GiB"] {
        let refused = up(&sandbox, flags);
        assert_eq!(refused.code, Some(1), "{}", refused.text);
        for part in ["would lose places", "node-2", "--replace-nodes"] {
            assert!(refused.text.contains(part), "{flags}: {}", refused.text);
        }
        assert!(refused.text.contains("one") || refused.text.contains("two"), "{}", refused.text);
    }
    assert_eq!(sleeps(&sandbox), before, "a refused start stops nothing");
    sandbox.start_server("elastane up --nodes 1x2x16GiB --replace-nodes");
    let kept = wait_until(|| {
        let now = sleeps(&sandbox);
        now.len() == 2 && now.iter().filter(|pid| before.contains(pid)).count() == 1
    });
    assert!(kept, "what is on node-1 goes on, the other starts again there");
}

#[test]
fn a_signal_ends_a_server_in_order_while_it_starts() {
    let sandbox = Sandbox::new();
    // A daemon that accepts connections and sends nothing.
    let socket = sandbox.home().join("silent.sock");
    let silent = UnixListener::bind(&socket).expect("a socket");
    let line = format!("DOCKER_HOST=unix://{} exec elastane up --runtime docker", socket.display());
    let server = sandbox.begin(&format!("{line} --listen 127.0.0.1:{}", sandbox.port()));
    let _asked = silent.accept().expect("it asks");
    let all = sandbox.processes();
    let own = all.iter().find(|one| one.command.starts_with("elastane up")).expect("it runs");
    let pid = Pid::from_raw(i32::try_from(own.pid).expect("a number")).expect("not 0");
    kill_process(pid, Signal::INT).expect("it lives");
    let ended = finish(server);
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(ended.text.contains("stopped while it started"), "{}", ended.text);
    assert!(!sandbox.state_dir().join("server.json").exists());
}

/// True if a workload runs on a node.
fn runs_on(sandbox: &Sandbox, name: &str, node: &str) -> bool {
    let line = format!("runai list | grep -E '^{name} +Running .* {node} '");
    wait_until(|| sandbox.shell(&line).code == Some(0))
}

#[test]
fn simulated_nodes_come_and_go_and_are_the_same_after_the_server_was_killed() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    let lines = "elastane project create team-a --gpu-quota 2; runai config project team-a\n\
                 runai submit one -i ubuntu -g 1 --command -- sleep 1000";
    assert_eq!(sandbox.shell(lines).code, Some(0));
    assert!(runs_on(&sandbox, "one", "node-1"), "{}", sandbox.shell("runai list").text);
    let lines = "elastane simulate node-add extra --gpus 1 --label zone=b &&\n\
                 elastane simulate node-remove node-1";
    assert_eq!(sandbox.shell(lines).code, Some(0));
    assert!(runs_on(&sandbox, "one", "extra"), "{}", sandbox.shell("runai list").text);
    assert_eq!(sleeps(&sandbox).len(), 1, "the run on the node that went was stopped");
    let before = sleeps(&sandbox);
    sandbox.kill_server();
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    assert!(sandbox.server_text().contains("extra: 1x simulated 16GiB, zone=b"));
    assert_eq!(sleeps(&sandbox), before);
    assert_eq!(sandbox.shell("elastane simulate drain extra").code, Some(0));
    assert!(wait_until(|| sleeps(&sandbox).is_empty()));
    let listed = sandbox.shell("elastane node list").text;
    assert!(listed.contains("Ready,SchedulingDisabled") && !listed.contains("node-1"), "{listed}");
    assert_eq!(sandbox.shell("elastane node uncordon extra").code, Some(0));
    assert!(runs_on(&sandbox, "one", "extra"), "{}", sandbox.shell("runai list").text);
}
