//! Visible state for readers: immutable snapshots, replaced as a whole after every decision.
//! Readers never wait for the dispatcher. A copy of a view shares the unchanged parts.
//!
//! Owns: the visible fields of workloads, departments, projects, nodes and objects, and the maps
//! that hold them. Does not know about: how a view is built, and its wire form.

mod adopted;
pub mod codes;
mod eviction;
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

pub use adopted::{AdoptedPodView, HeldPod};
pub use eviction::{Beneficiary, EvictionView};
pub use gpu_fault::{GPU_HELD, GPU_LOST, GPU_TAKEN, GpuFault, GpuFaults, Holder};
pub use node::{GpuPod, GpuView, NodeView, PoolView};
pub use object::{NAMES, Object, Objects, ObjectsById, SECRETS, Scope, UnknownScope};
pub use org::{OrgUnit, PoolShare, ProjectView, QueueStatus, QuotasInPool, above};
pub use pending::{Membership, PendingClasses, PendingReason, ReasonView};
pub use shared_map::SharedMap;
pub use workload::{Phase, PodState, PodView, WorkloadView};

/// A snapshot of the visible state.
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
    /// The revisions of inferences, by id. Each has the form of a workload.
    pub revisions: SharedMap<Uuid, Arc<WorkloadView>>,
    /// Pending reasons of classes of workloads.
    pub pending: PendingClasses,
    /// Inferences, and workloads with ports that are opened in a browser, by the names of the
    /// project and of the workload: every request to one is routed by these.
    pub by_name: SharedMap<(String, String), Uuid>,
    /// Numbers of archived workloads: ended ones that only the database has.
    pub archived: Arc<BTreeMap<ArchivedKey, u64>>,
    /// Objects that the scheduler does not need: users, rules, assets, ….
    pub objects: Objects,
    /// Nodes in their order.
    pub nodes: Vec<Arc<NodeView>>,
    /// Node pools, `default` first, then in order of creation.
    pub pools: Vec<Arc<PoolView>>,
    /// Capacity of the cluster.
    pub capacity: Resources,
    /// True if nodes and pods are those of Kubernetes: only Kubernetes changes them.
    pub is_kubernetes: bool,
    /// Pods of Kubernetes that this server has to place, by namespace and name.
    pub adopted: SharedMap<(String, String), Arc<AdoptedPodView>>,
}

impl View {
    /// Number of archived workloads.
    #[must_use]
    pub fn archived_count(&self) -> u64 {
        self.archived.values().sum()
    }

    /// Pending reasons of a workload; empty if it does not wait.
    #[must_use]
    pub fn why(&self, workload: &WorkloadView) -> Vec<ReasonView> {
        self.pending.in_full(&workload.pending)
    }

    /// The inference of this name in the project of that name.
    #[must_use]
    pub fn inference(&self, project: &str, name: &str) -> Option<&Arc<WorkloadView>> {
        self.named(project, name).filter(|workload| workload.spec.has_revisions())
    }

    /// The workload of this name in the project of that name, if requests are routed to it by name.
    #[must_use]
    pub fn named(&self, project: &str, name: &str) -> Option<&Arc<WorkloadView>> {
        let id = self.by_name.get(&(project.to_owned(), name.to_owned()))?;
        self.workloads.get(id)
    }
}

/// Kind of the events that tell why a workload waits.
pub const PENDING: &str = "Pending";

/// One row of the append-only event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the log, from 1, without gaps for a reader.
    pub seq: u64,
    /// Time of the event.
    pub at: Instant,
    /// Kind of event: `Submitted`, `Scheduled`, `Started`, `Evicted`, `PhaseChanged`, ….
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
    /// The workload for which it was stopped, moved or resized.
    pub beneficiary: Option<Beneficiary>,
}

impl Event {
    /// The log row, with the submitter of the workload.
    #[must_use]
    pub fn row(&self, owner: String) -> EventRow {
        EventRow {
            seq: self.seq,
            at: self.at,
            kind: self.kind.clone(),
            warning: self.warning,
            project_id: self.project_id,
            project_name: self.project_name.clone(),
            workload_id: self.workload_id,
            workload_name: self.workload_name.clone(),
            pod_name: self.pod_name.clone(),
            code: self.code.clone(),
            message: self.message.clone(),
            owner,
            beneficiary: self.beneficiary.as_ref().map(Into::into),
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
            beneficiary: row.beneficiary.map(Into::into),
        }
    }
}
