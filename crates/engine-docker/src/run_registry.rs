//! The runs known to the server. Owns: their states, reporting changes, and serializing operations
//! of one run. Does not know where states come from.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{
    KeyedLock, ListedRun, Observation, Observations, RunEvent, RunKey, RunPlace, RunState,
};
use tokio::sync::mpsc;
use uuid::Uuid;

/// The registered runs.
#[derive(Debug, Default)]
pub(crate) struct RunRegistry {
    pub(crate) observations: Arc<Observations>,
    runs: Mutex<BTreeMap<RunKey, RegisteredRun>>,
    /// Operations of one run are serialized.
    pub(crate) turns: KeyedLock,
}

/// A registered run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredRun {
    pub(crate) state: RunState,
    /// The last event of its preparation.
    pub(crate) preparation: Option<RunEvent>,
    /// True if it has a container: if that disappears, the run is lost.
    pub(crate) has_container: bool,
    /// Where its ports are reached.
    pub(crate) address: Option<IpAddr>,
    /// The workload of the run.
    pub(crate) workload_id: Uuid,
    /// Node and GPUs of the run.
    pub(crate) place: Option<RunPlace>,
}

impl RegisteredRun {
    /// One that was only requested.
    pub(crate) const fn requested(workload_id: Uuid, place: Option<RunPlace>) -> Self {
        Self {
            state: RunState::Starting,
            preparation: None,
            has_container: false,
            address: None,
            workload_id,
            place,
        }
    }
}

/// No code panics inside a change while it holds one of these locks.
fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) const fn has_ended(state: &RunState) -> bool {
    matches!(state, RunState::Exited { .. })
}

impl RunRegistry {
    pub(crate) fn get(&self, key: RunKey) -> Option<RegisteredRun> {
        open(&self.runs).get(&key).cloned()
    }

    pub(crate) fn state(&self, key: RunKey) -> Option<RunState> {
        self.get(key).map(|known| known.state)
    }

    pub(crate) fn all(&self) -> Vec<ListedRun> {
        let listed = |(&key, known): (&RunKey, &RegisteredRun)| {
            let state = known.state.clone();
            let place = known.place.clone().filter(|_| !has_ended(&state));
            ListedRun { key, state, place }
        };
        open(&self.runs).iter().map(listed).collect()
    }

    /// The runs that have a container and have not ended.
    pub(crate) fn living(&self) -> Vec<RunKey> {
        let lives = |(_, known): &(&RunKey, &RegisteredRun)| {
            known.has_container && !has_ended(&known.state)
        };
        open(&self.runs).iter().filter(lives).map(|(key, _)| *key).collect()
    }

    /// Registers a run without reporting it.
    pub(crate) fn know(&self, key: RunKey, known: RegisteredRun) {
        open(&self.runs).insert(key, known);
    }

    /// From now on the run is lost if its container does not exist.
    pub(crate) fn has_container(&self, key: RunKey) {
        if let Some(known) = open(&self.runs).get_mut(&key) {
            known.has_container = true;
        }
    }

    pub(crate) fn is_at(&self, key: RunKey, address: Option<IpAddr>) {
        if let Some(known) = open(&self.runs).get_mut(&key) {
            known.address = address.or(known.address);
        }
    }

    pub(crate) fn forget(&self, key: RunKey) {
        open(&self.runs).remove(&key);
    }

    /// Records the state of a registered run, and reports it if it changed. The first end stays.
    pub(crate) fn report(&self, key: RunKey, state: RunState) {
        let mut runs = open(&self.runs);
        let Some(known) = runs.get_mut(&key) else { return };
        if has_ended(&known.state) || state == RunState::Starting || known.state == state {
            return;
        }
        known.state = state.clone();
        self.observations.report(Observation::new(key, state));
    }

    /// A stream of observations from now on. It begins with the preparations in progress, which
    /// the list of runs does not have.
    pub(crate) fn stream(&self) -> mpsc::UnboundedReceiver<Observation> {
        let stream = self.observations.stream();
        for (key, known) in open(&self.runs).iter() {
            let event = known.preparation.clone().filter(|_| known.state == RunState::Starting);
            event.into_iter().for_each(|event| {
                self.observations.report(Observation::new(*key, event));
            });
        }
        stream
    }

    /// Reports the preparation of a registered run, unless its process has started or it was
    /// reported.
    pub(crate) fn report_preparation(&self, key: RunKey, event: RunEvent) {
        let mut runs = open(&self.runs);
        let Some(known) = runs.get_mut(&key) else { return };
        if known.state == RunState::Starting && known.preparation.as_ref() != Some(&event) {
            known.preparation = Some(event.clone());
            self.observations.report(Observation::new(key, event));
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::Exit;
    use units::Instant;

    use super::*;

    #[test]
    fn only_news_is_told_and_the_first_end_stands() {
        let registry = RunRegistry::default();
        let mut told = registry.observations.stream();
        let key = RunKey { pod: Uuid::from_u128(1), generation: 1 };
        let runs = RunState::Running { pid: None, started_at: Instant(1) };
        let ended = |code| RunState::Exited { exit: Exit::Code(code), at: Instant(2) };
        registry.report(key, runs.clone());
        assert!(told.try_recv().is_err(), "of a run that is not known nothing is told");
        registry.know(
            key,
            RegisteredRun { has_container: true, ..RegisteredRun::requested(Uuid::nil(), None) },
        );
        for state in
            [runs.clone(), runs.clone(), RunState::Starting, ended(3), ended(4), runs.clone()]
        {
            registry.report(key, state);
        }
        assert_eq!(told.try_recv().map(|seen| seen.news), Ok(runs.into()));
        assert_eq!(told.try_recv().map(|seen| seen.news), Ok(ended(3).into()));
        assert!(told.try_recv().is_err());
        assert_eq!((registry.state(key), registry.living()), (Some(ended(3)), vec![]));
    }
}
