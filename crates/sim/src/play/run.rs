//! A scenario from its first step to its last. Owns: when the scheduler is asked, how time passes,
//! and what is recorded. Does not know about: how it is shown.

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

/// Most decisions after one step before it is said that the scheduler does not come to rest.
pub const CYCLES_TO_REST_MAX: u32 = 1000;
/// Most times the scheduler is woken while time passes in one step.
const WAKES_MAX: u32 = 100_000;

/// How much is kept of each decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Nothing but the state at the end.
    End,
    /// What was decided; tasks and queues only after the last decision.
    Decisions,
    /// The whole state after each decision.
    Everything,
}

/// An expectation that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Line of the expectation; 0 if it did not come from a file.
    pub line: u64,
    /// Column.
    pub column: u64,
    /// What was expected and what was found.
    pub message: String,
}

/// What came of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// Each decision that changed something or that a step requests, in order, and the state at the
    /// end.
    pub frames: Vec<Frame>,
    /// Expectations that did not hold.
    pub failures: Vec<Failure>,
    /// How many expectations there were.
    pub expectations: usize,
    /// The world at the end.
    pub simulation: Simulation,
}

impl Outcome {
    /// Diagnoses the workloads that wait in the last frame, of those that are alike the first, at
    /// most so many.
    pub fn diagnose(&mut self, max: usize) {
        let Some(frame) = self.frames.last_mut() else { return };
        let simulation = &self.simulation;
        let (cluster, policy) = (simulation.cluster(), simulation.policy());
        let mut done: Vec<(WorkloadId, String)> = Vec::new();
        for waiting in &mut frame.pending {
            let known = simulation.jobs.iter().find(|job| {
                (job.name.as_str(), job.project.as_str()) == (&*waiting.workload, &*waiting.project)
            });
            let Some(id) = known.and_then(|job| job.model) else { continue };
            let like = done.iter().find(|(other, _)| sched::alike(cluster, id, *other));
            if let Some((_, name)) = like {
                waiting.like = Some(name.clone());
            } else if done.len() < max {
                waiting.diagnosis = diagnosis(cluster, id, simulation.now(), policy);
                done.push((id, format!("{}/{}", waiting.project, waiting.workload)));
            }
        }
    }
}

/// Runs a scenario.
///
/// # Errors
/// An object cannot be, or a step names what is not there.
pub fn run(scenario: &Scenario, record: Record) -> Result<Outcome, Error> {
    let mut run = Run::new(scenario, record)?;
    for step in &scenario.steps {
        run.take(step)?;
    }
    run.end()
}

/// A scenario under way.
struct Run {
    simulation: Simulation,
    record: Record,
    frames: Vec<Frame>,
    /// Number of the step; 0 before the first.
    step: u32,
    /// What was decided since the last action.
    decided: Decided,
    failures: Vec<Failure>,
    expectations: usize,
    cycles: u64,
    /// Something happened at the end of the last step that is not decided yet: a change that follows
    /// is of the same moment, and both are decided at once.
    is_due: bool,
}

impl Run {
    /// The state at the start, and the first decisions.
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

    /// One step, what follows from it, and what is expected then.
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

    /// Decides what the last step left.
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
        // What was stopped is gone before the scheduler looks again, or not until told.
        self.simulation.settle()
    }

    /// Lets time pass: runs end when they have run long enough, limits are enforced, the scheduler
    /// is woken when it asked for it.
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
    /// One decision.
    pub(crate) fn decide(&mut self, actions: Option<&[Action]>) -> Result<(), String> {
        self.end_due();
        self.settle()?;
        let decided = self.asking.machine.decide(actions);
        (self.plan, self.shares) = decided.map_err(|error| error.to_string())?;
        self.look();
        Ok(())
    }

    /// Lets everything go on that needs neither time nor a decision.
    fn settle(&mut self) -> Result<(), String> {
        self.asking.machine.settle().map_err(|error| error.to_string())?;
        self.look();
        Ok(())
    }

    /// The workloads of a step.
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

    /// Any other step but those that take time.
    fn change(&mut self, step: &Step) -> Result<(), String> {
        self.are_alive(step)?;
        // The engine first hears what is to be stopped.
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

    /// What is being stopped is gone, as far as it is of one of these jobs.
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

    /// When something is due by itself.
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
