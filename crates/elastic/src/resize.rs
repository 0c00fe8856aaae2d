//! Shrinking: each worker whose place the scheduler takes prepares and confirms. Owns: the order of
//! the steps and the deadline. The job influences how it shrinks, but cannot refuse: a worker that
//! does not answer in time is stopped. Does not know about: why the scheduler takes places.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use units::Instant;

use crate::task::WorkerId;

/// Next step of a resize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResizeStep {
    /// The worker finishes its current step and hands back its tasks before the deadline.
    Prepare {
        /// Worker that leaves.
        worker: WorkerId,
        /// End of its time to hand back.
        deadline: Instant,
    },
    /// The worker has handed back everything: its place can be taken.
    Release(WorkerId),
    /// These workers did not answer in time and are stopped. Their unreported records are done
    /// again.
    Stop(Vec<WorkerId>),
}

/// The conversation of a job with its scheduler.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Resize {
    /// Workers that prepare to leave, with their deadlines.
    leaving: BTreeMap<WorkerId, Instant>,
    /// Workers that did not answer in time, until they are gone.
    stopped: BTreeSet<WorkerId>,
}

impl Resize {
    /// True if a worker has to leave and has not answered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// True if a worker has to leave, or was stopped because it did not.
    #[must_use]
    pub fn is_leaving(&self, worker: WorkerId) -> bool {
        self.leaving.contains_key(&worker) || self.stopped.contains(&worker)
    }

    /// Earliest deadline of a worker that has not answered.
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
