//! Requests and queries of handles to the dispatcher, and their answers. Owns: requests and
//! queries, and which view is the answer to a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestrator::{Command, Error, Subject, Wanted};
use records::AuditDetail;
use spec::WorkloadSpec;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;
use view::{Object, OrgUnit, ProjectView, View, WorkloadView};

use crate::faults::guarded;

/// A workload that was accepted.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The workload.
    pub workload: Arc<WorkloadView>,
    /// Reason why no node could hold the workload as nodes are now; `None` if one could.
    pub warning: Option<String>,
}

/// Result of a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Department(Arc<OrgUnit>),
    Project(Arc<ProjectView>),
    Workload(Arc<WorkloadView>),
    Submitted(Submitted),
    Object(Arc<Object>),
    Outdated,
    Done,
}

pub(crate) type CheckFn = dyn Fn(&View) -> Result<(), Error> + Send + Sync;

/// Check of a request against the state that it is applied to.
pub(crate) struct Check(pub(crate) Box<CheckFn>);

/// A command and where its answer goes.
pub(crate) struct Request {
    pub(crate) command: Box<Command>,
    /// Origin of the request, for the audit log.
    pub(crate) origin: Arc<AuditDetail>,
    /// True if the answer waits until no decision is pending.
    pub(crate) waits: bool,
    /// Its check; it is the first request of its batch then.
    pub(crate) check: Option<Arc<Check>>,
    pub(crate) reply: Reply,
}

impl Request {
    /// This request, unless its check refuses it, which is its answer then.
    pub(crate) fn admitted(self, view: &View) -> Option<Self> {
        let checked =
            self.check.as_ref().map(|check| guarded(|| (check.0)(view)).and_then(|it| it));
        match checked {
            None | Some(Ok(())) => Some(self),
            Some(Err(error)) => {
                answer_to(self.reply, Err(error));
                None
            }
        }
    }
}

/// The next request: the one that was left out of the last batch, else the first of the queue.
pub(crate) async fn next_request(
    left: &mut Option<Box<Request>>,
    queue: &mut mpsc::Receiver<Request>,
) -> Option<Request> {
    match left.take() {
        Some(request) => Some(*request),
        None => queue.recv().await,
    }
}

/// The scheduler's view at one moment, between two decisions.
#[derive(Debug, Clone)]
pub struct SchedulingState {
    /// Nodes, queues, workloads and where their pods are.
    pub cluster: model::Cluster,
    /// Policy of the scheduler.
    pub policy: sched::Policy,
    /// Time of the view.
    pub now: units::Instant,
}

/// A query, and where its answer goes.
#[derive(Debug)]
pub(crate) enum Query {
    /// Policy of decisions, settings of the operator, and the time.
    Terms(oneshot::Sender<(sched::Policy, orchestrator::Settings, units::Instant)>),
    /// The scheduler's view, from its own copy.
    State(oneshot::Sender<Box<SchedulingState>>),
    /// Specification that a submission would be accepted with.
    Submission {
        project_id: u64,
        wanted: Box<Wanted>,
        to: oneshot::Sender<Result<WorkloadSpec, Error>>,
    },
}

pub(crate) type Reply = oneshot::Sender<Result<Answer, Error>>;

/// The outcome of a request, and where it goes; at once, or once nothing is left to decide about.
pub(crate) struct Pending {
    pub(crate) outcome: Result<Subject, Error>,
    pub(crate) waits: bool,
    pub(crate) reply: Reply,
}

/// The answer of a request with this outcome.
pub(crate) fn answer(
    subject: &Subject,
    view: &View,
    gone: &BTreeMap<Uuid, Arc<WorkloadView>>,
) -> Result<Answer, Error> {
    let workload = |id: Uuid| {
        let found = view.workloads.get(&id).or_else(|| gone.get(&id));
        found.cloned().ok_or_else(|| Error::no_workload(id))
    };
    match subject {
        Subject::Object(object) => Ok(Answer::Object(object.clone())),
        Subject::Nothing | Subject::Drain => Ok(Answer::Done),
        Subject::Outdated => Ok(Answer::Outdated),
        Subject::Department(id) => {
            let found = view.departments.get(id).cloned().map(Answer::Department);
            found.ok_or_else(|| Error::no_department(*id))
        }
        Subject::Project(id) => {
            let found = view.projects.get(id).cloned().map(Answer::Project);
            found.ok_or_else(|| Error::no_project(*id))
        }
        Subject::Workload(id) => workload(*id).map(Answer::Workload),
        Subject::Submitted(id, warning) => {
            let (workload, warning) = (workload(*id)?, warning.clone());
            Ok(Answer::Submitted(Submitted { workload, warning }))
        }
    }
}

/// Answers all requests with this error.
pub(crate) fn refuse(answers: Vec<Pending>, error: &Error) {
    for Pending { outcome, reply, .. } in answers {
        // A refusal stands whether or not it could be written to the audit log.
        answer_to(reply, outcome.and_then(|_| Err(error.clone())));
    }
}

pub(crate) fn answer_to(reply: Reply, answer: Result<Answer, Error>) {
    // The caller may have gone; the decision stands.
    let _ = reply.send(answer);
}
