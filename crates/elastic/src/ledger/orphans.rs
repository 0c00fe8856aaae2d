//! Training tasks of workers that are gone while parameter servers have the model. Owns: that such
//! a task waits until the servers have reported how far its pushes got. Does not know about: pushes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Held, Ledger};
use crate::task::{Kind, TaskId, WorkerId};

impl Ledger {
    /// A worker is gone without handing back, and parameter servers may have accepted more of its
    /// gradients than it reported: its training tasks wait for [`Ledger::settle`]. Its other tasks
    /// are given out again at once.
    pub fn orphan(&mut self, worker: WorkerId) {
        let trains = |held: &Held| held.task.kind == Kind::Train && held.task.measures.is_none();
        let own = self.held.iter().filter(|(_, held)| held.worker == worker && trains(held));
        for id in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Ok(held) = self.take(worker, id) {
                self.orphans.insert(id, held);
            }
        }
        self.lose(worker);
    }

    /// The servers have accepted the gradients of so many records of each task of a worker that is
    /// gone, and accept no more of it: the other records are given out again.
    pub fn settle(&mut self, worker: WorkerId, positions: &BTreeMap<TaskId, u64>) {
        let all = std::mem::take(&mut self.orphans).into_iter();
        let (own, others): (BTreeMap<_, _>, _) = all.partition(|(_, held)| held.worker == worker);
        self.orphans = others;
        // The oldest is put at the front last, so it is given out first.
        for (id, mut held) in own.into_iter().rev() {
            let position = positions.get(&id).copied().unwrap_or_default();
            let finished = position.min(held.task.records.count()).max(held.finished);
            self.progress.records += finished - held.finished;
            self.progress.lost += 1;
            held.finished = finished;
            self.give_back(held);
        }
        self.end();
    }

    /// Workers that are gone and whose tasks wait for [`Ledger::settle`].
    #[must_use]
    pub fn unsettled(&self) -> BTreeSet<WorkerId> {
        self.orphans.values().map(|held| held.worker).collect()
    }
}
