//! Forecast of the start of a pending workload. Owns: simulating the machine of a server in virtual
//! time until the workload starts. Does not know about: the run times and failures of workloads,
//! which the caller gives.

use std::collections::BTreeMap;

use orchestrator::{Command, Error, Input, SYSTEM, StoredState};
use spec::{Exit, RunKey, RunState};
use units::Instant;
use uuid::Uuid;

use crate::machine::{Machine, Run};

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

/// Expected ends of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// Milliseconds after its last start at which a workload is deleted, by its id.
    pub ends: BTreeMap<Uuid, u64>,
    /// Milliseconds after which each run of a pod fails, by the id of the pod.
    pub failures: BTreeMap<Uuid, u64>,
}

/// Time until a workload of this server gets its minimum number of pods, if nothing else is
/// submitted, and workloads end and pods fail as in `course`. Others run for ever, or until a limit
/// of the server suspends them.
///
/// # Errors
/// The stored rows make no valid state, or there is no such workload.
pub fn forecast(stored: StoredState, workload: Uuid, course: &Course) -> Result<Forecast, Error> {
    let pods = stored.rows.pods.len().max(1) as u64;
    let decisions_max = DECISIONS_MAX.min(PODS_LOOKED_AT_MAX / pods);
    let began = stored.now;
    let mut playing = Playing { machine: Machine::of(stored)?, course, decisions: 0 };
    playing.known(workload)?;
    // Failures in their places need no decision.
    for _ in 0..=decisions_max {
        if !playing.rests(decisions_max)? {
            return Ok(Forecast::TooFarAhead);
        }
        let now = playing.machine.clock.now();
        if playing.last_start(workload).is_some() {
            return Ok(Forecast::StartsAfterMs(now.since_ms(began)));
        }
        let (ends, failures) = (playing.ends(), playing.failures());
        let ends_at = ends.iter().map(|(at, _)| *at);
        let fails_at = failures.iter().map(|(at, _)| *at);
        let due = ends_at.chain(fails_at).chain(playing.machine.due()).min();
        let Some(due) = due else { return Ok(Forecast::Never) };
        playing.machine.clock.advance_ms(due.since_ms(now));
        let over = ends.into_iter().filter(|(at, _)| *at <= due);
        playing.delete(over.map(|(_, id)| id))?;
        let now = playing.machine.clock.now();
        for (_, run) in failures.into_iter().filter(|(at, _)| *at <= due) {
            playing.machine.engine.end(run, Exit::Code(1), now);
        }
    }
    Ok(Forecast::TooFarAhead)
}

/// A simulated continuation of a server.
struct Playing<'r> {
    machine: Machine,
    course: &'r Course,
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
        self.course.ends.iter().filter_map(end).collect()
    }

    /// Next failure of each run of the pods that fail.
    fn failures(&self) -> Vec<(Instant, RunKey)> {
        let failure = |(key, run): (&RunKey, &Run)| {
            let ms = self.course.failures.get(&key.pod)?;
            let RunState::Running { started_at, .. } = run.state else { return None };
            Some((started_at.plus_ms(*ms), *key))
        };
        self.machine.engine.alive().filter_map(failure).collect()
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
