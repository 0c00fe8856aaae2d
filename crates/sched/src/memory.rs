//! What a decision leaves to the next. Owns: the parts of it. A plan is the same without it, byte for
//! byte.

use std::collections::{BTreeMap, BTreeSet};

use model::{QueueId, WorkloadId};
use units::Resources;

use crate::Action;
use crate::knowledge::Knowledge;
use crate::victims::NodeCostCache;

/// What is known of a cluster from earlier decisions about it.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub(crate) known: Knowledge,
    /// What room on nodes costs at the least for each action, while the last decision was quiet.
    pub(crate) least_costs: BTreeMap<Action, NodeCostCache>,
}

impl Memory {
    /// What each queue is entitled to, as of the last decision.
    #[must_use]
    pub const fn shares(&self) -> &BTreeMap<QueueId, Resources> {
        self.known.shares()
    }

    /// Makes the next plan list the pending reasons of these workloads again, even if unchanged.
    pub fn tell_again(&mut self, ids: impl IntoIterator<Item = WorkloadId>) {
        self.known.fresh.extend(ids);
    }

    /// The queues that are entitled to more or less than when this was last asked for.
    pub fn take_moved_shares(&mut self) -> BTreeSet<QueueId> {
        std::mem::take(&mut self.known.entitlements.moved)
    }
}
