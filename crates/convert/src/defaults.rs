//! Defaults of a specification. Owns: their values, for the conversion and for policies, which
//! apply to the effective specification.

use api_types::{
    CleanPodPolicy, Compute, GpuRequestType, ImagePullPolicy, MpiLauncherCreationPolicy,
    PodAffinityType, PortServiceType, Preemptibility, RestartPolicy, TolerationOperator,
    WorkloadSpec,
};
use serde_json::Number;
use spec::{BACKOFF_LIMIT_DEFAULT, Priority, WorkloadKind};

use super::container::S3_SERVER_DEFAULT;

/// Default permissions of secret files.
pub const SECRET_MODE_DEFAULT: u32 = 0o600;
/// Default permissions of config map files, as in Kubernetes.
pub const CONFIG_MAP_MODE_DEFAULT: u32 = 0o644;

/// Default CPU request of a pod in cores (reference Z.9).
const CPU_CORES_DEFAULT: f64 = 0.1;
/// Default memory request of a pod.
const MEMORY_DEFAULT: (&str, u64) = ("100M", 100_000_000);
/// Default number of seconds from SIGTERM to SIGKILL, as in Kubernetes.
const GRACE_S_DEFAULT: u64 = 30;

/// A specification with its defaults filled in.
pub(crate) fn with_defaults(kind: WorkloadKind, spec: WorkloadSpec) -> WorkloadSpec {
    // An interactive workload keeps its place and is restarted (reference A.5).
    let (restart, backoff_limit) = match kind {
        WorkloadKind::Workspace => (RestartPolicy::OnFailure, 0),
        _ => (RestartPolicy::Never, BACKOFF_LIMIT_DEFAULT),
    };
    let priority_class = spec.priority_class.unwrap_or_else(|| Priority::default_of(kind).class);
    // An unknown class is refused where it is parsed.
    let preemptibility =
        Priority::named(&priority_class).ok().map(|class| match class.is_preemptible() {
            true => Preemptibility::Preemptible,
            false => Preemptibility::NonPreemptible,
        });
    WorkloadSpec {
        preemptibility: spec.preemptibility.or(preemptibility),
        priority_class: Some(priority_class),
        restart_policy: spec.restart_policy.or(Some(restart)),
        backoff_limit: spec.backoff_limit.or(Some(backoff_limit)),
        termination_grace_period_seconds: spec
            .termination_grace_period_seconds
            .or(Some(GRACE_S_DEFAULT)),
        elastic: spec.elastic.or(Some(false)),
        compute: Some(compute(spec.compute.unwrap_or_default())),
        ..spec
    }
}

/// Fills in default requests, reduced to the limits if these are lower.
fn compute(asked: Compute) -> Compute {
    let devices = u32::from(asked.gpu_request_type.is_some());
    let (memory, memory_bytes) = MEMORY_DEFAULT;
    let less = |limit: &String| units::parse_bytes(limit).is_ok_and(|limit| limit < memory_bytes);
    let memory = asked.cpu_memory_limit.clone().filter(less).unwrap_or_else(|| memory.to_owned());
    let cores = asked.cpu_core_limit.as_ref().and_then(Number::as_f64);
    let cores = cores.map_or(CPU_CORES_DEFAULT, |limit| limit.min(CPU_CORES_DEFAULT));
    Compute {
        gpu_devices_request: asked.gpu_devices_request.or_else(|| Some(devices.into())),
        cpu_core_request: asked.cpu_core_request.or_else(|| Number::from_f64(cores)),
        cpu_memory_request: asked.cpu_memory_request.or(Some(memory)),
        ..asked
    }
}

