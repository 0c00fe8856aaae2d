//! What only the database has: workloads that were deleted and are kept for a while, and ended ones
//! that left memory (archived). Does not know about: for how long, and when they leave.

use serde::{Deserialize, Serialize};
use spec::WorkloadKind;
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

/// What tells an archived workload from others, for what has to do with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchivedLookup {
    /// Its id.
    Id(Uuid),
    /// Its project and name.
    Name(u64, String),
    /// The id of one of its pods.
    Pod(Uuid),
}

/// Archived workloads with their pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// Workloads by `seq`.
    pub workloads: Vec<WorkloadRow>,
    /// Their pods by index.
    pub pods: Vec<PodRow>,
}

/// By what archived workloads are ordered; those that are alike by `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArchivedOrder {
    /// `seq` alone.
    #[default]
    Seq,
    /// Name.
    Name,
    /// Name of the project, then their own.
    ProjectAndName,
    /// When they were created.
    Created,
    /// When they were created, then their names.
    CreatedAndName,
    /// When they ended, which is when they came into their phase.
    Completed,
}

/// Which archived workloads, and in which order. A list that is none leaves nothing out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivedFilter {
    /// Of these projects.
    pub projects: Option<Vec<u64>>,
    /// Of these kinds.
    pub kinds: Option<Vec<WorkloadKind>>,
    /// Those that failed, or those that did not.
    pub failed: Option<bool>,
    /// With these names.
    pub names: Option<Vec<String>>,
    /// Submitted by these.
    pub users: Option<Vec<String>>,
    /// With these ids.
    pub ids: Option<Vec<Uuid>>,
    /// Only after this `seq`.
    pub after_seq: u64,
    /// The order.
    pub order: ArchivedOrder,
    /// True if it descends; `seq` never does.
    pub descending: bool,
}

/// What an archived workload is ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedPlace {
    /// Id.
    pub id: Uuid,
    /// Number in order of creation.
    pub seq: u64,
    /// Project.
    pub project_id: u64,
    /// Name.
    pub name: String,
    /// When it was accepted.
    pub created_at: Instant,
    /// When it came into its phase.
    pub phase_since: Instant,
    /// When it ended.
    pub completed_at: Instant,
}
