//! When a workload that waits would start. Owns: playing the machine of a server forward in virtual
//! time until it does. Does not know how long anything runs: the caller says so.

use std::collections::BTreeMap;

use orchestrator::{Command, Error, Input, SYSTEM, StoredState};
use units::Instant;
use uuid::Uuid;

use crate::machine::Machine;

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

/// When a workload of this server gets all the pods it needs at least, if nothing else is
/// submitted, and the workloads with these ids run so many milliseconds from their last start: then
/// they are deleted. The others run for ever, or until a limit of the server suspends them.
///
/// # Errors
/// No state can be built of it, or there is no such workload.
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

/// A server that is played forward.
struct Playing<'r> {
    machine: Machine,
    /// How long workloads run from their last start.
    run_ms: &'r BTreeMap<Uuid, u64>,
    decisions: u64,
}

impl Playing<'_> {
    fn known(&self, id: Uuid) -> Result<(), Error> {
        let found = self.machine.view().is_some_and(|view| view.workloads.get(&id).is_some());
        if found { Ok(()) } else { Err(Error::no_workload(id)) }
    }

    /// Lets everything happen that needs no time; answers whether that came to an end within so
    /// many decisions.
    fn rests(&mut self, decisions_max: u64) -> Result<bool, Error> {
        while self.decisions <= decisions_max {
            self.decisions += u64::from(self.machine.decided().is_some());
            if !self.machine.go_on()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When a workload got the places that it has, if it has as many as it needs.
    fn last_start(&self, id: Uuid) -> Option<Instant> {
        let model = self.machine.view()?.workloads.get(&id)?.model?;
        let (cluster, _) = self.machine.replica()?;
        let row = cluster.workloads().get(model).filter(|_| cluster.runs(model))?;
        row.last_start
    }

    /// When those that run will have run long enough.
    fn ends(&self) -> Vec<(Instant, Uuid)> {
        let end = |(&id, &ms): (&Uuid, &u64)| Some((self.last_start(id)?.plus_ms(ms), id));
        self.run_ms.iter().filter_map(end).collect()
    }

    fn delete(&mut self, ids: impl Iterator<Item = Uuid>) -> Result<(), Error> {
        let delete = |id| {
            let command = Command::Delete { by: SYSTEM.to_owned(), id };
            Input::Command(Box::new(command), Default::default())
        };
        // One that is gone already is refused, which is as good.
        self.machine.take(ids.map(delete).collect(), None).map(drop)
    }
}
