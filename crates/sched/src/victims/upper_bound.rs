//! What can be said before any node is costed. Owns: comparing what a workload needs with the
//! most that is free or could come free. Errs on one side only: what is called infeasible is.

use std::collections::BTreeMap;

use model::{QueueId, WorkloadId};
use units::Resources;

use super::{EvictionUnit, Need, NodeCostCache, PreemptionAttempt, freed};
use crate::session::Session;

/// What the search can lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feasibility {
    /// There is too little, even with every victim.
    Infeasible,
    /// There is no victim.
    OnlyWhatIsFree,
    /// It has to be tried.
    Open,
}

/// The largest workload that may be stopped in each queue, as it was when first asked for. In one
/// attempt it only gets smaller. Finding it takes a look at every workload of the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct LargestWorkloads {
    known: BTreeMap<QueueId, Resources>,
    /// Whether to count workloads as if they could be cut as small as one likes.
    divisible: bool,
}

impl LargestWorkloads {
    fn divisible() -> Self {
        Self { divisible: true, ..Self::default() }
    }

    /// The most that one workload in or below the queue holds, component by component.
    pub(crate) fn largest(&mut self, s: &Session<'_>, queue: QueueId) -> Resources {
        if self.divisible {
            return Resources::ZERO;
        }
        *self.known.entry(queue).or_insert_with(|| {
            let workloads = s.workloads_below(queue).into_iter();
            let victims = workloads.filter(|&id: &WorkloadId| s.can_give_way(id));
            let held = victims.map(|id| freed(s, EvictionUnit::All(id)));
            held.fold(Resources::ZERO, Resources::max)
        })
    }
}

impl PreemptionAttempt<'_> {
    /// Finds a place for every pod. No node is costed when the outcome is known without it.
    pub(super) fn place(&mut self, s: &mut Session<'_>, cost_cache: &mut NodeCostCache) -> bool {
        match self.feasibility(s) {
            Feasibility::Infeasible => {
                debug_assert!(!self.found_anyway(s), "a search would have succeeded");
                false
            }
            Feasibility::OnlyWhatIsFree => {
                let Need { id, gpus, pods, .. } = self.need;
                let is_full = gpus.is_none() && s.is_known_full(id, pods);
                debug_assert!(!is_full || s.place(id, gpus).is_err(), "a place is free");
                !is_full && s.place(id, gpus).is_ok()
            }
            Feasibility::Open => self.place_all(s, cost_cache),
        }
    }

    /// Compares what is still asked for with what there could be.
    pub(super) fn feasibility(&mut self, s: &Session<'_>) -> Feasibility {
        if self.exhaustive {
            return Feasibility::Open;
        }
        let least = s.least(self.need.id, self.need.asked);
        let Need { id, asked, .. } = self.need;
        // Who is only moved may find its place in another pool.
        let moves = self.rule.moves_max(s).is_some();
        let free =
            if moves { s.cluster.free_soon() } else { s.cluster.free_soon_of(s.division_of(id)) };
        // Mostly there is enough even without what comes along with a whole workload.
        let most = self.rule.frees_at_most(s, id, asked, &mut LargestWorkloads::divisible());
        if most != Resources::ZERO && least.fits_in(free + most) {
            return Feasibility::Open;
        }
        let most = self.rule.frees_at_most(s, id, asked, &mut self.largest_workloads);
        if !least.fits_in(free + most) {
            Feasibility::Infeasible
        } else if most == Resources::ZERO && self.rule.moves_max(s).unwrap_or(0) == 0 {
            Feasibility::OnlyWhatIsFree
        } else {
            Feasibility::Open
        }
    }

    /// True if the search would have found room where it was called infeasible: debug builds look
    /// every time, so that every test of decisions is one of the bound too. Changes nothing.
    pub(super) fn found_anyway(&self, s: &mut Session<'_>) -> bool {
        let (stats, trials_left) = (s.stats, s.trials_left);
        let mut attempt = self.clone();
        attempt.exhaustive = true;
        let start = s.cluster.checkpoint();
        let found = attempt.conclude(s, &mut NodeCostCache::default());
        s.cluster.rollback(start);
        (s.stats, s.trials_left) = (stats, trials_left);
        found
    }
}
