//! What room on each node costs. Owns: keeping those costs between equal workloads of one action.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::{NodeId, WorkloadId};

use super::eviction_cost::EvictionCost;
use super::rejections::Rejections;
use super::{Need, PreemptionAttempt, node_cost};
use crate::session::Session;

/// Nodes by cost. Costs change as the search goes on; one is believed when it still holds at
/// the moment its node is taken.
#[derive(Debug, Default)]
pub(super) struct NodeCosts {
    pub(super) nodes: BinaryHeap<Reverse<(EvictionCost, NodeId)>>,
    /// Nodes that have nothing to offer because something was refused.
    dropped: Vec<NodeId>,
    /// Whether that was in an earlier attempt.
    is_used: bool,
}

impl NodeCosts {
    pub(super) fn new(
        s: &Session<'_>,
        attempt: &mut PreemptionAttempt<'_>,
        nodes: impl Iterator<Item = NodeId>,
    ) -> Self {
        let costed = nodes.filter_map(|node| {
            node_cost::node(s, attempt, node, &Rejections::default())
                .map(|offer| Reverse((offer.cost, node)))
        });
        Self { nodes: costed.collect(), ..Self::default() }
    }

    /// A node has another cost than before, or none.
    pub(super) fn put(
        &mut self,
        node: NodeId,
        cost: Option<EvictionCost>,
        rejections: &Rejections,
    ) {
        match cost {
            Some(cost) => self.nodes.push(Reverse((cost, node))),
            None if !rejections.is_empty() => self.dropped.push(node),
            None => {}
        }
    }

    /// Checks again the victims that may have become eligible; false if there are none.
    pub(super) fn ask_again(
        &mut self,
        s: &Session<'_>,
        need: &Need,
        rejections: &mut Rejections,
    ) -> bool {
        if !std::mem::take(&mut self.is_used) && !rejections.forgive(s, need) {
            return false;
        }
        self.nodes
            .extend(self.dropped.drain(..).map(|node| Reverse((EvictionCost::NOTHING, node))));
        !self.nodes.is_empty()
    }
}

/// Costs kept between equal workloads of one action.
#[derive(Debug, Default)]
pub(crate) struct NodeCostCache(Vec<(Need, NodeCosts)>);

impl NodeCostCache {
    pub(super) fn of(
        &mut self,
        s: &Session<'_>,
        attempt: &mut PreemptionAttempt<'_>,
    ) -> &mut NodeCosts {
        let at = self.0.iter().position(|(other, _)| same_costs(s, other, &attempt.need));
        let at = at.unwrap_or_else(|| {
            self.0.push((attempt.need, NodeCosts::new(s, attempt, s.cluster.nodes().ids())));
            self.0.len() - 1
        });
        let costs = &mut self.0[at].1;
        costs.is_used = !costs.dropped.is_empty();
        costs
    }

    /// What was rolled back has its old cost again, whichever pod of the workload it was for.
    pub(super) fn forget(&mut self, s: &Session<'_>, need: &Need) {
        self.0.retain(|(other, _)| !same_taker(s, other, need));
    }
}

fn same_costs(s: &Session<'_>, left: &Need, right: &Need) -> bool {
    left.ask == right.ask && same_taker(s, left, right)
}

fn same_taker(s: &Session<'_>, left: &Need, right: &Need) -> bool {
    let spec = |id: WorkloadId| &s.cluster.workloads()[id].spec;
    let (l, r) = (spec(left.id), spec(right.id));
    (l.queue, l.priority) == (r.queue, r.priority)
}
