//! Run times of workloads in a scenario. Owns: the time when runs end by themselves, and the
//! progress of joint work. Does not know about: other events.

use spec::{Exit, RunKey, RunState};
use units::Instant;

use super::Simulation;
use crate::machine::Run;
use crate::scenario::Workload;

/// Condition for the runs of a workload to end by themselves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// Runs do not end by themselves.
    Told,
    /// Each run ends this many milliseconds after its start.
    Each { ms: u64 },
    /// All runs end when they have done the joint work; each run works after a warm-up from its
    /// start.
    Together { left_ms: u64, warm_up_ms: u64 },
}

impl Until {
    pub(super) fn of(workload: &Workload) -> Self {
        match (workload.runs_for, workload.work) {
            (Some(span), _) => Self::Each { ms: span.0 },
            (None, Some(work)) => {
                let warm_up_ms = workload.warm_up.map_or(0, |span| span.0);
                Self::Together { left_ms: work.0, warm_up_ms }
            }
            (None, None) => Self::Told,
        }
    }
}

/// Start of a run; `None` if it does not run, or is being stopped.
fn began(run: &Run) -> Option<Instant> {
    match run.state {
        RunState::Running { started_at, .. } if !run.is_stopping => Some(started_at),
        _ => None,
    }
}

impl Simulation {
    /// The runs of workloads in progress: the workload, the run and its start.
    fn going(&self) -> impl Iterator<Item = (usize, RunKey, Instant)> + '_ {
        self.asking.machine.engine.alive().filter_map(|(key, run)| {
            Some((*self.by_id.get(&run.spec.workload_id)?, *key, began(run)?))
        })
    }

    /// Time of the next end of a run by itself, or of the next end of a warm-up.
    pub(super) fn next_turn(&self) -> Option<Instant> {
        let now = self.now();
        let mut at_work = vec![0_u64; self.jobs.len()];
        let mut soonest: Option<Instant> = None;
        let mut consider = |at: Instant| soonest = Some(soonest.map_or(at, |other| other.min(at)));
        for (job, _, since) in self.going() {
            match self.jobs[job].until {
                Until::Told => {}
                Until::Each { ms } => consider(since.plus_ms(ms)),
                Until::Together { warm_up_ms, .. } => {
                    let begins = since.plus_ms(warm_up_ms);
                    if begins > now {
                        consider(begins);
                    } else {
                        at_work[job] += 1;
                    }
                }
            }
        }
        for (job, runs) in self.jobs.iter().zip(at_work).filter(|(_, runs)| *runs > 0) {
            if let Until::Together { left_ms, .. } = job.until {
                consider(now.plus_ms(left_ms.div_ceil(runs)));
            }
        }
        soonest
    }

    /// Counts the work since the last call, and ends the runs that are due.
    pub(super) fn end_due(&mut self) {
        let now = self.now();
        let before = std::mem::replace(&mut self.worked_until, now);
        let going: Vec<_> = self.going().collect();
        for (job, _, since) in &going {
            if let Until::Together { left_ms, warm_up_ms } = &mut self.jobs[*job].until {
                let from = since.plus_ms(*warm_up_ms).max(before);
                *left_ms = left_ms.saturating_sub(now.since_ms(from));
            }
        }
        let machine = &mut self.asking.machine;
        for (job, key, since) in going {
            let is_due = match self.jobs[job].until {
                Until::Told => false,
                Until::Each { ms } => since.plus_ms(ms) <= now,
                Until::Together { left_ms, .. } => left_ms == 0,
            };
            if is_due {
                machine.engine.end(key, Exit::Code(0), machine.clock.wall());
            }
        }
    }
}
