//! Taking the units of a node's offer. Owns: returning all of them if one turns out to be unjust,
//! or removes pods that the taker has affinity to. Does not know about: costs.

use model::{NodeId, PodMismatch, QueueId, WorkloadId};
use units::Resources;

use super::node_cost::Offer;
use super::{EvictionUnit, PreemptionAttempt, Rejections, freed, unit_priority};
use crate::session::Session;

impl PreemptionAttempt<'_> {
    /// Takes the units of a node's offer; `false` if one turned out to be unjust, or removed pods
    /// that the taker has affinity to, and all were returned.
    pub(super) fn accept(
        &mut self,
        s: &mut Session<'_>,
        node: NodeId,
        offer: &Offer,
        rejections: &mut Rejections,
    ) -> bool {
        if let Some((victim, eviction_unit)) = self.known_to_fail(s, offer, rejections) {
            rejections.here(s, &self.need, (node, victim, eviction_unit));
            return false;
        }
        let start = s.cluster.checkpoint();
        let before = self.givers.len();
        let mut taken = Resources::ZERO;
        for &(victim, pieces) in &offer.victims {
            let eviction_units = self.rule.eviction_units(s, self.need.id, victim);
            for &eviction_unit in eviction_units.iter().take(pieces) {
                let piece = freed(s, eviction_unit);
                let is_just = self.take(s, victim, eviction_unit);
                if is_just && self.stays_near(s, node) {
                    taken += piece;
                    continue;
                }
                s.cluster.rollback(start);
                for (victim, _) in self.givers.drain(before..) {
                    self.causes.remove(&victim);
                }
                if is_just {
                    rejections.here(s, &self.need, (node, victim, eviction_unit));
                    return false;
                }
                let is_new = !self.causes.contains_key(&victim);
                let most = self.rule.moves_max(s).filter(|_| is_new);
                if most.is_some_and(|most| self.givers.len() >= most) {
                    rejections.all_but(self.givers.iter().map(|&(giver, _)| giver).collect());
                    return false;
                }
                if most.is_none() {
                    let rejected = (victim, eviction_unit);
                    rejections.piece(s, &self.need, rejected, (taken, piece));
                }
                rejections.here(s, &self.need, (node, victim, eviction_unit));
                return false;
            }
        }
        true
    }

    /// `true` while the pods on a node that the taker has affinity to are still there.
    fn stays_near(&self, s: &Session<'_>, node: NodeId) -> bool {
        let check = s.cluster.check_pods(self.need.ask.constraints, node, false);
        check != Err(PodMismatch::Affinity)
    }

    /// The first of these units that is known to be refused. Units of less important work of its
    /// queue do not count as taken, because they change nothing for it.
    fn known_to_fail(
        &self,
        s: &Session<'_>,
        offer: &Offer,
        rejections: &Rejections,
    ) -> Option<(WorkloadId, EvictionUnit)> {
        if rejections.is_empty() {
            return None;
        }
        let mut taken: Vec<(QueueId, u32, Resources)> = Vec::new();
        for &(victim, pieces) in &offer.victims {
            let queue = s.queue_of(victim);
            let eviction_units = self.rule.eviction_units(s, self.need.id, victim);
            // The freed amount is certain only for the first unit.
            let (&first, piece) = eviction_units.first().map(|first| (first, freed(s, *first)))?;
            let priority = unit_priority(s, victim, first);
            let own =
                taken.iter().filter(|(other, least, _)| *other == queue && *least >= priority);
            let before = own.map(|&(.., freed)| freed).sum();
            if rejections.knows(s, &self.need, (victim, first), (before, piece)) {
                return Some((victim, first));
            }
            let all = eviction_units.get(pieces - 1).map_or(piece, |&last| freed(s, last));
            taken.push((queue, priority, all));
        }
        None
    }
}

/// `true` if a pod of the workload has required pod affinity.
pub(crate) fn needs_others(s: &Session<'_>, id: WorkloadId) -> bool {
    let mut sets = s.cluster.workloads()[id].pod_sets.iter();
    sets.any(|set| s.cluster.needs_others(set.constraints))
}
