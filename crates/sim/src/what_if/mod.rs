//! Prediction of the effect of requests on a server. Owns: executing requests on a machine that
//! continues from the stored state of the server, and the outcome for the submitted workloads.
//!
//! ```text
//!  steps of a scenario, submissions --> inputs of the machine --> its decisions, places, reasons
//! ```

use model::WorkloadId;
use orchestrator::{Command, Error, StoredState};
use reasons::diagnosis::Diagnosis;
use spec::{NodeSpec, WorkloadSpec};
use units::Instant;
use uuid::Uuid;
use view::{ReasonView, WorkloadView};

use crate::machine::Machine;
use crate::play::Asking;
use crate::report::{self, Decision, Task};
use crate::scenario::Step;

/// Maximum number of rounds after a request, before the call fails because the scheduler does not
/// stop deciding.
const TURNS_MAX: u32 = 4000;
/// Maximum number of moments in a wait at which something is due, and of pods over all of them: each
/// is a decision.
const MOMENTS_MAX: usize = 200;
const PODS_LOOKED_AT_MAX: usize = 2_000_000;

/// A request to a server.
#[derive(Debug, Clone)]
pub enum Asked {
    /// A step of a scenario that takes no time and has no expectation.
    Step(Box<Step>),
    /// Submission of a workload to the project with this id.
    Submission(u64, Box<WorkloadSpec>),
    /// A change of the inference with this id from its newest revision, which has the second id, to
    /// the next one; a replica of the earlier revisions makes room.
    Replacement(Uuid, Uuid, Box<WorkloadSpec>),
    /// Another command.
    Command(Box<Command>),
    /// New nodes.
    Nodes(Vec<NodeSpec>),
    /// Passing of time, up to a moment.
    Wait(Instant),
    /// The outcome for the workload with this id, or for its newest revision, as if it was submitted.
    Outcome(Uuid),
}

/// The predicted effect of requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WouldHappen {
    /// Decisions of the scheduler because of the requests.
    pub decisions: Vec<Decision>,
    /// Places of the pods of submitted workloads.
    pub tasks: Vec<Task>,
    /// Submitted workloads that would wait, with the reasons.
    pub waiting: Vec<WouldWait>,
}

/// A workload that would wait.
#[derive(Debug, Clone, PartialEq)]
pub struct WouldWait {
    /// Its project.
    pub project: String,
    /// Its name.
    pub workload: String,
    /// Reasons why it would wait.
    pub reasons: Vec<ReasonView>,
    /// Detailed diagnosis; `None` if an equal workload has it, or too many have one.
    pub diagnosis: Option<Diagnosis>,
    /// Moment of the diagnosis.
    pub at: Instant,
    /// Name of an equal workload that has the detailed diagnosis.
    pub like: Option<String>,
}

/// Predicts the effect of requests; up to `explained_max` workloads that are not equal get a
/// detailed diagnosis.
///
/// # Errors
/// No state can be built from the rows; a request names an object that does not exist, or would be
/// refused.
pub fn what_if(
    stored: StoredState,
    asked: &[Asked],
    explained_max: usize,
) -> Result<WouldHappen, Error> {
    let mut question = Question { asking: Asking::of(Machine::of(stored)?), submitted: Vec::new() };
    // Effects that occur without the requests are no part of the answer.
    question.rest(&mut Vec::new())?;
    let mut decisions = Vec::new();
    for one in asked {
        let submitted = match one {
            Asked::Step(step) => question.asking.step(step)?,
            Asked::Submission(project_id, spec) => {
                let spec = WorkloadSpec::clone(spec);
                question.asking.submit(*project_id, spec, false)?.into_iter().collect()
            }
            Asked::Replacement(id, from, spec) => question
                .asking
                .replace(*id, *from, WorkloadSpec::clone(spec))?
                .into_iter()
                .collect(),
            Asked::Command(command) => {
                question.asking.machine.command(Command::clone(command))?;
                Vec::new()
            }
            Asked::Nodes(nodes) => {
                question.asking.apply(nodes)?;
                Vec::new()
            }
            Asked::Wait(until) => {
                question.wait(*until, &mut decisions)?;
                Vec::new()
            }
            Asked::Outcome(id) => vec![question.newest(*id)],
        };
        question.submitted.extend(submitted);
        question.rest(&mut decisions)?;
    }
    let (tasks, waiting) = (question.tasks(), question.waiting(explained_max));
    Ok(WouldHappen { decisions, tasks, waiting })
}

