//! What comes of inputs: rows to write, events to tell, actions for the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::QueueId;
use records::Change;
use spec::{RunKey, RunSpec, SecretUse, WorkloadKind};
use uuid::Uuid;

use crate::pools;
use crate::workloads::{PortsWanted, Workload};
use view::{Event, Object, Phase, WorkloadView};

/// A run to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What to run, without its secrets.
    pub spec: RunSpec,
    /// The secrets, still sealed.
    pub sealed: Vec<Sealed>,
}

/// A value that is still sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Who gets it, and what it is called.
    pub of: SecretUse,
    /// What keeps it, as it is now; none if that is gone.
    pub keeper: Option<Arc<Object>>,
}

/// Something to ask of the engine once the batch is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A run begins.
    Start(Box<Start>),
    /// A run may have so many bytes of GPUs, which are called by what the driver calls them.
    LimitGpus(RunKey, BTreeMap<String, u64>),
    /// A run ends, after so many milliseconds at most.
    Stop(RunKey, u64),
    /// The same for others, who wait: after the next checkpoint of these runs, if one of them has
    /// announced it to come within seconds.
    Evict {
        /// The run.
        run: RunKey,
        /// How long it has, in milliseconds.
        grace_ms: u64,
        /// Whose checkpoint is waited for.
        awaited: Vec<RunKey>,
    },
    /// What a run has left is removed.
    Remove(RunKey),
    /// The pod will not run again.
    Forget(Uuid),
    /// A volume ends with all that is in it.
    RemoveVolume(String),
    /// Free ports are looked for.
    FindPorts(PortsWanted),
}

/// What the present batch has to write, tell and do, and what of the state it has changed. Parts
/// add to it by the methods here.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    touched: Touched,
    sent: Sent,
}

/// What of the state a batch has changed: that is settled and shown again at its end.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Workloads to write and to show again.
    pub(crate) workloads: BTreeSet<Uuid>,
    /// Workloads to show again; nothing of them that is stored has changed.
    pub(crate) shown: BTreeSet<Uuid>,
    /// The state is a new one: nothing shown before counts.
    pub(crate) everything: bool,
    /// Projects whose accounts may have changed.
    pub(crate) projects: BTreeSet<u64>,
    /// Queues that are entitled to more or less than before; of a project or department the one of
    /// the pool `default`.
    pub(crate) queues: BTreeSet<QueueId>,
    /// Something of nodes has changed that is not in the model's revision of them, or the nodes of
    /// a pool have.
    pub(crate) nodes: bool,
    /// Workloads deleted in this batch, as they were last.
    pub(crate) deleted: BTreeMap<Uuid, Workload>,
    /// Workloads that left memory in this batch, as they were last.
    pub(crate) archived: BTreeMap<Uuid, Arc<WorkloadView>>,
}

/// What leaves the state with the batch.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Changes whose order matters: they are written first, as they came.
    pub(crate) changes: Vec<Change>,
    /// Events with the project each is about.
    pub(crate) events: Vec<(Arc<Event>, Option<u64>)>,
    /// What to ask of the engine, in order.
    pub(crate) actions: Vec<Action>,
    /// What happened to workloads, for the counters.
    pub(crate) tally: Tally,
    /// What belongs into the log of the server.
    pub(crate) notes: Vec<Note>,
}

/// A line for the log of the server.
#[derive(Debug)]
pub enum Note {
    /// A fault of the server.
    Error(String),
    /// Something unusual.
    Warning(String),
    /// For who looks closely.
    Debug(String),
}

/// Departments and projects that changed, but for what they hold.
#[derive(Debug, Default)]
pub(crate) struct OrgChanges {
    /// Of all, and of the node pools.
    pub(crate) all: bool,
    pub(crate) departments: BTreeSet<u64>,
    /// With their departments.
    pub(crate) projects: BTreeMap<u64, u64>,
}

impl Outbox {
    /// Writes rows, in this order.
    pub(crate) fn write(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.sent.changes.extend(changes);
    }

    /// Asks this of the engine, in this order.
    pub(crate) fn act(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.sent.actions.extend(actions);
    }

    /// Tells of an event of a project, or of none.
    pub(crate) fn tell(&mut self, event: Event, project_id: Option<u64>) {
        self.sent.events.push((Arc::new(event), project_id));
    }

