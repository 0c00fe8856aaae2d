//! Random histories that follow from a seed: submits, ends, failures, quotas, lost nodes (reported
//! twice), slow kills, observations that come late and out of order. Owns: running one, with every
//! invariant checked after each step. A history that breaks one is a scenario that repeats it.

mod check;
mod draw;

use crate::rng::Rng;
use crate::scenario::{At, OneOrMany, Policy, Scenario, Step};
use crate::world::{Record, Run, Simulation};

/// What histories came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps.
    pub steps: u64,
    /// Decisions.
    pub cycles: u64,
    /// Pods that got a place at once.
    pub starts: u64,
    /// Pods that were stopped.
    pub stops: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.cycles += other.cycles;
        self.starts += other.starts;
        self.stops += other.stops;
    }
}

/// An invariant that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// After which step; 0 is the start.
    pub step: usize,
    /// What was wrong.
    pub fault: String,
    /// The history up to there, as a scenario.
    pub script: String,
}

/// Runs the history of a seed. Knobs of which the policy says nothing are drawn too.
///
/// # Errors
/// An invariant was broken; the script repeats the history.
pub fn run(seed: u64, steps: u32, policy: &Policy) -> Result<Tally, Box<Broken>> {
    let mut rng = Rng::new(seed);
    let mut scenario = draw::start(&mut rng, seed, policy);
    let broken = |scenario: &Scenario, fault: String| {
        let script = scenario.to_json().unwrap_or_else(|error| format!("# {error}\n"));
        Box::new(Broken { step: scenario.steps.len(), fault, script })
    };
    let mut run = Run::new(&scenario, Record::End, Some(check::decision))
        .map_err(|error| broken(&scenario, error.to_string()))?;
    for number in 0..steps {
        let step = At::from(draw::step(&mut rng, &run.simulation, number));
        scenario.steps.push(step.clone());
        run.take(&step).map_err(|error| broken(&scenario, error.to_string()))?;
        let twice = lost_twice(&run.simulation, &step);
        if let Some(fault) = run.broken.take().or(twice.err()) {
            return Err(broken(&scenario, fault));
        }
    }
    Ok(Tally { steps: u64::from(steps), cycles: run.cycles, starts: run.starts, stops: run.stops })
}

/// The history of a seed as a scenario, as far as it can be told; its last step is not run.
#[must_use]
pub fn script(seed: u64, steps: u32, policy: &Policy) -> String {
    let mut rng = Rng::new(seed);
    let mut scenario = draw::start(&mut rng, seed, policy);
    if let Ok(mut run) = Run::new(&scenario, Record::End, None) {
        for number in 0..steps {
            let step = At::from(draw::step(&mut rng, &run.simulation, number));
            scenario.steps.push(step.clone());
            if number + 1 < steps && run.take(&step).is_err() {
                break;
            }
        }
    }
    scenario.to_json().unwrap_or_default()
}

/// A node that is lost is lost: nobody was placed there by the decisions that followed, so hearing
/// of the loss a second time changes nothing.
fn lost_twice(simulation: &Simulation, step: &Step) -> Result<(), String> {
    if step.lose_node.is_none() {
        return Ok(());
    }
    let mut again = simulation.clone();
    for name in step.lose_node.iter().flat_map(OneOrMany::as_slice) {
        again.lose_node(name)?;
    }
    let same = again.cluster().pods().iter().eq(simulation.cluster().pods().iter());
    if same { Ok(()) } else { Err("somebody was placed on a node that is lost".into()) }
}
