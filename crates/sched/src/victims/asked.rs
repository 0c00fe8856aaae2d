//! Workloads that can make room. Owns: the exclusion, before any costs, of workloads that could
//! give nothing: where none may lose its place, those without another free place; where queues
//! give, those of queues that have nothing to give.

use model::{Gpu, NodeId, Placement, PodId, WorkloadId};
use units::GPU_MILLIS;

use super::{Need, PreemptionAttempt};
use crate::free_places::FreePlaces;
use crate::place::{self, PodRequirements};
use crate::session::Session;
use model::equivalence_class::is_elastic;

/// Workloads considered on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    All,
    /// Only workloads that could have another place in the present state: the search for sets finds
    /// those that can use places of others.
    Movable,
}

impl PreemptionAttempt<'_> {
    /// Determines the queues that may give in this attempt.
    pub(super) fn find_givers(&mut self, s: &Session<'_>) {
        let Need { id, asked, .. } = self.need;
        // Different pod sets request different kinds of resources.
        let is_one_set = s.cluster.workloads()[id].spec.pod_sets.len() == 1;
        if is_one_set && !self.exhaustive {
            self.giving = self.rule.givers(s, id, asked);
        }
    }

    pub(super) fn asked(&self, s: &Session<'_>) -> Asked {
        let moves = self.rule.moves_max(s).is_some()
            && !s.cluster.minds_pods(self.need.ask.constraints)
            && !self.exhaustive;
        if moves { Asked::Movable } else { Asked::All }
    }

    /// `true` if a workload may make room on a node.
    pub(super) fn asks(&self, s: &Session<'_>, victim: WorkloadId, node: NodeId) -> bool {
        self.rule.is_victim(s, self.need.id, victim)
            && self.may_give(s, victim)
            && (self.asked(s) == Asked::All || s.may_move(victim, node))
    }

    fn may_give(&self, s: &Session<'_>, victim: WorkloadId) -> bool {
        let Need { id, asked, .. } = self.need;
        // At most one queue of its lineage is a sibling of the taker's path: where the two part.
        let may = self.giving.as_ref().is_none_or(|giving| {
            let queue = s.queue_of(victim);
            queue == s.queue_of(id) || s.cluster.lineage(queue).any(|giver| giving.contains(&giver))
        });
        debug_assert!(
            may || self
                .rule
                .eviction_units(s, id, victim)
                .iter()
                .all(|&unit| !self.rule.just(s, id, asked, victim, unit)),
            "it may be taken"
        );
        may
    }
}

impl Session<'_> {
    /// Uses the present state as the base state of free places.
    pub(super) fn settle_free_places(&self) {
        self.free_places.borrow_mut().settle(self.cluster);
    }

    /// `true` if another place is free for any pod of a workload on this node. Also `true`, without
    /// a check, for pods with topology constraints, for different pod sets, and for pods that may
    /// change size.
    pub(super) fn may_move(&self, id: WorkloadId, node: NodeId) -> bool {
        let workload = &self.cluster.workloads()[id];
        let spec = &workload.spec;
        if workload.pod_sets.len() > 1 || spec.has_topology() || is_elastic(spec) {
            return true;
        }
        workload.pods.iter().any(|&pod| {
            let place = self.cluster.pods()[pod].binding.effective();
            let here = place.filter(|place| place.node == node);
            here.is_some_and(|place| may_stay(self, pod, place) || self.has_other(pod, node))
        })
    }

    /// `true` if a place is free for a pod on another node.
    fn has_other(&self, pod: PodId, but: NodeId) -> bool {
        let ask = PodRequirements::anywhere(self.cluster, pod, None);
        if self.cluster.minds_pods(ask.constraints) {
            return true;
        }
        let is_free = self.free_places.borrow_mut().any_but(self.cluster, ask, but);
        debug_assert_eq!(
            is_free,
            FreePlaces::default().any_but(self.cluster, ask, but),
            "what is kept is what would be found"
        );
        is_free
    }
}

/// `true` if other devices of its node may be free for a pod, which keeps its other resources.
fn may_stay(s: &Session<'_>, pod: PodId, place: &Placement) -> bool {
    let gpus = &s.cluster.nodes()[place.node].gpus;
    let is_part = place.devices.iter().any(|share| share.millis < GPU_MILLIS);
    if !is_part && !gpus.iter().any(Gpu::is_instance) {
        return false;
    }
    let request = PodRequirements::anywhere(s.cluster, pod, None).request.gpu;
    // A pod with several devices may keep some.
    place.devices.len() > 1
        || place::fits_on(request, gpus.iter().map(|gpu| (gpu, gpu.free_millis(false))))
}
