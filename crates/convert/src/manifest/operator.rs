//! Conversion of jobs of training operators to distributed submissions. Owns: the location of their
//! replicas, the choice of the leader, and the consequence of a failure.

use std::collections::BTreeMap;

use api_types::{DistributedFramework, EnvironmentVariable, RestartPolicy, WorkloadSpec};
use http_kit::{ApiError, read_part};
use serde_json::Value;

use super::kinds::{Amount, Operator, ReplicaRestart, Replicas};
use super::pod::{of_the_whole, pod};
use super::screen::Screened;

/// Kinds of training operators, with the field of their replicas and the framework.
pub(super) const OPERATORS: [(&str, &str, DistributedFramework); 5] = [
    ("PyTorchJob", "pytorchReplicaSpecs", DistributedFramework::PyTorch),
    ("TFJob", "tfReplicaSpecs", DistributedFramework::TF),
    ("XGBoostJob", "xgbReplicaSpecs", DistributedFramework::XGBoost),
    ("MPIJob", "mpiReplicaSpecs", DistributedFramework::MPI),
    ("JAXJob", "jaxReplicaSpecs", DistributedFramework::JAX),
];
/// Names of replicas that lead the workers.
const LEADERS: [&str; 3] = ["Master", "Chief", "Launcher"];
const WORKER: &str = "Worker";
/// Variable of `torchrun` with the number of processes of a pod.
const PROCESSES: &str = "PET_NPROC_PER_NODE";
/// Version of MPIJob whose launcher is a Job, which is retried whatever its pods specify.
const MPI_OF_JOBS: &str = "v2beta1";

/// The workers of a training operator, and their leader.
pub(super) fn distributed(
    (version, kind): (&str, &str),
    mut spec: Value,
    screened: &mut Screened,
) -> Result<(WorkloadSpec, Option<WorkloadSpec>), ApiError> {
    let known = OPERATORS.iter().find(|(known, ..)| *known == kind).copied();
    let (_, field, framework) = known.ok_or_else(|| ApiError::field("manifest.kind", "unknown"))?;
    let at = format!("manifest.spec.{field}");
    let replicas = spec.as_object_mut().and_then(|spec| spec.remove(field));
    let replicas = replicas.ok_or_else(|| ApiError::field(&at, "is required"))?;
    let mut replicas: BTreeMap<String, Replicas> = read_part(&at, replicas)?;
    let rest: Operator = read_part("manifest.spec", spec)?;
    let is_job = framework == DistributedFramework::MPI && version == MPI_OF_JOBS;
    let ends = !is_job && ends_with_a_failure(&at, &replicas, screened);
    let leader = LEADERS.iter().find_map(|name| Some((*name, replicas.remove(*name)?)));
    let worker = replicas.remove(WORKER).filter(|worker| worker.replicas != Some(0));
    if let Some(other) = replicas.keys().next() {
        let why = format!("is not known; Worker, and one of {} are", LEADERS.join(", "));
        return Err(ApiError::field(&format!("{at}.{}", units::shown(other)), why));
    }
    let read = |name: &str, replicas| replica(&format!("{at}.{name}"), replicas);
    let (number, workers, master) = match (leader, worker) {
        (None, None) => {
            return Err(ApiError::field(&format!("{at}.{WORKER}"), "is required"));
        }
        (Some((name, leader)), _) if leader.replicas.unwrap_or(1) != 1 => {
            return Err(ApiError::field(&format!("{at}.{name}.replicas"), "must be 1"));
        }
        (Some(_), None) if framework == DistributedFramework::MPI => {
            return Err(ApiError::field(&format!("{at}.{WORKER}"), "is required"));
        }
        // A leader without workers is a single pod.
        (Some((name, leader)), None) => (1, read(name, leader)?, None),
        (None, Some(worker)) => (worker.replicas.unwrap_or(1), read(WORKER, worker)?, None),
        (Some((name, leader)), Some(worker)) => {
            let number = worker.replicas.unwrap_or(1);
            let (workers, leader) = of_the_whole(read(WORKER, worker)?, read(name, leader)?);
            (number, workers, Some(leader))
        }
    };
    let with_processes = |spec| with_processes(spec, rest.nproc_per_node.as_ref());
    let policy = rest.run_policy;
    let tries = policy.backoff_limit.or(rest.backoff_limit);
    let workers = with_processes(workers);
    let spec = WorkloadSpec {
        distributed_framework: Some(framework),
        num_workers: Some(number),
        min_replicas: rest.elastic_policy.min_replicas,
        max_replicas: rest.elastic_policy.max_replicas,
        slots_per_worker: rest.slots_per_worker,
        mpi_launcher_creation_policy: rest.launcher_creation_policy,
        clean_pod_policy: policy.clean_pod_policy.or(rest.clean_pod_policy),
        backoff_limit: if ends { Some(0) } else { tries },
        time_limit_seconds: policy
            .active_deadline_seconds
            .or(rest.active_deadline_seconds)
            .or(workers.time_limit_seconds),
        auto_deletion_time_after_completion_seconds: policy
            .ttl_seconds_after_finished
            .or(rest.ttl_seconds_after_finished),
        priority_class: policy.scheduling_policy.priority_class.or(workers.priority_class),
        ..workers
    };
    Ok((spec, master.map(with_processes)))
}

/// True if a failed pod ends the job, because of restart policy `Never`. There is one policy for
/// all pods here, so a different one is noted.
fn ends_with_a_failure(
    at: &str,
    replicas: &BTreeMap<String, Replicas>,
    screened: &mut Screened,
) -> bool {
    use ReplicaRestart::{Always, ExitCode, Never, OnFailure};
    let policy = |of: &Replicas| {
        let own = of.template.spec.restart_policy.map(|policy| match policy {
            RestartPolicy::Always => Always,
            RestartPolicy::OnFailure => OnFailure,
            RestartPolicy::Never => Never,
        });
        of.restart_policy.or(own)
    };
    let ends = replicas.values().any(|one| policy(one) == Some(Never));
    for (name, one) in replicas {
        let at = format!("{at}.{}.restartPolicy", units::shown(name));
        match policy(one) {
            Some(ExitCode) => {
                screened.note(&format!("{at} ExitCode (each failure is tried again)"));
            }
            Some(OnFailure | Always) if ends => {
                screened
                    .note(&format!("{at} (another replica says Never: a failure ends the job)"));
            }
            _ => {}
        }
    }
    ends
}

fn with_processes(mut spec: WorkloadSpec, processes: Option<&Amount>) -> WorkloadSpec {
    let all = spec.environment_variables.get_or_insert_default();
    if let Some(processes) = processes
        && !all.iter().any(|one| one.name.as_deref() == Some(PROCESSES))
    {
        all.push(EnvironmentVariable {
            name: Some(PROCESSES.to_owned()),
            value: Some(processes.text()),
            ..EnvironmentVariable::default()
        });
    }
    spec
}

fn replica(at: &str, replicas: Replicas) -> Result<WorkloadSpec, ApiError> {
    let own = replicas.restart_policy.map(|policy| match policy {
        ReplicaRestart::Always => RestartPolicy::Always,
        ReplicaRestart::OnFailure | ReplicaRestart::ExitCode => RestartPolicy::OnFailure,
        ReplicaRestart::Never => RestartPolicy::Never,
    });
    let spec = pod(&format!("{at}.template.spec"), replicas.template)?;
    Ok(WorkloadSpec { restart_policy: own.or(spec.restart_policy), ..spec })
}
