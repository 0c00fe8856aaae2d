//! Answers of requests. Owns: which view is the answer of what a request came to.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestrator::view::{View, WorkloadView};
use orchestrator::{Error, Subject};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::handle::Answer;

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
        Subject::Workload(id) => {
            let found = view.workloads.get(id).or_else(|| gone.get(id));
            found.cloned().map(Answer::Workload).ok_or_else(|| Error::no_workload(*id))
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