/// A specification with its defaults filled in, in the form that policies check: every value with a
/// default is set, a whole GPU is a portion of 1, and the number of pods is the maximum.
pub fn as_taken(kind: WorkloadKind, spec: WorkloadSpec) -> WorkloadSpec {
    let mut means = with_defaults(kind, spec);
    if let Some(compute) = &mut means.compute {
        let none = compute.gpu_devices_request.as_ref().is_some_and(|n| n.as_f64() == Some(0.0));
        if compute.gpu_request_type.is_none() && !none {
            compute.gpu_request_type = Some(GpuRequestType::Portion);
            compute.gpu_portion_request = Some(1.into());
        }
    }
    if let Some(affinity) = &mut means.pod_affinity {
        affinity.kind.get_or_insert(PodAffinityType::Required);
    }
    for toleration in means.tolerations.iter_mut().flatten() {
        toleration.operator.get_or_insert(TolerationOperator::Equal);
    }
    for volume in means.storage.iter_mut().flat_map(|all| &mut all.secret_volume).flatten() {
        volume.default_mode.get_or_insert_with(|| format!("{SECRET_MODE_DEFAULT:04o}"));
    }
    for volume in means.storage.iter_mut().flat_map(|all| &mut all.empty_dir_volume).flatten() {
        volume.medium.get_or_insert_default();
    }
    for volume in means.storage.iter_mut().flat_map(|all| &mut all.config_map_volume).flatten() {
        volume.default_mode.get_or_insert_with(|| format!("{CONFIG_MAP_MODE_DEFAULT:04o}"));
    }
    around(&mut means);
    if kind != WorkloadKind::Inference {
        means.terminate_after_preemption.get_or_insert(false);
    }
    match kind {
        WorkloadKind::Workspace => means,
        WorkloadKind::Inference => super::serving::with_defaults(means),
        WorkloadKind::Training => {
            let parallelism = means.parallelism.unwrap_or(1);
            let completions = means.completions.or(Some(parallelism));
            WorkloadSpec { parallelism: Some(parallelism), completions, ..means }
        }
        WorkloadKind::Distributed => {
            let (least, most) = worker_range(&means);
            WorkloadSpec {
                num_workers: Some(most),
                min_replicas: Some(least),
                max_replicas: Some(most),
                clean_pod_policy: means.clean_pod_policy.or(Some(CleanPodPolicy::Running)),
                slots_per_worker: means.slots_per_worker.or(Some(1)),
                mpi_launcher_creation_policy: means
                    .mpi_launcher_creation_policy
                    .or(Some(MpiLauncherCreationPolicy::AtStartup)),
                ..means
            }
        }
    }
}

/// Fills in the defaults of container options.
fn around(means: &mut WorkloadSpec) {
    means.image_pull_policy.get_or_insert(ImagePullPolicy::IfNotPresent);
    means.create_home_dir.get_or_insert(false);
    means.compute.get_or_insert_default().large_shm_request.get_or_insert(false);
    let security = means.security.get_or_insert_default();
    for right in [
        &mut security.privileged,
        &mut security.host_ipc,
        &mut security.host_network,
        &mut security.read_only_root_filesystem,
        &mut security.run_as_non_root,
    ] {
        right.get_or_insert(false);
    }
    for port in means.ports.iter_mut().flatten() {
        port.service_type.get_or_insert(PortServiceType::NodePort);
    }
    for url in means.exposed_urls.iter_mut().flatten() {
        url.authorization_type = Some(super::urls::authorization(url));
    }
    let Some(storage) = &mut means.storage else { return };
    for folder in storage.host_path.iter_mut().flatten() {
        folder.read_only.get_or_insert(true);
        folder.mount_propagation.get_or_insert_with(|| "None".to_owned());
    }
    for folder in storage.nfs.iter_mut().flatten() {
        folder.read_only.get_or_insert(true);
    }
    for bucket in storage.s3.iter_mut().flatten() {
        bucket.url.get_or_insert_with(|| S3_SERVER_DEFAULT.to_owned());
    }
    for volume in storage.pvc.iter_mut().flatten() {
        volume.read_only.get_or_insert(false);
        volume.ephemeral.get_or_insert(false);
        volume.existing_pvc.get_or_insert(false);
    }
}

/// Minimum and maximum number of workers of a distributed workload, not validated.
pub(super) fn worker_range(spec: &WorkloadSpec) -> (u32, u32) {
    let (number, min, max) = (spec.num_workers, spec.min_replicas, spec.max_replicas);
    let most = max.or(number).or(min).unwrap_or(1);
    let least = min.unwrap_or(if max.is_some() { number.unwrap_or(1) } else { most });
    (least, most)
}
