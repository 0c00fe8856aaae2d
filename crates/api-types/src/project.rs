//! Projects. Owns: the shape of the project object in responses, and its requests.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

use crate::Time;
use crate::scalar::Millis;

/// Body of `POST /api/v1/org-unit/projects`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectCreationRequest {
    /// Name, unique.
    pub name: String,
    /// Id of the cluster; there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Id of the department; left out means the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Accepted when it is what the server does anyway: `runai-<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_namespace: Option<String>,
    /// Accepted when true: everything goes through this scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforce_runai_scheduler: Option<bool>,
    /// One entry per node pool; those left out have no quota. A wrong name
    /// is refused before a missing list is.
    #[serde(default)]
    pub resources: Vec<ShareRequest>,
    /// Limits in time; they replace all that there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_rules: Option<SchedulingRules>,
    /// Node pools of workloads that name none, by name, the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_node_pools: Option<Vec<String>>,
    /// Nodes that workloads may go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_types: Option<NodeTypesPerWorkload>,
    /// Further namespaces of a Kubernetes cluster whose pods it is charged for; replaces all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

/// Body of `PUT /api/v1/org-unit/projects/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectUpdateRequest {
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Accepted when true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforce_runai_scheduler: Option<bool>,
    /// One entry per node pool; what they leave out gets its default. None at all keeps what there
    /// is.
    #[serde(default)]
    pub resources: Vec<ShareRequest>,
    /// Time limits; replaces all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_rules: Option<SchedulingRules>,
    /// Node pools of workloads that name none, by name, the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_node_pools: Option<Vec<String>>,
    /// Nodes that workloads may go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_types: Option<NodeTypesPerWorkload>,
    /// Further namespaces of a Kubernetes cluster whose pods it is charged for; replaces all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

/// `ResourcesNullable`: the shares of a project in one node pool. A field that is left out keeps
/// its value, or its default in a creation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShareRequest {
    /// The node pool; left out means the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_pool: Option<ResourcesNodePool>,
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<ResourceShare>,
    /// CPU, in thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<ResourceShare>,
    /// Main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ResourcesMemory>,
    /// The rank, as older clients call it; `Normal` is `MediumLow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Rank among siblings; a higher one is served first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
}

/// Rank among siblings: a higher one is served first when capacity that no quota claims is given
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "in rising order")]
pub enum Rank {
    VeryLow,
    Low,
    MediumLow,
    Medium,
    MediumHigh,
    High,
    VeryHigh,
}

/// A node pool, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcesNodePool {
    /// Id.
    pub id: String,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Quota, limit and weight of one resource; a limit of null or -1 is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceShare {
    /// Quota; -1 is unlimited (CPU and memory only).
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub deserved: Option<Number>,
    /// Most it may hold.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub limit: Option<Number>,
    /// Weight when left-over capacity is divided.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub over_quota_weight: Option<Number>,
    /// `true` in a change of a department: its quota is the sum of those of its projects again,
    /// until `deserved` sets another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deserved_from_projects: Option<bool>,
}

/// Quota, limit and weight of memory; a limit of null or -1 is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourcesMemory {
    /// Quota; -1 is unlimited.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub deserved: Option<Number>,
    /// Most it may hold.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub limit: Option<Number>,
    /// Weight when left-over capacity is divided.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub over_quota_weight: Option<Number>,
    /// As for the other resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deserved_from_projects: Option<bool>,
    /// Unit of the numbers.
    pub units: Units,
}

/// Units of memory quotas, spelled as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Units {
    /// Binary megabytes.
    Mib,
    /// Decimal megabytes.
    MB,
    /// Decimal gigabytes.
    GB,
}

impl Units {
    /// Bytes in one.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Mib => 1 << 20,
            Self::MB => 1_000_000,
            Self::GB => 1_000_000_000,
        }
    }
}

