//! Scripts of `torchrun` on pods that the server starts. Owns: the options in their environment,
//! and that they continue with fewer workers and with more again, with the rendezvous in the first
//! pod or at the server, outside all of them. Does not know about: how `torchrun` works.

use std::collections::BTreeMap;
use std::process::Command;

use crate::sandbox::{Sandbox, environment, kill, wait_until};

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python");
/// The example, which waits after each step until the file `go` exists: in step, and with a
/// collective operation that fails when a worker is lost.
const WAITS: &str = r#"import os, sys, time, torch, torchrun_points as example
import torch.distributed as dist
def after_step():
    go = torch.zeros(1)
    while not go:
        go.fill_(os.path.exists(os.path.join(sys.argv[1], "go")))
        dist.all_reduce(go, op=dist.ReduceOp.MIN)
        time.sleep(0.05)
example.train(sys.argv[1], epochs=2, after_step=after_step)
"#;
/// Environment that the script needs, and options that Debian's PyTorch 1.13 needs with Python
/// 3.11, where its own defaults do not work.
const OPTIONS: &str =
    "-e OMP_NUM_THREADS=1 -e PET_TEE=1 -e PET_REDIRECTS=1 -e PET_MONITOR_INTERVAL=1";

/// A server with three GPUs, a project, and the script in a folder that all may write; `None`
/// without PyTorch.
fn prepared() -> Option<Sandbox> {
    let torch = Command::new("/usr/bin/python3").args(["-c", "import torch, numpy"]).output();
    let is_there = torch.is_ok_and(|output| output.status.success());
    if !is_there || !std::path::Path::new("/usr/bin/torchrun").exists() {
        return skip::missing("no torchrun in /usr/bin");
    }
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 1x3x16GiB");
    std::fs::write(sandbox.home().join("waits.py"), WAITS).expect("written");
    let made = sandbox.shell(&format!(
        "cp -r '{SDK}/src/elastane' '{SDK}/examples/torchrun_points.py' . && mkdir points \
         && chmod -R a+rX . && chmod a+rwx points && elastane project create team-a --gpu-quota 3 \
         && runai config project team-a"
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    Some(sandbox)
}

fn submit(sandbox: &Sandbox, name: &str, flags: &str) {
    submit_by(sandbox, name, flags, "/usr/bin/torchrun");
}

fn submit_by(sandbox: &Sandbox, name: &str, flags: &str, torchrun: &str) {
    let submitted = sandbox.shell(&format!(
        "runai training pytorch submit {name} -i x -g 1 {flags} -e PYTHONPATH=$PWD {OPTIONS} \
         --command -- {torchrun} $PWD/waits.py $PWD/points"
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
}

fn log(sandbox: &Sandbox, name: &str, pod: &str) -> String {
    sandbox.shell(&format!("runai logs {name} --pod {name}-{pod}")).text
}

/// Waits until the log of a pod has a text this many times.
fn says(sandbox: &Sandbox, (name, pod): (&str, &str), part: &str, times: usize) {
    let said = || log(sandbox, name, pod).matches(part).count() >= times;
    assert!(
        wait_until(said),
        "{pod} of {name} does not say {part:?} {times} times:\n{}\n{}\n{}",
        log(sandbox, name, pod),
        sandbox.shell(&format!("runai describe job {name}")).text,
        sandbox.server_text()
    );
}

#[test]
fn a_script_goes_on_with_fewer_workers_and_with_more_again() {
    let Some(sandbox) = prepared() else { return };
    submit(&sandbox, "points", "--workers 2 --min-replicas 1 --max-replicas 2");
    let master = ("points", "master-0");
    says(&sandbox, master, " of 3: epoch 0", 1);
    // The first world may have had two workers.
    let said = log(&sandbox, "points", "master-0");
    let [of_two, of_three] = [2, 3].map(|n| said.matches(&format!(" of {n}: epoch 0")).count());
    let taken = sandbox.shell("runai submit taker -i x -g 1 --interactive --command -- sleep 600");
    assert_eq!(taken.code, Some(0), "{}", taken.text);
    sandbox.await_status("runai list jobs", "taker", "Running");
    says(&sandbox, master, " of 2: epoch 0", of_two + 1);
    assert_eq!(sandbox.shell("runai delete job taker").code, Some(0));
    says(&sandbox, master, " of 3: epoch 0", of_three + 1);
    std::fs::write(sandbox.home().join("points/go"), "").expect("written");
    sandbox.await_status("runai list jobs", "points", "Succeeded");
    // Each sample is trained once in each epoch, although the remainder was divided among others
    // twice.
    says(&sandbox, master, " of 3: each sample 2 to 2 times", 1);
}

#[test]
fn a_script_of_as_many_workers_as_it_says_keeps_its_ranks() {
    let Some(sandbox) = prepared() else { return };
    std::fs::write(sandbox.home().join("points/go"), "").expect("written");
    submit(&sandbox, "fixed", "--workers 1");
    sandbox.await_status("runai list jobs", "fixed", "Succeeded");
    says(&sandbox, ("fixed", "master-0"), "rank 0 of 2: each sample 2 to 2 times", 1);
    says(&sandbox, ("fixed", "worker-0"), "rank 1 of 2: each sample 2 to 2 times", 1);
}

/// The process of `torchrun` in each pod, by the initial rank of the pod.
fn agents(sandbox: &Sandbox) -> BTreeMap<String, u32> {
    let agents =
        sandbox.processes().into_iter().filter(|of| of.command.contains(" elastane.torchrun "));
    let ranked = |pid| Some((environment(pid)?.get("PET_NODE_RANK")?.clone(), pid));
    agents.filter_map(|agent| ranked(agent.pid)).collect()
}

#[test]
fn a_script_whose_pods_meet_at_the_server_outlives_its_first_pod_and_the_server() {
    let Some(mut sandbox) = prepared() else { return };
    // The server is the default of this program, as of `torchrun` where it finds the wheel.
    let flags = "--workers 2 --min-replicas 1 --max-replicas 2";
    submit_by(&sandbox, "points", flags, "/usr/bin/python3 -m elastane.torchrun");
    let other = ("points", "worker-0");
    says(&sandbox, other, " of 3: epoch 0", 1);
    let begun =
        |sandbox: &Sandbox| log(sandbox, "points", "worker-0").matches(" of 3: epoch 0").count();
    let (before, worlds) = (agents(&sandbox), begun(&sandbox));
    kill(before["0"]);
    // The others wait for the restart of the pod, unless it takes too long.
    says(&sandbox, other, " of 3: epoch 0", worlds + 1);
    let after = agents(&sandbox);
    assert_ne!(before["0"], after["0"], "it has come again");
    assert_eq!([&before["1"], &before["2"]], [&after["1"], &after["2"]], "the others were there");
    // The next server finds them in their world, and notices the next loss.
    sandbox.kill_server();
    sandbox.start_server("elastane up --nodes 1x3x16GiB");
    let worlds = begun(&sandbox);
    kill(after["2"]);
    says(&sandbox, other, " of 3: epoch 0", worlds + 1);
    let last = agents(&sandbox);
    assert_eq!([&last["0"], &last["1"]], [&after["0"], &after["1"]]);
    std::fs::write(sandbox.home().join("points/go"), "").expect("written");
    sandbox.await_status("runai list jobs", "points", "Succeeded");
    says(&sandbox, other, " of 3: each sample 2 to 2 times", 1);
}
