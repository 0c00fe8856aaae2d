//! Creating workloads. Owns: every published request field (`TrainingSpecSpec`,
//! `WorkspaceSpecSpec`, `DistributedSpecSpec`), so that a field which is known but has no effect
//! yet can be distinguished from a misspelled one ([`crate::Unsupported`]).

use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

mod inherit;

use crate::node_constraints::{ExtendedResource, NodeAffinityRequired, PodAffinity, Toleration};
use crate::optional::optional;
use crate::unsupported::with_unsupported;

/// Body of a creation, one shape for all kinds of workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreationRequest {
    /// Name, unique among the living workloads of the project.
    pub name: String,
    /// `true` if the given name is a prefix, to which the server appends `-` and five characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_given_name_as_prefix: Option<bool>,
    /// Id of the project, a string of digits.
    pub project_id: String,
    /// Id of the cluster; there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// A template, whose values count where the specification has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// Specification of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<WorkloadSpec>,
    /// True if the master of a distributed workload has the specification of the workers; the
    /// default unless `masterSpec` is given. `false` without `masterSpec` means that there is no
    /// master.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_spec_same_as_worker: Option<bool>,
    /// Specification of the master of a distributed workload. Values that are left out are those of
    /// the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_spec: Option<WorkloadSpec>,
    /// Our own, of distributed workloads of the framework ElasticDL: parameter servers in pods of
    /// their own. Without them the master holds the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter_servers: Option<ParameterServers>,
    /// Our own, of distributed workloads of the framework LWS: how many groups there are of a
    /// master, which leads, and workers. One if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_groups: Option<PodGroups>,
    /// True if `masterSpec` says all: what it leaves out is not as with the workers. So it is in
    /// manifests.
    #[serde(skip)]
    #[schema(ignore)]
    pub master_spec_is_whole: bool,
    /// Our own: true to refuse it (409) if it could not start on the nodes as they are now, even if
    /// all were free. Otherwise it is accepted, waits, and the answer has `warnings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// The parameter servers of an elastic training. Values that are left out are those of the master.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParameterServers {
    /// Number of servers; each has a part of the model, and the training needs all.
    pub number: u32,
    /// Name of their pods; `{}` is the number of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_names: Option<String>,
    /// Their command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Compute resources of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Compute>,
}

/// Groups of pods that begin, end and get their places each on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodGroups {
    /// Number of groups; each has a master and `numWorkers` workers, and the workload runs with one
    /// of them.
    pub number: u32,
    /// True if all pods of a group begin again, wherever there is room, when one of them has to; so
    /// it is if it is not said. Otherwise a pod begins again alone in its place, unless its
    /// `restartPolicy` is `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreate: Option<bool>,
}

/// Body of `POST /api/v1/workloads/trainings`.
pub type TrainingCreationRequest = CreationRequest;
/// Body of `POST /api/v1/workloads/workspaces`.
pub type WorkspaceCreationRequest = CreationRequest;
/// Body of `POST /api/v1/workloads/distributed`.
pub type DistributedCreationRequest = CreationRequest;

mod container;

pub use container::{
    ConfigMapInstance, EmptyDirInstance, ExposedUrl, GitInstance, HostPathInstance,
    ImagePullPolicy, ImagePullSecret, NfsInstance, Port, PortServiceType, PvcInstance, RelatedUrl,
    S3Instance, Security, Storage,
};

impl CreationRequest {
    /// The fields that ask for something this server does not do yet, by their full path.
    #[must_use]
    pub fn not_yet(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (at, spec) in [("spec", &self.spec), ("masterSpec", &self.master_spec)] {
            let later = spec.iter().flat_map(WorkloadSpec::all_not_yet);
            names.extend(later.map(|name| format!("{at}.{name}")));
        }
        let servers = self.parameter_servers.iter().flat_map(|servers| &servers.compute);
        let later = servers.flat_map(Compute::not_yet);
        names.extend(later.map(|name| format!("parameterServers.compute.{name}")));
        names
    }
}

impl WorkloadSpec {
    /// The fields that ask for something this server does not do yet, those inside others too.
    #[must_use]
    pub fn all_not_yet(&self) -> Vec<String> {
        let mut names: Vec<String> = self.not_yet().into_iter().map(str::to_owned).collect();
        let compute = self.compute.iter().flat_map(Compute::not_yet);
        names.extend(compute.map(|name| format!("compute.{name}")));
        let storage = self.storage.iter().flat_map(Storage::not_yet);
        names.extend(storage.map(|name| format!("storage.{name}")));
        for (at, variable) in self.environment_variables.iter().flatten().enumerate() {
            let fields = variable.not_yet().into_iter();
            names.extend(fields.map(|f| format!("environmentVariables[{at}].{f}")));
        }
        names
    }
}

