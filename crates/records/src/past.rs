//! What was deleted and is kept for a while. Does not know about: for how long.

use units::Instant;
use uuid::Uuid;

use crate::{DepartmentRow, PodRow, ProjectRow, WorkloadRow};

/// Which deleted workloads to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastFilter {
    /// Not deleted before.
    pub since: Instant,
    /// This one alone.
    pub id: Option<Uuid>,
}

/// Workloads that were deleted, and whose they were. Living things are not part of it, except as
/// the owners of such workloads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    /// Departments by id, deleted ones as well.
    pub departments: Vec<DepartmentRow>,
    /// The projects of the workloads by id, deleted ones as well.
    pub projects: Vec<ProjectRow>,
    /// Workloads by `seq`.
    pub workloads: Vec<WorkloadRow>,
    /// Their pods by index.
    pub pods: Vec<PodRow>,
}
