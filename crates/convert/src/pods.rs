//! The pods of a creation. Owns: which fields are allowed for which kind of workload, the values
//! that a master inherits from the workers, and the number of pods. A field without effect is
//! refused.

use api_types::{
    CleanPodPolicy, Compute, CreationRequest, DistributedFramework, MpiLauncherCreationPolicy,
    ParameterServers, WorkloadSpec as Wire,
};
use http_kit::ApiError;
use spec::{
    CleanPods, DistributedSpec, Framework, Group, MASTER, PARAMETER_SERVER, PodSet, WORKER,
    WorkloadKind,
};

use super::defaults::worker_range;
use super::pod_spec::pod;
use super::{pod_groups, positive};

/// Value of `sshAuthMountPath` that the published clients send by default. Nothing is mounted
/// there.
const SSH_PATH_DEFAULT: &str = concat!("/root", "/.ssh");

/// The first pod set, the others, and the distributed settings.
type Pods = (PodSet, Vec<PodSet>, Option<DistributedSpec>);

/// Refuses fields for other kinds of workload.
pub fn check_kind(kind: WorkloadKind, request: &CreationRequest) -> Result<(), ApiError> {
    let distributed = [
        ("masterSpec", request.master_spec.is_some()),
        ("masterSpecSameAsWorker", request.master_spec_same_as_worker.is_some()),
        ("parameterServers", request.parameter_servers.is_some()),
        ("podGroups", request.pod_groups.is_some()),
    ];
    if kind != WorkloadKind::Distributed {
        refuse("", &distributed, "distributed workloads")?;
    }
    for (at, spec) in [("spec.", &request.spec), ("masterSpec.", &request.master_spec)] {
        spec.as_ref().map_or(Ok(()), |spec| check_fields(kind, at, spec))?;
    }
    Ok(())
}

fn refuse(at: &str, fields: &[(&str, bool)], whose: &str) -> Result<(), ApiError> {
    fields.iter().find(|(_, given)| *given).map_or(Ok(()), |(field, _)| {
        Err(ApiError::field(
            &format!("{at}{field}"),
            format!("goes with {whose} only; leave it out"),
        ))
    })
}

fn check_fields(kind: WorkloadKind, at: &str, spec: &Wire) -> Result<(), ApiError> {
    let training =
        [("completions", spec.completions.is_some()), ("parallelism", spec.parallelism.is_some())];
    let distributed = [
        ("distributedFramework", spec.distributed_framework.is_some()),
        ("numWorkers", spec.num_workers.is_some()),
        ("podPriority", spec.pod_priority.is_some()),
        ("podNames", spec.pod_names.is_some()),
        ("minReplicas", spec.min_replicas.is_some()),
        ("maxReplicas", spec.max_replicas.is_some()),
        ("sparePriorityClass", spec.spare_priority_class.is_some()),
        ("cleanPodPolicy", spec.clean_pod_policy.is_some()),
        ("slotsPerWorker", spec.slots_per_worker.is_some()),
        ("mpiLauncherCreationPolicy", spec.mpi_launcher_creation_policy.is_some()),
        ("sshAuthMountPath", spec.ssh_auth_mount_path.is_some()),
    ];
    let inference = [
        ("autoscaling", spec.autoscaling.is_some()),
        ("servingPort", spec.serving_port.is_some()),
        ("servingConfiguration", spec.serving_configuration.is_some()),
        ("probes", spec.probes.as_ref().is_some_and(|probes| probes.readiness.is_some())),
    ];
    let others = [
        ("backoffLimit", spec.backoff_limit.is_some()),
        ("restartPolicy", spec.restart_policy.is_some()),
        ("elastic", spec.elastic == Some(true)),
        ("exposedUrls", spec.exposed_urls.is_some()),
        (
            "autoDeletionTimeAfterCompletionSeconds",
            spec.auto_deletion_time_after_completion_seconds.is_some(),
        ),
        ("preemptionDelaySeconds", spec.preemption_delay_seconds.is_some()),
        ("schedulingGates", spec.scheduling_gates.is_some()),
        ("stdin", spec.stdin == Some(true)),
        ("terminateAfterPreemption", spec.terminate_after_preemption == Some(true)),
        ("timeLimitSeconds", spec.time_limit_seconds.is_some()),
        ("tty", spec.tty == Some(true)),
    ];
    if kind != WorkloadKind::Training {
        refuse(at, &training, "trainings")?;
    }
    if kind != WorkloadKind::Distributed {
        refuse(at, &distributed, "distributed workloads")?;
    }
    if kind == WorkloadKind::Inference {
        refuse(at, &others, "workloads that end")
    } else {
        refuse(at, &inference, "inferences")
    }
}

