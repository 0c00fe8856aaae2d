//! Retention of deleted workloads. Owns: which ones are kept. Does not know about: their rows.

use serde::{Deserialize, Serialize};
use units::Instant;

/// Deleted workloads that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeptDeletions {
    /// Earliest time of deletion.
    pub since: Instant,
    /// Number of the newest ones of each project; [`u64::MAX`] for all.
    pub of_project: u64,
}
