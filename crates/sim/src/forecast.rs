//! Forecast of the start of a pending workload. Owns: simulating the machine of a server in virtual
//! time until the workload starts. Does not know about: the run time of workloads, which the caller
//! gives.

use std::collections::BTreeMap;

use orchestrator::{Command, Error, Input, SYSTEM, StoredState};
use units::Instant;
use uuid::Uuid;

use crate::machine::Machine;

/// Maximum number of simulated decisions, and maximum number of pods over all decisions: on a large
/// cluster fewer decisions are made, so that the answer takes about a second.
const DECISIONS_MAX: u64 = 2_000;
const PODS_LOOKED_AT_MAX: u64 = 2_000_000;

/// Result of a forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    /// The workload starts after this many milliseconds.
    StartsAfterMs(u64),
    /// No known event lets the workload start.
    Never,
    /// The workload has not started within the maximum number of decisions.
    TooFarAhead,
}

/// Time until a workload of this server gets its minimum number of pods, if nothing else is
/// submitted, and the workloads in `run_ms` are deleted after that many milliseconds from their
/// last start. Other workloads run for ever, or until a limit of the server suspends them.
///
/// # Errors
/// The stored rows make no valid state, or there is no such workload.
pub fn forecast(
    stored: StoredState,
    workload: Uuid,
    run_ms: &BTreeMap<Uuid, u64>,
) -> Result<Forecast, Error> {
    let pods = stored.rows.pods.len().max(1) as u64;
    let decisions_max = DECISIONS_MAX.min(PODS_LOOKED_AT_MAX / pods);
    let began = stored.now;
    let mut playing = Playing { machine: Machine::of(stored)?, run_ms, decisions: 0 };
    playing.known(workload)?;
    loop {
        if !playing.rests(decisions_max)? {
            return Ok(Forecast::TooFarAhead);
        }
        let now = playing.machine.clock.now();
        if playing.last_start(workload).is_some() {
            return Ok(Forecast::StartsAfterMs(now.since_ms(began)));
        }
        let ends = playing.ends();
        let due = ends.iter().map(|(at, _)| *at).chain(playing.machine.due()).min();
        let Some(due) = due else { return Ok(Forecast::Never) };
        playing.machine.clock.advance_ms(due.since_ms(now));
        let over = ends.into_iter().filter(|(at, _)| *at <= due);
        playing.delete(over.map(|(_, id)| id))?;
    }
}

/// A simulated continuation of a server.
struct Playing<'r> {
    machine: Machine,
    /// Run time of workloads from their last start, in milliseconds.
    run_ms: &'r BTreeMap<Uuid, u64>,
    decisions: u64,
}

impl Playing<'_> {
    fn known(&self, id: Uuid) -> Result<(), Error> {
        let found = self.machine.view().is_some_and(|view| view.workloads.get(&id).is_some());
        if found { Ok(()) } else { Err(Error::no_workload(id)) }
    }

    /// Continues everything that takes no time; returns `true` if nothing is left within the
    /// maximum number of decisions.
    fn rests(&mut self, decisions_max: u64) -> Result<bool, Error> {
        while self.decisions <= decisions_max {
            self.decisions += u64::from(self.machine.decided().is_some());
            if !self.machine.go_on()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Time when a workload got its current places; `None` if they are fewer than its minimum.
    fn last_start(&self, id: Uuid) -> Option<Instant> {
        let model = self.machine.view()?.workloads.get(&id)?.model?;
        let (cluster, _) = self.machine.replica()?;
        let row = cluster.workloads().get(model).filter(|_| cluster.runs(model))?;
        row.last_start
    }

    /// End of each running workload with a known run time.
    fn ends(&self) -> Vec<(Instant, Uuid)> {
        let end = |(&id, &ms): (&Uuid, &u64)| Some((self.last_start(id)?.plus_ms(ms), id));
        self.run_ms.iter().filter_map(end).collect()
    }

    fn delete(&mut self, ids: impl Iterator<Item = Uuid>) -> Result<(), Error> {
        let delete = |id| {
            let command = Command::Delete { by: SYSTEM.to_owned(), id };
            Input::Command(Box::new(command), Default::default())
        };
        // A workload that is gone already is refused, which does no harm.
        self.machine.take(ids.map(delete).collect(), None).map(drop)
    }
}
