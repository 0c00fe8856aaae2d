//! What is known of each run while the server lives. Owns: the states, telling them on if they are
//! news, and the turns of verbs. Refuses to know: where states come from.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::{Observation, Observations, RunKey, RunState, Turns};
use uuid::Uuid;

/// The books.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) observations: Observations,
    runs: Mutex<BTreeMap<RunKey, Known>>,
    /// The verbs of one run take turns.
    pub(crate) turns: Turns,
}

/// A run that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) state: RunState,
    /// Whether it has a container: one that is not there any more is lost.
    pub(crate) has_container: bool,
    /// Where its ports are reached.
    pub(crate) address: Option<IpAddr>,
    /// Whose run it is.
    pub(crate) workload_id: Uuid,
}

impl Known {
    /// One that has only been asked for.
    pub(crate) const fn asked_for(workload_id: Uuid) -> Self {
        Self { state: RunState::Starting, has_container: false, address: None, workload_id }
    }
}

/// None of these locks is held while anything can panic half-way through a change.
fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) const fn has_ended(state: &RunState) -> bool {
    matches!(state, RunState::Exited { .. })
}

impl Books {
    pub(crate) fn get(&self, key: RunKey) -> Option<Known> {
        open(&self.runs).get(&key).cloned()
    }

    pub(crate) fn state(&self, key: RunKey) -> Option<RunState> {
        self.get(key).map(|known| known.state)
    }

    pub(crate) fn all(&self) -> Vec<Observation> {
        let seen =
            |(&key, known): (&RunKey, &Known)| Observation { key, state: known.state.clone() };
        open(&self.runs).iter().map(seen).collect()
    }

    /// The runs that have a container and have not ended.
    pub(crate) fn living(&self) -> Vec<RunKey> {
        let lives =
            |(_, known): &(&RunKey, &Known)| known.has_container && !has_ended(&known.state);
        open(&self.runs).iter().filter(lives).map(|(key, _)| *key).collect()
    }

    /// Takes a run into the books without telling of it.
    pub(crate) fn know(&self, key: RunKey, known: Known) {
        open(&self.runs).insert(key, known);
    }

    /// From now on its container is missed when it is not there.
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

    /// Takes in what was seen of a known run, and tells it on if it is news. The first end stands.
    pub(crate) fn report(&self, key: RunKey, state: RunState) {
        let mut runs = open(&self.runs);
        let Some(known) = runs.get_mut(&key) else { return };
        if has_ended(&known.state) || state == RunState::Starting || known.state == state {
            return;
        }
        known.state = state.clone();
        self.observations.report(Observation { key, state });
    }
}

#[cfg(test)]
mod tests {
    use engine::Exit;
    use units::Instant;

    use super::*;

    #[test]
    fn only_news_is_told_and_the_first_end_stands() {
        let books = Books::default();
        let mut told = books.observations.stream();
        let key = RunKey { pod: Uuid::from_u128(1), generation: 1 };
        let runs = RunState::Running { pid: None, started_at: Instant(1) };
        let ended = |code| RunState::Exited { exit: Exit::Code(code), at: Instant(2) };
        books.report(key, runs.clone());
        assert!(told.try_recv().is_err(), "of a run that is not known nothing is told");
        books.know(key, Known { has_container: true, ..Known::asked_for(Uuid::nil()) });
        for state in
            [runs.clone(), runs.clone(), RunState::Starting, ended(3), ended(4), runs.clone()]
        {
            books.report(key, state);
        }
        assert_eq!(told.try_recv().map(|seen| seen.state), Ok(runs));
        assert_eq!(told.try_recv().map(|seen| seen.state), Ok(ended(3)));
        assert!(told.try_recv().is_err());
        assert_eq!((books.state(key), books.living()), (Some(ended(3)), vec![]));
    }
}
