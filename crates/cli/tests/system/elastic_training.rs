//! Elastic trainings that are stopped, killed and wrong. Owns: what of it people see. Does not know
//! about: how records are counted (`elastic`), the published tutorial (`walkthroughs`).

use std::time::Duration;

use crate::sandbox::{Sandbox, environment, kill, wait_until};
use crate::workers;

const PATIENCE: Duration = Duration::from_secs(40);
const TRAINING_PATIENCE: Duration = Duration::from_secs(150);
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/elasticdl/.");
const MODEL: &str = "elasticdl/python/examples/mnist_functional_api.py";

/// A server with the digits and the example; none without Python.
fn prepared() -> Option<Sandbox> {
    let programs = workers::programs()?;
    let mut sandbox = Sandbox::new().with_programs(&programs);
    sandbox.start_server("elastane up --nodes 1x0,cpu=8,memory=15GB");
    let made = sandbox.shell(&format!(
        "cp -r '{EXAMPLES}' . && python3 -m elastane.digits mnist --codec bytes && chmod -R a+rX . \
         && elastane project create default && runai config project default"
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    Some(sandbox)
}

/// A job of three epochs with two workers.
fn submit(sandbox: &Sandbox, job: &str, model: &str) {
    let submitted = sandbox.shell(&format!(
        "elasticdl --job_name={job} --model_file={model} --train_data_dir=$PWD/mnist/train \
         --image_base=$(command -v python3) --num_epoch=3 --minibatch_size=10 \
         --record_per_task=100 --num_worker=2 --grads_to_wait=2 --codec_type=bytes \
         --worker_cpu_request=1000m --worker_cpu_limit=1000m --worker_memory_request=1024Mi \
         --worker_memory_limit=1024Mi --master_cpu_request=1000m --master_cpu_limit=1000m \
         --master_memory_request=1024Mi --master_memory_limit=1024Mi"
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
}

fn await_text(sandbox: &Sandbox, line: &str, text: &str, patience: Duration) {
    let seen = wait_until(patience, || sandbox.shell(line).text.contains(text));
    assert!(seen, "`{line}` never has `{text}`:\n{}", sandbox.shell(line).text);
}

/// Kills the process of a worker.
fn kill_worker(sandbox: &Sandbox, pod: &str) {
    let is_it = |pid: u32| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let name = environment(pid).and_then(|all| all.get("POD_NAME").cloned());
        command.contains("elastane.worker") && name.as_deref() == Some(pod)
    };
    let found = sandbox.processes().into_iter().find(|process| is_it(process.pid));
    kill(found.expect("the worker's process").pid);
}

#[test]
fn a_training_that_is_stopped_goes_on_from_there_and_one_of_a_killed_worker_as_well() {
    let Some(sandbox) = prepared() else { return };
    submit(&sandbox, "j", MODEL);
    let describe = "runai describe job j";
    await_text(&sandbox, describe, " samples/s; model of version ", PATIENCE);
    await_text(&sandbox, describe, "elasticdl-worker-j-1  ", PATIENCE);
    await_text(&sandbox, "elasticdl logs j", "epoch 1: ", TRAINING_PATIENCE);
    let stopped = sandbox.shell("runai suspend j");
    assert_eq!(stopped.code, Some(0), "{}", stopped.text);
    await_text(&sandbox, "elasticdl logs j", "stopped; the model is saved", PATIENCE);
    sandbox.await_status("runai list jobs", "j", "Suspended");
    let again = sandbox.shell("runai resume j");
    assert_eq!(again.code, Some(0), "{}", again.text);
    // Each record once, so no task was in the hands of a worker that was gone.
    let ended = "job j succeeded: 4500 records (0 unreadable) in ";
    await_text(&sandbox, "elasticdl logs j", ended, TRAINING_PATIENCE);
    let log = sandbox.shell("elasticdl logs j").text;
    assert!(log.contains(", 0 were lost with a worker, 0 failed"), "{log}");

    submit(&sandbox, "k", MODEL);
    await_text(&sandbox, "elasticdl logs k", "epoch 1: ", TRAINING_PATIENCE);
    kill_worker(&sandbox, "elasticdl-worker-k-0");
    // The master waits a minute for one that is silent; the scheduler knows that it is gone.
    await_text(&sandbox, "elasticdl pods", "elasticdl-worker-k-2", PATIENCE);
    let ended = "job k succeeded: 4500 records (0 unreadable) in ";
    await_text(&sandbox, "elasticdl logs k", ended, TRAINING_PATIENCE);
    let log = sandbox.shell("elasticdl logs k").text;
    let own = log.lines().rfind(|line| line.starts_with("job k succeeded")).unwrap_or_default();
    let lost = [", 0 were lost", ", 1 were lost", ", 2 were lost"];
    assert!(lost.iter().any(|lost| own.contains(lost)), "it had two tasks at most: {own}");
}

#[test]
fn a_training_whose_code_is_wrong_says_what_is() {
    let Some(sandbox) = prepared() else { return };
    let wrong =
        sandbox.shell(&format!("(echo 'import nothing_of_this_name'; cat {MODEL}) > wrong.py"));
    assert_eq!(wrong.code, Some(0), "{}", wrong.text);
    submit(&sandbox, "wrong", "wrong.py");
    sandbox.await_status("runai list jobs", "wrong", "Failed");
    let said = "No module named 'nothing_of_this_name'";
    for line in ["elasticdl status wrong", "elasticdl logs wrong", "runai explain wrong"] {
        await_text(&sandbox, line, said, PATIENCE);
    }
    // A name is free again as soon as its job is deleted.
    let gone = sandbox.shell("elasticdl delete wrong");
    assert_eq!(gone.code, Some(0), "{}", gone.text);
    submit(&sandbox, "wrong", MODEL);
    await_text(&sandbox, "elasticdl logs wrong", "job wrong succeeded: 4500", TRAINING_PATIENCE);
}
