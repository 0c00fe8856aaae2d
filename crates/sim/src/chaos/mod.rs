//! Random histories of the control plane that follow from a seed: commands of every kind, crashes
//! between any two effects, observations that are late, repeated, out of order or lost, an engine
//! that refuses, stale plans, failures of nodes and GPUs, clocks that jump. Owns: running a history
//! with all invariants checked after each step, and minimizing a history that violates one.

mod check;
mod commands;
mod history;
mod specs;
mod step;

use std::panic::{AssertUnwindSafe, catch_unwind};

use sched::{Policy, Profile};

use crate::rng::Rng;
use history::History;
use step::Step;

/// Maximum number of histories tried to find a shorter one.
const SHORTER_TRIES_MAX: usize = 2000;

/// Counts over histories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of steps.
    pub steps: u64,
    /// Number of batches written.
    pub batches: u64,
    /// Number of crashes of a server.
    pub crashes: u64,
    /// Number of runs started.
    pub starts: u64,
    /// Hash of the written events: equal histories have equal digests.
    pub digest: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.batches += other.batches;
        self.crashes += other.crashes;
        self.starts += other.starts;
        self.digest ^= other.digest;
    }
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Step after which the invariant was violated, from 1; the number after the last step is that
    /// of the end of the faults.
    pub step: usize,
    /// Description of the violation.
    pub fault: String,
    /// The shortest history found that violates an invariant, one line for each step.
    pub history: String,
}

/// Runs the history of a seed.
///
/// # Errors
/// An invariant was violated.
pub fn run(seed: u64, steps: u32, policy: &Policy) -> Result<Tally, Box<Broken>> {
    let mut rng = Rng::new(seed);
    let start = rng.next();
    let steps: Vec<_> = (0..steps).map(|_| Step::draw(&mut rng)).collect();
    play(start, &steps, policy, false).map_err(|broken| {
        let shortest = shortest(start, &steps[..broken.step.min(steps.len())], policy);
        let told = play(start, &shortest, policy, true);
        Box::new(told.err().unwrap_or(broken))
    })
}

/// The machine after the steps of the history of a seed.
#[cfg(test)]
pub(crate) fn after(seed: u64, steps: u32, policy: &Policy) -> crate::machine::Machine {
    let mut rng = Rng::new(seed);
    let mut history = History::new(rng.next(), policy.clone(), false);
    for step in (0..steps).map(|_| Step::draw(&mut rng)).collect::<Vec<_>>() {
        history.take(&step).unwrap();
    }
    history.machine
}

/// Runs these steps, and waits until nothing is in progress. With `is_told`, the history of a
/// violation is returned as text.
fn play(start: u64, steps: &[Step], policy: &Policy, is_told: bool) -> Result<Tally, Broken> {
    let mut history = History::new(start, policy.clone(), is_told);
    let mut at = 0;
    let all = || {
        for step in steps {
            history.take(step)?;
            at += 1;
        }
        history.settle(matches!(policy.profile, Profile::Default))
    };
    let done = catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|panic| Err(words_of(&*panic)));
    match done {
        Ok(()) => Ok(Tally { steps: steps.len() as u64, ..history.tally() }),
        Err(fault) => Err(Broken { step: at + 1, fault, history: history.told() }),
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", words.unwrap_or("without words"))
}

/// The shortest subset of the steps that still violates an invariant, found by leaving out pieces.
fn shortest(start: u64, steps: &[Step], policy: &Policy) -> Vec<Step> {
    let (mut steps, mut size, mut tries) = (steps.to_vec(), steps.len().div_ceil(2), 0);
    while size > 0 && tries < SHORTER_TRIES_MAX {
        let (mut at, before) = (0, steps.len());
        while at < steps.len() && tries < SHORTER_TRIES_MAX {
            tries += 1;
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            match play(start, &fewer, policy, false) {
                Ok(_) => at += size,
                Err(_) => steps = fewer,
            }
        }
        if size > 1 || steps.len() == before {
            size /= 2;
        }
    }
    steps
}
