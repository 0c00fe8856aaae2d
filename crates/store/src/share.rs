//! What projects and departments were given. Owns: that what was not said differs from unlimited.

use serde::{Deserialize, Serialize};

/// What a project or a department was given. What is left out it was not given; a null is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareBody {
    /// Deserved GPUs in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_quota_millis: Option<u64>,
    /// Most GPUs in thousandths.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub gpu_limit_millis: Option<Option<u64>>,
    /// Weight when left-over capacity is divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_quota_weight: Option<u64>,
    /// Deserved CPU thousandths.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub cpu_quota_millis: Option<Option<u64>>,
    /// Deserved bytes of memory.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub memory_quota_bytes: Option<Option<u64>>,
    /// Most CPU thousandths.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millis: Option<Option<u64>>,
    /// Most bytes of memory.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<Option<u64>>,
    /// Weight for CPU; a null is that of the GPUs.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<Option<u64>>,
    /// Weight for memory; a null is that of the GPUs.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub memory_weight: Option<Option<u64>>,
    /// Rank among its siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<String>,
}

/// A value that is there, be it null.
fn said<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}
