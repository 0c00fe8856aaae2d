//! Execution of a scenario from its first step to its last. Owns: the times of decisions, the
//! passing of time, and the recording of frames. Does not know about: output.

use model::WorkloadId;
use sched::Action;
use spec::{Exit, RunKey};
use units::Instant;

use super::start::with_more;
use super::steps::one_action;
use super::{Simulation, convert};
use crate::Error;
use crate::diagnosis::diagnosis;
use crate::expect::{self, Decided};
use crate::report::Frame;
use crate::scenario::{At, Gone, Scenario, Schedule, Step};

/// Maximum number of decisions after one step before the run fails, because the scheduler does not
/// stop deciding.
pub const CYCLES_TO_REST_MAX: u32 = 1000;
/// Maximum number of wake-ups of the scheduler while time passes in one step.
const WAKES_MAX: u32 = 100_000;

/// Level of detail of the record of each decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Only the state at the end.
    End,
    /// Decisions; tasks and queues only after the last decision.
    Decisions,
    /// The whole state after each decision.
    Everything,
}

/// An expectation that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Line of the expectation, from 1; 0 if it did not come from a file.
    pub line: u64,
    /// Column.
    pub column: u64,
    /// The difference between the expectation and the state.
    pub message: String,
}

/// Result of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// Each decision that changed something or that a step requests, in order, and the state at the
    /// end.
    pub frames: Vec<Frame>,
    /// Expectations that did not hold.
    pub failures: Vec<Failure>,
    /// Number of expectations.
    pub expectations: usize,
    /// The simulation in its final state.
    pub simulation: Simulation,
}

impl Outcome {
    /// Diagnoses at most `max` workloads that wait in the last frame, the first of each class of
    /// equal ones.
    pub fn diagnose(&mut self, max: usize) {
        let Some(frame) = self.frames.last_mut() else { return };
        let simulation = &self.simulation;
        let (cluster, policy) = (simulation.cluster(), simulation.policy());
        let mut done: Vec<(WorkloadId, String)> = Vec::new();
        for waiting in &mut frame.pending {
            let known = simulation.jobs.iter().position(|job| {
                (job.name.as_str(), job.project.as_str()) == (&*waiting.workload, &*waiting.project)
            });
            let Some(number) = known else { continue };
            let Some(id) = simulation.jobs[number].model else { continue };
            let submitted = number < simulation.jobs_at_start;
            let like = done.iter().find(|(other, _)| sched::alike(cluster, id, *other));
            if let Some((_, name)) = like {
                waiting.like = Some(name.clone());
            } else if done.len() < max {
                waiting.diagnosis = diagnosis(cluster, id, simulation.now(), policy, submitted);
                done.push((id, format!("{}/{}", waiting.project, waiting.workload)));
            }
        }
    }
}

/// Runs a scenario.
///
/// # Errors
/// An invalid object, or a step that names an object that does not exist.
pub fn run(scenario: &Scenario, record: Record) -> Result<Outcome, Error> {
    let mut run = Run::new(scenario, record)?;
    for step in &scenario.steps {
        run.take(step)?;
    }
    run.end()
}

/// A scenario in progress.
struct Run {
    simulation: Simulation,
    record: Record,
    frames: Vec<Frame>,
    /// Number of the step; 0 before the first.
    step: u32,
    /// Decisions since the last action.
    decided: Decided,
    failures: Vec<Failure>,
    expectations: usize,
    cycles: u64,
    /// `true` if something happened at the end of the last step that is not decided yet: a change
    /// that follows is of the same moment, and one decision covers both.
    is_due: bool,
}

impl Run {
    /// Builds the initial state, and makes the first decisions.
    fn new(scenario: &Scenario, record: Record) -> Result<Self, Error> {
        let mut run = Self {
            simulation: Simulation::new(scenario)?,
            record,
            frames: Vec::new(),
            step: 0,
            decided: Decided::default(),
            failures: Vec::new(),
            expectations: 0,
            cycles: 0,
            is_due: false,
        };
        run.schedule().map_err(|fault| At::from(()).fault(fault))?;
        Ok(run)
    }