pub(super) fn pods(kind: WorkloadKind, request: &CreationRequest) -> Result<Pods, ApiError> {
    let spec = request.spec.clone().unwrap_or_default();
    match kind {
        WorkloadKind::Workspace => Ok((PodSet::one(pod(kind, &spec)?), Vec::new(), None)),
        WorkloadKind::Training => Ok((runs(kind, &spec)?, Vec::new(), None)),
        WorkloadKind::Distributed => distributed(request, &spec),
        WorkloadKind::Inference => Ok((replica(kind, &spec)?, Vec::new(), None)),
    }
}

/// One replica, which is restarted after every end.
fn replica(kind: WorkloadKind, spec: &Wire) -> Result<PodSet, ApiError> {
    let one = PodSet::one(pod(kind, spec)?);
    Ok(PodSet { pod: spec::PodSpec { restart: spec::Restart::Always, ..one.pod }, ..one })
}

/// The independent pods of a training.
fn runs(kind: WorkloadKind, spec: &Wire) -> Result<PodSet, ApiError> {
    let one = PodSet::one(pod(kind, spec)?);
    if spec.completions.is_none() && spec.parallelism.is_none() {
        return Ok(one);
    }
    let parallelism = positive("spec.parallelism", spec.parallelism)?.unwrap_or(1);
    let pods = positive("spec.completions", spec.completions)?.unwrap_or(parallelism);
    if pods < parallelism {
        let why = format!("{pods} is less than the parallelism of {parallelism}");
        return Err(ApiError::field("spec.completions", why));
    }
    Ok(PodSet { pods, parallelism: Some(parallelism), ..one })
}

fn distributed(request: &CreationRequest, spec: &Wire) -> Result<Pods, ApiError> {
    let kind = WorkloadKind::Distributed;
    let framework = match spec.distributed_framework {
        Some(framework) => self::framework(framework),
        None => {
            let why = "must be set: MPI, PyTorch, TF, XGBoost, JAX, ElasticDL or LWS";
            return Err(ApiError::field("spec.distributedFramework", why));
        }
    };
    let together = together(framework, spec)?;
    let servers = match (&request.parameter_servers, framework) {
        (Some(servers), Framework::ElasticDl) => Some(parameter_servers(request, servers)?),
        (Some(_), _) => {
            let why = "goes with the framework ElasticDL only; leave it out";
            return Err(ApiError::field("parameterServers", why));
        }
        (None, _) => None,
    };
    if request.pod_groups.is_some() && framework != Framework::Lws {
        let why = "goes with the framework LWS only; leave it out";
        return Err(ApiError::field("podGroups", why));
    }
    if spec.ssh_auth_mount_path.as_ref().is_some_and(|path| path != SSH_PATH_DEFAULT) {
        return Err(ApiError::not_yet("spec.sshAuthMountPath"));
    }
    let (pods_min, pods) = workers(framework, spec)?;
    let worker =
        PodSet { role: WORKER.to_owned(), pods, pods_min, ..of_priority(spec, pod(kind, spec)?) };
    let master = match (&request.master_spec, request.master_spec_same_as_worker) {
        (Some(_), Some(true)) => {
            let why = "goes without masterSpecSameAsWorker; leave out one of them";
            return Err(ApiError::field("masterSpec", why));
        }
        (Some(_), _) => Some(pod_of_master(request)?),
        (None, Some(false)) => None,
        (None, _) => Some(worker.pod.clone()),
    };
    let Some(master) = master else {
        let needed = match framework {
            Framework::Mpi => Some("an MPI workload needs a launcher"),
            Framework::ElasticDl => Some("an elastic training needs a master"),
            Framework::Lws => Some("a group needs a leader"),
            _ => None,
        };
        if let Some(why) = needed {
            let why = format!("{why}: give masterSpec, or set it to true");
            return Err(ApiError::field("masterSpecSameAsWorker", why));
        }
        return Ok((worker, Vec::new(), Some(together)));
    };
    let leads = request.master_spec.as_ref().unwrap_or(spec);
    let master = PodSet { role: MASTER.to_owned(), ..of_priority(leads, master) };
    if framework == Framework::Lws {
        let (first, more) = pod_groups::sets(request, &master, &worker)?;
        return Ok((first, more, Some(together)));
    }
    Ok((master, servers.into_iter().chain([worker]).collect(), Some(together)))
}

