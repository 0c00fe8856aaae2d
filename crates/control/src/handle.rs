//! Handle of the dispatcher for other crates. Owns: turning calls into messages and waiting for
//! their answers. Reading never waits for the dispatcher.

use std::collections::BTreeSet;
use std::sync::Arc;

use records::{AuditDetail, AuditFilter, AuditRow};
use tokio::sync::{broadcast, mpsc, oneshot};
use uuid::Uuid;

use crate::feed::Changes;
use crate::meter::{Sample, Subject, Traffic, Values, read};
use crate::metrics::Metrics;
use crate::new_node::NewNode;
use crate::node_access::NodeAccess;
use crate::requests::{Answer, Check, Query, Request, Submitted};
use crate::shared::ControlState;
use crate::wanted::wanted;
use crate::{ClusterInfo, stored};
use orchestrator::{
    Command, Edit, Error, NewObject, NodeChange, OrgChange, PoolChange, Readiness, Record,
    WorkloadChange,
};
use records::EventFilter;
use spec::{PoolSpec, UserLimit, WorkloadSpec};
use view::{Event, Object, OrgUnit, ProjectView, View, WorkloadView};

/// The way to the dispatcher. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    pub(crate) queries: mpsc::Sender<Query>,
    pub(crate) shared: Arc<ControlState>,
    origin: Arc<AuditDetail>,
    waits: bool,
    pub(crate) check: Option<Arc<Check>>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("cluster", &self.shared.cluster).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(
        requests: mpsc::Sender<Request>,
        queries: mpsc::Sender<Query>,
        shared: Arc<ControlState>,
    ) -> Self {
        Self { requests, queries, shared, origin: Arc::default(), waits: false, check: None }
    }

    /// Most sessions of a user; the oldest ends for a new one.
    #[must_use]
    pub fn sessions_max(&self) -> usize {
        usize::try_from(self.shared.user_limits.get(UserLimit::Sessions)).unwrap_or(usize::MAX)
    }

    /// A handle whose requests are written to the audit log as coming from there.
    #[must_use]
    pub fn asked_from(&self, origin: AuditDetail) -> Self {
        Self { origin: Arc::new(origin), ..self.clone() }
    }

    /// A handle whose requests are answered only once no decision is pending, with the results of
    /// decisions.
    #[must_use]
    pub fn that_waits(&self) -> Self {
        Self { waits: true, ..self.clone() }
    }

    /// Writes a request that was refused before it reached the dispatcher to the audit log. Does
    /// not wait; if the dispatcher is overloaded the row is dropped, and the server's log has a
    /// note.
    pub fn record(&self, who: &str, what: &str, target: &str, result: &str) {
        let record = Record {
            who: who.to_owned(),
            what: what.to_owned(),
            target: target.to_owned(),
            result: result.to_owned(),
        };
        let request = Request {
            command: Box::new(Command::Record(record)),
            origin: self.origin.clone(),
            waits: false,
            check: None,
            reply: oneshot::channel().0,
        };
        if self.requests.try_send(request).is_err() {
            tracing::warn!(who, what, target, result, "a row of the audit log was dropped");
        }
    }

    /// The state as of the last decision.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.shared.view.load_full()
    }

    /// Which cluster this is.
    #[must_use]
    pub fn cluster(&self) -> &ClusterInfo {
        &self.shared.cluster
    }

    /// Counters of the dispatcher.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Number of requests that wait for the dispatcher.
    #[must_use]
    pub fn requests_waiting(&self) -> usize {
        self.requests.max_capacity() - self.requests.capacity()
    }

    /// Access of workloads to the node.
    #[must_use]
    pub fn node_access(&self) -> &NodeAccess {
        &self.shared.node_access
    }

    /// Creates a department.
    ///
    /// # Errors
    /// A value is not allowed, the name is taken, or the state cannot be written.
    pub async fn create_department(
        &self,
        by: &str,
        spec: OrgChange,
    ) -> Result<Arc<OrgUnit>, Error> {
        self.department(Command::CreateDepartment { by: by.to_owned(), spec }).await
    }

    /// Gives a department some new values.
    ///
    /// # Errors
    /// As for creation, or there is no such department.
    pub async fn update_department(
        &self,
        by: &str,
        id: u64,
        change: OrgChange,
    ) -> Result<Arc<OrgUnit>, Error> {
        self.department(Command::UpdateDepartment { by: by.to_owned(), id, change }).await
    }

    /// Deletes a department without projects.
    ///
    /// # Errors
    /// There is none, it has projects, or it is the permanent one.
    pub async fn delete_department(&self, by: &str, id: u64) -> Result<(), Error> {
        self.ask(Command::DeleteDepartment { by: by.to_owned(), id }).await.map(drop)
    }

    /// Creates a project in a department.
    ///
    /// # Errors
    /// A value is not allowed, the name is taken, or the state cannot be written.
    pub async fn create_project(
        &self,
        by: &str,
        department_id: u64,
        spec: OrgChange,
    ) -> Result<Arc<ProjectView>, Error> {
        self.project(Command::CreateProject { by: by.to_owned(), department_id, spec }).await
    }

    /// Gives a project some new values.
    ///
    /// # Errors
    /// As for creation, or there is no such project.
    pub async fn update_project(
        &self,
        by: &str,
        id: u64,
        change: OrgChange,
    ) -> Result<Arc<ProjectView>, Error> {
        self.project(Command::UpdateProject { by: by.to_owned(), id, change }).await
    }

    /// Deletes a project without workloads.
    ///
    /// # Errors
    /// There is none, or it has workloads.
    pub async fn delete_project(&self, by: &str, id: u64) -> Result<(), Error> {
        self.ask(Command::DeleteProject { by: by.to_owned(), id }).await.map(drop)
    }

    /// Accepts a workload. It is on disk, and looked at, when this returns.
    ///
    /// # Errors
    /// A value is not allowed, there is no such project, the name is taken; if it is strict, no
    /// node could hold it even if all were free.
    pub async fn submit(
        &self,
        project_id: u64,
        spec: WorkloadSpec,
        strict: bool,
    ) -> Result<Submitted, Error> {
        let wanted = wanted(&*self.shared.engine, spec, strict);
        match self.ask(Command::Submit { project_id, wanted }).await? {
            Answer::Submitted(submitted) => Ok(submitted),
            other => Err(unexpected(&other)),
        }
    }

    /// Stops a workload for good. It is listed until its last process is gone.
    ///
    /// # Errors
    /// There is no such workload.
    pub async fn delete_workload(&self, by: &str, id: Uuid) -> Result<Arc<WorkloadView>, Error> {
        self.workload(Command::Delete { by: by.to_owned(), id }).await
    }

    /// Stops a workload and keeps it.
    ///
    /// # Errors
    /// There is no such workload, or it has ended.
    pub async fn suspend(&self, by: &str, id: Uuid) -> Result<Arc<WorkloadView>, Error> {
        self.workload(Command::Suspend { by: by.to_owned(), id }).await
    }

    /// Queues a suspended workload again.
    ///
    /// # Errors
    /// There is no such workload, or it has ended.
    pub async fn resume(&self, by: &str, id: Uuid) -> Result<Arc<WorkloadView>, Error> {
        self.workload(Command::Resume { by: by.to_owned(), id }).await
    }

    /// Changes values of a workload that its runs do not depend on.
    ///
    /// # Errors
    /// There is no such workload, a value is not allowed, or cannot change in its present state.
    pub async fn update_workload(
        &self,
        by: &str,
        id: Uuid,
        change: WorkloadChange,
    ) -> Result<Arc<WorkloadView>, Error> {
        let (by, change) = (by.to_owned(), Box::new(change));
        self.workload(Command::UpdateWorkload { by, id, change }).await
    }

    /// Gives an inference new values, which are its next revision. `from` is the revision they were
    /// made from.
    ///
    /// # Errors
    /// A value is not allowed, there is no such inference, or it has a newer revision than `from`.
    pub async fn update_inference(
        &self,
        by: &str,
        id: Uuid,
        from: Uuid,
        spec: WorkloadSpec,
    ) -> Result<Arc<WorkloadView>, Error> {
        let (by, wanted) = (by.to_owned(), wanted(&*self.shared.engine, spec, false));
        self.workload(Command::UpdateInference { by, id, from, wanted }).await
    }

    /// Says which replicas of a revision should run, by their numbers, and why.
    ///
    /// # Errors
    /// There is no such revision that serves, or no such replica.
    pub async fn scale(
        &self,
        revision: Uuid,
        wanted: BTreeSet<u32>,
        why: String,
    ) -> Result<(), Error> {
        self.ask(Command::Scale { revision, wanted, why }).await.map(drop)
    }

    /// Stops a revision that another has taken the place of.
    ///
    /// # Errors
    /// There is no such revision that serves.
    pub async fn retire(&self, revision: Uuid) -> Result<(), Error> {
        self.ask(Command::Retire { revision }).await.map(drop)
    }

    /// Ends a revision that never got ready.
    ///
    /// # Errors
    /// There is no such revision that serves.
    pub async fn give_up(&self, revision: Uuid, why: String) -> Result<(), Error> {
        self.ask(Command::GiveUp { revision, why }).await.map(drop)
    }

    /// Shows which runs of replicas are ready and which are not, all at once.
    ///
    /// # Errors
    /// The dispatcher has ended, or the state cannot be written.
    pub async fn note_ready(&self, seen: Vec<Readiness>) -> Result<(), Error> {
        self.ask(Command::NoteReady(seen)).await.map(drop)
    }

    /// Records that a training saved its progress `ago_ms` ago: the cost of stopping it counts from
    /// there.
    ///
    /// # Errors
    /// The dispatcher has ended, or the state cannot be written.
    pub async fn note_checkpoint(&self, id: Uuid, ago_ms: u64) -> Result<(), Error> {
        self.ask(Command::NoteCheckpoint { id, ago_ms }).await.map(drop)
    }

    /// Records that the workers of a training have made no step for `idle_ms`.
    ///
    /// # Errors
    /// The dispatcher has ended, or the state cannot be written.
    pub async fn note_hang(&self, id: Uuid, workers: u32, idle_ms: u64) -> Result<(), Error> {
        self.ask(Command::NoteHang { id, workers, idle_ms }).await.map(drop)
    }

    /// Records that one of these pods of a training has not reached the other for a time, and that
    /// one of the two leaves.
    ///
    /// # Errors
    /// The dispatcher has ended, or the state cannot be written.
    pub async fn note_parting(
        &self,
        id: Uuid,
        pods: [String; 2],
        leaves: String,
        for_ms: u64,
    ) -> Result<(), Error> {
        self.ask(Command::NoteParting { id, pods, leaves, for_ms }).await.map(drop)
    }

    /// Stops every run and starts nothing more; returns when all are gone. The workloads stay
    /// wanted: the next server runs them again, trainings from their checkpoints.
    ///
    /// # Errors
    /// The state cannot be written.
    pub async fn stop_everything(&self, by: &str) -> Result<(), Error> {
        self.ask(Command::StopEverything { by: by.to_owned() }).await.map(drop)
    }

    /// Creates an object. It is on disk, and shown, when this returns.
    ///
    /// # Errors
    /// The name is taken, or its project or department is not there.
    pub async fn create_object(&self, by: &str, new: NewObject) -> Result<Arc<Object>, Error> {
        self.object(Command::CreateObject { by: by.to_owned(), new }).await
    }

    /// Changes an object.
    ///
    /// # Errors
    /// There is none, the name is taken, or an existing object prevents the change.
    pub async fn update_object(
        &self,
        by: &str,
        kind: &'static str,
        id: &str,
        edit: Edit,
    ) -> Result<Arc<Object>, Error> {
        loop {
            let edited = Box::new(edit.made_to(self.view().objects.get(kind, id).map(|o| &**o)));
            let (by, id) = (by.to_owned(), id.to_owned());
            match self.ask(Command::UpdateObject { by, kind, id, edited }).await? {
                // Another change came before it: it is made again, to what that left.
                Answer::Outdated => {}
                Answer::Object(object) => return Ok(object),
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// Deletes an object and the objects that end with it; returns its last state.
    ///
    /// # Errors
    /// There is none.
    pub async fn delete_object(
        &self,
        by: &str,
        kind: &'static str,
        id: &str,
    ) -> Result<Arc<Object>, Error> {
        let (by, id) = (by.to_owned(), id.to_owned());
        self.object(Command::DeleteObject { by, kind, id }).await
    }

    /// Creates a node pool: it takes its nodes, and has queues of its own, when this returns.
    ///
    /// # Errors
    /// A value is not allowed, or the name or the label is taken.
    pub async fn create_pool(&self, by: &str, spec: PoolSpec) -> Result<Arc<Object>, Error> {
        self.object(Command::CreatePool { by: by.to_owned(), spec }).await
    }

    /// Changes a node pool, and with it perhaps which nodes are in it.
    ///
    /// # Errors
    /// There is none, a value is not allowed, or the label is taken.
    pub async fn update_pool(
        &self,
        by: &str,
        id: &str,
        change: PoolChange,
    ) -> Result<Arc<Object>, Error> {
        let (by, id) = (by.to_owned(), id.to_owned());
        self.object(Command::UpdatePool { by, id, change }).await
    }

    /// Deletes a node pool. Its nodes go to others, and what runs on them runs on.
    ///
    /// # Errors
    /// There is none, it is `default`, or something names it.
    pub async fn delete_pool(&self, by: &str, id: &str) -> Result<(), Error> {
        let (by, id) = (by.to_owned(), id.to_owned());
        self.object(Command::DeletePool { by, id }).await.map(drop)
    }

    /// Changes the settings of a node: labels, taints, whether it takes pods.
    ///
    /// # Errors
    /// There is no such node, or a value is not allowed.
    pub async fn change_node(&self, by: &str, node: &str, change: NodeChange) -> Result<(), Error> {
        let (by, node) = (by.to_owned(), node.to_owned());
        self.ask(Command::ChangeNode { by, node, change }).await.map(drop)
    }

    /// Adds simulated nodes: all of them, or none.
    ///
    /// # Errors
    /// Nodes are real here, a name is taken, or they are too large.
    pub async fn add_node(&self, by: &str, node: NewNode) -> Result<(), Error> {
        let (by, (spec, more)) = (by.to_owned(), node.made(self.view().nodes.len())?);
        self.ask(Command::AddNode { by, spec, more }).await.map(drop)
    }

    /// Removes a simulated node at once: what runs there is lost, and starts elsewhere.
    ///
    /// # Errors
    /// There is no such node, or nodes are real here.
    pub async fn remove_node(&self, by: &str, node: &str) -> Result<(), Error> {
        let (by, node) = (by.to_owned(), node.to_owned());
        self.ask(Command::RemoveNode { by, node }).await.map(drop)
    }

    /// Makes a simulated GPU fail, for trials and drills: what runs on it goes elsewhere.
    ///
    /// # Errors
    /// There is no such GPU, or it is a real one.
    pub async fn fail_gpu(&self, by: &str, node: &str, gpu: u32) -> Result<(), Error> {
        let (by, node) = (by.to_owned(), node.to_owned());
        self.ask(Command::FailGpu { by, node, gpu }).await.map(drop)
    }

    /// Makes a simulated GPU work again.
    ///
    /// # Errors
    /// There is no such GPU, or it is a real one.
    pub async fn heal_gpu(&self, by: &str, node: &str, gpu: u32) -> Result<(), Error> {
        let (by, node) = (by.to_owned(), node.to_owned());
        self.ask(Command::HealGpu { by, node, gpu }).await.map(drop)
    }

    /// Reads the event log.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn events(&self, filter: EventFilter) -> Result<Vec<Event>, Error> {
        let rows = self.shared.store.events(&filter).await.map_err(stored)?;
        Ok(rows.into_iter().map(view::Event::from).collect())
    }

    /// Reads the audit log, the newest rows first, with their numbers.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<(u64, AuditRow)>, Error> {
        self.shared.store.audit_log(filter).await.map_err(stored)
    }

    /// Number of rows of the audit log, over all pages.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn audit_count(&self, filter: &AuditFilter) -> Result<u64, Error> {
        self.shared.store.audit_count(filter).await.map_err(stored)
    }

    /// GPU time that was allocated from `from` until `until`, exactly, and that was measured and
    /// used in the hours that begin in that time; a row for each project, owner and model.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn ledger(
        &self,
        from: units::Instant,
        until: units::Instant,
    ) -> Result<Vec<records::LedgerRow>, Error> {
        self.shared.store.ledger(from, until).await.map_err(stored)
    }

    /// Newest sample of allocation and use.
    #[must_use]
    pub fn sample(&self) -> Arc<Sample> {
        self.shared.sample.load_full()
    }

    /// Stores the counts of requests to inferences up to now, for the next sample.
    pub fn count(&self, traffic: Traffic) {
        self.shared.traffic.store(Arc::new(traffic));
    }

    /// Samples of a subject from the first moment until before the second, the oldest first; as
    /// means if one value for each `spacing_ms` is enough.
    ///
    /// # Errors
    /// The state cannot be read.
    pub async fn measured(
        &self,
        subject: &Subject,
        span: (units::Instant, units::Instant),
        spacing_ms: u64,
        now: units::Instant,
    ) -> Result<Vec<(units::Instant, Values)>, Error> {
        read(&self.shared.store, subject, span, spacing_ms, now).await.map_err(stored)
    }

    /// Every event from now on, after it is on disk. A receiver that falls behind gets an error and
    /// reads the gap with [`Handle::events`].
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.shared.events.subscribe()
    }

    /// Begins to read changes, from the view as it is now.
    pub async fn changes(&self) -> Changes {
        self.shared.feed.clone().changes().await
    }

    async fn department(&self, command: Command) -> Result<Arc<OrgUnit>, Error> {
        match self.ask(command).await? {
            Answer::Department(view) => Ok(view),
            other => Err(unexpected(&other)),
        }
    }

    async fn project(&self, command: Command) -> Result<Arc<ProjectView>, Error> {
        match self.ask(command).await? {
            Answer::Project(view) => Ok(view),
            other => Err(unexpected(&other)),
        }
    }

    async fn workload(&self, command: Command) -> Result<Arc<WorkloadView>, Error> {
        match self.ask(command).await? {
            Answer::Workload(view) => Ok(view),
            other => Err(unexpected(&other)),
        }
    }

    async fn object(&self, command: Command) -> Result<Arc<Object>, Error> {
        match self.ask(command).await? {
            Answer::Object(object) => Ok(object),
            other => Err(unexpected(&other)),
        }
    }

    async fn ask(&self, command: Command) -> Result<Answer, Error> {
        let (reply, answer) = oneshot::channel();
        let (command, origin) = (Box::new(command), self.origin.clone());
        let request =
            Request { command, origin, waits: self.waits, check: self.check.clone(), reply };
        self.requests.send(request).await.map_err(|_| Error::stopping())?;
        answer.await.map_err(|_| Error::stopping())?
    }
}

fn unexpected(answer: &Answer) -> Error {
    Error::Internal { message: format!("the dispatcher answered another question: {answer:?}") }
}
