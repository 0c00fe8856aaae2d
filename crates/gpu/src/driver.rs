//! The driver, for callers that query it repeatedly. Owns: connections that the first query opens,
//! and that no caller waits behind a query that a hanging driver never answers. Does not know about
//! the use of the answers.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, TryLockError};

use crate::{Activity, Health, Sampler, Watcher};

/// The driver, if there is one. A query blocks for as long as the driver takes, or for ever;
/// another one of the same kind fails meanwhile.
#[derive(Debug, Default)]
pub struct Driver {
    sampler: Connection<Sampler>,
    watcher: Connection<Watcher>,
}

impl Driver {
    /// Activity of every GPU; empty without a driver.
    ///
    /// # Errors
    /// An earlier query is still unanswered.
    pub fn sample(&self) -> Result<Vec<Activity>, String> {
        let sampled = self.sampler.ask(Sampler::open, |sampler| sampler.sample())?;
        Ok(sampled.unwrap_or_default())
    }

    /// Health of each of these GPUs, by UUID; `None` without a driver.
    ///
    /// # Errors
    /// The driver fails to answer, or an earlier query is still unanswered.
    pub fn look(&self, uuids: &[String]) -> Result<Option<BTreeMap<String, Health>>, String> {
        self.watcher.ask(Watcher::open, |watcher| watcher.look(uuids))?.transpose()
    }
}

/// Connection for one query at a time; holds `None` without a driver.
#[derive(Debug)]
struct Connection<T>(Mutex<OnceCell<Option<T>>>);

impl<T> Default for Connection<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Connection<T> {
    fn ask<A>(
        &self,
        open: impl FnOnce() -> Option<T>,
        question: impl FnOnce(&mut T) -> A,
    ) -> Result<Option<A>, String> {
        let mut inner = match self.0.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(inner)) => inner.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err("the driver has not answered an earlier question yet".to_owned());
            }
        };
        inner.get_or_init(open);
        Ok(inner.get_mut().and_then(Option::as_mut).map(question))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn nobody_waits_behind_a_question_that_is_not_answered() {
        let connection = Connection::default();
        let ask = |question: &dyn Fn(&mut u32) -> u32| connection.ask(|| Some(7), question);
        let (asked, hangs) = mpsc::channel();
        let (answer, answered) = mpsc::channel();
        thread::scope(|scope| {
            let connection = &connection;
            let slow = move |number: &mut u32| {
                asked.send(()).unwrap();
                answered.recv().unwrap();
                *number += 1;
            };
            scope.spawn(move || connection.ask(|| Some(7), slow));
            hangs.recv().unwrap();
            assert!(ask(&|number| *number).unwrap_err().contains("has not answered"));
            answer.send(()).unwrap();
        });
        assert_eq!(ask(&|number| *number), Ok(Some(8)), "it answers again, and was opened once");
    }

    #[test]
    fn without_a_driver_there_is_no_answer() {
        assert_eq!(Connection::<u32>::default().ask(|| None, |number| *number), Ok(None));
    }
}
