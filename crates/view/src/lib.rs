//! What readers may see of the state: immutable snapshots, replaced as a whole after every
//! decision. Readers never wait for the dispatcher. A copy of a view shares what has not changed
//! since.
//!
//! Owns: what is shown of workloads, departments, projects, nodes and objects, and the maps in
//! which they are. Does not know about: how a view is made, and how it is shown on the wire.

mod gpu_fault;
mod node;
mod object;
mod org;
mod pending;
mod shared_map;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use records::{ArchivedKey, EventRow};
use units::{Instant, Resources};
use uuid::Uuid;

pub use gpu_fault::{GPU_HELD, GPU_LOST, GPU_TAKEN, GpuFault, GpuFaults, Holder};
pub use node::{GpuPod, GpuView, NodeView, PoolView};
pub use object::{NAMES, Object, Objects, ObjectsById, SECRETS, Scope, UnknownScope};
pub use org::{OrgUnit, PoolShare, ProjectView, QueueStatus, above};
pub use pending::{Membership, PendingClasses, PendingReason, ReasonView};
pub use shared_map::SharedMap;
pub use workload::{Phase, PodState, PodView, WorkloadView};

/// The whole visible state at one moment.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Number of the last event that is part of this view.
    pub event_seq: u64,
    /// Departments by id.
    pub departments: SharedMap<u64, Arc<OrgUnit>>,
    /// Projects by id.
    pub projects: SharedMap<u64, Arc<ProjectView>>,
    /// Workloads that are not deleted, by id, without archived ones.
    pub workloads: SharedMap<Uuid, Arc<WorkloadView>>,
    /// The revisions of inferences, by id. Each is shown like a workload.
    pub revisions: SharedMap<Uuid, Arc<WorkloadView>>,
    /// What classes of workloads wait for.
    pub pending: PendingClasses,
    /// Inferences, and workloads with ports that are opened in a browser, by the name of their
    /// project and their own: every request to one is by these.
    pub by_name: SharedMap<(String, String), Uuid>,
    /// How many workloads are archived: ended ones that only the database has.
    pub archived: Arc<BTreeMap<ArchivedKey, u64>>,
    /// What the scheduler does not need: users, rules, assets, ….
    pub objects: Objects,
    /// Nodes in their order.
    pub nodes: Vec<Arc<NodeView>>,
    /// Node pools, `default` first, then in order of creation.
    pub pools: Vec<Arc<PoolView>>,
    /// How the cluster is used as a whole.
    pub capacity: Resources,
}

impl View {
    /// How many workloads are archived.
    #[must_use]
    pub fn archived_count(&self) -> u64 {
        self.archived.values().sum()
    }

    /// Why a workload waits; empty when it does not.
    #[must_use]
    pub fn why(&self, workload: &WorkloadView) -> Vec<ReasonView> {
        self.pending.in_full(&workload.pending)
    }

    /// The inference of this name in the project of that name.
    #[must_use]
    pub fn inference(&self, project: &str, name: &str) -> Option<&Arc<WorkloadView>> {
        self.named(project, name).filter(|workload| workload.spec.has_revisions())
    }

    /// The workload of this name in the project of that name, if requests come to it by name.
    #[must_use]
    pub fn named(&self, project: &str, name: &str) -> Option<&Arc<WorkloadView>> {
        let id = self.by_name.get(&(project.to_owned(), name.to_owned()))?;
        self.workloads.get(id)
    }
}

/// One row of the append-only event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the log, from 1, without gaps for a reader.
    pub seq: u64,
    /// When.
    pub at: Instant,
    /// What happened: `Submitted`, `Scheduled`, `Started`, `Evicted`, `PhaseChanged`, ….
    pub kind: String,
    /// True if it is a warning.
    pub warning: bool,
    /// Workload it is about.
    pub workload_id: Option<Uuid>,
    /// Its name at the time.
    pub workload_name: String,
    /// Pod it is about.
    pub pod_name: Option<String>,
    /// Project it is about.
    pub project_id: Option<u64>,
    /// Its name at the time.
    pub project_name: String,
    /// Reason code, if it has one.
    pub code: Option<String>,
    /// One sentence.
    pub message: String,
}

impl Event {
    /// The row of the log, with the project that may read it.
    #[must_use]
    pub fn row(&self, project_id: Option<u64>) -> EventRow {
        EventRow {
            seq: self.seq,
            at: self.at,
            kind: self.kind.clone(),
            warning: self.warning,
            project_id,
            project_name: self.project_name.clone(),
            workload_id: self.workload_id,
            workload_name: self.workload_name.clone(),
            pod_name: self.pod_name.clone(),
            code: self.code.clone(),
            message: self.message.clone(),
        }
    }
}

impl From<EventRow> for Event {
    fn from(row: EventRow) -> Self {
        Self {
            seq: row.seq,
            at: row.at,
            kind: row.kind,
            warning: row.warning,
            workload_id: row.workload_id,
            workload_name: row.workload_name,
            pod_name: row.pod_name,
            project_id: row.project_id,
            project_name: row.project_name,
            code: row.code,
            message: row.message,
        }
    }
}
