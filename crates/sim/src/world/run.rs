//! A scenario from its first step to its last. Owns: when the scheduler is asked, and what is
//! recorded. Refuses to know: how it is shown.

use units::Instant;

use super::change::After;
use super::{START, Simulation};
use crate::Error;
use crate::expect::{self, Decided};
use crate::frame::Frame;
use crate::scenario::{At, Scenario, Schedule, Step};

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
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Each decision that changed something or was asked for, in order, and the state at the end.
    pub frames: Vec<Frame>,
    /// Expectations that did not hold.
    pub failures: Vec<Failure>,
    /// How many expectations there were.
    pub expectations: usize,
    /// The world at the end.
    pub simulation: Simulation,
}

/// Runs a scenario.
///
/// # Errors
/// An object cannot be, or a step names what is not there.
pub fn run(scenario: &Scenario, record: Record) -> Result<Outcome, Error> {
    let mut run = Run::new(scenario, record, None)?;
    for step in &scenario.steps {
        run.take(step)?;
    }
    Ok(run.end())
}

/// Looks at a state before and after a decision; says what is wrong.
pub(crate) type Check = fn(&Simulation, &Simulation) -> Result<(), String>;

/// A scenario under way.
pub(crate) struct Run {
    pub(crate) simulation: Simulation,
    record: Record,
    frames: Vec<Frame>,
    /// Number of the step; 0 before the first.
    step: u32,
    /// What was decided since the last action.
    decided: Decided,
    failures: Vec<Failure>,
    expectations: usize,
    check: Option<Check>,
    /// The first thing the check found wrong.
    pub(crate) broken: Option<String>,
    /// Starts and stops so far.
    pub(crate) starts: u64,
    pub(crate) stops: u64,
    pub(crate) cycles: u64,
}

impl Run {
    /// The state at the start, and the first decisions.
    pub(crate) fn new(
        scenario: &Scenario,
        record: Record,
        check: Option<Check>,
    ) -> Result<Self, Error> {
        let mut run = Self {
            simulation: Simulation::new(scenario)?,
            record,
            frames: Vec::new(),
            step: 0,
            decided: Decided::default(),
            failures: Vec::new(),
            expectations: 0,
            check,
            broken: None,
            starts: 0,
            stops: 0,
            cycles: 0,
        };
        run.schedule();
        Ok(run)
    }

    /// One step, what follows from it, and what is expected then.
    pub(crate) fn take(&mut self, step: &At<Step>) -> Result<(), Error> {
        self.step += 1;
        let after = self.simulation.act(step)?;
        if after != After::Nothing {
            self.decided = Decided::default();
        }
        self.follow(after);
        if let Some(expected) = &step.expect {
            self.expectations += 1;
            for message in expect::differences(&self.simulation, &self.decided, expected) {
                let message = format!("step {}: {message}", self.step);
                let (line, column) = (expected.line, expected.column);
                self.failures.push(Failure { line, column, message });
            }
        }
        Ok(())
    }

    fn end(mut self) -> Outcome {
        let last = Frame::state(&self.simulation, self.cycles, self.step);
        self.frames.push(last);
        let Self { simulation, frames, failures, expectations, .. } = self;
        Outcome { frames, failures, expectations, simulation }
    }

    fn follow(&mut self, after: After) {
        match after {
            After::Nothing => {}
            After::Schedule => self.schedule(),
            After::Cycles(count, actions) => {
                let usual = std::mem::replace(&mut self.simulation.policy.actions, actions);
                (0..count).for_each(|_| self.cycle(true));
                self.simulation.policy.actions = usual;
            }
            After::Until(end) => self.pass(end),
        }
    }

    fn schedule(&mut self) {
        if self.simulation.world.schedule == Schedule::ByHand {
            return;
        }
        for _ in 0..CYCLES_TO_REST_MAX {
            self.cycle(false);
            if self.simulation.plan.steps.is_empty() {
                return;
            }
        }
        self.fail(format!("the scheduler does not come to rest in {CYCLES_TO_REST_MAX} cycles"));
    }

