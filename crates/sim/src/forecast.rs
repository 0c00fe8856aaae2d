//! When a workload that waits would start. Owns: playing a state forward in virtual time until it
//! does. Refuses to know: how long anything runs; whoever asks has said so.

use crate::Error;
use crate::scenario::Scenario;
use crate::world::{Record, Run};

/// Most decisions that are played through, and how many pods they look at in sum at most: on a
/// large cluster fewer decisions are made, so that the answer comes in a second or so.
const DECISIONS_MAX: u64 = 2_000;
const PODS_LOOKED_AT_MAX: u64 = 2_000_000;

/// What came of playing a state forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    /// It starts after so many milliseconds.
    StartsAfterMs(u64),
    /// Nothing that is known to happen lets it start.
    Never,
    /// It has not started after as many decisions as are played through.
    TooFarAhead,
}

/// When a workload of this state gets all the pods it needs at least, if nothing else is submitted
/// and workloads run as long as `runs_for` and `time_limit` say; those without run for ever. Steps
/// of the scenario are not taken.
///
/// # Errors
/// The scenario cannot be, or has no such workload.
pub fn forecast(scenario: &Scenario, project: &str, name: &str) -> Result<Forecast, Error> {
    let mut run = Run::new(scenario, Record::End, None)?;
    let key = (project.to_owned(), name.to_owned());
    let job = run.simulation.by_name.get(&key).copied();
    let job = job.ok_or_else(|| Error::Scenario {
        line: 0,
        column: 0,
        message: format!("there is no workload {project}/{name}"),
    })?;
    let looked_at = run.simulation.cluster.pods().len().max(1) as u64;
    let decisions_max = DECISIONS_MAX.min(PODS_LOOKED_AT_MAX / looked_at);
    loop {
        let running = run.simulation.jobs.get(job).and_then(|job| job.model);
        if running.is_some_and(|id| run.simulation.cluster.runs(id)) {
            return Ok(Forecast::StartsAfterMs(run.simulation.elapsed_ms()));
        }
        if run.cycles > decisions_max {
            return Ok(Forecast::TooFarAhead);
        }
        let Some(next) = run.simulation.next_event() else { return Ok(Forecast::Never) };
        run.pass(next);
    }
}
