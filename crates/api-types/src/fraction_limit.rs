//! Enforcement of GPU fractions, on a node, a GPU, or for a workload. Does not know about:
//! requests.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Millis;

/// Enforcement of fractions of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FractionLimit {
    /// Level of enforcement: `none`, `cooperative`, `hard`.
    pub enforcement: String,
    /// Mechanism: `none`, `mounted-libraries`, `preloaded-libraries`, `variables`, `mps`, `dmem`,
    /// `mig`.
    pub mechanism: String,
    /// Meaning of level and mechanism, in one sentence.
    pub meaning: String,
    /// Missing enforcement, its reason, and what to do; left out if nothing is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Division of compute time: `none`, `strict`, `fair`.
    #[serde(default)]
    pub time_slicing: String,
    /// Meaning of `timeSlicing`, in one sentence.
    #[serde(default)]
    pub time_slicing_meaning: String,
    /// The part of a GPU's compute time that a workload always has; left out where it is not
    /// divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_request: Option<Millis>,
    /// The most of it that it has, while others leave that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_limit: Option<Millis>,
}
