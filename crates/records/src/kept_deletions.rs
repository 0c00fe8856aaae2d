//! Retention of deleted workloads. Owns: which ones are kept. Does not know about: their rows.

use serde::{Deserialize, Serialize};
use units::Instant;

/// Deleted workloads that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeptDeletions {
    /// Earliest time of deletion.
    pub since: Instant,
    /// Number of them. Beyond it the oldest are not kept of the projects with the most, and within
    /// a project of the submitters with the most.
    pub count_max: u64,
}
