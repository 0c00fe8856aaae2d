//! Places that are free, or will be. Owns: filling the nodes of a domain, the best first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{Cluster, NodeId, Placement, PodId};

use super::{Placer, Scope};
use crate::place::{self, Ask};
use crate::reserve::Heed;
use crate::session::Session;

/// Gives pods places that are free.
pub(crate) struct Free {
    /// The size of elastic ones, if it is not what they ask for.
    pub(crate) gpus: Option<u32>,
    /// Which reservations are heeded.
    pub(crate) heed: Option<Heed>,
}

impl Placer for Free {
    fn ask(&self, s: &Session<'_>, pod: PodId) -> Ask {
        Ask::of(s, pod, self.gpus)
    }

    fn room(&self, s: &Session<'_>, ask: Ask, node: NodeId) -> (u32, u32) {
        let soon = place::room(s.cluster, node, ask, false);
        let now = if soon == 0 { 0 } else { place::room(s.cluster, node, ask, true) };
        (now, soon)
    }

    fn effort_first(&self) -> bool {
        false
    }

    fn place(&mut self, s: &mut Session<'_>, pods: &[PodId], scope: &Scope) -> bool {
        if scope.is_everywhere() {
            return self.found(s, pods);
        }
        self.in_scope(s, pods, scope)
    }
}

impl Free {
    /// Each pod wherever it fits best. Where the first binds the others to its domain, one domain
    /// after the other, until all of them have room.
    fn found(&self, s: &mut Session<'_>, pods: &[PodId]) -> bool {
        let Some((&first, others)) = pods.split_first() else { return true };
        let constraints = s.constraints_of(first);
        let founds = !others.is_empty() && s.cluster.founds(constraints);
        let mut tried: Vec<NodeId> = Vec::new();
        loop {
            let start = s.cluster.checkpoint();
            let new = |cluster: &Cluster, node: NodeId| {
                !tried.iter().any(|&other| cluster.same_domains(constraints, other, node))
            };
            let Some(node) = self.one(s, first, new) else { return false };
            if others.iter().all(|&pod| self.one(s, pod, |_, _| true).is_some()) {
                return true;
            }
            if !founds || !s.may_try() {
                return false;
            }
            s.cluster.rollback(start);
            tried.push(node);
        }
    }

    fn one(
        &self,
        s: &mut Session<'_>,
        pod: PodId,
        open: impl Fn(&Cluster, NodeId) -> bool,
    ) -> Option<NodeId> {
        let ask = Ask::of(s, pod, self.gpus);
        let mut found = s.find_heeding(pod, ask, true, self.heed, &open).map(|to| (to, true));
        if found.is_none() {
            found = s.find_heeding(pod, ask, false, self.heed, &open).map(|to| (to, false));
        }
        let (to, at_once) = found?;
        let node = to.node;
        s.settle(pod, Some(to), at_once);
        Some(node)
    }

    /// The nodes of the scope by rank, each ranked anew after it got a pod.
    fn in_scope(&self, s: &mut Session<'_>, pods: &[PodId], scope: &Scope) -> bool {
        let Some(&first) = pods.first() else { return true };
        let ask = Ask::of(s, first, self.gpus);
        let nodes = scope.nodes(s.cluster);
        let mut waiting = pods.iter().copied();
        let mut next = waiting.next();
        for now in [true, false] {
            let rank = |s: &mut Session<'_>, node| {
                let rank = s.ranking.rank(s.cluster, node, ask, now, s.policy)?;
                Some(Reverse((rank, node)))
            };
            let mut best: BinaryHeap<_> = nodes.iter().filter_map(|&id| rank(s, id)).collect();
            while let Some(pod) = next {
                let Some(Reverse((_, node))) = best.pop() else { break };
                let fill = s.policy.placement_in(s.cluster.nodes()[node].pool).devices;
                let place = place::on_node(s.cluster, node, ask, now, fill);
                let open = |to: &Placement| self.heed.is_none_or(|heed| s.is_open(pod, heed, to));
                let Some(place) = place.filter(open) else { continue };
                s.settle(pod, Some(place), now);
                best.extend(rank(s, node));
                next = waiting.next();
            }
        }
        next.is_none()
    }
}
