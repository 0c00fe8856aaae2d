//! What would happen on a server if something were asked of it. Owns: asking a machine that goes on
//! from what the server has stored, and what came of it for what was submitted.
//!
//! ```text
//!  steps of a scenario, submissions --> inputs of the machine --> its decisions, places, reasons
//! ```

mod inputs;
mod submission;

use std::sync::Arc;

use model::{Cluster, WorkloadId};
use orchestrator::view::{ReasonView, WorkloadView};
use orchestrator::{Command, Error, Input, Subject, Wanted};
use sched::Policy;
use spec::WorkloadSpec;
use units::Instant;
use uuid::Uuid;

use crate::frame::{self, Decision, Task};
use crate::machine::{Machine, Stored};
use crate::scenario::Step;

/// Most times everything that is under way goes on after a question, before it is said that the
/// scheduler does not come to rest.
const TURNS_MAX: u32 = 4000;

/// Something that is asked of a server.
#[derive(Debug, Clone)]
pub enum Asked {
    /// A step of a scenario, without what takes time and what is expected.
    Step(Box<Step>),
    /// A workload of the project with this id.
    Submission(u64, Box<WorkloadSpec>),
}

/// What would happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WouldHappen {
    /// What the scheduler would decide because of what was asked.
    pub decisions: Vec<Decision>,
    /// Where the pods of what was submitted would be.
    pub tasks: Vec<Task>,
    /// Why some of it would wait.
    pub waiting: Vec<WouldWait>,
}

/// Why a workload would wait.
#[derive(Debug, Clone, PartialEq)]
pub struct WouldWait {
    /// Its project.
    pub project: String,
    /// Its name.
    pub workload: String,
    /// Why.
    pub reasons: Arc<[ReasonView]>,
    /// The long answer, in lines for people.
    pub lines: Vec<String>,
    /// Another that waits for the same and has the long answer.
    pub like: Option<String>,
}

/// Asks a server; the long answer is given for so many workloads that are not alike.
///
/// # Errors
/// No state can be built of it; something of what is asked is not there, or would be refused.
pub fn what_if(
    stored: Stored,
    asked: &[Asked],
    explained_max: usize,
) -> Result<WouldHappen, Error> {
    let mut asking = Asking { machine: Machine::of(stored)?, submitted: Vec::new() };
    // What would happen without being asked is no answer.
    asking.rest(&mut Vec::new())?;
    let mut decisions = Vec::new();
    for one in asked {
        match one {
            Asked::Step(step) => asking.step(step)?,
            Asked::Submission(project_id, spec) => {
                asking.submit(*project_id, WorkloadSpec::clone(spec))?;
            }
        }
        asking.rest(&mut decisions)?;
    }
    let (tasks, waiting) = (asking.tasks(), asking.waiting(explained_max));
    Ok(WouldHappen { decisions, tasks, waiting })
}

/// A server that is asked.
struct Asking {
    machine: Machine,
    submitted: Vec<Uuid>,
}

impl Asking {
    /// Takes inputs as one batch; the first of them that is refused is an error.
    fn take(&mut self, inputs: Vec<Input>) -> Result<Vec<Subject>, Error> {
        let outcomes = self.machine.take(inputs, None)?;
        outcomes.into_iter().flatten().collect()
    }

    fn command(&mut self, command: Command) -> Result<Subject, Error> {
        self.machine.command(command)
    }

    fn submit(&mut self, project_id: u64, spec: WorkloadSpec) -> Result<Option<Uuid>, Error> {
        let wanted = Box::new(Wanted { spec, runs: Ok(()) });
        let submitted = match self.command(Command::Submit { project_id, wanted })? {
            Subject::Workload(id) => Some(id),
            _ => None,
        };
        self.submitted.extend(submitted);
        Ok(submitted)
    }

    /// Lets everything happen that needs no time.
    fn rest(&mut self, decisions: &mut Vec<Decision>) -> Result<(), Error> {
        for _ in 0..TURNS_MAX {
            if let (Some(plan), Some((cluster, _))) =
                (self.machine.decided(), self.machine.replica())
            {
                decisions.extend(plan.steps.iter().map(|step| frame::decision(cluster, step)));
            }
            if !self.machine.go_on()? {
                return Ok(());
            }
        }
        Err(Error::Internal { message: "the scheduler does not come to rest".to_owned() })
    }

    /// The workload with this id, and its place in what the scheduler sees.
    fn seen(&self, id: Uuid) -> Option<(&WorkloadView, WorkloadId)> {
        let workload = self.machine.view()?.workloads.get(&id)?;
        Some((workload, workload.model?))
    }

    fn tasks(&self) -> Vec<Task> {
        let Some((cluster, _)) = self.machine.replica() else { return Vec::new() };
        let seen = self.submitted.iter().filter_map(|&id| self.seen(id));
        let tasks = seen.flat_map(|(workload, model)| {
            let (project, name) = (&workload.project_name, &workload.spec.name);
            let pods = cluster.workloads()[model].pods.iter();
            pods.map(move |&pod| frame::task(cluster, (project, name), pod))
        });
        tasks.collect()
    }

    fn waiting(&self, explained_max: usize) -> Vec<WouldWait> {
        let Some((cluster, policy)) = self.machine.replica() else { return Vec::new() };
        let now = self.machine.clock.now();
        let mut explained: Vec<(WorkloadId, String)> = Vec::new();
        let mut all = Vec::new();
        let seen = self.submitted.iter().filter_map(|&id| self.seen(id));
        for (workload, model) in seen.filter(|(workload, _)| workload.waits_for_a_place()) {
            let (project, name) = (workload.project_name.clone(), workload.spec.name.clone());
            let like = explained.iter().find(|(other, _)| sched::alike(cluster, model, *other));
            let like = like.map(|(_, name)| name.clone());
            let mut lines = Vec::new();
            if like.is_none() && explained.len() < explained_max {
                lines = long_answer(cluster, model, now, policy);
                explained.push((model, format!("{project}/{name}")));
            }
            let reasons = workload.pending.clone();
            all.push(WouldWait { project, workload: name, reasons, lines, like });
        }
        all
    }
}

fn long_answer(cluster: &Cluster, id: WorkloadId, now: Instant, policy: &Policy) -> Vec<String> {
    let found = sched::diagnose(cluster, id, now, policy);
    found.map(|diagnosis| diagnosis.details(now)).unwrap_or_default()
}
