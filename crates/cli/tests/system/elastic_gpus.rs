//! Workers of elastic trainings with several GPUs. Owns: that each GPU has a process, and the
//! outcome for a pod whose processes die. Does not know about: how the processes of a pod are
//! started (`sdk/python/tests`).

use std::collections::{BTreeMap, BTreeSet};

use crate::elastic_training::{PLAIN, WORKER};
use crate::sandbox::{Sandbox, environment, kill, wait_until};
use crate::workers;

/// The running processes of the workers, by pod and GPU, and the main one of each pod by its pod.
fn running(sandbox: &Sandbox) -> (BTreeMap<(String, String), u32>, BTreeMap<String, u32>) {
    let (mut each, mut main) = (BTreeMap::new(), BTreeMap::new());
    for pid in sandbox.processes().into_iter().map(|process| process.pid) {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let Some(mut own) = environment(pid).filter(|_| command.contains(WORKER)) else { continue };
        let (pod, gpus) = (own.remove("POD_NAME"), own.remove("CUDA_VISIBLE_DEVICES"));
        let (Some(pod), Some(gpus)) = (pod, gpus) else { continue };
        match own.contains_key("LOCAL_RANK") {
            true => drop(each.insert((pod, gpus), pid)),
            false if !command.contains("supervise") => drop(main.insert(pod, pid)),
            false => {}
        }
    }
    (each, main)
}

fn await_processes(sandbox: &Sandbox, pods: [&str; 2]) -> BTreeMap<(String, String), u32> {
    let mut found = BTreeMap::new();
    let is_there = || {
        found = running(sandbox).0;
        let of: BTreeSet<_> = found.keys().map(|(pod, _)| pod.as_str()).collect();
        found.len() == 4 && of == pods.into()
    };
    let seen = wait_until(is_there);
    assert!(seen, "{found:?}: {}", sandbox.shell("elasticdl pods && runai describe job g").text);
    found
}

#[test]
fn each_gpu_of_a_worker_has_a_process_and_a_pod_that_loses_one_is_replaced() {
    let Some(programs) = workers::programs() else { return };
    let mut sandbox = Sandbox::new().with_programs(&programs);
    sandbox.start_server("elastane up --nodes 1x4x16GiB,cpu=8,memory=15GB");
    let made = sandbox.shell(&format!(
        "mkdir -m 777 zoo && cp '{PLAIN}' zoo && python3 -m elastane.digits plain && chmod -R a+rX . \
         && elastane project create default && runai config project default"
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    let submitted = sandbox.shell(
        "elasticdl train --job_name=g --model_zoo=zoo --model_def=digits_numpy.custom_model \
         --training_data=$PWD/plain/train --num_epochs=30 --minibatch_size=10 --num_workers=2 \
         --distribution_strategy=AllreduceStrategy --image_name=$(command -v python3) \
         --worker_resource_request=cpu=1,memory=1024Mi,gpu=2",
    );
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|n| format!("elasticdl-g-worker-{n}"));
    let found = await_processes(&sandbox, [&first, &second]);
    let gpus: BTreeSet<_> = found.keys().map(|(_, gpu)| gpu.as_str()).collect();
    assert_eq!(gpus, ["0", "1", "2", "3"].into());
    // A world has all processes, which are more than the pods.
    let of_four =
        format!("elasticdl logs g | grep -c '{first}/0, {first}/1, {second}/0, {second}/1'");
    let seen = wait_until(|| sandbox.shell(&of_four).code == Some(0));
    assert!(seen, "{}", sandbox.shell("elasticdl logs g").text);

    // Kills one process of a pod: the other one returns its tasks, and a new pod starts.
    let killed = found.iter().find(|((pod, _), _)| *pod == first).map(|(_, pid)| *pid);
    kill(killed.expect("it was there"));
    let found = await_processes(&sandbox, [&second, &third]);
    // Kills all processes of a pod, with the one that started them.
    kill(*running(&sandbox).1.get(&second).unwrap_or_else(|| panic!("{found:?}")));
    await_processes(&sandbox, [&third, &fourth]);

    let ended = "job g succeeded: 45000 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs g", ended);
    let log = sandbox.shell("elasticdl logs g").text;
    assert!(log.contains(", 0 failed"), "{log}");
}