/// Assets by id, whose values count where the specification has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssetIds {
    /// An environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// A compute resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<String>,
    /// Data sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datasources: Option<Vec<AssetIdRef>>,
}

/// An asset by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssetIdRef {
    /// Id.
    pub id: String,
    /// Kind of the asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<crate::AssetKind>,
}

with_unsupported! {
    /// Specification of a workload, for all kinds of workload; which fields go with which kind is
    /// checked at submission. Three fields are our own: `assets`, `elastic` and `commandLine`.
    pub struct WorkloadSpec {
        /// Image.
        pub image: String,
        /// Replaces the entrypoint; one string, split by the rules of the shell.
        pub command: String,
        /// Arguments; one string, split by the rules of the shell.
        pub args: String,
        /// Resources of each pod.
        pub compute: Compute,
        /// Environment.
        pub environment_variables: Vec<EnvironmentVariable>,
        /// Working directory.
        pub working_dir: String,
        /// A priority class by name.
        pub priority_class: String,
        /// Preemptibility: whether it may be evicted for others.
        pub preemptibility: Preemptibility,
        /// Maximum number of restarts of a failed pod.
        pub backoff_limit: u32,
        /// Restart policy, applied when the process ends.
        pub restart_policy: RestartPolicy,
        /// Seconds between SIGTERM and SIGKILL.
        pub termination_grace_period_seconds: u64,
        /// Number of replicas of an inference.
        pub autoscaling: crate::AutoScaling,
        /// Timeouts of an inference.
        pub serving_configuration: crate::ServingConfiguration,
        /// Port of an inference, and the authorization of its requests.
        pub serving_port: crate::ServingPort,
        /// Checks that a replica of an inference is ready.
        pub probes: crate::Probes,
        /// Kept and shown.
        pub labels: Vec<NameValue>,
        /// Kept and shown.
        pub annotations: Vec<NameValue>,
        /// Node pools by name, the best first; all pods go to one of them.
        pub node_pools: Vec<String>,
        /// Type of the node: a value of the label `run.ai/type`.
        pub node_type: String,
        /// `Build`, `Train` or `Deploy`; kept for display only.
        pub category: String,
        /// Storage in its file system.
        pub storage: Storage,
        /// Required labels of its nodes.
        pub node_affinity_required: NodeAffinityRequired,
        /// Affinity among its pods.
        pub pod_affinity: PodAffinity,
        /// Taints of nodes that do not matter.
        pub tolerations: Vec<Toleration>,
        /// Trainings: how many pods are to end well; `parallelism` if it is not said.
        pub completions: u32,
        /// Trainings: most pods that run at a time; 1 if it is not said.
        pub parallelism: u32,
        /// Distributed: by whose rules the pods work together.
        pub distributed_framework: DistributedFramework,
        /// Distributed: workers.
        pub num_workers: u32,
        /// Distributed, PyTorch: fewest workers it goes on with.
        pub min_replicas: u32,
        /// Distributed, PyTorch: most workers.
        pub max_replicas: u32,
        /// Our own, with `minReplicas`: the priority class of workers beyond these, if it is lower.
        pub spare_priority_class: String,
        /// Distributed: what happens to pods that run when the workload has ended.
        pub clean_pod_policy: CleanPodPolicy,
        /// Distributed, MPI: ranks in each worker.
        pub slots_per_worker: u32,
        /// Distributed, MPI: where keys would be; only the default, which clients send always.
        pub ssh_auth_mount_path: String,
        /// Distributed, MPI: when the launcher is started.
        pub mpi_launcher_creation_policy: MpiLauncherCreationPolicy,
        /// Pull policy of the image.
        pub image_pull_policy: ImagePullPolicy,
        /// Logins to registries. The image is pulled with the login for its registry.
        pub image_pull_secrets: Vec<ImagePullSecret>,
        /// Ports that are reached from outside.
        pub ports: Vec<Port>,
        /// Ports that are opened in a browser, each at an address of its own.
        pub exposed_urls: Vec<ExposedUrl>,
        /// Pages elsewhere that belong to it.
        pub related_urls: Vec<RelatedUrl>,
        /// User and rights.
        pub security: Security,
        /// True if there is a temporary home directory, `/home/runai-home`.
        pub create_home_dir: bool,
        /// True if standard input stays open for those who attach.
        pub stdin: bool,
        /// True if the main process has a terminal.
        pub tty: bool,
        /// Seconds after its end at which it is deleted; left out, it is kept.
        pub auto_deletion_time_after_completion_seconds: u64,
        /// True if it is deleted, and not queued again, when it is evicted for others.
        pub terminate_after_preemption: bool,
        /// Our own: the number of GPUs may be halved to fit and doubled to fill.
        pub elastic: bool,
        /// Our own: what holds it back. It is not considered before all of these are taken away.
        pub scheduling_gates: Vec<String>,
        /// Our own: minimum wait in seconds before others may be stopped for it.
        pub preemption_delay_seconds: u64,
        /// Our own: longest time in seconds that it may run at a time, where its project allows as
        /// much. It is suspended then, and the scheduler may count on it.
        pub time_limit_seconds: u64,
        /// Our own: of the master and the workers, those with a higher one get their places first.
        pub pod_priority: u32,
        /// Our own: what the pods are called; `{}` is the number of each.
        pub pod_names: String,
        /// Our own: the command line it was submitted with, for people.
        pub command_line: String,
        /// Our own: assets whose values count where there is none here.
        pub assets: AssetIds,
        ---
    }
}

