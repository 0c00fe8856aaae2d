//! The conversation about workers whose places the scheduler takes: each prepares and confirms.
//! Owns: the order of the steps and the deadline. The job shapes how it changes, never whether: what
//! does not answer in time is stopped. Does not know about: why the scheduler asks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use units::Instant;

use crate::task::WorkerId;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResizeStep {
    /// It finishes the step it is in, hands back its tasks, and says so until then.
    Prepare {
        /// Who leaves.
        worker: WorkerId,
        /// Until when.
        deadline: Instant,
    },
    /// It has handed back everything: its place can be taken.
    Release(WorkerId),
    /// These have not answered in time and are stopped. What they had not reported is done again.
    Stop(Vec<WorkerId>),
}

/// The conversation of a job with its scheduler.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Resize {
    /// Those who prepare to leave, and until when.
    leaving: BTreeMap<WorkerId, Instant>,
    /// Those who did not answer in time, until they are gone.
    stopped: BTreeSet<WorkerId>,
}

impl Resize {
    /// True if some are asked to leave and have not answered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// True if a worker is asked to leave, or stopped because it did not.
    #[must_use]
    pub fn is_leaving(&self, worker: WorkerId) -> bool {
        self.leaving.contains_key(&worker) || self.stopped.contains(&worker)
    }

    /// When the next of those who have not answered are stopped.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.leaving.values().min().copied()
    }

    /// The scheduler takes the place of this worker. Again changes nothing.
    pub fn take(&mut self, worker: WorkerId, deadline: Instant) -> Option<ResizeStep> {
        if self.is_leaving(worker) {
            return None;
        }
        self.leaving.insert(worker, deadline);
        Some(ResizeStep::Prepare { worker, deadline })
    }

    /// A worker has handed back what it had, or is gone.
    pub fn prepared(&mut self, worker: WorkerId) -> Option<ResizeStep> {
        self.stopped.remove(&worker);
        self.leaving.remove(&worker).map(|_| ResizeStep::Release(worker))
    }

    /// Time has passed.
    pub fn turn(&mut self, now: Instant) -> Option<ResizeStep> {
        let late =
            |(worker, deadline): (&WorkerId, &Instant)| (*deadline <= now).then_some(*worker);
        let late: Vec<_> = self.leaving.iter().filter_map(late).collect();
        self.leaving.retain(|_, deadline| *deadline > now);
        self.stopped.extend(&late);
        (!late.is_empty()).then_some(ResizeStep::Stop(late))
    }
}
