//! Conversion of workloads to the typed form: the specification in the fields of a request.

use std::collections::BTreeMap;

use api_types::{
    AssetIds, CleanPodPolicy, Compute, ConfigMapInstance, DesiredPhase, DistributedFramework,
    EnvironmentVariable, EnvironmentVariableConfigMap, EnvironmentVariableSecret, GpuRequestType,
    MpiLauncherCreationPolicy, NameValue, ParameterServers, Preemptibility, RestartPolicy,
    SecretVolume, Storage, TypedWorkload, number_from_millis,
};
use spec::{
    CleanPods, Framework, GpuRequest, HOME_FOLDER, LEADER, MASTER, PARAMETER_SERVER, PodSet,
    PodSpec, Restart, SecretPlace, SecretUse, SharedGpus, UsedObject, WorkloadSpec,
};
use view::{Phase, WorkloadView};

use super::workload::{category, phase_name};
use super::{COMPUTE_ASSET, Context, ENVIRONMENT_ASSET, pods_shown, quantity};

/// Converts a training or workspace to the typed form.
pub fn typed(view: &WorkloadView, context: &Context) -> TypedWorkload {
    let master = view.spec.set_named(MASTER).or_else(|| view.spec.set_named(LEADER));
    let is_same = |set: &PodSet| {
        let workers = pods_shown(&view.spec);
        let shown = |set: &PodSet| (set.pod_priority, set.pod_names.clone());
        set.pod == workers.pod && shown(set) == shown(workers)
    };
    let own = |set: &PodSet| api_types::WorkloadSpec {
        pod_priority: priority_of(set),
        pod_names: set.pod_names.clone(),
        ..of_pod(&set.pod)
    };
    TypedWorkload {
        name: view.spec.name.clone(),
        requested_name: view.spec.name.clone(),
        workload_id: view.id.to_string(),
        project_id: view.project_id.to_string(),
        department_id: view.department_id.to_string(),
        cluster_id: context.cluster_id.clone(),
        created_by: view.spec.submitted_by.clone(),
        created_at: view.created_at.into(),
        deleted_at: view.deleted_at.map(Into::into),
        desired_phase: match view.phase {
            Phase::Stopping | Phase::Stopped => DesiredPhase::Stopped,
            Phase::Deleting => DesiredPhase::Deleted,
            _ => DesiredPhase::Running,
        },
        actual_phase: phase_name(view.phase).to_owned(),
        spec: asked_for(&view.spec),
        master_spec_same_as_worker: view.spec.distributed.map(|_| master.is_some_and(is_same)),
        master_spec: master.filter(|set| !is_same(set)).map(own),
        parameter_servers: view.spec.set_named(PARAMETER_SERVER).map(servers),
        pod_groups: super::pod_groups::to_wire(&view.spec),
        warnings: Vec::new(),
    }
}

fn servers(set: &PodSet) -> ParameterServers {
    let pod = of_pod(&set.pod);
    let (pod_names, command) = (set.pod_names.clone(), pod.command);
    ParameterServers { number: set.pods, pod_names, command, compute: pod.compute }
}

fn priority_of(set: &PodSet) -> Option<u32> {
    Some(set.pod_priority).filter(|priority| *priority > 0)
}

/// Converts a specification to the fields of a request.
pub fn asked_for(spec: &WorkloadSpec) -> api_types::WorkloadSpec {
    super::serving::shown(spec, specification(spec, pods_shown(spec)))
}