/// A server under prediction, and the submitted workloads.
struct Question {
    asking: Asking,
    submitted: Vec<Uuid>,
}

impl Question {
    /// Continues everything that takes no time.
    fn rest(&mut self, decisions: &mut Vec<Decision>) -> Result<(), Error> {
        for _ in 0..TURNS_MAX {
            if let (Some(plan), Some((cluster, _))) =
                (self.asking.machine.decided(), self.asking.machine.replica())
            {
                decisions.extend(plan.steps.iter().map(|step| report::decision(cluster, step)));
            }
            if !self.asking.machine.go_on()? {
                return Ok(());
            }
        }
        Err(Error::Internal { message: "the scheduler does not come to rest".to_owned() })
    }

    /// The newest revision of an inference; any other workload itself.
    fn newest(&self, id: Uuid) -> Uuid {
        let found = self.asking.machine.view().and_then(|view| view.workloads.get(&id));
        found.and_then(|one| one.revisions.last().copied()).unwrap_or(id)
    }

    /// Lets time pass, with all that is due by then.
    fn wait(&mut self, until: Instant, decisions: &mut Vec<Decision>) -> Result<(), Error> {
        let pods = self.asking.machine.replica().map_or(1, |(cluster, _)| cluster.pods().len());
        let moments_max = (PODS_LOOKED_AT_MAX / pods.max(1)).clamp(1, MOMENTS_MAX);
        for _ in 0..=moments_max {
            let now = self.asking.machine.clock.now();
            if now >= until {
                return Ok(());
            }
            let due =
                self.asking.machine.due().map_or(until, |due| due.clamp(now.plus_ms(1), until));
            self.asking.machine.clock.advance_ms(due.since_ms(now));
            self.rest(decisions)?;
        }
        Err(Error::invalid("changes", "`until` is too far ahead: too much is due by then"))
    }

    /// The workload with this id, and its id in the model.
    fn seen(&self, id: Uuid) -> Option<(&WorkloadView, WorkloadId)> {
        let view = self.asking.machine.view()?;
        let workload = view.workloads.get(&id).or_else(|| view.revisions.get(&id))?;
        Some((workload, workload.model?))
    }

    fn tasks(&self) -> Vec<Task> {
        let Some((cluster, _)) = self.asking.machine.replica() else { return Vec::new() };
        let seen = self.submitted.iter().filter_map(|&id| self.seen(id));
        let tasks = seen.flat_map(|(workload, model)| {
            let (project, name) = (&workload.project_name, &workload.spec.name);
            let pods = cluster.workloads()[model].pods.iter();
            pods.map(move |&pod| report::task(cluster, (project, name), pod))
        });
        tasks.collect()
    }

    fn waiting(&self, explained_max: usize) -> Vec<WouldWait> {
        let machine = &self.asking.machine;
        let (Some((cluster, policy)), Some(view)) = (machine.replica(), machine.view()) else {
            return Vec::new();
        };
        let now = machine.clock.now();
        let mut explained: Vec<(WorkloadId, String)> = Vec::new();
        let mut all = Vec::new();
        let seen = self.submitted.iter().filter_map(|&id| self.seen(id));
        for (workload, model) in seen.filter(|(workload, _)| workload.waits_for_a_place()) {
            let (project, name) = (workload.project_name.clone(), workload.spec.name.clone());
            let like = explained.iter().find(|(other, _)| sched::alike(cluster, model, *other));
            let like = like.map(|(_, name)| name.clone());
            let mut diagnosis = None;
            if like.is_none() && explained.len() < explained_max {
                diagnosis = sched::diagnose(cluster, model, now, policy);
                explained.push((model, format!("{project}/{name}")));
            }
            let reasons = view.why(workload);
            all.push(WouldWait { project, workload: name, reasons, diagnosis, at: now, like });
        }
        all
    }
}
