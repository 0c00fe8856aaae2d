//! Conversion of a job to the request that submits it. Owns: the pods of a job, and their commands.
//! Does not know about: scheduling, and the programs of the master and the workers.

use api_types as wire;

use crate::job::{Job, PodResources};
use crate::parse::Form;
use crate::values::VolumeSource;

/// Seconds from SIGTERM to SIGKILL: time to finish a minibatch and to return tasks.
const GRACE_S: u64 = 30;
/// This program, which the server's engine mounts in the pods.
const PROGRAM: &str = "elasticdl";
/// Argument of this program in the pod of a master.
const MASTER_COMMAND: &str = "master";
/// Argument of this program in the pod of a parameter server.
const SERVER_COMMAND: &str = "ps";
/// Start order of the master: pods with a higher value are placed first, and evicted last.
const MASTER_FIRST: u32 = 2;

/// The creation request, in a project.
pub(crate) fn request(job: &Job, project: &wire::Project, line: &str) -> wire::CreationRequest {
    let pair = |(name, value): (&str, String)| wire::NameValue {
        name: name.to_owned(),
        value,
        exclude: None,
    };
    let (least, most) = (job.workers_min, job.workers);
    let workers = wire::WorkloadSpec {
        labels: Some(job.labels().into_iter().map(pair).collect()),
        priority_class: job.priority.clone(),
        preemptibility: Some(wire::Preemptibility::Preemptible),
        backoff_limit: Some(job.relaunches),
        distributed_framework: Some(wire::DistributedFramework::ElasticDL),
        num_workers: Some(most),
        min_replicas: least,
        max_replicas: least.map(|_| most),
        spare_priority_class: job.spare_priority.map(str::to_owned),
        pod_priority: Some(1),
        pod_names: Some(job.worker_names()),
        command_line: Some(line.to_owned()),
        command: Some(worker_command(job)),
        image: Some(job.worker_image.clone()).filter(|image| !image.is_empty()),
        ..pod(job, job.worker)
    };
    let master = wire::WorkloadSpec {
        pod_priority: Some(MASTER_FIRST),
        pod_names: Some(job.master_name()),
        command: Some(command(job, MASTER_COMMAND)),
        image: Some(job.image.clone()).filter(|image| !image.is_empty()),
        ..pod(job, job.master)
    };
    wire::CreationRequest {
        name: job.name.clone(),
        project_id: project.id.clone(),
        cluster_id: Some(project.cluster_id.clone()),
        spec: Some(workers),
        master_spec: Some(master),
        parameter_servers: job.servers.map(|(number, part)| wire::ParameterServers {
            number,
            pod_names: Some(job.server_names()),
            command: Some(command(job, SERVER_COMMAND)),
            compute: Some(compute(part)),
        }),
        ..wire::CreationRequest::default()
    }
}

/// Common part of all pods.
fn pod(job: &Job, part: PodResources) -> wire::WorkloadSpec {
    let variable = |(name, value): &(String, String)| wire::EnvironmentVariable {
        name: Some(name.clone()),
        value: Some(value.clone()),
        ..wire::EnvironmentVariable::default()
    };
    // By default, numpy and TensorFlow use all cores in each process, so that workers of one
    // machine would wait for each other.
    let threads = ("OMP_NUM_THREADS".to_owned(), "1".to_owned());
    let own = Some(&threads).filter(|(name, _)| job.variables.iter().all(|(own, _)| own != name));
    let variables = job.variables.iter().chain(own).map(variable);
    let variables: Vec<_> = variables.chain(login(job)).collect();
    wire::WorkloadSpec {
        compute: Some(compute(part)),
        environment_variables: Some(variables),
        storage: storage(job),
        termination_grace_period_seconds: Some(GRACE_S),
        image_pull_policy: job.pull_policy.as_deref().map(|policy| match policy {
            "Never" => wire::ImagePullPolicy::Never,
            "IfNotPresent" => wire::ImagePullPolicy::IfNotPresent,
            _ => wire::ImagePullPolicy::Always,
        }),
        ..wire::WorkloadSpec::default()
    }
}

