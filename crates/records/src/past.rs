//! Workloads that only the database has: deleted ones that are kept for a while, and ended ones
//! that left memory (archived). Does not know about: for how long, and when they leave.

use serde::{Deserialize, Serialize};
use spec::WorkloadKind;
use units::Instant;
use uuid::Uuid;

use crate::{DepartmentRow, PodRow, ProjectRow, WorkloadRow};

/// Filter of deleted workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastFilter {
    /// Earliest time of deletion.
    pub since: Instant,
    /// Only the workload with this id; `None` selects all.
    pub id: Option<Uuid>,
}

/// Deleted workloads, with their projects and departments. Living workloads are not part of it.
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

/// Key by which an archived workload is found.
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

/// Order of archived workloads; equal ones are ordered by `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArchivedOrder {
    /// `seq` alone.
    #[default]
    Seq,
    /// Name.
    Name,
    /// Name of the project, then their own.
    ProjectAndName,
    /// Time of creation.
    Created,
    /// Time of creation, then name.
    CreatedAndName,
    /// Time of the end, which is when the last phase began.
    Completed,
}

/// Filter and order of archived workloads. A list that is `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivedFilter {
    /// Ids of their projects.
    pub projects: Option<Vec<u64>>,
    /// Kinds.
    pub kinds: Option<Vec<WorkloadKind>>,
    /// `true` selects failed workloads, `false` the others.
    pub failed: Option<bool>,
    /// Names.
    pub names: Option<Vec<String>>,
    /// Users who submitted them.
    pub users: Option<Vec<String>>,
    /// Ids.
    pub ids: Option<Vec<Uuid>>,
    /// Lowest `seq`, not included.
    pub after_seq: u64,
    /// The order.
    pub order: ArchivedOrder,
    /// True if it descends; `seq` never does.
    pub descending: bool,
}

/// An archived workload with the values that it can be ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedPlace {
    /// Id.
    pub id: Uuid,
    /// Number in order of creation.
    pub seq: u64,
    /// Id of the project.
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

/// Number of archived workloads of a submitter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ArchivedCount {
    /// Project, kind and end of these workloads.
    pub key: ArchivedKey,
    /// User who submitted them.
    pub submitted_by: String,
    /// Number of them.
    pub count: u64,
    /// Bytes of their specifications, as they are stored.
    pub bytes: u64,
}

/// Key of the count of archived workloads: project, kind, failed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ArchivedKey {
    /// Id of the project.
    pub project_id: u64,
    /// Kind.
    pub kind: WorkloadKind,
    /// True if they failed.
    pub failed: bool,
}
