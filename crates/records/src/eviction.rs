//! The last eviction of a workload, as it is stored.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A coded reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonBody {
    /// Stable code.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Time, milliseconds since the epoch.
    pub at_ms: u64,
    /// The workload for which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneficiary: Option<BeneficiaryBody>,
}

/// The workload for which another was stopped, moved or resized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeneficiaryBody {
    /// Id.
    pub id: Uuid,
    /// Name.
    pub name: String,
    /// Name of its project.
    pub project: String,
}
