//! Feasibility before any node has a cost. Owns: comparing the request of a workload with the
//! maximum that is free or could be freed. Errs on one side only: an infeasible result is certain.

use std::collections::BTreeMap;

use model::{QueueId, WorkloadId};
use units::Resources;

use super::{EvictionUnit, Need, NodeCostCache, PreemptionAttempt, freed};
use crate::session::Session;

/// Possible results of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feasibility {
    /// There are too few resources, even with every victim.
    Infeasible,
    /// There is no victim.
    OnlyWhatIsFree,
    /// The search has to be made.
    Open,
}

/// The largest preemptible workload in each queue, at its first use. In one attempt it only gets
/// smaller. Finding it visits every workload of the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct LargestWorkloads {
    known: BTreeMap<QueueId, Resources>,
    /// `true` to count workloads as if they were divisible at will.
    divisible: bool,
}

impl LargestWorkloads {
    fn divisible() -> Self {
        Self { divisible: true, ..Self::default() }
    }

    /// Maximum resources of one workload in or below the queue, component by component.
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
    /// Finds a place for every pod. No costs are computed if the result is known without them.
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

    /// Compares the remaining request with the resources that could become available.
    pub(super) fn feasibility(&mut self, s: &Session<'_>) -> Feasibility {
        if self.exhaustive {
            return Feasibility::Open;
        }
        let least = s.least(self.need.id, self.need.asked);
        let Need { id, asked, .. } = self.need;
        // A moved workload may find its place in another pool.
        let moves = self.rule.moves_max(s).is_some();
        let free =
            if moves { s.cluster.free_soon() } else { s.cluster.free_soon_of(s.division_of(id)) };
        // Mostly there is enough even without the remainder of a whole workload.
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

    /// `true` if the search would have found room where it was called infeasible: debug builds
    /// check every time, so that every test of decisions also tests the bound. Changes nothing.
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
