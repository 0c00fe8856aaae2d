//! What handles send to the dispatcher, and how it answers. Owns: requests and queries, and which
//! view is the answer of what a request came to.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestrator::{Command, Error, Subject, Wanted};
use records::AuditDetail;
use spec::WorkloadSpec;
use tokio::sync::oneshot;
use uuid::Uuid;
use view::{Object, OrgUnit, ProjectView, View, WorkloadView};

/// A workload that was accepted.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// What it is.
    pub workload: Arc<WorkloadView>,
    /// Why no node could hold it as nodes are now, if none could.
    pub warning: Option<String>,
}

/// What a request came to.
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

/// A command and where its answer goes.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: Box<Command>,
    /// From where and how it was asked, for the audit log.
    pub(crate) origin: Arc<AuditDetail>,
    /// True if it is answered only once nothing is left to decide about.
    pub(crate) waits: bool,
    pub(crate) reply: Reply,
}

/// What the scheduler sees at one moment, between two decisions.
#[derive(Debug, Clone)]
pub struct SchedulingState {
    /// Nodes, queues, workloads and where their pods are.
    pub cluster: model::Cluster,
    /// The knobs.
    pub policy: sched::Policy,
    /// When.
    pub now: units::Instant,
}

/// A query, and where its answer goes.
#[derive(Debug)]
pub(crate) enum Query {
    /// How decisions are made, and the time.
    Terms(oneshot::Sender<(sched::Policy, units::Instant)>),
    /// What the scheduler sees, from its own copy.
    State(oneshot::Sender<Box<SchedulingState>>),
    /// What a submission would be taken in as.
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

/// Answers that nothing of what was asked counts.
pub(crate) fn refuse(answers: Vec<Pending>, error: &Error) {
    for Pending { outcome, reply, .. } in answers {
        // A refusal stands whether or not it could be written to the audit log.
        answer_to(reply, outcome.and_then(|_| Err(error.clone())));
    }
}

pub(crate) fn answer_to(reply: Reply, answer: Result<Answer, Error>) {
    // The caller may have gone; what was decided stands.
    let _ = reply.send(answer);
}
