//! A machine that continues from the stored state of another server. Owns: the runs in its engine,
//! one for each pod that holds a place.

use std::collections::BTreeMap;

use orchestrator::{Error, Settings, StoredState};
use records::{PodRow, Snapshot};
use spec::{RunKey, RunSpec, RunState, without_place};
use units::Instant;

use super::{Clock, Machine, Rows};

impl Machine {
    /// A machine with a server started from such a state; the runs continue.
    ///
    /// # Errors
    /// No state can be built from the rows.
    pub fn of(stored: StoredState) -> Result<Self, Error> {
        Self::started(stored, false)
    }

    /// As [`Machine::of`], but the scheduler decides only on request of the caller.
    ///
    /// # Errors
    /// No state can be built from the rows.
    pub fn by_hand(stored: StoredState) -> Result<Self, Error> {
        Self::started(stored, true)
    }

    fn started(stored: StoredState, by_hand: bool) -> Result<Self, Error> {
        let StoredState { rows, nodes, gpus, policy, settings, now } = stored;
        // The outcome of an ended workload is read from the view, which has no archived ones.
        let settings = Settings { ended_kept: usize::MAX, ..settings };
        let runs = runs(&rows);
        // Its virtual time equals that of the other server.
        let rows = Rows::of(Snapshot { clock: None, ..rows });
        let rows = rows.map_err(|message| Error::Internal { message })?;
        let clock = Clock::at(now);
        let new = Self::new(nodes, policy, None);
        let mut machine = Self { rows, gpus, clock, settings, by_hand, ..new };
        runs.into_iter().for_each(|(spec, state)| machine.engine.adopt(spec, state));
        machine.start()?;
        Ok(machine)
    }
}

/// The runs of pods that hold places, except of pods that wait there for a restart or for other
/// pods. They have no devices, which are in the rows.
fn runs(rows: &Snapshot) -> Vec<(RunSpec, RunState)> {
    let specs: BTreeMap<_, _> = rows.workloads.iter().map(|row| (row.id, &row.spec)).collect();
    let has_run = |row: &&PodRow| {
        let body = &row.body;
        body.current.is_some() && body.restart_at_ms.is_none() && !body.waits_for_others
    };
    let run = |row: &PodRow| {
        let spec = specs.get(&row.workload_id)?;
        let (set, _) = spec.set_of(row.index as usize);
        let key = RunKey { pod: row.id, generation: row.generation };
        let began = row.body.started_at_ms.map(Instant);
        let running = |started_at| RunState::Running { pid: Some(1), started_at };
        let state = began.map_or(RunState::Starting, running);
        let workload_id = row.workload_id;
        Some((RunSpec { key, workload_id, ..without_place(spec, set) }, state))
    };
    rows.pods.iter().filter(has_run).filter_map(run).collect()
}
