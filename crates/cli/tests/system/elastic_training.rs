//! Elastic trainings that are stopped, killed or invalid. Owns: the output that users see. Does not
//! know about: how records are counted (`elastic`), the published tutorial (`walkthroughs`).

use std::collections::BTreeMap;

use crate::sandbox::{Sandbox, environment, kill, wait_until};
use crate::workers;

pub(crate) const EXAMPLES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/elasticdl/.");
pub(crate) const PLAIN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/examples/digits_numpy.py");
const EMBEDDING: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/examples/digits_embedding.py");
pub(crate) const MODEL: &str = "elasticdl/python/examples/mnist_functional_api.py";

/// A server with the digits and the example; `None` without Python.
pub(crate) fn prepared() -> Option<Sandbox> {
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

/// A server with a zoo that has a numpy model, the digits in its format, and a folder for a model
/// that workers can write; `None` without Python.
pub(crate) fn with_zoo() -> Option<Sandbox> {
    let sandbox = prepared()?;
    let made = sandbox.shell(&format!(
        "mkdir -m 777 zoo model && cp '{PLAIN}' zoo && python3 -m elastane.digits plain \
         && chmod -R a+rX ."
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    Some(sandbox)
}

/// A job of three epochs with two workers.
fn submit(sandbox: &Sandbox, job: &str, model: &str) {
    submit_with(sandbox, job, model, "$(command -v python3)");
}

pub(crate) fn submit_with(sandbox: &Sandbox, job: &str, model: &str, python: &str) {
    let submitted = sandbox.shell(&format!(
        "elasticdl --job_name={job} --model_file={model} --train_data_dir=$PWD/mnist/train \
         --image_base={python} --num_epoch=3 --minibatch_size=10 \
         --record_per_task=100 --num_worker=2 --grads_to_wait=2 --codec_type=bytes \
         --worker_cpu_request=1000m --worker_cpu_limit=1000m --worker_memory_request=1024Mi \
         --worker_memory_limit=1024Mi --master_cpu_request=1000m --master_cpu_limit=1000m \
         --master_memory_request=1024Mi --master_memory_limit=1024Mi"
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
}

/// Waits until a job is beyond its first epoch. The log has a line each second, in which two epochs
/// may pass.
pub(crate) fn await_second_epoch(sandbox: &Sandbox, job: &str) {
    let line = format!("elasticdl logs {job}");
    let is_later = |line: &str| line.starts_with("epoch ") && !line.starts_with("epoch 0:");
    let log = || sandbox.shell(&line).text;
    assert!(wait_until(|| log().lines().any(is_later)), "{}", log());
}

/// Part of the command line of each main process of a job.
pub(crate) const WORKER: &str = "elastane.worker";
pub(crate) const MASTER: &str = "elasticdl\0master\0";
pub(crate) const SERVER: &str = "elasticdl\0ps\0";

/// The running main processes of a part of a job, by the names of their pods.
pub(crate) fn running(sandbox: &Sandbox, program: &str) -> BTreeMap<String, u32> {
    let named = |pid: u32| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_it = command.contains(program) && !command.contains("supervise");
        let name = environment(pid).and_then(|all| all.get("POD_NAME").cloned());
        name.filter(|_| is_it).map(|name| (name, pid))
    };
    sandbox.processes().into_iter().filter_map(|process| named(process.pid)).collect()
}

/// Kills the main process of a pod.
pub(crate) fn kill_pod(sandbox: &Sandbox, pod: &str, program: &str) {
    let found = running(sandbox, program).remove(pod);
    kill(found.unwrap_or_else(|| panic!("the process of {pod}")));
}

/// Submits a job of the final form: two workers, and two parameter servers in pods of their own.
pub(crate) fn submit_with_servers(sandbox: &Sandbox, job: &str, python: &str, more: &str) {
    let submitted = sandbox.shell(&format!(
        "elasticdl train --job_name={job} --model_zoo=zoo \
         --model_def=digits_numpy.custom_model --training_data=$PWD/plain/train --num_epochs=4 \
         --minibatch_size=10 --num_workers=2 --num_ps_pods=2 --grads_to_wait=2 \
         --image_name={python} --checkpoint_steps=10 \
         --ps_resource_request=cpu=0.5,memory=512Mi \
         --worker_resource_request=cpu=1,memory=1024Mi {more}"
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
}

#[test]
fn a_training_that_is_stopped_goes_on_from_there_and_one_of_a_killed_worker_as_well() {
    let Some(sandbox) = prepared() else { return };
    submit(&sandbox, "j", MODEL);
    let describe = "runai describe job j";
    sandbox.await_text(describe, " samples/s; model of version ");
    sandbox.await_text(describe, "elasticdl-worker-j-1  ");
    await_second_epoch(&sandbox, "j");
    let stopped = sandbox.shell("runai suspend j");
    assert_eq!(stopped.code, Some(0), "{}", stopped.text);
    sandbox.await_text("elasticdl logs j", "stopped; the model is saved");
    sandbox.await_status("runai list jobs", "j", "Suspended");
    let again = sandbox.shell("runai resume j");
    assert_eq!(again.code, Some(0), "{}", again.text);
    // Each record is counted once, so no task was held by a lost worker.
    let ended = "job j succeeded: 4500 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs j", ended);
    let log = sandbox.shell("elasticdl logs j").text;
    assert!(log.contains(", 0 were lost with a worker, 0 failed"), "{log}");
    // The plot has both runs of the master.
    let drawn = sandbox.shell("elasticdl plot j -o j.svg && cat j.svg");
    assert!(drawn.code == Some(0) && drawn.text.matches("<polyline").count() > 3, "{}", drawn.text);

    submit(&sandbox, "k", MODEL);
    await_second_epoch(&sandbox, "k");
    kill_pod(&sandbox, "elasticdl-worker-k-0", WORKER);
    // The master waits a minute for a silent worker; the scheduler knows that it is gone.
    sandbox.await_text("elasticdl pods", "elasticdl-worker-k-2");
    let ended = "job k succeeded: 4500 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs k", ended);
    let log = sandbox.shell("elasticdl logs k").text;
    let own = log.lines().rfind(|line| line.starts_with("job k succeeded")).unwrap_or_default();
    let lost = [", 0 were lost", ", 1 were lost", ", 2 were lost"];
    assert!(lost.iter().any(|lost| own.contains(lost)), "it had two tasks at most: {own}");
}

#[test]
fn the_parts_of_a_job_encrypt_what_they_send_if_that_is_asked_for() {
    let Some(sandbox) = with_zoo() else { return };
    submit_with_servers(&sandbox, "t", "$(command -v python3)", "--tls");
    // The server gets this from the master, and the workers get it from both servers.
    sandbox.await_text("runai describe job t", " samples/s; model of version ");
    let addresses = |pid: u32| environment(pid).expect("its variables").remove("MASTER_ADDR");
    let master = running(&sandbox, WORKER).into_values().find_map(addresses).expect("an address");
    let look = format!(
        "python3 -c \"import ssl; print(ssl.get_server_certificate(('{master}'.rsplit(':')[0], \
         int('{master}'.rsplit(':')[1]))))\""
    );
    let seen = sandbox.shell(&look);
    assert!(seen.text.contains("BEGIN CERTIFICATE"), "{}", seen.text);
    // A later worker has the same certificate.
    kill_pod(&sandbox, "elasticdl-t-worker-0", WORKER);
    let ended = "job t succeeded: 6000 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs t", ended);
}

#[test]
fn parameter_servers_have_pods_of_their_own_and_come_again_with_their_checkpoint() {
    let Some(sandbox) = with_zoo() else { return };
    submit_with_servers(&sandbox, "p", "$(command -v python3)", "");
    let servers = "elasticdl pods -l elasticdl_job_name=p,elasticdl-replica-type=ps --no-headers";
    sandbox.await_text(servers, "elasticdl-p-ps-0  ");
    sandbox.await_text(servers, "elasticdl-p-ps-1  ");
    assert_eq!(sandbox.shell(servers).text.lines().count(), 2);
    let first =
        "elasticdl pods -l elasticdl-replica-type=ps,elasticdl-replica-index=0 --no-headers";
    assert_eq!(sandbox.shell(first).text.lines().count(), 1);

    // A stopped job saves the parts of the model of both servers.
    await_second_epoch(&sandbox, "p");
    let stopped = sandbox.shell("runai suspend p");
    assert_eq!(stopped.code, Some(0), "{}", stopped.text);
    sandbox.await_text("elasticdl logs p", "stopped; the model is saved");
    sandbox.await_status("runai list jobs", "p", "Suspended");
    let again = sandbox.shell("runai resume p");
    assert_eq!(again.code, Some(0), "{}", again.text);
    // A killed server is replaced, with its part of the newest checkpoint; later records are
    // trained again, and count once.
    sandbox.await_text("elasticdl logs p", "epoch 2: ");
    kill_pod(&sandbox, "elasticdl-p-ps-1", SERVER);
    let ended = "job p succeeded: 6000 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs p", ended);
    let log = sandbox.shell("elasticdl logs p").text;
    assert!(log.contains(", 0 were lost with a worker, 0 failed"), "{log}");
    let table = sandbox.shell("elasticdl pods -l elasticdl_job_name=p").text;
    let restarts = |pod: &str| {
        let row = table.lines().find(|row| row.starts_with(&format!("{pod} ")));
        row.and_then(|row| row.split_whitespace().nth(3)?.parse::<u32>().ok())
    };
    // The first restart of the other server is the resume.
    let found = (restarts("elasticdl-p-ps-0"), restarts("elasticdl-p-ps-1"));
    assert_eq!(found, (Some(1), Some(2)), "{table}");
    let jobs = sandbox.shell("elasticdl jobs --no-headers").text;
    assert_eq!(jobs.split_whitespace().take(2).collect::<Vec<_>>(), ["p", "Completed"], "{jobs}");
}

#[test]
fn a_trained_model_is_measured_and_predicts() {
    let Some(sandbox) = with_zoo() else { return };
    let common = "--model_zoo=zoo --model_def=digits_numpy.custom_model --minibatch_size=10 \
                  --image_name=$(command -v python3) --worker_resource_request=cpu=1,memory=1024Mi";
    let submit = |line: &str| {
        let submitted = sandbox.shell(&format!("elasticdl {line} {common}"));
        assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    };
    submit(
        "train --job_name=t --training_data=$PWD/plain/train --num_epochs=3 --checkpoint_dir=$PWD/model",
    );
    sandbox.await_text("elasticdl logs t", "job t succeeded: 4500");

    let drawn =
        sandbox.shell("elasticdl plot t -o t.svg && cat t.svg; elasticdl plot none -o n.svg");
    assert_eq!(drawn.code, Some(1), "{}", drawn.text);
    for part in
        ["t is drawn in t.svg", ">loss</text>", "<polyline", "no job none in project default"]
    {
        assert!(drawn.text.contains(part), "{part}: {}", drawn.text);
    }

    let init = "--checkpoint_dir_for_init=$PWD/model";
    submit(&format!("evaluate --job_name=e --validation_data=$PWD/plain/test {init}"));
    sandbox.await_text("elasticdl logs e", "job e succeeded: 297");
    let log = sandbox.shell("elasticdl logs e").text;
    let accuracy = log.lines().find_map(|line| {
        line.strip_prefix("Evaluation: 297 records: accuracy ")?.parse::<f64>().ok()
    });
    assert!(accuracy.is_some_and(|accuracy| accuracy >= 0.92), "{log}");

    // A single checkpoint, as published.
    let one = "--checkpoint_dir_for_init=$(ls -d $PWD/model/version-* | tail -n 1)";
    submit(&format!("predict --job_name=p --prediction_data=$PWD/plain/test {one}"));
    sandbox.await_text("elasticdl logs p", "job p succeeded: 297");
    let outputs = sandbox.shell(
        "for pod in $(elasticdl pods -l elasticdl_job_name=p,elasticdl-replica-type=worker \
         --no-headers | cut -d' ' -f1); do elasticdl logs p --pod $pod; done",
    );
    let lines = outputs.text.lines().filter_map(|line| line.strip_prefix("predicted "));
    let predicted = lines.map(|line| line.split_whitespace().count()).sum::<usize>();
    assert_eq!(predicted, 297, "{}", outputs.text);

    // Without a model there is nothing to evaluate.
    sandbox.shell("mkdir -m 777 none");
    submit(
        "evaluate --job_name=n --validation_data=$PWD/plain/test --checkpoint_dir_for_init=$PWD/none",
    );
    let waited = sandbox.shell("elasticdl wait n");
    assert_eq!(waited.code, Some(1), "{}", waited.text);
}

#[test]
fn a_job_runs_without_a_server_and_ctrl_c_saves_its_model() {
    let Some(programs) = workers::programs() else { return };
    let sandbox = Sandbox::new().with_programs(&programs);
    let made = sandbox
        .shell(&format!("mkdir zoo && cp '{PLAIN}' zoo && python3 -m elastane.digits plain"));
    assert_eq!(made.code, Some(0), "{}", made.text);
    let common = "--model_zoo=zoo --model_def=digits_numpy.custom_model --minibatch_size=10 \
                  --training_data=plain/train --image_name=$(command -v python3) --num_workers=2";
    let trained =
        sandbox.shell(&format!("elasticdl local train --job_name=l --num_epochs=1 {common}"));
    assert_eq!(trained.code, Some(0), "{}", trained.text);
    assert!(
        trained.text.contains("job l succeeded: 1500 records (0 unreadable)"),
        "{}",
        trained.text
    );

    let stopped = sandbox.shell(&format!(
        "elasticdl local train --job_name=m --num_epochs=0 --checkpoint_dir=$PWD/model {common} \
         > out 2> err & pid=$!
         until grep -q 'checkpoint of version [1-9]' out; do kill -0 $pid || exit 9; sleep 0.1; done
         kill -INT $pid; wait $pid; code=$?; cat out; exit $code"
    ));
    assert_eq!(stopped.code, Some(143), "{}", stopped.text);
    let kept = "stopped; the model is in ";
    assert!(stopped.text.contains(kept), "{}", stopped.text);
    let ended = wait_until(|| running(&sandbox, WORKER).is_empty());
    assert!(ended, "{:?}", running(&sandbox, WORKER));
    // A later training continues from the saved model.
    let again = sandbox.shell(&format!(
        "elasticdl local train --job_name=n --num_epochs=1 --checkpoint_dir_for_init=$PWD/model {common}"
    ));
    assert!(again.text.contains("job n succeeded: 1500"), "{}", again.text);
}

#[test]
fn an_embedding_table_is_trained_and_goes_on_with_more_servers() {
    let Some(programs) = workers::programs() else { return };
    let sandbox = Sandbox::new().with_programs(&programs);
    let made = sandbox.shell(&format!(
        "mkdir zoo && cp '{EMBEDDING}' '{PLAIN}' zoo && python3 -m elastane.digits plain"
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    let common = "--model_zoo=zoo --model_def=digits_embedding.custom_model --minibatch_size=10 \
                  --training_data=plain/train --image_name=$(command -v python3) --num_workers=2";
    let first = sandbox.shell(&format!(
        "elasticdl local train --job_name=a --num_epochs=2 --num_ps_pods=2 --grads_to_wait=2 \
         --checkpoint_dir=$PWD/model {common}"
    ));
    assert!(first.text.contains("job a succeeded: 3000"), "{}", first.text);
    assert!(first.text.contains(" embedding rows, "), "{}", first.text);
    let second = sandbox.shell(&format!(
        "elasticdl local train --job_name=b --num_epochs=2 --num_ps_pods=3 --use_async \
         --staleness_max=4 --checkpoint_dir_for_init=$PWD/model --output=$PWD/out \
         --validation_data=plain/test --evaluation_steps=300 {common} \
         && python3 -c \"import numpy; print('rows', len(numpy.load('out/model.npz')['words/ids']))\""
    ));
    assert!(second.text.contains("job b succeeded: 3000"), "{}", second.text);
    assert!(second.text.contains(", 0 rejected as too old"), "{}", second.text);
    let measured = second
        .text
        .lines()
        .filter_map(|line| line.split_once("297 records: accuracy ")?.1.trim().parse::<f64>().ok());
    let best = measured.fold(0.0, f64::max);
    assert!(best >= 0.9, "{}", second.text);
    // Rows exist only for keys that occur, of 64 pixels with 17 shades each.
    let rows = second.text.lines().find_map(|line| line.strip_prefix("rows ")?.parse().ok());
    assert!(rows.is_some_and(|rows: u32| (500..=1088).contains(&rows)), "{}", second.text);
}

#[test]
fn gradients_that_are_too_old_are_rejected_where_a_job_says_so() {
    let Some(sandbox) = with_zoo() else { return };
    let submitted = sandbox.shell(
        "elasticdl train --job_name=r --model_zoo=zoo --model_def=digits_numpy.custom_model \
         --training_data=$PWD/plain/train --num_epochs=0 --minibatch_size=10 --num_workers=2 \
         --gradients=reject --image_name=$(command -v python3) \
         --worker_resource_request=cpu=1,memory=1024Mi",
    );
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    let both = "elasticdl-r-worker-0, elasticdl-r-worker-1";
    let trained = || sandbox.shell("elasticdl logs r").text.matches(both).count() >= 5;
    assert!(wait_until(trained), "{}", sandbox.shell("elasticdl logs r").text);
    let stopped = sandbox.shell("runai suspend r");
    assert_eq!(stopped.code, Some(0), "{}", stopped.text);
    sandbox.await_text("elasticdl logs r", "stopped; the model is saved");
    // Each gradient is an update, so the next one of the other worker is based on an old version.
    let log = sandbox.shell("elasticdl logs r").text;
    let counts = log.lines().find(|line| line.starts_with("gradients: "));
    let counts = counts.unwrap_or_else(|| panic!("{log}"));
    assert!(counts.contains(" accepted, ") && !counts.contains(", 0 rejected"), "{log}");
}

#[test]
fn a_python_without_the_workers_is_the_reason_that_people_see() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 1x0,cpu=8,memory=15GB");
    let made = sandbox.shell(&format!(
        "cp -r '{EXAMPLES}' . && chmod -R a+rX . && mkdir -p mnist/train && elastane project create \
         default && runai config project default"
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    // A Python without the packages: it has no folder of packages.
    let python = "#!/bin/sh\necho \"$0: No module named 'elastane'\" >&2; exit 1\n";
    let path = sandbox.home().join("bare-python");
    std::fs::write(&path, python).expect("written");
    let allowed = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, allowed).expect("changed");
    submit_with(&sandbox, "bare", MODEL, "./bare-python");
    let waited = sandbox.shell("elasticdl wait bare");
    let said = "bare-python: No module named 'elastane'";
    assert!(waited.code == Some(1) && waited.text.contains(said), "{}", waited.text);
    for line in ["elasticdl jobs", "elasticdl status bare", "runai explain bare"] {
        sandbox.await_text(line, said);
    }
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
        sandbox.await_text(line, said);
    }
    let waited = sandbox.shell("elasticdl wait wrong");
    assert!(waited.code == Some(1) && waited.text.contains(said), "{}", waited.text);
    let jobs = sandbox.shell("elasticdl jobs").text;
    assert!(jobs.contains("wrong has failed: ") && jobs.contains("`elasticdl status wrong`"));
    // A name is free again as soon as its job is deleted.
    let gone = sandbox.shell("elasticdl delete wrong");
    assert_eq!(gone.code, Some(0), "{}", gone.text);
    submit(&sandbox, "wrong", MODEL);
    sandbox.await_text("elasticdl logs wrong", "job wrong succeeded: 4500");
}
