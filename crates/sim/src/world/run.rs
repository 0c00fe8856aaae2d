//! A scenario from its first step to its last. Owns: when the scheduler is asked, and what is
//! recorded. Refuses to know: how it is shown.

use units::Instant;

use super::change::After;
use super::{START, Simulation};
use crate::Error;
use crate::expect;
use crate::frame::Frame;
use crate::scenario::{Scenario, Schedule};

/// Most decisions after one step before it is said that the scheduler does not come to rest.
pub const CYCLES_TO_REST_MAX: u32 = 1000;
/// Most times the scheduler is woken while time passes in one step.
const WAKES_MAX: u32 = 100_000;

/// How much is kept of each decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
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
    let mut run = Run {
        simulation: Simulation::new(scenario)?,
        record,
        frames: Vec::new(),
        cycles: 0,
        step: 0,
        stopped: Vec::new(),
        failures: Vec::new(),
    };
    let mut expectations = 0;
    run.schedule();
    for (number, step) in (1..).zip(&scenario.steps) {
        run.step = number;
        let after = run.simulation.act(step)?;
        if after != After::Nothing {
            run.stopped.clear();
        }
        run.follow(after);
        if let Some(expected) = &step.expect {
            expectations += 1;
            for message in expect::differences(&run.simulation, &run.stopped, expected) {
                let message = format!("step {number}: {message}");
                let (line, column) = (expected.line, expected.column);
                run.failures.push(Failure { line, column, message });
            }
        }
    }
    let last = Frame::state(&run.simulation, run.cycles, run.step);
    run.frames.push(last);
    let Run { simulation, frames, failures, .. } = run;
    Ok(Outcome { frames, failures, expectations, simulation })
}

struct Run {
    simulation: Simulation,
    record: Record,
    frames: Vec<Frame>,
    cycles: u64,
    /// Number of the step; 0 before the first.
    step: u32,
    /// Labels and codes of what was stopped since the last action.
    stopped: Vec<(String, String)>,
    failures: Vec<Failure>,
}

impl Run {
    fn follow(&mut self, after: After) {
        match after {
            After::Nothing => {}
            After::Schedule => self.schedule(),
            After::Cycles(count) => (0..count).for_each(|_| self.cycle(true)),
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
        self.simulation.cycle();
        self.cycles += 1;
        let stopped = crate::frame::stopped(&self.simulation);
        self.stopped.extend(stopped);
        if asked_for || !self.simulation.plan.steps.is_empty() {
            self.frames.push(match self.record {
                Record::Everything => Frame::whole(&self.simulation, self.cycles, self.step),
                Record::Decisions => Frame::decisions(&self.simulation, self.cycles, self.step),
            });
        }
        self.simulation.react();
    }

    /// Lets time pass: jobs finish when they have run long enough, the scheduler is woken when it
    /// asked for it.
    fn pass(&mut self, end: Instant) {
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
        let message = format!("step {}: {message}", self.step);
        self.failures.push(Failure { line: 0, column: 0, message });
    }
}

impl Simulation {
    /// When something is due that nobody has to ask for.
    fn next_event(&self) -> Option<Instant> {
        let by_hand = self.world.schedule == Schedule::ByHand;
        let wake = self.plan.wake_at.filter(|_| !by_hand).map(|at| at.max(self.now.plus_ms(1)));
        let ends = (0..self.jobs.len()).filter_map(|job| self.finishes_at(job));
        wake.into_iter().chain(ends).min()
    }

    /// When a job will have run long enough; none while it does not run.
    fn finishes_at(&self, job: usize) -> Option<Instant> {
        let row = &self.jobs[job];
        let (id, span) = (row.model?, row.runs_for_ms?);
        let workload = &self.cluster.workloads()[id];
        let runs = |pod: &model::PodId| {
            let occupancy = &self.cluster.pods()[*pod].occupancy;
            occupancy.current.is_some() && !occupancy.releasing
        };
        let running = workload.pods.iter().filter(|pod| runs(pod)).count();
        let enough = running >= workload.spec.pods_min as usize;
        enough.then(|| workload.last_start.unwrap_or(START).plus_ms(span))
    }

    fn finish_due(&mut self) -> bool {
        let due = |&job: &usize| self.finishes_at(job).is_some_and(|at| at <= self.now);
        let due: Vec<_> = (0..self.jobs.len()).filter(due).collect();
        for &job in &due {
            // It is alive, or it would not be due.
            let _ = self.finish(job);
        }
        !due.is_empty()
    }
}