fn parameter_servers(
    request: &CreationRequest,
    servers: &ParameterServers,
) -> Result<PodSet, ApiError> {
    let number = positive("parameterServers.number", Some(servers.number))?.unwrap_or(1);
    let alike = with_servers_as_master(request, servers);
    let pod = pod_of_master(&alike).map_err(of_the_servers)?;
    let own = alike.master_spec.unwrap_or_default();
    let role = PARAMETER_SERVER.to_owned();
    Ok(PodSet { role, pods: number, pods_min: number, ..of_priority(&own, pod) })
}

/// The request with the parameter servers in place of the master: values that they do not have are
/// the master's.
#[must_use]
pub fn with_servers_as_master(
    request: &CreationRequest,
    servers: &ParameterServers,
) -> CreationRequest {
    let master = request.master_spec.clone().or_else(|| request.spec.clone()).unwrap_or_default();
    let own = Wire {
        pod_names: servers.pod_names.clone(),
        command: servers.command.clone().or(master.command),
        compute: servers.compute.clone().or(master.compute),
        ..master
    };
    let (master_spec, master_spec_same_as_worker) = (Some(own), None);
    CreationRequest { master_spec, master_spec_same_as_worker, ..request.clone() }
}

/// An error about the master that stands for the parameter servers, with their field name.
#[must_use]
pub fn of_the_servers(error: ApiError) -> ApiError {
    error.moved("masterSpec", "parameterServers")
}

/// A pod set of one pod with the start order and the names of a specification.
fn of_priority(spec: &Wire, pod: spec::PodSpec) -> PodSet {
    PodSet {
        pod_priority: spec.pod_priority.unwrap_or_default(),
        pod_names: spec.pod_names.clone(),
        ..PodSet::one(pod)
    }
}

const fn framework(wire: DistributedFramework) -> Framework {
    match wire {
        DistributedFramework::MPI => Framework::Mpi,
        DistributedFramework::PyTorch => Framework::PyTorch,
        DistributedFramework::TF => Framework::Tf,
        DistributedFramework::XGBoost => Framework::XgBoost,
        DistributedFramework::JAX => Framework::Jax,
        DistributedFramework::ElasticDL => Framework::ElasticDl,
        DistributedFramework::LWS => Framework::Lws,
    }
}

fn together(framework: Framework, spec: &Wire) -> Result<DistributedSpec, ApiError> {
    let mpi = framework == Framework::Mpi;
    let slots = positive("spec.slotsPerWorker", spec.slots_per_worker)?;
    let launcher = spec.mpi_launcher_creation_policy;
    for (field, given) in [
        // The published clients send the defaults of both with every framework.
        ("spec.slotsPerWorker", slots.is_some_and(|slots| slots != 1)),
        (
            "spec.mpiLauncherCreationPolicy",
            launcher == Some(MpiLauncherCreationPolicy::WaitForWorkersReady),
        ),
    ] {
        if given && !mpi {
            return Err(ApiError::field(field, "goes with the framework MPI only; leave it out"));
        }
    }
    Ok(DistributedSpec {
        framework,
        slots_per_worker: slots.unwrap_or(1),
        first_waits: launcher == Some(MpiLauncherCreationPolicy::WaitForWorkersReady),
        clean: match spec.clean_pod_policy {
            None | Some(CleanPodPolicy::Running) => CleanPods::Running,
            Some(CleanPodPolicy::All) => CleanPods::All,
            Some(CleanPodPolicy::None) => CleanPods::None,
        },
    })
}

/// Minimum and maximum number of workers.
fn workers(framework: Framework, spec: &Wire) -> Result<(u32, u32), ApiError> {
    let number = positive("spec.numWorkers", spec.num_workers)?;
    let (min, max) = (
        positive("spec.minReplicas", spec.min_replicas)?,
        positive("spec.maxReplicas", spec.max_replicas)?,
    );
    let may_vary = matches!(framework, Framework::PyTorch | Framework::ElasticDl);
    if !may_vary && (min.is_some() || max.is_some()) {
        let field = if min.is_some() { "spec.minReplicas" } else { "spec.maxReplicas" };
        let why = "goes with the framework PyTorch or ElasticDL only; leave it out";
        return Err(ApiError::field(field, why));
    }
    if framework == Framework::ElasticDl && min.is_none() {
        return Ok((1, max.or(number).unwrap_or(1)));
    }
    let (least, most) = worker_range(spec);
    if least > most {
        let why = format!("{least} workers at least are more than the {most} at most");
        return Err(ApiError::field("spec.minReplicas", why));
    }
    if let Some(number) = number.filter(|number| !(least..=most).contains(number)) {
        let why = format!("{number} is not within minReplicas and maxReplicas, {least} to {most}");
        return Err(ApiError::field("spec.numWorkers", why));
    }
    Ok((least, most))
}

