//! Reading workloads. Owns: the published `Workload` (one shape for all types) and the typed
//! resource (`Training1`, `Workspace1` and so on in the published interface).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::elastane_ext::WorkloadExtras;
use crate::scalar::{Millis, Time, is_default};
use crate::submit::{GpuRequestType, ParameterServers, PodGroups, WorkloadSpec};
use crate::topology::WorkloadTopology;

/// A workload of any type, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `Training`, `Workspace`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Tenant.
    pub tenant_id: u64,
    /// Cluster.
    pub cluster_id: String,
    /// Project, by id.
    pub project_id: String,
    /// Project, by name.
    pub project_name: String,
    /// Department, by id.
    pub department_id: String,
    /// Department, by name.
    pub department_name: String,
    /// Namespace.
    pub namespace: String,
    /// Origin: `CLI`, `Control-plane`, `Other`.
    pub source: String,
    /// `Build`, `Train`.
    pub category: String,
    /// Priority; higher goes first inside the project.
    pub priority: Option<u32>,
    /// The class the priority was given by.
    pub priority_class_name: String,
    /// True if it may be evicted for others.
    pub preemptible: bool,
    /// Its submitter.
    pub submitted_by: String,
    /// Time of its submission.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Time of its deletion; null until then.
    pub deleted_at: Option<Time>,
    /// Time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Phase (reference C.5).
    pub phase: String,
    /// Time at which it entered the phase.
    pub phase_updated_at: Time,
    /// Reason for the phase, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_message: Option<String>,
    /// `NonPreemptibleOverQuota` or `OverLimit`, when that is why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_reason: Option<String>,
    /// The nearest Kubernetes phase.
    pub k8s_phase: String,
    /// Time at which it entered the Kubernetes phase.
    pub k8s_phase_updated_at: Time,
    /// Conditions.
    pub conditions: Vec<WorkloadCondition>,
    /// Pods that run.
    pub running_pods: u64,
    /// Pods asked for.
    pub requested_pods: RequestedPods,
    /// Asked for, all pods together.
    pub workload_requested_resources: RequestResources,
    /// Asked for by each pod.
    pub pods_requested_resources: RequestResources,
    /// Held now.
    pub allocated_resources: AllocatedResources,
    /// Actions that it supports.
    pub actions_support: ActionsSupport,
    /// Pools asked for.
    pub requested_node_pools: Vec<String>,
    /// Pools it is in.
    pub current_node_pools: Vec<String>,
    /// Addresses at which it is reached, if it is an inference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// The ways to it: its ports that are reached from outside, and pages elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_connections: Vec<ExternalConnection>,
    /// Environments that it was made of, as they were named then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<UsedEnvironment>,
    /// Data sources that it was made of, as they were named then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasources: Vec<UsedDataSource>,
    /// Images.
    pub images: Vec<String>,
    /// Framework whose rules its pods follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed_framework: Option<String>,
    /// Environment. Rows of lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_variables: Option<std::collections::BTreeMap<String, String>>,
    /// Command, as one string. Rows of lists leave out one of more than 4 KiB, here and in the
    /// next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments, as one string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Topology constraints of its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<WorkloadTopology>,
    /// GPUs it holds, or holds a part of, that do not compute.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idle_gpus: u64,
    /// GPUs it holds that do not compute, parts as such.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idle_allocated_gpus: Millis,
    /// Our own additions (a free map in the published interface).
    #[serde(default)]
    pub additional_fields: WorkloadExtras,
    /// Seconds it has waited. These two are last, because they alone change by themselves.
    pub total_pending_time_seconds: u64,
    /// Seconds it has run.
    pub total_running_time_seconds: u64,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Condition1)]
pub struct WorkloadCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// One sentence.
    pub message: String,
    /// Reason, one word.
    pub reason: String,
    /// Time of its last transition.
    pub last_transition_time: Time,
}

/// An environment from which a workload took values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Environment1)]
pub struct UsedEnvironment {
    /// Id.
    pub id: String,
    /// Name at the submission.
    pub name: String,
}

/// A data source from which a workload took values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Datasource)]
pub struct UsedDataSource {
    /// Kind.
    #[serde(rename = "type")]
    pub kind: crate::AssetKind,
    /// Id.
    pub id: String,
    /// Name at the submission.
    pub name: String,
}