/// Login for checkpoints in a bucket, in the variables that other programs read as well.
fn login(job: &Job) -> impl Iterator<Item = wire::EnvironmentVariable> {
    let values = [("AWS_ACCESS_KEY_ID", "AccessKeyId"), ("AWS_SECRET_ACCESS_KEY", "SecretKey")];
    let named = job
        .checkpoint_credential
        .iter()
        .flat_map(move |credential| values.map(|(name, key)| (name, credential.clone(), key)));
    named.map(|(name, credential, key)| wire::EnvironmentVariable {
        name: Some(name.to_owned()),
        secret: Some(wire::EnvironmentVariableSecret {
            name: Some(credential),
            key: Some(key.to_owned()),
        }),
        ..wire::EnvironmentVariable::default()
    })
}

fn compute(PodResources { request, limit }: PodResources) -> wire::Compute {
    // Bytes have no unit.
    let bytes = |bytes: u64| bytes.to_string();
    wire::Compute {
        gpu_devices_request: Some(request.gpus.unwrap_or(0).into()),
        cpu_core_request: request.cpu_millis.map(wire::number_from_millis),
        cpu_memory_request: request.memory_bytes.map(bytes),
        cpu_core_limit: limit.cpu_millis.map(wire::number_from_millis),
        cpu_memory_limit: limit.memory_bytes.map(bytes),
        ..wire::Compute::default()
    }
}

fn storage(job: &Job) -> Option<wire::Storage> {
    let mut storage = wire::Storage::default();
    for volume in &job.volumes {
        let to = Some(volume.mount_path.clone());
        match &volume.source {
            VolumeSource::Host(path) => {
                let from = format!("{path}/{}", volume.sub_path);
                storage.host_path.get_or_insert_default().push(wire::HostPathInstance {
                    path: Some(from.trim_end_matches('/').to_owned()),
                    mount_path: to,
                    read_only: Some(false),
                    ..wire::HostPathInstance::default()
                });
            }
            VolumeSource::Claim(name) => {
                storage.pvc.get_or_insert_default().push(wire::PvcInstance {
                    claim_name: Some(name.clone()),
                    path: to,
                    existing_pvc: Some(true),
                    ..wire::PvcInstance::default()
                });
            }
        }
    }
    (storage != wire::Storage::default()).then_some(storage)
}

fn worker_command(job: &Job) -> String {
    match &job.command {
        Some(line) => shell_words::join(["/bin/sh", "-c", line.as_str()]),
        None => shell_words::join([job.python.as_str(), "-m", "elastane.worker"]),
    }
}

/// Command of the master or a parameter server, which parse the flags of the job as typed.
fn command(job: &Job, part: &str) -> String {
    let form = match job.form {
        Form::Seed => "flat",
        other => other.command().unwrap_or_default(),
    };
    let own = [PROGRAM.to_owned(), part.to_owned(), form.to_owned()].into_iter();
    let name = format!("--job_name={}", job.name);
    let told = job.told.iter().map(|(flag, value)| format!("--{flag}={value}"));
    shell_words::join(own.chain([name]).chain(told))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::parse::{Invocation, parse};

    fn job(line: &str) -> Job {
        let words = std::iter::once("elasticdl").chain(line.split_whitespace());
        let argv: Vec<OsString> = words.map(OsString::from).collect();
        let Invocation::Job(form, values) = parse(&argv).expect(line).asked else {
            panic!("{line} is no job");
        };
        Job::new(form, &values, Path::new(env!("CARGO_MANIFEST_DIR"))).expect(line)
    }

    #[test]
    fn all_pods_have_the_login_of_a_bucket_and_the_master_does_not_read_its_name() {
        let line = "train --job_name=j --model_zoo=src --model_def=m.f --training_data=/d \
                    --checkpoint_dir=s3://bucket/job";
        let with = job(&format!("{line} --checkpoint_credential=mine"));
        let variables = pod(&with, with.worker).environment_variables.expect("variables");
        let secret = |name: &str, key: &str| wire::EnvironmentVariable {
            name: Some(name.to_owned()),
            secret: Some(wire::EnvironmentVariableSecret {
                name: Some("mine".to_owned()),
                key: Some(key.to_owned()),
            }),
            ..wire::EnvironmentVariable::default()
        };
        assert!(variables.contains(&secret("AWS_ACCESS_KEY_ID", "AccessKeyId")), "{variables:?}");
        assert!(variables.contains(&secret("AWS_SECRET_ACCESS_KEY", "SecretKey")));
        let told = command(&with, MASTER_COMMAND);
        assert!(
            told.contains("--checkpoint_dir=s3://bucket/job") && !told.contains("mine"),
            "{told}"
        );
        assert_eq!(login(&job(line)).count(), 0);
    }
}