/// The groups of its pod sets, and the minimum number of parts (groups or pod sets), if it can run
/// without the others: one group; for an elastic training without a minimum number of workers, the
/// master and the parameter servers, which are placed first and wait for workers.
pub(super) fn parts(request: &CreationRequest) -> Result<(Vec<Group>, Option<u32>), ApiError> {
    let Some(spec) = &request.spec else { return Ok((Vec::new(), None)) };
    match spec.distributed_framework {
        Some(DistributedFramework::LWS) => pod_groups::tree(request),
        Some(DistributedFramework::ElasticDL) if spec.min_replicas.is_none() => {
            Ok((Vec::new(), Some(1 + u32::from(request.parameter_servers.is_some()))))
        }
        _ => Ok((Vec::new(), None)),
    }
}

fn pod_of_master(request: &CreationRequest) -> Result<spec::PodSpec, ApiError> {
    let mut request = request.clone();
    fill_master(&mut request)?;
    let own = request.master_spec.unwrap_or_default();
    pod(WorkloadKind::Distributed, &own).map_err(of_the_master)
}

/// An error about the master's specification, with its field name.
pub fn of_the_master(error: ApiError) -> ApiError {
    error.moved("spec", "masterSpec")
}

/// Fills in missing values of the master from the workers. Values of the whole workload have to be
/// in `spec`.
pub fn fill_master(request: &mut CreationRequest) -> Result<(), ApiError> {
    let (Some(master), Some(spec)) = (&mut request.master_spec, &request.spec) else {
        return Ok(());
    };
    macro_rules! of_the_whole {
        ($($field:ident $name:literal),*) => {
            [$((concat!("masterSpec.", $name),
                master.$field.is_some() && master.$field != spec.$field)),*]
        };
    }
    let whole = of_the_whole!(
        priority_class "priorityClass", preemptibility "preemptibility",
        backoff_limit "backoffLimit", exposed_urls "exposedUrls", related_urls "relatedUrls",
        labels "labels", annotations "annotations",
        category "category", elastic "elastic", command_line "commandLine", assets "assets",
        completions "completions", parallelism "parallelism",
        distributed_framework "distributedFramework", num_workers "numWorkers",
        min_replicas "minReplicas", max_replicas "maxReplicas",
        spare_priority_class "sparePriorityClass",
        clean_pod_policy "cleanPodPolicy", slots_per_worker "slotsPerWorker",
        mpi_launcher_creation_policy "mpiLauncherCreationPolicy",
        ssh_auth_mount_path "sshAuthMountPath",
        auto_deletion_time_after_completion_seconds "autoDeletionTimeAfterCompletionSeconds",
        terminate_after_preemption "terminateAfterPreemption",
        scheduling_gates "schedulingGates", preemption_delay_seconds "preemptionDelaySeconds",
        time_limit_seconds "timeLimitSeconds"
    );
    if let Some((field, _)) = whole.iter().find(|(_, other)| *other) {
        let why = "is one for the whole workload; set it with the workers and leave it out here";
        return Err(ApiError::field(field, why));
    }
    if request.master_spec_is_whole {
        return Ok(());
    }
    let mut below = spec.clone();
    if let (Some(own), Some(inherited)) = (&master.compute, &mut below.compute)
        && asks_for_gpus(own)
    {
        // GPU requests are not inherited in part: the launcher of workers with shares may have no
        // GPU.
        *inherited = Compute {
            cpu_core_request: inherited.cpu_core_request.take(),
            cpu_memory_request: inherited.cpu_memory_request.take(),
            cpu_core_limit: inherited.cpu_core_limit.take(),
            cpu_memory_limit: inherited.cpu_memory_limit.take(),
            large_shm_request: inherited.large_shm_request,
            ..Compute::default()
        };
    }
    *master = std::mem::take(master).over(below);
    Ok(())
}

/// True if GPUs are requested, even 0.
fn asks_for_gpus(compute: &Compute) -> bool {
    compute.gpu_devices_request.is_some()
        || compute.gpu_request_type.is_some()
        || compute.gpu_portion_request.is_some()
        || compute.gpu_memory_request.is_some()
        || compute.extended_resources.is_some()
}
