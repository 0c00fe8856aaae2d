//! All rows that a state is built from at a start. Owns: the list of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spec::WorkloadPast;
use uuid::Uuid;

use crate::ledger::{AllocationRow, LagRow};
use crate::past::ArchivedCount;
use crate::rows::{
    ClockRow, ClusterRow, DepartmentRow, ObjectRow, PodRow, ProjectRow, UsageRow, WorkloadRow,
};

/// All rows needed to resume after a restart. Deleted objects are not part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Identity of the database.
    pub cluster: ClusterRow,
    /// Offset of the wall clock; `None` if none was stored.
    pub clock: Option<ClockRow>,
    /// Departments by id.
    pub departments: Vec<DepartmentRow>,
    /// Projects by id.
    pub projects: Vec<ProjectRow>,
    /// Workloads by `seq`.
    pub workloads: Vec<WorkloadRow>,
    /// Their pods by workload and index.
    pub pods: Vec<PodRow>,
    /// Numbers of archived workloads. They are no part of `workloads`.
    #[serde(default)]
    pub archived: Vec<ArchivedCount>,
    /// Objects in order of creation.
    pub objects: Vec<ObjectRow>,
    /// Resources held in the past, the oldest step first.
    pub usage: Vec<UsageRow>,
    /// Lags of queues behind their fair shares.
    #[serde(default)]
    pub lags: Vec<LagRow>,
    /// Allocations that have not ended.
    pub allocations: Vec<AllocationRow>,
    /// Highest department id ever given out.
    pub last_department_id: u64,
    /// Highest project id ever given out.
    pub last_project_id: u64,
    /// Highest workload `seq` ever given out.
    pub last_workload_seq: u64,
    /// Highest object `seq` ever given out.
    pub last_object_seq: u64,
    /// Last position of the event log.
    pub last_event_seq: u64,
    /// Pasts of workloads, which decisions depend on beside the state, by workload id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pasts: BTreeMap<Uuid, WorkloadPast>,
}

impl Snapshot {
    /// The rows of a new database.
    #[must_use]
    pub fn empty(cluster: ClusterRow) -> Self {
        Self { cluster, ..Self::default() }
    }

    /// `true` until the first start of a server is written, which creates a department. A database
    /// older than departments has projects or objects.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.last_department_id == 0 && self.last_project_id == 0 && self.last_object_seq == 0
    }
}
