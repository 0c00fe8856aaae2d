//! The cluster and its nodes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::{Millis, Time};

/// A cluster. Lists of clusters are bare arrays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisplayedCluster {
    /// Id.
    pub uuid: String,
    /// Tenant.
    pub tenant_id: u64,
    /// Name.
    pub name: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Time of the last contact.
    pub last_liveness: Time,
    /// Version of the server.
    pub version: String,
    /// Status of the cluster.
    pub status: ClusterDisplayedStatus,
}

/// Body of `POST /api/v1/clusters`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterCreationRequest {
    /// Name.
    pub name: String,
    /// Domain at which it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Body of `PUT /api/v1/clusters/{uuid}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterUpdateRequest {
    /// The new name.
    pub name: String,
}

/// Instructions to install a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInstallationInfoResponse {
    /// Shell commands; a comment here, as there is nothing to install.
    pub installation_str: String,
    /// Empty: there is no chart.
    pub repository_name: String,
    /// Empty: there is no chart.
    #[serde(rename = "chartRepoURL")]
    pub chart_repo_url: String,
    /// Empty: there is no secret.
    pub client_secret: String,
}

/// Status of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterDisplayedStatus {
    /// `Connected`: the server is the cluster.
    pub state: String,
    /// Our own: platform that runs the pods.
    #[serde(default)]
    pub platform: NodePlatform,
}

/// Platform that runs the pods; empty unless it is Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlatform {
    /// Version of Kubernetes, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_version: Option<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Id; the name, nodes are known by it.
    pub id: String,
    /// Name.
    pub name: String,
    /// `Ready`, `NotReady`, `Unknown`; with `,SchedulingDisabled` when it is cordoned or drained.
    pub status: String,
    /// Conditions: `Ready`, and one for each GPU that is out of service.
    #[serde(default)]
    pub conditions: Vec<NodeStatusConditionDetails>,
    /// Name of its pool.
    pub node_pool: String,
    /// Cluster.
    pub cluster_uuid: String,
    /// Time at which it was added.
    pub created_at: Time,
    /// Time of this state.
    pub updated_at: Time,
    /// Its GPUs; left out when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_info: Option<GpuInfo>,
    /// Our own: true if its GPUs are simulated.
    #[serde(default)]
    pub simulated: bool,
    /// Our own: memory of each GPU, bytes.
    #[serde(default)]
    pub gpu_memory_bytes: Vec<u64>,
    /// Our own: use of each GPU, 0 to 1.
    #[serde(default)]
    pub gpu_used: Vec<Millis>,
    /// Our own: thousandths of a core, all and in use.
    #[serde(default)]
    pub cpu_millis: u64,
    /// Our own: see `cpu_millis`.
    #[serde(default)]
    pub cpu_used_millis: u64,
    /// Our own: bytes of memory, all and in use.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Our own: see `memory_bytes`.
    #[serde(default)]
    pub memory_used_bytes: u64,
    /// Our own: its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Our own: its taints.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Our own: admission of new pods.
    #[serde(default)]
    pub scheduling: NodeScheduling,
}

/// A mark on a node that keeps pods away which do not tolerate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value; may be empty.
    #[serde(default)]
    pub value: String,
    /// Effect on pods.
    pub effect: TaintEffect,
}

/// As Kubernetes writes it: `KEY=VALUE:EFFECT`, or `KEY:EFFECT` without a value.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        match value.as_str() {
            "" => write!(f, "{key}:{effect:?}"),
            value => write!(f, "{key}={value}:{effect:?}"),
        }
    }
}

/// Effect of a taint on pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum TaintEffect {
    /// They are not placed there.
    NoSchedule,
    /// They are placed elsewhere if that is possible.
    PreferNoSchedule,
    /// They are not placed there, and those that run there are stopped.
    NoExecute,
}

/// Admission of new pods to a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NodeScheduling {
    /// Accepts new pods.
    #[default]
    Enabled,
    /// Accepts no new pods: it is cordoned.
    Disabled,
    /// Accepts no new pods, and its pods are moved or stopped.
    Draining,
}

/// Body of `PATCH /elastane/v1/nodes/{node}`. A field that is left out keeps its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodePatch {
    /// Labels to give it; null takes back one that it was given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Taints to give it. One takes the place of another of the same key and effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Taints to take back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_taints: Vec<TaintKey>,
    /// Admission of new pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<NodeScheduling>,
}

/// Taints to take back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaintKey {
    /// Key.
    pub key: String,
    /// Only with this effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

/// Body of `POST /elastane/v1/simulated-nodes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SimulatedNode {
    /// Name, unique.
    pub name: String,
    /// Names of further nodes like it, which are added at once with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// Number of GPUs, up to 64.
    pub gpus: u64,
    /// Memory of each GPU in bytes; 16 GiB if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_bytes: Option<u64>,
    /// Thousandths of a core; as many as this machine has if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Bytes of memory; as many as this machine has if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Condition of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeStatusConditionDetails {
    /// `Ready`, `GpuLost`, `GpuTaken`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Reason code, or `Ready`.
    pub reason: String,
    /// One sentence.
    pub message: String,
    /// `True` or `False`.
    pub status: String,
}

/// Body of `PUT /elastane/v1/nodes/{node}/labels`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLabels {
    /// Replaces all labels besides those it came with.
    pub labels: BTreeMap<String, String>,
}

/// GPUs of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuInfo {
    /// Product.
    pub gpu_type: String,
    /// Number of GPUs.
    pub gpu_count: u64,
}

/// All nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Nodes {
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// Answer of every `…/count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CountResponse {
    /// Number of objects.
    pub count: u64,
}