fn specification(spec: &WorkloadSpec, set: &PodSet) -> api_types::WorkloadSpec {
    // Workers whose job can run without them have no minimum.
    let range = spec.distributed.filter(|_| set.pods_min < set.pods && spec.children_min.is_none());
    api_types::WorkloadSpec {
        priority_class: Some(spec.priority.class.clone()),
        preemptibility: Some(if spec.preemptible {
            Preemptibility::Preemptible
        } else {
            Preemptibility::NonPreemptible
        }),
        backoff_limit: Some(spec.backoff_limit),
        labels: Some(pairs(&spec.labels)),
        annotations: Some(pairs(&spec.annotations)),
        category: Some(category(spec.kind).to_owned()),
        elastic: Some(spec.elastic),
        auto_deletion_time_after_completion_seconds: spec.delete_after_ms.map(|ms| ms / 1000),
        terminate_after_preemption: spec.delete_when_preempted.then_some(true),
        scheduling_gates: Some(spec.gates.clone()).filter(|gates| !gates.is_empty()),
        preemption_delay_seconds: Some(spec.preemption_delay_ms / 1000).filter(|s| *s > 0),
        time_limit_seconds: spec.time_limit_ms.map(|ms| ms / 1000),
        pod_priority: priority_of(set),
        pod_names: set.pod_names.clone(),
        command_line: spec.command_line.clone(),
        node_pools: Some(spec.node_pools.clone()).filter(|pools| !pools.is_empty()),
        node_type: match spec.node_types.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        },
        exposed_urls: super::urls::to_wire(&spec.urls),
        related_urls: super::urls::related_to_wire(&spec.related_urls),
        assets: ids_of(&spec.uses),
        completions: set.parallelism.map(|_| set.pods),
        parallelism: set.parallelism,
        distributed_framework: spec.distributed.map(|one| framework(one.framework)),
        num_workers: spec.distributed.map(|_| set.pods),
        min_replicas: range.map(|_| set.pods_min),
        max_replicas: range.map(|_| set.pods),
        spare_priority_class: spec.spare_priority.as_ref().map(|spare| spare.class.clone()),
        clean_pod_policy: spec.distributed.map(|one| match one.clean {
            CleanPods::Running => CleanPodPolicy::Running,
            CleanPods::All => CleanPodPolicy::All,
            CleanPods::None => CleanPodPolicy::None,
        }),
        slots_per_worker: spec.distributed.map(|one| one.slots_per_worker),
        mpi_launcher_creation_policy: spec
            .distributed
            .filter(|one| one.first_waits)
            .map(|_| MpiLauncherCreationPolicy::WaitForWorkersReady),
        ..of_pod(&set.pod)
    }
}

const fn framework(framework: Framework) -> DistributedFramework {
    match framework {
        Framework::PyTorch => DistributedFramework::PyTorch,
        Framework::Mpi => DistributedFramework::MPI,
        Framework::Tf => DistributedFramework::TF,
        Framework::XgBoost => DistributedFramework::XGBoost,
        Framework::Jax => DistributedFramework::JAX,
        Framework::ElasticDl => DistributedFramework::ElasticDL,
        Framework::Lws => DistributedFramework::LWS,
    }
}

/// Converts the specification of a pod to the fields of a request.
pub(super) fn of_pod(spec: &PodSpec) -> api_types::WorkloadSpec {
    // The variable of a home directory is set with it.
    let has_home = spec.container.mounts.iter().any(|mount| mount.to.as_os_str() == HOME_FOLDER);
    let asked =
        |(name, value): &(&String, &String)| !has_home || *name != "HOME" || *value != HOME_FOLDER;
    let variables = spec.env.iter().filter(asked).map(|(name, value)| EnvironmentVariable {
        name: Some(name.clone()),
        value: Some(value.clone()),
        ..EnvironmentVariable::default()
    });
    let secrets = spec.secrets.iter().filter_map(|secret| match secret.to.place()? {
        SecretPlace::File { .. } => None,
        SecretPlace::Variable(name) => {
            let (from, key) = (Some(secret.named.clone()), secret.key.clone());
            let mut told =
                EnvironmentVariable { name: Some(name.clone()), ..EnvironmentVariable::default() };
            match secret.config_map() {
                Some(_) => {
                    told.config_map = Some(EnvironmentVariableConfigMap { name: from, key });
                }
                None => told.secret = Some(EnvironmentVariableSecret { name: from, key }),
            }
            Some(told)
        }
    });
    let some = |words: &Vec<String>| (!words.is_empty()).then(|| shell_words::join(words));
    let mut told = api_types::WorkloadSpec {
        image: Some(spec.image.clone()).filter(|image| !image.is_empty()),
        command: spec.command.as_ref().and_then(some),
        args: some(&spec.args),
        compute: Some(compute(spec)),
        environment_variables: Some(variables.chain(secrets).collect()),
        working_dir: spec.working_dir.clone(),
        restart_policy: Some(match spec.restart {
            Restart::Never => RestartPolicy::Never,
            Restart::OnFailure => RestartPolicy::OnFailure,
            Restart::Always => RestartPolicy::Always,
        }),
        termination_grace_period_seconds: Some(spec.grace_ms / 1000),
        stdin: spec.stdin.then_some(true),
        tty: spec.tty.then_some(true),
        storage: storage(&spec.secrets),
        ..api_types::WorkloadSpec::default()
    };
    super::node_constraints::to_wire(&spec.place, &mut told);
    super::container_to_wire::to_wire(spec, &mut told);
    told
}

