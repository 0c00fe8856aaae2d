//! Elastic trainings in containers. Owns: an image with the worker program, made without a
//! registry, and the outcome of a training whose containers are killed. Does not know about: the
//! published tutorial (`walkthroughs`).

use std::collections::BTreeSet;
use std::path::Path;

use engine_docker::testing::{DockerServer, Image};

use crate::elastic_training::{EXAMPLES, MODEL, PLAIN};
use crate::elastic_training::{await_second_epoch, submit_with, submit_with_servers};
use crate::sandbox::{Sandbox, environment, every_process, kill, wait_until};
use crate::workers;

/// A machine whose workloads are containers, and the image: with Python and the workers, and with
/// the model and the digits at the paths that they have on the machine. `None` without Docker or
/// Python.
pub(crate) fn prepared() -> Option<(Sandbox, Image)> {
    let (daemon, programs) = (DockerServer::shared()?, workers::programs()?);
    let sandbox = Sandbox::with_docker(&daemon).with_programs(&programs);
    let made = sandbox.shell(&format!(
        "cp -r '{EXAMPLES}' . && python3 -m elastane.digits mnist --codec bytes && mkdir zoo \
         && cp '{PLAIN}' zoo && python3 -m elastane.digits plain"
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    let files = workers::archive(&programs, &sandbox.home());
    let path = format!("ENV PATH={}", programs.display());
    // Each test has an image name of its own, as tests run concurrently.
    let home = sandbox.home();
    let own = home.parent().and_then(Path::file_name).expect("a folder").to_string_lossy();
    // Podman gives imported images no other tag than this.
    let name = format!("{}:latest", own.to_lowercase());
    let image = Image::import(&daemon, &name, files, &[&path]);
    Some((sandbox, image))
}

/// Kills the main process of a pod's container.
fn kill_pod(pod: &str) {
    let is_its = |pid: u32| {
        let name = environment(pid).and_then(|all| all.get("POD_NAME").cloned());
        name.is_some_and(|name| name == pod)
    };
    let mut found = BTreeSet::new();
    let seen = wait_until(|| {
        found = every_process().into_iter().map(|one| one.pid).filter(|pid| is_its(*pid)).collect();
        !found.is_empty()
    });
    assert!(seen, "nothing of {pod} runs");
    found.into_iter().for_each(kill);
}

/// A server with a project, and the image.
fn served() -> Option<(Sandbox, Image)> {
    let (mut sandbox, image) = prepared()?;
    sandbox.start_server("elastane up --nodes 1x0,cpu=8,memory=15GB");
    let made = sandbox.shell("elastane project create default && runai config project default");
    assert_eq!(made.code, Some(0), "{}", made.text);
    Some((sandbox, image))
}

#[test]
fn a_killed_parameter_server_comes_again_where_the_others_look_for_it() {
    let Some((sandbox, image)) = served() else { return };
    submit_with_servers(&sandbox, "p", image.name(), "--tls");
    await_second_epoch(&sandbox, "p");
    kill_pod("elasticdl-p-ps-1");
    let ended = "job p succeeded: 6000 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs p", ended);
    let log = sandbox.shell("elasticdl logs p").text;
    assert!(log.contains(", 0 were lost with a worker, 0 failed"), "{log}");
    sandbox.shell("elastane down");
}

#[test]
fn workers_in_containers_add_up_their_gradients_and_one_that_is_killed_is_replaced() {
    let Some((sandbox, image)) = served() else { return };
    let made = sandbox.shell("mkdir -m 777 kept");
    assert_eq!(made.code, Some(0), "{}", made.text);
    let submitted = sandbox.shell(&format!(
        "elasticdl train --job_name=r --model_zoo=zoo --model_def=digits_numpy.custom_model \
         --training_data=$PWD/plain/train --num_epochs=30 --minibatch_size=10 --num_workers=2 --tls \
         --distribution_strategy=AllreduceStrategy --image_name={} --checkpoint_dir=$PWD/kept \
         --volume=host_path=$PWD/kept,mount_path=$PWD/kept --checkpoint_steps=20 \
         --worker_resource_request=cpu=1,memory=1024Mi",
        image.name()
    ));
    assert_eq!(submitted.code, Some(0), "{}", submitted.text);
    // They share a network, and reach each other there. The first to join has the first rank.
    let log_of = |number: u32| format!("elasticdl logs r --pod elasticdl-r-worker-{number}");
    let is_first = |number: &u32| sandbox.shell(&log_of(*number)).text.contains(": rank 0 of 2");
    let mut found = None;
    wait_until(|| {
        found = [0, 1].into_iter().find(is_first);
        found.is_some()
    });
    let Some(first) = found else { panic!("{}", sandbox.shell("elasticdl logs r").text) };
    sandbox.await_text(&log_of(1 - first), ": rank 1 of 2");
    await_second_epoch(&sandbox, "r");
    kill_pod(&format!("elasticdl-r-worker-{first}"));
    sandbox.await_text(&log_of(1 - first), ": rank 0 of 2");
    let ended = "job r succeeded: 45000 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs r", ended);
    let log = sandbox.shell("elasticdl logs r").text;
    assert!(log.contains(", 0 failed"), "{log}");
    let kept = sandbox.shell("ls kept").text;
    assert!(kept.contains("version-"), "{kept}");
    sandbox.shell("elastane down");
}

#[test]
fn a_training_goes_on_when_a_worker_is_killed_and_then_its_master() {
    let Some((sandbox, image)) = served() else { return };
    submit_with(&sandbox, "c", MODEL, image.name());
    sandbox.await_text("elasticdl logs c", "epoch 0: ");
    kill_pod("elasticdl-worker-c-0");
    sandbox.await_text("elasticdl pods", "elasticdl-worker-c-2");
    await_second_epoch(&sandbox, "c");
    // The new master has its journal and its checkpoint, and the name that the workers look up.
    kill_pod("elasticdl-master-c");
    let ended = "job c succeeded: 4500 records (0 unreadable) in ";
    sandbox.await_text("elasticdl logs c", ended);
    let log = sandbox.shell("elasticdl logs c").text;
    let own = log.lines().rfind(|line| line.starts_with("job c succeeded")).unwrap_or_default();
    let lost = [", 0 were lost", ", 1 were lost", ", 2 were lost"];
    assert!(lost.iter().any(|lost| own.contains(lost)), "it had two tasks at most: {own}");
    let jobs = sandbox.shell("elasticdl jobs --no-headers").text;
    assert_eq!(jobs.split_whitespace().take(2).collect::<Vec<_>>(), ["c", "Completed"], "{jobs}");
    sandbox.shell("elastane down");
}