/// A way to a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Connection1)]
pub struct ExternalConnection {
    /// Name of the connection.
    pub name: String,
    /// Type of the tool behind it; `custom` if left out.
    pub tool_type: String,
    /// `ExternalUrl`, `NodePort`, `LoadBalancer`, or `RelatedUrl` for a page elsewhere.
    pub connection_type: String,
    /// Its address, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Authorization to open it, where that is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_type: Option<crate::ServingPortAccessAuthorizationTypeEnum>,
    /// These users and service accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorized_users: Option<Vec<String>>,
    /// The port in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_port: Option<u16>,
}

/// Pods asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestedPods {
    /// Number of pods that run at a time.
    pub number: u64,
    /// Fewest that it runs with, where that is fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Most that it runs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Most that run at a time, where pods take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u64>,
    /// Number of pods that are to end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<u64>,
}

/// Requested resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestResources {
    /// Set when a share of a GPU was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_request_type: Option<GpuRequestType>,
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<RequestCores>,
    /// GPU memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<RequestQuantity>,
    /// CPU cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<RequestCores>,
    /// Main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_memory: Option<RequestQuantity>,
}

/// A count asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestCores {
    /// Guaranteed.
    pub request: Millis,
}

/// A quantity asked for, such as `500M` or `1Gi`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestQuantity {
    /// Guaranteed.
    pub request: String,
}

/// Resources held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocatedResources {
    /// GPUs.
    pub gpu: Millis,
    /// GPU memory held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<String>,
    /// CPU cores.
    pub cpu: Millis,
    /// Main memory.
    pub cpu_memory: String,
}

/// Actions that a workload supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionsSupport {
    /// Delete it.
    pub delete: bool,
    /// Suspend and resume it.
    pub suspend: bool,
}

/// A page of workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadsPage {
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A workload as the routes of its type show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Training1)]
pub struct TypedWorkload {
    /// Name.
    pub name: String,
    /// Name asked for.
    pub requested_name: String,
    /// Id.
    pub workload_id: String,
    /// Project, by id.
    pub project_id: String,
    /// Department, by id.
    pub department_id: String,
    /// Cluster.
    pub cluster_id: String,
    /// Its submitter.
    pub created_by: String,
    /// Time of its submission.
    pub created_at: Time,
    /// Time of its deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Time>,
    /// Phase that the user wants.
    pub desired_phase: DesiredPhase,
    /// Current phase (reference C.5).
    pub actual_phase: String,
    /// Requested specification.
    pub spec: WorkloadSpec,
    /// True if the master of a distributed workload has the specification of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_spec_same_as_worker: Option<bool>,
    /// Specification of the master of a distributed workload, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_spec: Option<WorkloadSpec>,
    /// Our own, of elastic trainings: their parameter servers, if these have pods of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter_servers: Option<ParameterServers>,
    /// Our own, of workloads of groups: how many, and how they begin again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_groups: Option<PodGroups>,
    /// Our own, in the answer of a creation: reasons that it could not start on the nodes as they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Phase that the user wants for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum DesiredPhase {
    /// Running, or run to its end.
    Running,
    /// Suspended.
    Stopped,
    /// Gone.
    Deleted,
}

/// Body of `POST /api/v1/workloads/batch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadBatch {
    /// Ids of the workloads, each once.
    #[schema(max_items = 500)]
    pub ids: Vec<String>,
    /// Action on each of them.
    pub action: BatchAction,
}

/// Action on each workload of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BatchAction {
    /// Stop it for good.
    Delete,
    /// Stop it and keep it.
    Suspend,
    /// Queue it again.
    Resume,
}

/// Result of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchResponse {
    /// Id of the batch.
    pub id: String,
    /// Ids of those it was done with.
    pub succeeded: Vec<String>,
    /// The others.
    pub failed: Vec<BatchFailure>,
}

/// A workload of a batch for which the action failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchFailure {
    /// Id, as it was sent.
    pub id: String,
    /// The status it would have had alone.
    pub code: u16,
    /// One sentence.
    pub message: String,
}
