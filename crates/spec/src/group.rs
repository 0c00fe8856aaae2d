//! Groups of pod sets.

use serde::{Deserialize, Serialize};

use crate::TopologyUse;

/// A group of pod sets and of other groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Name, unique in the workload.
    pub name: String,
    /// The group it is in, listed before it; none: the workload itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Fewest of its groups and sets that make sense together; none: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_min: Option<u32>,
    /// How close together its pods are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyUse>,
    /// True if all its pods begin again, wherever there is room, when one of them has to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
}