    fn cycle(&mut self, asked_for: bool) {
        // What the last action stopped is gone before the scheduler looks, or not until told.
        self.simulation.react();
        let before = self.check.map(|check| (check, self.simulation.clone()));
        self.simulation.cycle();
        self.cycles += 1;
        if let Some((check, before)) = before
            && let Err(fault) = check(&before, &self.simulation)
        {
            self.broken.get_or_insert(fault);
        }
        let stopped = crate::frame::stopped(&self.simulation);
        self.stops += stopped.len() as u64;
        let binds = |step: &&sched::Step| matches!(step, sched::Step::Bind { .. });
        self.starts += self.simulation.plan.steps.iter().filter(binds).count() as u64;
        self.decided.stopped.extend(stopped);
        self.decided.kinds.extend(self.simulation.plan.steps.iter().map(crate::frame::kind));
        if asked_for || !self.simulation.plan.steps.is_empty() {
            let (simulation, cycles, step) = (&self.simulation, self.cycles, self.step);
            match self.record {
                Record::End => {}
                Record::Decisions => self.frames.push(Frame::decisions(simulation, cycles, step)),
                Record::Everything => self.frames.push(Frame::whole(simulation, cycles, step)),
            }
        }
        self.simulation.react();
    }

    /// Lets time pass: jobs finish when they have run long enough, the scheduler is woken when it
    /// asked for it.
    pub(crate) fn pass(&mut self, end: Instant) {
        for _ in 0..WAKES_MAX {
            let soonest = self.simulation.next_event().unwrap_or(end).min(end);
            self.simulation.now = self.simulation.now.max(soonest);
            let finished = self.simulation.finish_due();
            let woken = self.simulation.plan.wake_at.is_some_and(|at| at <= self.simulation.now);
            if finished || woken {
                self.schedule();
            }
            if self.simulation.now >= end {
                return;
            }
            if !finished && !woken && soonest >= end {
                self.simulation.now = end;
                return;
            }
        }
        self.fail(format!("more than {WAKES_MAX} things happen in this step; let less time pass"));
    }

    fn fail(&mut self, message: String) {
        self.broken.get_or_insert_with(|| message.clone());
        let message = format!("step {}: {message}", self.step);
        self.failures.push(Failure { line: 0, column: 0, message });
    }
}

impl Simulation {
    /// When something is due that nobody has to ask for.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let by_hand = self.world.schedule == Schedule::ByHand;
        let wake = self.plan.wake_at.filter(|_| !by_hand).map(|at| at.max(self.now.plus_ms(1)));
        let ends = (0..self.jobs.len()).filter_map(|job| self.finishes_at(job));
        wake.into_iter().chain(ends).min()
    }

    /// When a job will have run long enough; none while it does not run.
    fn finishes_at(&self, job: usize) -> Option<Instant> {
        let row = &self.jobs[job];
        if row.runs.completions.is_some() {
            return self.ends_of_pods(job).into_iter().map(|(at, _)| at).min();
        }
        let id = row.model?;
        let workload = &self.cluster.workloads()[id];
        // A time limit is a promise that the world keeps.
        let span = row.runs_for_ms.into_iter().chain(workload.spec.time_limit_ms).min()?;
        self.cluster.runs(id).then(|| workload.last_start.unwrap_or(START).plus_ms(span))
    }

    fn finish_due(&mut self) -> bool {
        let due = |&job: &usize| self.finishes_at(job).is_some_and(|at| at <= self.now);
        let due: Vec<_> = (0..self.jobs.len()).filter(due).collect();
        for &job in &due {
            if self.jobs[job].runs.completions.is_none() {
                // It is alive, or it would not be due.
                let _ = self.finish(job);
            }
            let ended = self.ends_of_pods(job).into_iter().filter(|(at, _)| *at <= self.now);
            for (_, pod) in ended.collect::<Vec<_>>() {
                self.complete(job, pod);
            }
        }
        !due.is_empty()
    }
}
