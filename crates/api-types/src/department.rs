//! Departments: groups of projects with a share of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Time;
use crate::Unsupported;
use crate::project::{
    NodePoolQuota, NodeTypesPerWorkload, QuotaStatus, Resources, SchedulingRules, ShareRequest,
    TotalResources,
};

/// Body of `POST /api/v1/org-unit/departments`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DepartmentCreationRequest {
    /// Name, unique.
    pub name: String,
    /// Id of the cluster; there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One entry per node pool; in those left out, and without any: what its projects have,
    /// together.
    #[serde(default)]
    pub resources: Vec<ShareRequest>,
    /// Time limits; replaces all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_rules: Option<SchedulingRules>,
    /// Node pools of workloads whose project names none either, by name, the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_node_pools: Option<Vec<String>>,
    /// Nodes that workloads may go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_types: Option<NodeTypesPerWorkload>,
    /// Taken and ignored: it is measured, not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub overtime_data: Unsupported,
}

/// Body of `PUT /api/v1/org-unit/departments/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DepartmentUpdateRequest {
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One entry per node pool; what they leave out is what its projects have. None at all keeps
    /// what there is.
    #[serde(default)]
    pub resources: Vec<ShareRequest>,
    /// Time limits; replaces all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_rules: Option<SchedulingRules>,
    /// Node pools of workloads whose project names none either, by name, the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_node_pools: Option<Vec<String>>,
    /// Nodes that workloads may go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_types: Option<NodeTypesPerWorkload>,
}

/// A department.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DepartmentForList {
    /// Id, a string of digits.
    pub id: String,
    /// Name.
    pub name: String,
    /// Cluster.
    pub cluster_id: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Its creator.
    pub created_by: String,
    /// Time of the last change.
    pub updated_at: Time,
    /// User of the last change.
    pub updated_by: String,
    /// Its projects.
    pub children: Vec<DepartmentProjectChild>,
    /// Status of the department.
    pub status: DepartmentStatus,
    /// Limits in time.
    pub scheduling_rules: SchedulingRules,
    /// Pools tried, in order; none: all.
    pub default_node_pools: Vec<String>,
    /// Types of nodes.
    #[serde(default)]
    pub node_types: NodeTypesPerWorkload,
    /// Quotas over all node pools.
    pub total_resources: TotalResources,
    /// Shares per node pool.
    pub resources: Vec<Resources>,
}

/// A project of a department.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DepartmentProjectChild {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}

/// Status of a department.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DepartmentStatus {
    /// Use over all pools.
    pub quota_status: QuotaStatus,
    /// Use per pool.
    pub node_pool_quota_statuses: Vec<NodePoolQuota>,
    /// Our own numbers, as for a project.
    pub additional_status_data: BTreeMap<String, Value>,
}

/// A page of departments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DepartmentsPage {
    /// The departments.
    pub departments: Vec<DepartmentForList>,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
