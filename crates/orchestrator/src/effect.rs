//! Effects of inputs: rows to write, events to publish, actions for the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::QueueId;
use records::Change;
use spec::{FeedVerb, RunKey, RunSpec, SecretUse, WorkloadKind};
use uuid::Uuid;

use crate::pools;
use crate::workloads::{PortsWanted, Workload};
use view::{Event, Object, Phase, WorkloadView};

/// A run to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Specification of the run, without its secrets.
    pub spec: RunSpec,
    /// The secrets, still sealed.
    pub sealed: Vec<Sealed>,
}

/// A secret value that is still sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Recipient and name of the value.
    pub of: SecretUse,
    /// The object that holds the value now; `None` if it was deleted.
    pub keeper: Option<Arc<Object>>,
}

/// A request to the engine, made once the batch is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start a run.
    Start(Box<Start>),
    /// Limit the GPU memory of a run, in bytes by the UUID that the driver gives the GPU.
    LimitGpus(RunKey, BTreeMap<String, u64>),
    /// Stop a run, within this number of milliseconds.
    Stop(RunKey, u64),
    /// Stop a run for others: after the next checkpoint of the runs in `awaited`, if one of them
    /// has announced it for the next seconds.
    Evict {
        /// Key of the run.
        run: RunKey,
        /// Maximum time between SIGTERM and SIGKILL, in milliseconds.
        grace_ms: u64,
        /// Runs whose checkpoint is awaited.
        awaited: Vec<RunKey>,
    },
    /// Remove the leftovers of a run.
    Remove(RunKey),
    /// Forget a pod that will not run again.
    Forget(Uuid),
    /// Delete a volume with its data.
    RemoveVolume(String),
    /// Find free ports.
    FindPorts(PortsWanted),
    /// Operate on an adopted pod, whose uid is the pod of the key.
    Adopted(RunKey, FeedVerb),
}

impl Action {
    /// The run that it is about.
    #[must_use]
    pub fn run(&self) -> Option<RunKey> {
        match self {
            Self::Start(start) => Some(start.spec.key),
            Self::LimitGpus(run, _)
            | Self::Stop(run, _)
            | Self::Evict { run, .. }
            | Self::Remove(run)
            | Self::Adopted(run, _) => Some(*run),
            Self::Forget(_) | Self::RemoveVolume(_) | Self::FindPorts(_) => None,
        }
    }
}

/// Rows, events and actions of the present batch, and the state that it has changed. Other modules
/// add to it by the methods here.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    touched: Touched,
    sent: Sent,
}

/// State changed by a batch: it is updated and published at its end.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Workloads to write and to publish.
    pub(crate) workloads: BTreeSet<Uuid>,
    /// Workloads to publish; their stored state is unchanged.
    pub(crate) shown: BTreeSet<Uuid>,
    /// True if the state is a new one: all views are rebuilt.
    pub(crate) everything: bool,
    /// Projects whose accounts may have changed.
    pub(crate) projects: BTreeSet<u64>,
    /// Queues whose fair share changed; for a project or department the queue of the pool
    /// `default`.
    pub(crate) queues: BTreeSet<QueueId>,
    /// True if nodes changed in more than the model's revision of them, or the nodes of a pool did.
    pub(crate) nodes: bool,
    /// Last state of workloads deleted in this batch.
    pub(crate) deleted: BTreeMap<Uuid, Workload>,
    /// Last views of workloads that left memory in this batch.
    pub(crate) archived: BTreeMap<Uuid, Arc<WorkloadView>>,
}

/// Output of the state with the batch.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Changes whose order matters: they are written first, in this order.
    pub(crate) changes: Vec<Change>,
    /// Events with the submitter of their workload.
    pub(crate) events: Vec<(Arc<Event>, String)>,
    /// Requests to the engine, in order.
    pub(crate) actions: Vec<Action>,
    /// Metrics of workloads.
    pub(crate) tally: Tally,
    /// Messages for the log of the server.
    pub(crate) notes: Vec<Note>,
}

/// A line for the log of the server.
#[derive(Debug)]
pub enum Note {
    /// A fault of the server.
    Error(String),
    /// Something unusual.
    Warning(String),
    /// A message for debugging.
    Debug(String),
}

