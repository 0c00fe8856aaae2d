//! The conversation about a new number of workers: the scheduler offers, the job prepares and
//! confirms. Owns: the order of the steps and the deadline. The job shapes how it changes, never
//! whether: what does not answer in time is stopped. Does not know about: why the scheduler asks.

use std::collections::BTreeSet;

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
    leaving: BTreeSet<WorkerId>,
    deadline: Option<Instant>,
}

impl Resize {
    /// Whether some are asked to leave and have not answered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.deadline.is_some()
    }

    /// Whether a worker is asked to leave and has not answered.
    #[must_use]
    pub fn is_leaving(&self, worker: WorkerId) -> bool {
        self.leaving.contains(&worker)
    }

    /// When those who have not answered are stopped.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The scheduler offers another size. Who leaves are the last of `workers` (the caller puts
    /// those that lose the least last). A second offer while one is open takes its place: a worker
    /// that was asked to leave still leaves, and the earlier deadline stays for it.
    pub fn offer(&mut self, workers: &[WorkerId], size: u32, deadline: Instant) -> ResizeStep {
        let staying: Vec<_> = workers.iter().filter(|w| !self.leaving.contains(w)).collect();
        let count = u32::try_from(staying.len()).unwrap_or(u32::MAX);
        if size >= count {
            return ResizeStep::Start(size - count);
        }
        let leaving: Vec<_> = staying[size as usize..].iter().map(|worker| **worker).collect();
        self.leaving.extend(&leaving);
        let deadline = self.deadline.map_or(deadline, |earlier| earlier.min(deadline));
        self.deadline = Some(deadline);
        ResizeStep::Prepare { leaving, deadline }
    }

    /// A worker has handed back what it had, or is gone.
    pub fn prepared(&mut self, worker: WorkerId) -> Option<ResizeStep> {
        if !self.leaving.remove(&worker) {
            return None;
        }
        if self.leaving.is_empty() {
            self.deadline = None;
        }
        Some(ResizeStep::Release(vec![worker]))
    }

    /// Time has passed.
    pub fn turn(&mut self, now: Instant) -> Option<ResizeStep> {
        self.deadline.take_if(|deadline| *deadline <= now)?;
        Some(ResizeStep::Stop(std::mem::take(&mut self.leaving).into_iter().collect()))
    }
}
