//! A job of its flags.

use std::ffi::OsString;

use super::*;
use crate::parse::{Invocation, parse};

fn job(line: &str) -> Result<Job, String> {
    let words = std::iter::once("elasticdl").chain(line.split_whitespace());
    let argv: Vec<OsString> = words.map(OsString::from).collect();
    let Invocation::Job(form, values) = parse(&argv).expect(line).asked else {
        panic!("{line} is no job");
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    Job::new(form, &values, folder).map_err(|error| error.to_string())
}

const SEED: &str = "--job_name=j --model_file=src/lib.rs --image_base=i --train_data_dir=/d \
                    --record_per_task=100 --num_epoch=1 --grads_to_wait=2 --minibatch_size=10";
const REDUCED: &str = "train --job_name=j --model_zoo=src --model_def=m.f --training_data=/d \
                       --distribution_strategy=AllreduceStrategy";
const TRAIN: &str = "train --job_name=j --model_zoo=src --model_def=m.f --training_data=/d";

#[test]
fn the_first_form_has_names_of_its_own() {
    let cores = "--worker_cpu_request=3000m --worker_cpu_limit=3000m";
    let job = job(&format!("{SEED} --num_worker=2 {cores}")).expect("job");
    assert_eq!(job.master_name(), "elasticdl-master-j");
    assert_eq!(job.worker_names(), "elasticdl-worker-j-{}");
    assert_eq!(job.worker.request.cpu_millis, Some(3000));
    assert_eq!((job.workers, job.workers_min, job.priority), (2, None, None));
    let model = job.told.iter().find(|(name, _)| *name == "model_file").expect("told");
    assert!(model.1.starts_with('/') && model.1.ends_with("/src/lib.rs"), "{}", model.1);
    // This flag marks a job of this program for its master.
    assert!(job.told.contains(&("bad_records_max", "0".to_owned())), "{:?}", job.told);
    let pods = ["cpu", "memory", "image", "priority"];
    assert!(job.told.iter().all(|(name, _)| pods.iter().all(|part| !name.contains(part))));
}

#[test]
fn the_final_form_has_others() {
    let job = job(&format!("{TRAIN} --namespace=runai-team-a --envs=A=1,B=2")).expect("job");
    assert_eq!(job.master_name(), "elasticdl-j-master");
    assert_eq!(job.worker_names(), "elasticdl-j-worker-{}");
    assert_eq!(job.project.as_deref(), Some("team-a"));
    assert_eq!(job.worker.limit, job.worker.request);
    assert_eq!(job.variables.len(), 2);
    assert!(job.told.contains(&("bad_records_max", "0".to_owned())), "{:?}", job.told);
}

#[test]
fn a_limit_below_its_request_names_both_flags() {
    for (line, told) in [
        (
            format!("{TRAIN} --worker_resource_limit=memory=1Gi"),
            "--worker_resource_limit=memory=1Gi: its memory is below the request, \
             --worker_resource_request=cpu=1,memory=4096Mi; raise the limit, or lower the request",
        ),
        (
            format!("{SEED} --num_worker=1 --worker_cpu_request=2000m"),
            "--worker_cpu_limit=1000m: its cpu is below the request, \
             --worker_cpu_request=2000m; raise the limit, or lower the request",
        ),
        (
            format!("{TRAIN} --num_ps_pods=1 --ps_resource_limit=cpu=0.5"),
            "--ps_resource_limit=cpu=0.5: its cpu is below the request, \
             --ps_resource_request=cpu=1,memory=4096Mi; raise the limit, or lower the request",
        ),
    ] {
        let Err(error) = job(&line) else { panic!("{line}") };
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn workers_of_high_priority_are_those_it_never_goes_on_without() {
    for (typed, class, spare, least) in [
        ("high=0.5", "high", Some("low"), Some(2)),
        ("0.5", "high", Some("low"), Some(3)),
        ("1", "high", None, Some(5)),
        ("0", "low", None, None),
        ("low-priority", "low-priority", None, None),
    ] {
        let line = format!("{TRAIN} --num_workers=5 --worker_pod_priority={typed}");
        let job = job(&line).expect(&line);
        let found = (job.priority.as_deref(), job.spare_priority, job.workers_min);
        assert_eq!(found, (Some(class), spare, least), "{typed}");
    }
}

#[test]
fn a_loop_of_its_own_needs_no_data_and_may_add_up_its_gradients() {
    let line = "train --job_name=j --distribution_strategy=AllreduceStrategy --num_workers=2 \
                --need_elasticdl_job_service=true --job_command=true";
    let job = job(line).expect("job");
    assert_eq!((job.command.as_deref(), job.servers), (Some("true"), None));
}

#[test]
fn an_interpreter_is_no_image() {
    let job = job(&SEED.replace("image_base=i", "image_base=/bin/sh --num_worker=1"));
    let job = job.expect("job");
    assert_eq!((job.image.as_str(), job.python.as_str()), ("", "/bin/sh"));
}

#[test]
fn what_makes_no_job_is_refused_by_the_name_of_the_flag() {
    let seed = format!("{SEED} --num_worker=1");
    for (line, said) in [
        (SEED.to_owned(), "--num_worker=0 cannot be had here"),
        (seed.replace("src/lib.rs", "nope.py"), "--model_file: nope.py is not there"),
        (seed.replace("image_base=i", "image_base=/nope"), "--image_base: /nope is not there"),
        (format!("{seed} --mount_path=/a"), "--mount_path goes with --volume_name"),
        (TRAIN.replace("--model_def=m.f", ""), "--model_def is missing"),
        (TRAIN.replace("--training_data=/d", ""), "--training_data is missing"),
        (format!("{TRAIN} --distribution_strategy=Local"), "use ParameterServerStrategy with"),
        (format!("{REDUCED} --num_ps_pods=1"), "--num_ps_pods=1 cannot be had here: with All"),
        (format!("{REDUCED} --use_async"), "--use_async=true cannot be had here: with All"),
        (format!("{REDUCED} --grads_to_wait=2"), "of the gradients of all workers; leave it out"),
        (format!("{REDUCED} --checkpoint_steps=9"), "add --checkpoint_dir, a folder that all"),
        (format!("{REDUCED} --sync_version_tolerance=2"), "no gradient is old; leave it out"),
        (format!("{REDUCED} --staleness_max=2"), "no gradient is old; leave it out"),
        (format!("{REDUCED} --relaunch_timeout_worker"), "wait for the slowest one, so all"),
        (format!("{TRAIN} --aux_params=relaunch=1"), "disable_relaunch is"),
        (
            format!("{TRAIN} --gradients=wait --sync_version_tolerance=1"),
            "leave --sync_version_tolerance out",
        ),
        (format!("{TRAIN} --gradients=reject --use_async"), "--use_async rejects none"),
        (format!("{TRAIN} --staleness_max=3"), "--staleness_max=3 cannot be had here"),
        (
            format!("{TRAIN} --use_async --staleness_max=3 --get_model_steps=2"),
            "waits for its turn before each minibatch",
        ),
        (
            format!("{TRAIN} --use_async --staleness_max=3 --gradients=reject --get_model_steps=5"),
            "own steps make its gradients older",
        ),
        (format!("{TRAIN} --volume=claim_name=c,mount_path=/c,sub_path=a"), "leave sub_path out"),
    ] {
        let error = job(&line).expect_err(&line);
        assert!(error.contains(said), "{line}: {error}");
    }
}
