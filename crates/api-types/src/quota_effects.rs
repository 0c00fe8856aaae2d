//! The effects of a change on quotas and workloads, before it is made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ShareRequest;

/// Body of `POST /elastane/v1/quota-effects`: the one change that is considered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuotaChange {
    /// A new node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_node_pool: Option<PoolLabel>,
    /// Id of a node pool to delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_node_pool: Option<String>,
    /// Other labels of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_node: Option<LabelsOf>,
    /// Name of a node to drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_node: Option<String>,
    /// Other shares of a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<SharesOf>,
    /// Other shares of a department.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub department: Option<SharesOf>,
}

/// A node pool and its label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolLabel {
    /// Its name.
    pub name: String,
    /// Key of the label that its nodes carry.
    pub label_key: String,
    /// Value of the label that its nodes carry.
    pub label_value: String,
}

/// Labels of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelsOf {
    /// Name of the node.
    pub name: String,
    /// Labels to give it; null takes back one that it was given.
    pub labels: BTreeMap<String, Option<String>>,
}

/// Shares of a project or a department.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharesOf {
    /// Id of the project or department.
    pub id: String,
    /// Its shares per node pool; what is left out stays.
    pub resources: Vec<ShareRequest>,
}

/// The effects of a change on quotas and workloads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaEffects {
    /// A sentence each; none where the change has no effect on quotas and workloads.
    pub lines: Vec<String>,
    /// `true` where a project would have a smaller quota than it holds, or work would wait or be
    /// stopped for other work: the change is refused without the parameter `force`.
    pub needs_force: bool,
}
