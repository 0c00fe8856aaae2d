//! The supported parts of manifests, in their Kubernetes form.

use std::collections::BTreeMap;

use api_types::{
    CleanPodPolicy, EnvironmentVariableConfigMap, EnvironmentVariableSecret, ImagePullPolicy,
    MpiLauncherCreationPolicy, NodeAffinityRequired, RestartPolicy, Toleration,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) metadata: Meta,
    pub(super) spec: Value,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) name: Option<String>,
    pub(super) generate_name: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Job {
    pub(super) parallelism: Option<u32>,
    pub(super) completions: Option<u32>,
    pub(super) completion_mode: Option<CompletionMode>,
    pub(super) backoff_limit: Option<u32>,
    pub(super) active_deadline_seconds: Option<u64>,
    pub(super) ttl_seconds_after_finished: Option<u64>,
    #[expect(dead_code, reason = "looked at in every manifest alike")]
    suspend: Option<bool>,
    pub(super) template: Template,
}

/// Numbering of a job's pods.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum CompletionMode {
    NonIndexed,
    Indexed,
}

/// A Deployment or a StatefulSet.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Replicated {
    pub(super) replicas: Option<u32>,
    #[expect(dead_code, reason = "looked at in every manifest alike")]
    suspend: Option<bool>,
    pub(super) template: Template,
}

/// Fields of a training operator other than its replicas.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Operator {
    #[serde(default)]
    pub(super) run_policy: RunPolicy,
    pub(super) slots_per_worker: Option<u32>,
    pub(super) nproc_per_node: Option<Amount>,
    pub(super) launcher_creation_policy: Option<MpiLauncherCreationPolicy>,
    #[serde(default)]
    pub(super) elastic_policy: ElasticPolicy,
    pub(super) active_deadline_seconds: Option<u64>,
    pub(super) backoff_limit: Option<u32>,
    pub(super) clean_pod_policy: Option<CleanPodPolicy>,
    pub(super) ttl_seconds_after_finished: Option<u64>,
    #[expect(dead_code, reason = "looked at in every manifest alike")]
    suspend: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunPolicy {
    pub(super) active_deadline_seconds: Option<u64>,
    pub(super) backoff_limit: Option<u32>,
    pub(super) clean_pod_policy: Option<CleanPodPolicy>,
    pub(super) ttl_seconds_after_finished: Option<u64>,
    pub(super) scheduling_policy: SchedulingPolicy,
    suspend: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SchedulingPolicy {
    pub(super) priority_class: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ElasticPolicy {
    pub(super) min_replicas: Option<u32>,
    pub(super) max_replicas: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Replicas {
    pub(super) replicas: Option<u32>,
    pub(super) restart_policy: Option<ReplicaRestart>,
    pub(super) template: Template,
}

/// Consequence of a failed pod of a training operator.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum ReplicaRestart {
    Always,
    OnFailure,
    /// The job has failed.
    Never,
    /// The job has failed if the exit code is less than 128.
    ExitCode,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Template {
    #[serde(default)]
    pub(super) metadata: Meta,
    pub(super) spec: Pod,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pod {
    pub(super) containers: Vec<Container>,
    pub(super) restart_policy: Option<RestartPolicy>,
    pub(super) termination_grace_period_seconds: Option<u64>,
    pub(super) active_deadline_seconds: Option<u64>,
    pub(super) priority_class_name: Option<String>,
    pub(super) node_name: Option<String>,
    #[serde(default)]
    pub(super) node_selector: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) affinity: Affinity,
    #[serde(default)]
    pub(super) tolerations: Vec<Toleration>,
    #[serde(default)]
    pub(super) scheduling_gates: Vec<Gate>,
    #[serde(default)]
    pub(super) volumes: Vec<Volume>,
    #[serde(default)]
    pub(super) security_context: SecurityContext,
    pub(super) host_network: Option<bool>,
    #[serde(rename = "hostIPC")]
    pub(super) host_ipc: Option<bool>,
    #[expect(dead_code, reason = "looked at in every manifest alike")]
    suspend: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Affinity {
    pub(super) node_affinity: NodeAffinity,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(super) required: NodeAffinityRequired,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gate {
    pub(super) name: String,
}

/// Security context of a pod or a container.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SecurityContext {
    pub(super) run_as_user: Option<i64>,
    pub(super) run_as_group: Option<i64>,
    pub(super) run_as_non_root: Option<bool>,
    pub(super) supplemental_groups: Vec<i64>,
    pub(super) seccomp_profile: SeccompProfile,
    pub(super) allow_privilege_escalation: Option<bool>,
    pub(super) privileged: Option<bool>,
    pub(super) read_only_root_filesystem: Option<bool>,
    pub(super) capabilities: Capabilities,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SeccompProfile {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Capabilities {
    pub(super) add: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Container {
    #[expect(dead_code, reason = "there is one, and nothing calls it by name")]
    name: Option<String>,
    pub(super) image: Option<String>,
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    pub(super) working_dir: Option<String>,
    pub(super) stdin: Option<bool>,
    pub(super) tty: Option<bool>,
    #[serde(default)]
    pub(super) env: Vec<Variable>,
    #[serde(default)]
    pub(super) resources: Resources,
    pub(super) image_pull_policy: Option<ImagePullPolicy>,
    #[serde(default)]
    pub(super) volume_mounts: Vec<VolumeMount>,
    #[serde(default)]
    pub(super) security_context: SecurityContext,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: Option<String>,
    #[serde(default)]
    pub(super) value_from: ValueFrom,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ValueFrom {
    pub(super) secret_key_ref: Option<EnvironmentVariableSecret>,
    pub(super) config_map_key_ref: Option<EnvironmentVariableConfigMap>,
}

/// A volume of a pod.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Volume {
    pub(super) name: String,
    pub(super) empty_dir: Option<EmptyDir>,
    pub(super) host_path: Option<HostPath>,
    pub(super) nfs: Option<Nfs>,
    pub(super) persistent_volume_claim: Option<Claim>,
    pub(super) config_map: Option<ConfigMap>,
    pub(super) secret: Option<Secret>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EmptyDir {
    pub(super) medium: Option<String>,
    pub(super) size_limit: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostPath {
    pub(super) path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Nfs {
    pub(super) server: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) read_only: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) claim_name: String,
    #[serde(default)]
    pub(super) read_only: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigMap {
    pub(super) name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Secret {
    pub(super) secret_name: String,
}

/// Mount of a volume in a container.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VolumeMount {
    pub(super) name: String,
    pub(super) mount_path: String,
    #[serde(default)]
    pub(super) read_only: bool,
    pub(super) sub_path: Option<String>,
    pub(super) mount_propagation: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Resources {
    pub(super) limits: BTreeMap<String, Amount>,
    pub(super) requests: BTreeMap<String, Amount>,
}

/// A number, or one with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Number(serde_json::Number),
    Text(String),
}

impl Amount {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}
