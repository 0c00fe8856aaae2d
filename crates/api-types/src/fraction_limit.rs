//! Enforcement of GPU fractions, on a node, a GPU, or for a workload. Does not know about:
//! requests.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Millis;

/// How fractions of a GPU are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FractionLimit {
    /// How well: `none`, `cooperative`, `hard`.
    pub enforcement: String,
    /// By what: `none`, `mounted-libraries`, `preloaded-libraries`, `variables`, `mps`, `dmem`,
    /// `mig`.
    pub mechanism: String,
    /// What that means, in one sentence.
    pub meaning: String,
    /// What is missing, why, and what to do; left out where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How compute time is divided: `none`, `strict`, `fair`.
    #[serde(default)]
    pub time_slicing: String,
    /// What that means, in one sentence.
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