    /// Executes one step and the decisions that follow, and checks its expectations.
    fn take(&mut self, step: &At<Step>) -> Result<(), Error> {
        self.step += 1;
        if one_action(step).map_err(|fault| step.fault(fault))?.is_some() {
            self.decided = Decided::default();
            self.act(step)?;
        }
        if let Some(expected) = &step.expect {
            self.catch_up().map_err(|fault| step.fault(fault))?;
            self.expectations += 1;
            for message in expect::differences(&self.simulation, &self.decided, expected) {
                let message = format!("step {}: {message}", self.step);
                let (line, column) = (expected.line, expected.column);
                self.failures.push(Failure { line, column, message });
            }
        }
        Ok(())
    }

    fn act(&mut self, step: &At<Step>) -> Result<(), Error> {
        let fault = |fault: String| step.fault(fault);
        if let Some(cycles) = &step.cycles {
            let profile = self.simulation.policy().profile;
            let given = |wire: &Vec<_>| convert::actions(profile, wire);
            let actions = cycles.actions.as_ref().map(given).transpose();
            let actions = actions.map_err(|fault| cycles.fault(fault))?;
            return (0..cycles.count)
                .try_for_each(|_| self.cycle(true, actions.as_deref()))
                .map_err(fault);
        }
        if let Some(span) = step.advance {
            self.catch_up().map_err(fault)?;
            let end = self.simulation.now().plus_ms(span.0);
            return self.pass(end).map_err(fault);
        }
        match &step.submit {
            Some(_) => self.simulation.submit(step)?,
            None => self.simulation.change(step).map_err(fault)?,
        }
        self.schedule().map_err(fault)
    }

    fn end(mut self) -> Result<Outcome, Error> {
        self.catch_up().map_err(|fault| At::from(()).fault(fault))?;
        let last = Frame::state(&self.simulation, self.cycles, self.step);
        self.frames.push(last);
        if let Some(fault) = self.simulation.asking.machine.misuse() {
            return Err(At::from(()).fault(format!("a fault of this program: {fault}")));
        }
        let Self { simulation, frames, failures, expectations, .. } = self;
        Ok(Outcome { frames, failures, expectations, simulation })
    }

    /// Makes the decision that is due since the last step, if any.
    fn catch_up(&mut self) -> Result<(), String> {
        if self.is_due { self.schedule() } else { Ok(()) }
    }

    fn schedule(&mut self) -> Result<(), String> {
        self.is_due = false;
        if self.simulation.world.schedule == Schedule::ByHand {
            return Ok(());
        }
        for _ in 0..CYCLES_TO_REST_MAX {
            self.cycle(false, None)?;
            if self.simulation.plan.steps.is_empty() {
                return Ok(());
            }
        }
        self.fail(format!("the scheduler does not come to rest in {CYCLES_TO_REST_MAX} cycles"));
        Ok(())
    }

    fn cycle(&mut self, asked_for: bool, actions: Option<&[Action]>) -> Result<(), String> {
        self.simulation.decide(actions)?;
        self.cycles += 1;
        self.decided.stopped.extend(crate::report::stopped(&self.simulation));
        self.decided.kinds.extend(self.simulation.plan.steps.iter().map(crate::report::kind));
        if asked_for || !self.simulation.plan.steps.is_empty() {
            let (simulation, cycles, step) = (&self.simulation, self.cycles, self.step);
            match self.record {
                Record::End => {}
                Record::Decisions => self.frames.push(Frame::decisions(simulation, cycles, step)),
                Record::Everything => self.frames.push(Frame::whole(simulation, cycles, step)),
            }
        }
        // Stopped pods terminate before the next decision, unless the scenario ends them itself.
        self.simulation.settle()
    }

