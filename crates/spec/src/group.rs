//! Groups of pod sets.

use serde::{Deserialize, Serialize};

use crate::TopologyUse;

/// A group of pod sets and of other groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Name, unique in the workload.
    pub name: String,
    /// Name of the parent group, listed before it; `None` for the workload itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Minimum number of its groups and sets that can run together; `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_min: Option<u32>,
    /// Topology constraint of its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyUse>,
    /// True if all its pods are recreated, on any node, when one of them has to be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
}
