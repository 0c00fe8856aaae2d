//! Elastic trainings with AllReduce. Owns: that they survive the same events as those with
//! parameter servers. Does not know about: rounds and their bytes (`sdk/python/tests`).

use crate::elastic_training::{MASTER, WORKER, kill_pod, running, with_zoo};
use crate::sandbox::{Sandbox, wait_until};

/// Waits until the job is in this epoch, or a later one: its master logs a line a second.
fn await_epoch(sandbox: &Sandbox, least: u32) {
    let log = || sandbox.shell("elasticdl logs a").text;
    let epoch = |line: &str| line.strip_prefix("epoch ")?.split_once(':')?.0.parse::<u32>().ok();
    let is_there = || log().lines().filter_map(epoch).any(|epoch| epoch >= least);
    assert!(wait_until(is_there), "epoch {least}: {}", log());
}

#[test]
fn workers_that_add_up_their_gradients_are_stopped_and_killed_and_the_job_ends() {
    let Some(sandbox) = with_zoo() else { return };
    let model = "--model_zoo=zoo --model_def=digits_numpy.custom_model --minibatch_size=10 \
                 --image_name=$(command -v python3) --worker_resource_request=cpu=1,memory=1024Mi \
                 --distribution_strategy=AllreduceStrategy";
    let submitted = sandbox.shell(&format!(
        "elasticdl train --job_name=a --training_data=$PWD/plain/train --num_epochs=20 \
         --num_workers=2 --checkpoint_dir=$PWD/model --checkpoint_steps=20 {model}"
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);

    // The last worker that leaves saves the model, and the next ones continue from there.
    await_epoch(&sandbox, 1);
    let stopped = sandbox.shell("runai suspend a");
    assert_eq!(stopped.code, Some(0), "{}", stopped.text);
    sandbox.await_text("elasticdl logs a", "stopped; the model is saved");
    sandbox.await_status("runai list jobs", "a", "Suspended");
    let again = sandbox.shell("runai resume a");
    assert_eq!(again.code, Some(0), "{}", again.text);

    // A killed worker is replaced, and so is the master.
    await_epoch(&sandbox, 4);
    let pods = running(&sandbox, WORKER);
    let first = pods.keys().next().unwrap_or_else(|| panic!("{pods:?}")).clone();
    kill_pod(&sandbox, &first, WORKER);
    await_epoch(&sandbox, 6);
    kill_pod(&sandbox, "elasticdl-a-master", MASTER);
    let ended = "job a succeeded: 30000 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs a", ended);
    let log = sandbox.shell("elasticdl logs a").text;
    let own = log.lines().rfind(|line| line.starts_with("job a succeeded")).unwrap_or_default();
    let lost = [", 0 were lost", ", 1 were lost", ", 2 were lost"];
    assert!(lost.iter().any(|lost| own.contains(lost)), "it had two tasks at most: {own}");
    assert!(own.ends_with(", 0 failed"), "{own}");

    // Parameter servers can read its checkpoints.
    let submitted = sandbox.shell(&format!(
        "elasticdl evaluate --job_name=e --validation_data=$PWD/plain/test \
         --checkpoint_dir_for_init=$PWD/model {model}"
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    sandbox.await_text("elasticdl logs e", "job e succeeded: 297");
    let log = sandbox.shell("elasticdl logs e").text;
    let accuracy = log.lines().find_map(|line| {
        line.strip_prefix("Evaluation: 297 records: accuracy ")?.parse::<f64>().ok()
    });
    assert!(accuracy.is_some_and(|accuracy| accuracy >= 0.92), "{log}");
}