    /// Writes into the log of the server.
    pub(crate) fn note(&mut self, note: Note) {
        self.sent.notes.push(note);
    }

    /// The counters of what happens to workloads.
    pub(crate) const fn tally(&mut self) -> &mut Tally {
        &mut self.sent.tally
    }

    /// Workloads to write and to show again.
    pub(crate) fn touch(&mut self, ids: impl IntoIterator<Item = Uuid>) {
        self.touched.workloads.extend(ids);
    }

    /// Workloads to show again.
    pub(crate) fn show(&mut self, ids: impl IntoIterator<Item = Uuid>) {
        self.touched.shown.extend(ids);
    }

    /// Projects whose accounts may have changed.
    pub(crate) fn recount(&mut self, projects: impl IntoIterator<Item = u64>) {
        self.touched.projects.extend(projects);
    }

    /// Queues that are entitled to more or less than before.
    pub(crate) fn entitle(&mut self, queues: impl IntoIterator<Item = QueueId>) {
        self.touched.queues.extend(queues);
    }

    /// Nodes, or the nodes of a pool, are to be shown again.
    pub(crate) const fn show_nodes(&mut self) {
        self.touched.nodes = true;
    }

    /// Nothing shown before counts.
    pub(crate) const fn show_everything(&mut self) {
        self.touched.everything = true;
    }

    /// A workload is deleted; its last rows are written.
    pub(crate) fn delete(&mut self, workload: Workload) {
        self.touched.workloads.remove(&workload.id);
        self.touched.projects.insert(workload.project_id);
        self.touched.deleted.insert(workload.id, workload);
    }

    /// A workload leaves memory; says whether rows of it are still to be written.
    pub(crate) fn archive(&mut self, last: Arc<WorkloadView>) -> bool {
        self.touched.shown.remove(&last.id);
        let is_touched = self.touched.workloads.remove(&last.id);
        self.touched.archived.insert(last.id, last);
        is_touched
    }

    /// What of the state this batch has changed up to now.
    pub(crate) const fn touched(&self) -> &Touched {
        &self.touched
    }

    /// Ends the batch.
    pub(crate) fn end(self) -> (Touched, Sent) {
        (self.touched, self.sent)
    }

    /// The departments and projects that the rows written so far are about.
    pub(crate) fn org_changes(&self) -> OrgChanges {
        let mut org = OrgChanges { all: self.touched.everything, ..OrgChanges::default() };
        for change in &self.sent.changes {
            match change {
                Change::Project(row) => {
                    org.projects.insert(row.id, row.body.department_id);
                }
                Change::Department(row) => drop(org.departments.insert(row.id)),
                Change::Object(object) => org.all |= object.kind == pools::KIND,
                _ => {}
            }
        }
        org
    }
}

/// What happened to workloads in a batch. It counts once the batch is committed.
#[derive(Debug, Default)]
pub struct Tally {
    /// The kinds of those that were accepted.
    pub submitted: Vec<WorkloadKind>,
    /// Those that run for the first time: their kinds, and for how long they waited.
    pub started: Vec<(WorkloadKind, u64)>,
    /// Those that ended: their kinds, and whether they failed.
    pub ended: Vec<(WorkloadKind, bool)>,
    /// Those that were evicted, with their kinds and the codes of the causes. However many of its
    /// pods were, a workload is evicted once.
    pub evicted: BTreeSet<(Uuid, WorkloadKind, &'static str)>,
}

impl Tally {
    /// A workload came from one phase into another. Revisions are parts of their inference.
    pub(crate) fn note_phase(&mut self, workload: &Workload, before: Phase) {
        let kind = workload.spec.kind;
        match workload.phase {
            _ if workload.spec.revision.is_some() => {}
            Phase::Completed => self.ended.push((kind, false)),
            Phase::Failed => self.ended.push((kind, true)),
            Phase::Running | Phase::Degraded
                if matches!(before, Phase::Pending | Phase::Initializing | Phase::Resuming)
                    && workload.ran_ms == 0
                    && workload.restarts == 0 =>
            {
                self.started.push((kind, workload.waited_ms));
            }
            _ => {}
        }
    }
}
