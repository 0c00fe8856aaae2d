//! State kept from one decision to the next. Owns: its parts. A plan is byte for byte equal without
//! it.

use std::collections::{BTreeMap, BTreeSet};

use model::{QueueId, WorkloadId};
use units::Resources;

use crate::Action;
use crate::knowledge::Knowledge;
use crate::victims::NodeCostCache;

/// Knowledge about a cluster from earlier decisions.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub(crate) known: Knowledge,
    /// Lower bounds of node costs for each action, as long as decisions change nothing.
    pub(crate) least_costs: BTreeMap<Action, NodeCostCache>,
}

impl Memory {
    /// Fair share of each queue, as of the last decision.
    #[must_use]
    pub const fn shares(&self) -> &BTreeMap<QueueId, Resources> {
        self.known.shares()
    }

    /// Makes the next plan list the pending reasons of these workloads again, even if unchanged.
    pub fn tell_again(&mut self, ids: impl IntoIterator<Item = WorkloadId>) {
        self.known.fresh.extend(ids);
    }

    /// The queues whose fair shares have changed since the last call.
    pub fn take_moved_shares(&mut self) -> BTreeSet<QueueId> {
        std::mem::take(&mut self.known.entitlements.moved)
    }
}
