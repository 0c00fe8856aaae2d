//! The conversation about a new number of workers: the scheduler offers, the job prepares and
//! confirms. Owns: the order of the steps and the deadline. The job shapes how it changes, never
//! whether: what does not answer in time is stopped. Does not know about: why the scheduler asks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use units::Instant;

use crate::task::WorkerId;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResizeStep {
    /// These finish the step they are in, hand back their tasks, and say so until then.
    Prepare {
        /// Who leaves.
        leaving: Vec<WorkerId>,
        /// Until when.
        deadline: Instant,
    },
    /// These have handed back everything: their places can be taken.
    Release(Vec<WorkerId>),
    /// These have not answered in time and are stopped. What they had not reported is done again.
    Stop(Vec<WorkerId>),
    /// So many more may start.
    Start(u32),
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
    /// Whether some are asked to leave and have not answered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Whether a worker is asked to leave, or stopped because it did not.
    #[must_use]
    pub fn is_leaving(&self, worker: WorkerId) -> bool {
        self.leaving.contains_key(&worker) || self.stopped.contains(&worker)
    }

    /// When the next of those who have not answered are stopped.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.leaving.values().min().copied()
    }

    /// The scheduler offers another size. Who leaves are the last of `workers` (the caller puts
    /// those that lose the least last). A second offer changes nothing for those who leave already.
    pub fn offer(&mut self, workers: &[WorkerId], size: u32, deadline: Instant) -> ResizeStep {
        let staying: Vec<_> = workers.iter().filter(|w| !self.is_leaving(**w)).copied().collect();
        let count = u32::try_from(staying.len()).unwrap_or(u32::MAX);
        if size >= count {
            return ResizeStep::Start(size - count);
        }
        let leaving = staying[size as usize..].to_vec();
        self.leaving.extend(leaving.iter().map(|worker| (*worker, deadline)));
        ResizeStep::Prepare { leaving, deadline }
    }

    /// The scheduler takes the place of this worker. Again changes nothing.
    pub fn take(&mut self, worker: WorkerId, deadline: Instant) -> Option<ResizeStep> {
        if self.is_leaving(worker) {
            return None;
        }
        self.leaving.insert(worker, deadline);
        Some(ResizeStep::Prepare { leaving: vec![worker], deadline })
    }

    /// A worker has handed back what it had, or is gone.
    pub fn prepared(&mut self, worker: WorkerId) -> Option<ResizeStep> {
        self.stopped.remove(&worker);
        self.leaving.remove(&worker).map(|_| ResizeStep::Release(vec![worker]))
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