/// Departments and projects that changed, except for changes of holdings.
#[derive(Debug, Default)]
pub(crate) struct OrgChanges {
    /// True if all, and the node pools, changed.
    pub(crate) all: bool,
    pub(crate) departments: BTreeSet<u64>,
    /// Department ids, by project id.
    pub(crate) projects: BTreeMap<u64, u64>,
}

impl Outbox {
    /// Writes rows, in this order.
    pub(crate) fn write(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.sent.changes.extend(changes);
    }

    /// Requests these actions from the engine, in this order.
    pub(crate) fn act(&mut self, actions: impl IntoIterator<Item = Action>) {
        self.sent.actions.extend(actions);
    }

    /// Withdraws the actions of this batch about the runs of a pod.
    pub(crate) fn withdraw(&mut self, pod: Uuid) {
        let is_other = |action: &Action| action.run().is_none_or(|run| run.pod != pod);
        self.sent.actions.retain(is_other);
    }

    /// Publishes an event, with the submitter of the workload.
    pub(crate) fn tell(&mut self, event: Event, owner: String) {
        self.sent.events.push((Arc::new(event), owner));
    }

    /// Writes to the log of the server.
    pub(crate) fn note(&mut self, note: Note) {
        self.sent.notes.push(note);
    }

    /// Metrics of workloads.
    pub(crate) const fn tally(&mut self) -> &mut Tally {
        &mut self.sent.tally
    }

    /// Marks workloads to write and to publish.
    pub(crate) fn touch(&mut self, ids: impl IntoIterator<Item = Uuid>) {
        self.touched.workloads.extend(ids);
    }

    /// Marks workloads to publish.
    pub(crate) fn show(&mut self, ids: impl IntoIterator<Item = Uuid>) {
        self.touched.shown.extend(ids);
    }

    /// Marks projects whose accounts may have changed.
    pub(crate) fn recount(&mut self, projects: impl IntoIterator<Item = u64>) {
        self.touched.projects.extend(projects);
    }

    /// Marks queues whose fair share changed.
    pub(crate) fn entitle(&mut self, queues: impl IntoIterator<Item = QueueId>) {
        self.touched.queues.extend(queues);
    }

    /// Marks nodes, or the nodes of a pool, to publish.
    pub(crate) const fn show_nodes(&mut self) {
        self.touched.nodes = true;
    }

    /// Marks all views to be rebuilt.
    pub(crate) const fn show_everything(&mut self) {
        self.touched.everything = true;
    }

    /// Records the deletion of a workload, whose last rows are written already.
    pub(crate) fn delete(&mut self, workload: Workload) {
        self.touched.workloads.remove(&workload.id);
        self.touched.projects.insert(workload.project_id);
        self.touched.deleted.insert(workload.id, workload);
    }

    /// Records that a workload leaves memory; true if rows of it are still to be written.
    pub(crate) fn archive(&mut self, last: Arc<WorkloadView>) -> bool {
        self.touched.shown.remove(&last.id);
        let is_touched = self.touched.workloads.remove(&last.id);
        self.touched.archived.insert(last.id, last);
        is_touched
    }

    /// State that this batch has changed up to now.
    pub(crate) const fn touched(&self) -> &Touched {
        &self.touched
    }

    /// Ends the batch.
    pub(crate) fn end(self) -> (Touched, Sent) {
        (self.touched, self.sent)
    }

    /// The departments and projects in the rows written so far.
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

/// Metrics of workloads in a batch. They count once the batch is committed.
#[derive(Debug, Default)]
pub struct Tally {
    /// Kinds of accepted workloads.
    pub submitted: Vec<WorkloadKind>,
    /// Workloads that run for the first time: kind, and waiting time in milliseconds.
    pub started: Vec<(WorkloadKind, u64)>,
    /// Workloads that ended: kind, and `true` for a failure.
    pub ended: Vec<(WorkloadKind, bool)>,
    /// Evicted workloads, with their kinds and the codes of the causes. A workload is counted once,
    /// for any number of its pods.
    pub evicted: BTreeSet<(Uuid, WorkloadKind, &'static str)>,
}

impl Tally {
    /// Counts a change of phase of a workload. Revisions are parts of their inference.
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