/// The credentials and config maps that are mounted as files.
fn storage(secrets: &[SecretUse]) -> Option<Storage> {
    let mut storage = Storage::default();
    for secret in secrets {
        let Some(SecretPlace::File { path, mode }) = secret.to.place() else { continue };
        let (from, mount_path) = (Some(secret.named.clone()), Some(path.display().to_string()));
        let default_mode = Some(format!("{mode:04o}"));
        match secret.config_map() {
            Some(_) => {
                storage.config_map_volume.get_or_insert_default().push(ConfigMapInstance {
                    config_map: from,
                    mount_path,
                    sub_path: secret.key.clone(),
                    default_mode,
                    ..ConfigMapInstance::default()
                });
            }
            None => storage.secret_volume.get_or_insert_default().push(SecretVolume {
                secret: from,
                mount_path,
                default_mode,
                ..SecretVolume::default()
            }),
        }
    }
    Some(storage).filter(|storage| *storage != Storage::default())
}

fn compute(spec: &PodSpec) -> Compute {
    let mut compute = Compute {
        cpu_core_request: Some(number_from_millis(spec.cpu_millis)),
        cpu_memory_request: Some(quantity(spec.memory_bytes)),
        ..Compute::default()
    };
    let devices = match spec.gpu {
        GpuRequest::Whole(devices) => devices,
        GpuRequest::Shared(SharedGpus { devices, compute: portion, memory }) => {
            if let Some(portion) = portion {
                compute.gpu_request_type = Some(GpuRequestType::Portion);
                compute.gpu_portion_request = Some(number_from_millis(portion.request));
                compute.gpu_portion_limit = portion.limit.map(number_from_millis);
            }
            if let Some(memory) = memory {
                compute.gpu_request_type = Some(GpuRequestType::Memory);
                compute.gpu_memory_request = Some(quantity(memory.request));
                compute.gpu_memory_limit = memory.limit.map(quantity);
            }
            devices
        }
        GpuRequest::Mig(instances) => {
            compute.extended_resources = Some(super::node_constraints::resources(&instances));
            return compute;
        }
    };
    compute.gpu_devices_request = Some(devices.into());
    compute
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<NameValue> {
    let pair = |(name, value): (&String, &String)| NameValue {
        name: name.clone(),
        value: value.clone(),
        exclude: None,
    };
    map.iter().map(pair).collect()
}

/// The assets among the objects from which a workload took values.
fn ids_of(uses: &[UsedObject]) -> Option<AssetIds> {
    let with = |kind: &str| {
        let mut ids = uses.iter().map(UsedObject::kind_and_id).filter(|(of, _)| *of == kind);
        ids.next().map(|(_, id)| id.to_owned())
    };
    let ids = AssetIds {
        environment: with(ENVIRONMENT_ASSET),
        compute: with(COMPUTE_ASSET),
        datasources: None,
    };
    Some(ids).filter(|ids| *ids != AssetIds::default())
}
