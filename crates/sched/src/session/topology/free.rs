//! Places that are free, or will be. Owns: filling nodes, the best first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{NodeId, Placement, PodId};

use super::Placer;
use crate::place::{self, PodRequirements};
use crate::session::Session;
use crate::session::reserve::ReservationScope;

/// Gives pods places that are free.
pub(crate) struct Free {
    /// Size of elastic pods, if it is not their request.
    pub(crate) gpus: Option<u32>,
    /// Reservations to respect; `None` for none.
    pub(crate) respected: Option<ReservationScope>,
}

impl Placer for Free {
    fn ask(&self, s: &Session<'_>, pod: PodId) -> PodRequirements {
        s.requirements(pod, self.gpus)
    }

    fn room(&self, s: &Session<'_>, ask: PodRequirements, node: NodeId) -> (u32, u32) {
        let soon = place::room(s.cluster, node, ask, false);
        let now = if soon == 0 { 0 } else { place::room(s.cluster, node, ask, true) };
        (now, soon)
    }

    fn effort_first(&self) -> bool {
        false
    }

    fn place(&mut self, s: &mut Session<'_>, pods: &[PodId], among: Option<&[NodeId]>) -> bool {
        match among {
            None => pods.iter().all(|&pod| self.anywhere(s, pod)),
            Some(nodes) => self.on(s, pods, nodes),
        }
    }
}

impl Free {
    /// Places a pod on the best node.
    fn anywhere(&self, s: &mut Session<'_>, pod: PodId) -> bool {
        let ask = s.requirements(pod, self.gpus);
        let mut found = s.find_respecting(pod, ask, true, self.respected).map(|to| (to, true));
        if found.is_none() {
            found = s.find_respecting(pod, ask, false, self.respected).map(|to| (to, false));
        }
        let Some((to, at_once)) = found else { return false };
        s.set_target(pod, Some(to), at_once);
        true
    }

    /// Places pods on the nodes by rank; each node is ranked again after it got a pod.
    fn on(&self, s: &mut Session<'_>, pods: &[PodId], nodes: &[NodeId]) -> bool {
        let Some(&first) = pods.first() else { return true };
        let ask = s.requirements(first, self.gpus);
        let mut waiting = pods.iter().copied();
        let mut next = waiting.next();
        for now in [true, false] {
            let rank = |s: &mut Session<'_>, node| {
                let rank = s.node_scoring.rank(s.cluster, node, ask, now, s.policy)?;
                Some(Reverse((rank, node)))
            };
            let mut best: BinaryHeap<_> = nodes.iter().filter_map(|&id| rank(s, id)).collect();
            while let Some(pod) = next {
                let Some(Reverse((_, node))) = best.pop() else { break };
                let fill = s.policy.placement_in(s.cluster.nodes()[node].pool).devices;
                let place = place::on_node(s.cluster, node, ask, now, fill);
                let open = |to: &Placement| {
                    self.respected.is_none_or(|respected| s.is_open(pod, respected, to))
                };
                let Some(place) = place.filter(open) else { continue };
                s.set_target(pod, Some(place), now);
                best.extend(rank(s, node));
                next = waiting.next();
            }
        }
        next.is_none()
    }
}