/// A project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Id, a string of digits.
    pub id: String,
    /// Name.
    pub name: String,
    /// Id of the cluster.
    pub cluster_id: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Id of the department.
    pub parent_id: String,
    /// The department.
    pub parent: Parent,
    /// Namespace asked for.
    pub requested_namespace: String,
    /// Always true.
    pub enforce_runai_scheduler: bool,
    /// Time of its creation.
    pub created_at: Time,
    /// Its creator.
    pub created_by: String,
    /// Time of the last change.
    pub updated_at: Time,
    /// User of the last change.
    pub updated_by: String,
    /// Status of the project.
    pub status: ProjectStatus,
    /// Quotas over all node pools.
    pub total_resources: TotalResources,
    /// Shares per node pool.
    pub resources: Vec<Resources>,
    /// Its own limits in time.
    pub scheduling_rules: SchedulingRules,
    /// Settings that apply after inheritance.
    pub effective: ProjectEffective,
    /// Its own node pools for workloads that name none.
    #[serde(default)]
    pub default_node_pools: Vec<String>,
    /// Its own types of nodes.
    #[serde(default)]
    pub node_types: NodeTypesPerWorkload,
    /// Further namespaces of a Kubernetes cluster, beside `<name>` and `runai-<name>`, whose pods it
    /// is charged for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// Types of nodes by kind of workload: values of the label `run.ai/type`. An empty list allows all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeTypesPerWorkload {
    /// For trainings.
    #[serde(default)]
    pub training: Vec<String>,
    /// For workspaces.
    #[serde(default)]
    pub workspace: Vec<String>,
    /// Display names of the types.
    #[serde(default)]
    pub names: std::collections::BTreeMap<String, String>,
}

/// Department of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parent {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}

/// Status of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectStatus {
    /// Namespace.
    pub namespace: String,
    /// `Ready`, ….
    pub phase: String,
    /// More about the phase: a quota that is above that of the department.
    pub phase_message: String,
    /// Time of this state.
    pub last_updated_time: Time,
    /// Use over all pools.
    pub quota_status: QuotaStatus,
    /// Use per pool.
    pub node_pool_quota_statuses: Vec<NodePoolQuota>,
    /// Our own numbers: `fairShare` with `gpu`, `cpu`, `memory`; and with fairness over time
    /// `usagePpm` with the same, its recent use in millionths of the cluster.
    pub additional_status_data: std::collections::BTreeMap<String, Value>,
}

/// Resources used and requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaStatus {
    /// Held now.
    pub allocated: QuotaResource,
    /// The part of it that cannot be preempted.
    pub allocated_non_preemptible: QuotaResource,
    /// Held and waited for.
    pub requested: QuotaResource,
}

/// Use in one node pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolQuota {
    /// Name of the pool.
    pub node_pool_name: String,
    /// Its id.
    pub node_pool_id: String,
    /// The numbers.
    #[serde(flatten)]
    pub quota: QuotaStatus,
}

/// Amounts: GPUs, CPU in thousandths of a core, memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaResource {
    /// GPUs.
    pub gpu: Millis,
    /// Thousandths of a core.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
}

/// Quotas over all node pools; CPU and memory are left out when unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TotalResources {
    /// GPUs.
    pub gpu_quota: Millis,
    /// Thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<u64>,
    /// Binary megabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_quota: Option<u64>,
}

/// Shares in one node pool, as read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// The pool.
    pub node_pool: ResourcesNodePool,
    /// GPUs.
    pub gpu: ResourceShare,
    /// CPU, thousandths of a core.
    pub cpu: ResourceShare,
    /// Memory.
    pub memory: ResourcesMemory,
    /// Rank among siblings; a higher one is served first.
    pub rank: Rank,
    /// The rank, under the name of older clients.
    pub priority: Rank,
}

/// Settings that apply after inheritance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectEffective {
    /// Limits in time.
    pub scheduling_rules: SchedulingRules,
    /// Pools tried, in order.
    pub default_node_pools: Vec<String>,
    /// Types of nodes.
    #[serde(default)]
    pub node_types: NodeTypesPerWorkload,
}

/// Limits in time, of 1 second or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SchedulingRules {
    /// Maximum run time of a workspace at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactive_job_time_limit_seconds: Option<u64>,
    /// Maximum run time of a training at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_time_limit_seconds: Option<u64>,
    /// Maximum time that all GPUs of a non-preemptible workspace are idle at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactive_job_max_idle_duration_seconds: Option<u64>,
    /// Maximum time that all GPUs of a preemptible workspace are idle at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactive_job_preempt_idle_duration_seconds: Option<u64>,
    /// Maximum time that all GPUs of a training are idle at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_max_idle_duration_seconds: Option<u64>,
}

/// A page of projects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProjectsPage {
    /// The projects.
    pub projects: Vec<Project>,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
