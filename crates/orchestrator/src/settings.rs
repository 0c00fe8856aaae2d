//! Settings of the state that the operator of the server chooses at its start.

use serde::{Deserialize, Serialize};
use spec::UserLimits;

/// Maximum number of ended workloads in memory, without those that have a pending task.
pub const ENDED_KEPT: usize = 1000;
/// Longest time for which places may be kept, in milliseconds.
pub const PLACES_KEPT_MS_MAX: u64 = 60_000;

/// Settings of the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Maximum number of ended workloads kept in memory.
    pub ended_kept: usize,
    /// Limits on the objects that users may create.
    pub user_limits: UserLimits,
    /// Maximum time for which a pod keeps its place through a back-off or without its gang, in
    /// milliseconds; also the maximum sum of these times for a workload that has not run yet. At
    /// most [`PLACES_KEPT_MS_MAX`].
    pub places_kept_ms: u64,
    /// Name of the project that is charged for adopted pods in namespaces of no project.
    pub default_project: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ended_kept: ENDED_KEPT,
            user_limits: UserLimits::default(),
            places_kept_ms: PLACES_KEPT_MS_MAX,
            default_project: None,
        }
    }
}
