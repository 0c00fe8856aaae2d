//! Changes since the last call. Owns: which workloads and queues a cache outside has to look at
//! again.

use std::collections::BTreeSet;

use crate::{Cluster, QueueId, WorkloadId};

/// What has changed since [`Cluster::take_changes`] was last called.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Workloads that came, went, or are different in any way.
    pub workloads: BTreeSet<WorkloadId>,
    /// Queues that ask for more or less.
    pub asks: BTreeSet<QueueId>,
    /// Queues with another quota, limit, weight, rank or usage.
    pub shares: BTreeSet<QueueId>,
    /// Queues came or went, or the capacity that they divide changed.
    pub division: bool,
    /// Ids of constraints, or the node pools of all workloads, are different now.
    pub renamed: bool,
}

/// Keeping track of changes. No plan depends on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracker {
    changes: Changes,
    revision: u64,
    /// The highest that there was: none is used again for another state.
    newest: u64,
    taken: u64,
    /// Queues whose workloads came to hold more or less in the open transaction, in order.
    holdings: Vec<QueueId>,
    watches_holdings: bool,
}

impl Tracker {
    /// Records a change other than which pods request a place.
    pub(crate) const fn touch(&mut self) {
        self.newest += 1;
        self.revision = self.newest;
    }

    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    /// The state is what it was at this revision, if it is known to be.
    pub(crate) fn go_back(&mut self, revision: Option<u64>) {
        self.revision = revision.unwrap_or(self.revision);
    }

    /// Whether to record what queues hold from now on.
    pub(crate) fn watch_holdings(&mut self, watches: bool) {
        self.watches_holdings = watches;
        self.holdings.clear();
    }

    /// Workloads of a queue hold more or less.
    pub(crate) fn holds(&mut self, id: QueueId) {
        if self.watches_holdings && self.holdings.last() != Some(&id) {
            self.holdings.push(id);
        }
    }

    pub(crate) fn workload(&mut self, id: WorkloadId) {
        self.changes.workloads.insert(id);
    }

    pub(crate) fn asks(&mut self, id: QueueId) {
        self.changes.asks.insert(id);
    }

    pub(crate) fn share(&mut self, id: QueueId) {
        self.changes.shares.insert(id);
        self.touch();
    }

    pub(crate) const fn division(&mut self) {
        self.changes.division = true;
        self.touch();
    }

    pub(crate) const fn rename(&mut self) {
        self.changes.renamed = true;
        self.division();
    }
}

impl Cluster {
    /// What has changed since the last call.
    pub fn take_changes(&mut self) -> Changes {
        self.tracker.taken += 1;
        std::mem::take(&mut self.tracker.changes)
    }

    /// How often [`Cluster::take_changes`] was called: whether a caller has seen all changes.
    #[must_use]
    pub const fn changes_taken(&self) -> u64 {
        self.tracker.taken
    }

    /// Queues whose own workloads came to hold more or less in the open transaction, or were put back
    /// as they were; the last may change again.
    #[must_use]
    pub fn holdings_changed(&self) -> &[QueueId] {
        &self.tracker.holdings
    }

    /// A number that changes whenever anything does, but for pods without a place that begin or
    /// cease to ask for one. What is rolled back has the number again that it had.
    #[must_use]
    pub const fn state_revision(&self) -> u64 {
        self.tracker.revision
    }
}