with_unsupported! {
    /// Resources of each pod (`SupersetSpecAllOfCompute`). Numbers are read through their decimal
    /// text, exactly.
    pub struct Compute {
        /// Whole devices, or devices of which a share is asked.
        #[schema(value_type = Option<f64>)]
        pub gpu_devices_request: Number,
        /// Type of a share of a GPU: a portion, or an amount of memory.
        pub gpu_request_type: GpuRequestType,
        /// Share of each device, 0.001 to 1.
        #[schema(value_type = Option<f64>)]
        pub gpu_portion_request: Number,
        /// Most of each device that may be used while it is free; at least the request.
        #[schema(value_type = Option<f64>)]
        pub gpu_portion_limit: Number,
        /// Memory of each device, such as `8G`.
        pub gpu_memory_request: String,
        /// Most memory of each device that may be used while it is free; at least the request.
        pub gpu_memory_limit: String,
        /// CPU cores.
        #[schema(value_type = Option<f64>)]
        pub cpu_core_request: Number,
        /// Main memory, such as `500M`.
        pub cpu_memory_request: String,
        /// Most CPU cores it may use; at least what it asks for.
        #[schema(value_type = Option<f64>)]
        pub cpu_core_limit: Number,
        /// Most main memory it may use, such as `1G`; at least what it asks for.
        pub cpu_memory_limit: String,
        /// True if its shared memory may be as large as its memory.
        pub large_shm_request: bool,
        /// MIG instances: `nvidia.com/mig-1g.10gb`. They go without other GPUs.
        pub extended_resources: Vec<ExtendedResource>,
        ---
    }
}

with_unsupported! {
    /// A variable of the environment.
    pub struct EnvironmentVariable {
        /// Name.
        pub name: String,
        /// Value.
        pub value: String,
        /// Free text, kept for display only.
        pub description: String,
        /// Takes an inherited one away.
        pub exclude: bool,
        /// A value of a credential in place of one here.
        pub secret: EnvironmentVariableSecret,
        /// A value of a config map in place of one here.
        pub config_map: EnvironmentVariableConfigMap,
        ---
        pod_field_ref: "podFieldRef",
        user_credential: "userCredential",
    }
}

/// A value of a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvironmentVariableSecret {
    /// Name or id of a credential that the project can use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Key of its value; may be left out if it has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

optional! {
    /// A value of a config map.
    pub struct EnvironmentVariableConfigMap {
        /// Name of a config map of the project.
        pub name: String,
        /// Key of its value.
        pub key: String,
    }
}

/// A credential as files (`SecretInstance2`), one for each of its values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretVolume {
    /// Name among the volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Folder in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_path: Option<String>,
    /// Permissions of the files, such as `0400`; `0600` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<String>,
    /// Name or id of a credential that the project can use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Takes an inherited one away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<bool>,
}

/// A label or an annotation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameValue {
    /// Name.
    pub name: String,
    /// Value.
    #[serde(default)]
    pub value: String,
    /// Takes an inherited one away; without inheritance, this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<bool>,
}

/// Type of a request for a share of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuRequestType {
    /// A share of the device.
    Portion,
    /// An amount of its memory.
    Memory,
}

/// Preemptibility of a workload: whether it may be evicted for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preemptibility {
    /// It may; it may also go over quota.
    Preemptible,
    /// It may not; it stays within quota.
    NonPreemptible,
}

/// Framework of a distributed workload, whose rules its pods follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum DistributedFramework {
    /// MPI: a launcher starts ranks in the workers.
    MPI,
    /// PyTorch.
    PyTorch,
    /// TensorFlow.
    TF,
    /// XGBoost.
    XGBoost,
    /// JAX.
    JAX,
    /// Our own: a master hands out tasks, and workers come and go.
    ElasticDL,
    /// Our own: groups of a leader and workers, as a `LeaderWorkerSet` of Kubernetes has them.
    LWS,
}