    /// Lets time pass: runs end after their run time, limits are enforced, and the scheduler is
    /// woken at the time that it requested.
    fn pass(&mut self, end: Instant) -> Result<(), String> {
        for _ in 0..WAKES_MAX {
            let soonest = self.simulation.next_event().unwrap_or(end).min(end);
            self.simulation.wait_until(soonest);
            self.simulation.end_due();
            self.simulation.settle()?;
            let now = self.simulation.now();
            let woken = self.simulation.plan.wake_at.is_some_and(|at| at <= now);
            let is_due = woken || self.simulation.asking.machine.is_undecided();
            if now >= end {
                self.is_due = is_due;
                return Ok(());
            }
            if is_due {
                self.schedule()?;
            }
        }
        self.fail(format!("more than {WAKES_MAX} things happen in this step; let less time pass"));
        Ok(())
    }

    fn fail(&mut self, message: String) {
        let message = format!("step {}: {message}", self.step);
        self.failures.push(Failure { line: 0, column: 0, message });
    }
}

impl Simulation {
    /// Makes one decision.
    pub(crate) fn decide(&mut self, actions: Option<&[Action]>) -> Result<(), String> {
        self.end_due();
        self.settle()?;
        let decided = self.asking.machine.decide(actions);
        (self.plan, self.shares) = decided.map_err(|error| error.to_string())?;
        self.look();
        Ok(())
    }

    /// Continues everything that takes no time and no decision.
    fn settle(&mut self) -> Result<(), String> {
        self.asking.machine.settle().map_err(|error| error.to_string())?;
        self.look();
        Ok(())
    }

    /// Submits the workloads of a step.
    fn submit(&mut self, step: &At<Step>) -> Result<(), Error> {
        for workload in step.submitted().iter().flatten() {
            let spec = self.asking.known.specification(workload)?;
            let count = workload.count.unwrap_or(1).into();
            let sums = with_more((self.pods_added, self.asked), &spec, count);
            let sums = sums.map_err(|fault| {
                workload.fault(format!("workload `{}`: {fault}", workload.name))
            })?;
            (self.pods_added, self.asked) = sums;
            for (name, id) in self.asking.submit_all(workload)? {
                self.add_job(workload, name, id);
            }
        }
        self.settle().map_err(|fault| step.fault(fault))
    }

    /// Executes a step that neither submits nor takes time.
    fn change(&mut self, step: &Step) -> Result<(), String> {
        self.are_alive(step)?;
        // The engine first receives the pending stops.
        self.settle()?;
        match &step.gone {
            Some(Gone::All) => self.end_stopped(None),
            Some(Gone::Of(names)) => {
                let jobs = names.as_slice().iter().map(|name| self.job(name));
                let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
                self.end_stopped(Some(&jobs));
            }
            None => {}
        }
        self.asking.step(step).map_err(|error| error.to_string())?;
        self.settle()
    }

    /// Ends the runs that are being stopped, of these jobs or of all if `of` is `None`.
    fn end_stopped(&mut self, of: Option<&[usize]>) {
        let machine = &mut self.asking.machine;
        let is_meant = |run: &crate::machine::Run| {
            let job = self.by_id.get(&run.spec.workload_id);
            run.is_stopping && of.is_none_or(|of| job.is_some_and(|job| of.contains(job)))
        };
        let keys: Vec<RunKey> =
            machine.engine.alive().filter(|(_, run)| is_meant(run)).map(|(key, _)| *key).collect();
        for key in keys {
            machine.engine.end(key, Exit::Signal(9), machine.clock.wall());
        }
    }

    /// Time of the next event that needs no input.
    fn next_event(&self) -> Option<Instant> {
        let by_hand = self.world.schedule == Schedule::ByHand;
        let wake = self.plan.wake_at.filter(|_| !by_hand);
        let due = self.asking.machine.due();
        let next = self.now().plus_ms(1);
        let later = wake.into_iter().chain(due).map(|at| at.max(next));
        later.chain(self.next_turn()).min()
    }

    fn wait_until(&mut self, at: Instant) {
        let ms = at.since_ms(self.now());
        self.asking.machine.clock.advance_ms(ms);
    }
}
