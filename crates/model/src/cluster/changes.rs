//! Changes since the last call. Owns: the workloads and queues that an external cache has to read
//! again.

use std::collections::BTreeSet;

use crate::{Cluster, QueueId, WorkloadId};

/// Changes since the last call of [`Cluster::take_changes`].
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Workloads that were added, removed, or changed in any way.
    pub workloads: BTreeSet<WorkloadId>,
    /// Queues whose requests changed.
    pub asks: BTreeSet<QueueId>,
    /// Queues with another quota, limit, weight, rank or usage.
    pub shares: BTreeSet<QueueId>,
    /// True if queues were added or removed, or the capacity that they divide changed.
    pub division: bool,
    /// True if ids of constraints, or the node pools of all workloads, changed.
    pub renamed: bool,
}

/// Records changes. No plan depends on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracker {
    changes: Changes,
    revision: u64,
    /// Highest revision so far: a revision is never used again for another state.
    newest: u64,
    taken: u64,
    /// Queues whose workloads changed their holdings in the open transaction, in order.
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

    /// Restores the revision of an earlier state, if it is known.
    pub(crate) fn go_back(&mut self, revision: Option<u64>) {
        self.revision = revision.unwrap_or(self.revision);
    }

    /// Starts or stops recording changes of holdings.
    pub(crate) fn watch_holdings(&mut self, watches: bool) {
        self.watches_holdings = watches;
        self.holdings.clear();
    }

    /// Records that the holdings of a queue changed.
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
    /// Changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        self.tracker.taken += 1;
        std::mem::take(&mut self.tracker.changes)
    }

    /// Number of calls of [`Cluster::take_changes`], by which a caller finds out whether it has
    /// seen all changes.
    #[must_use]
    pub const fn changes_taken(&self) -> u64 {
        self.tracker.taken
    }

    /// Queues whose own workloads changed their holdings in the open transaction, or had them
    /// restored; the last may change again.
    #[must_use]
    pub fn holdings_changed(&self) -> &[QueueId] {
        &self.tracker.holdings
    }

    /// A number that changes with any change, except for pods without a place that start or stop
    /// requesting one. A rollback restores the earlier number.
    #[must_use]
    pub const fn state_revision(&self) -> u64 {
        self.tracker.revision
    }
}