/// Treatment of the pods of a distributed workload that still run when it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum CleanPodPolicy {
    /// They go on.
    None,
    /// They are stopped, and the output of all pods is deleted.
    All,
    /// They are stopped.
    Running,
}

/// Start time of the launcher of an MPI workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum MpiLauncherCreationPolicy {
    /// With the workers.
    AtStartup,
    /// After all workers run.
    WaitForWorkersReady,
}

/// Restart policy, applied when the main process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum RestartPolicy {
    /// Started again after any exit.
    Always,
    /// A failure is retried as a new run, up to the back-off limit.
    Never,
    /// Started again in place after a failure.
    OnFailure,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(spec: &str) -> Result<CreationRequest, serde_json::Error> {
        serde_json::from_str(&format!(
            r#"{{"name":"a1","projectId":"7","clusterId":"c","spec":{spec}}}"#
        ))
    }

    #[test]
    fn known_fields_without_effect_are_named() {
        let body = r#"{"image":"i","exposedUrls":[{}],"compute":{"gpuPortionLimit":1},
            "environmentVariables":[{"name":"A","podFieldRef":{"path":"p"}}],
            "storage":{"dataVolume":[{"id":"d"}]}}"#;
        let want = ["spec.storage.dataVolume", "spec.environmentVariables[0].podFieldRef"];
        assert_eq!(request(body).unwrap().not_yet(), want);
    }

    #[test]
    fn asking_for_nothing_is_fine() {
        let body = r#"{"ports":[],"tty":false,"security":{},"probes":null,
            "compute":{"largeShmRequest":false}}"#;
        assert!(request(body).unwrap().not_yet().is_empty());
    }

    #[test]
    fn a_misspelled_field_is_refused() {
        let fault = request(r#"{"compute":{"gpuDeviceRequest":1}}"#).unwrap_err().to_string();
        assert!(fault.contains("unknown field `gpuDeviceRequest`"), "{fault}");
    }

    #[test]
    fn own_values_go_over_inherited_ones() {
        let spec = |text: &str| request(text).unwrap().spec.unwrap();
        for (own, below, want) in [
            (r#"{"image":"a"}"#, r#"{"image":"b","args":"x"}"#, r#"{"image":"a","args":"x"}"#),
            (
                r#"{"compute":{"cpuCoreRequest":2}}"#,
                r#"{"compute":{"cpuCoreRequest":1,"gpuDevicesRequest":1}}"#,
                r#"{"compute":{"gpuDevicesRequest":1,"cpuCoreRequest":2}}"#,
            ),
            (
                r#"{"compute":{"gpuRequestType":"memory","gpuMemoryRequest":"8G"}}"#,
                r#"{"compute":{"gpuRequestType":"portion","gpuPortionRequest":0.5}}"#,
                r#"{"compute":{"gpuRequestType":"memory","gpuMemoryRequest":"8G"}}"#,
            ),
            (
                r#"{"environmentVariables":[{"name":"A","value":"1"}]}"#,
                r#"{"environmentVariables":[{"name":"A","value":"0"},{"name":"B","value":"2"}]}"#,
                r#"{"environmentVariables":[{"name":"B","value":"2"},{"name":"A","value":"1"}]}"#,
            ),
            (
                r#"{"assets":{"compute":"c"}}"#,
                r#"{"assets":{"compute":"d","environment":"e"}}"#,
                r#"{"assets":{"environment":"e","compute":"c"}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&spec(own).over(spec(below))).unwrap(), want);
        }
    }

    #[test]
    fn what_a_client_writes_is_what_the_server_reads() {
        let spec = WorkloadSpec {
            image: Some("ubuntu".into()),
            compute: Some(Compute {
                gpu_devices_request: Some(1.into()),
                gpu_request_type: Some(GpuRequestType::Portion),
                gpu_portion_request: Some(crate::number_from_millis(500)),
                ..Compute::default()
            }),
            preemptibility: Some(Preemptibility::NonPreemptible),
            restart_policy: Some(RestartPolicy::OnFailure),
            ..WorkloadSpec::default()
        };
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            text,
            r#"{"image":"ubuntu","compute":{"gpuDevicesRequest":1,"gpuRequestType":"portion","gpuPortionRequest":0.5},"preemptibility":"non-preemptible","restartPolicy":"OnFailure"}"#
        );
        assert_eq!(serde_json::from_str::<WorkloadSpec>(&text).unwrap(), spec);
    }
}
