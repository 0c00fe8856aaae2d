//! What room on each node costs. Owns: finding out no more of them than is needed, and
//! keeping them between equal workloads of one action.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use model::{GpuRequest, NodeId, WorkloadId};

use super::eviction_cost::EvictionCost;
use super::node_victims::{LeastCost, NodeVictims, at_most, nodes_of};
use super::rejections::Rejections;
use super::{Need, PreemptionAttempt, node_cost};
use crate::session::Session;

/// Nodes by cost. Costs change as the search goes on; one is believed when it still holds at
/// the moment its node is taken.
#[derive(Debug, Default)]
pub(super) struct NodeCosts {
    nodes: BinaryHeap<Reverse<(EvictionCost, NodeId, Known)>>,
    /// Nodes that have nothing to offer because something was refused.
    dropped: Vec<NodeId>,
    /// Whether that was in an earlier attempt.
    is_used: bool,
}

/// What is known of a node's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// It is not less.
    AtLeast,
    Exactly,
}

impl NodeCosts {
    /// The node that costs least, and what it is believed to cost. Costs are found out for those
    /// only that may be it.
    pub(super) fn pop(
        &mut self,
        s: &Session<'_>,
        attempt: &mut PreemptionAttempt<'_>,
    ) -> Option<(EvictionCost, NodeId)> {
        loop {
            let Reverse((cost, node, known)) = self.nodes.pop()?;
            if known == Known::Exactly {
                return Some((cost, node));
            }
            self.nodes.extend(exactly(s, attempt, node).map(Reverse));
        }
    }

    /// A node has another cost than before, or none.
    pub(super) fn put(
        &mut self,
        node: NodeId,
        cost: Option<EvictionCost>,
        rejections: &Rejections,
    ) {
        match cost {
            Some(cost) => self.nodes.push(Reverse((cost, node, Known::Exactly))),
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
        let again = |node| Reverse((EvictionCost::NOTHING, node, Known::Exactly));
        self.nodes.extend(self.dropped.drain(..).map(again));
        !self.nodes.is_empty()
    }
}

/// Costs kept between equal workloads of one action, and bounds of them kept between all.
#[derive(Debug, Default)]
pub(crate) struct NodeCostCache {
    costs: Vec<(Need, NodeCosts)>,
    /// Bounds for nodes without work of the taker's queue, each as of a revision.
    least: BTreeMap<GpuRequest, Vec<Option<(u64, LeastCost)>>>,
    victims: NodeVictims,
}

impl NodeCostCache {
    /// The costs of all nodes.
    pub(super) fn of(
        &mut self,
        s: &Session<'_>,
        attempt: &mut PreemptionAttempt<'_>,
    ) -> &mut NodeCosts {
        let at = self.costs.iter().position(|(other, _)| same_costs(s, other, &attempt.need));
        let at = at.unwrap_or_else(|| {
            let nodes: Vec<_> = s.cluster.nodes().ids().collect();
            let costs = self.of_nodes(s, attempt, &nodes);
            self.costs.push((attempt.need, costs));
            self.costs.len() - 1
        });
        let costs = &mut self.costs[at].1;
        costs.is_used = !costs.dropped.is_empty();
        costs
    }

    /// The costs of some nodes.
    pub(super) fn of_nodes(
        &mut self,
        s: &Session<'_>,
        attempt: &mut PreemptionAttempt<'_>,
        nodes: &[NodeId],
    ) -> NodeCosts {
        let PreemptionAttempt { rule, need, .. } = *attempt;
        let Self { least, victims, .. } = self;
        victims.follow(s);
        let own = nodes_of(s, s.queue_of(need.id));
        let minds_pods = s.cluster.minds_pods(need.ask.constraints);
        let request = at_most(need.ask.request.gpu);
        let known = least.entry(request).or_default();
        let least = |node: NodeId| {
            if !s.cluster.allows(need.ask.constraints, node) || !s.may_clear(need.id, node) {
                return None;
            }
            if minds_pods {
                return Some(EvictionCost::NOTHING);
            }
            if own.contains(&node) {
                return victims.least_cost(s, rule, (need.id, request), node).of(&need);
            }
            let (at, revision) = (node.raw() as usize, victims.revision(s, node));
            known.resize(known.len().max(at + 1), None);
            let here = known[at].filter(|(seen, _)| *seen == revision).unwrap_or_else(|| {
                (revision, victims.least_cost(s, rule, (need.id, request), node))
            });
            known[at] = Some(here);
            here.1.of(&need)
        };
        let least: Vec<_> = nodes.iter().copied().map(least).collect();
        debug_assert!(
            nodes.iter().zip(&least).all(|(&node, least)| is_below(s, attempt, node, *least)),
            "a node costs less than the least"
        );
        let bounds = nodes.iter().zip(least).filter_map(|(&node, least)| Some((least?, node)));
        let nodes = if is_used_again(s, &need) {
            let exactly = |(_, node)| exactly(s, attempt, node);
            bounds.filter_map(exactly).map(Reverse).collect()
        } else {
            bounds.map(|(least, node)| Reverse((least, node, Known::AtLeast))).collect()
        };
        NodeCosts { nodes, ..NodeCosts::default() }
    }

    /// What was rolled back has its old cost again, whichever pod of the workload it was for.
    pub(super) fn forget(&mut self, s: &Session<'_>, need: &Need) {
        self.costs.retain(|(other, _)| !same_taker(s, other, need));
    }
}

/// What a node costs.
fn exactly(
    s: &Session<'_>,
    attempt: &mut PreemptionAttempt<'_>,
    node: NodeId,
) -> Option<(EvictionCost, NodeId, Known)> {
    let offer = node_cost::node(s, attempt, node, &Rejections::default())?;
    Some((offer.cost, node, Known::Exactly))
}

/// Whether costs are asked for after something has changed: by the next pod, or the next that is
/// alike. What a node is believed to cost is what it did before then.
fn is_used_again(s: &Session<'_>, need: &Need) -> bool {
    let row = s.memory.row_of(need.id).and_then(|(row, _)| s.memory.row(row));
    need.pods > 1 || row.is_some_and(|row| row.members.len() > 1)
}

/// Whether a node costs no less than this, and has no room to make without it.
fn is_below(
    s: &Session<'_>,
    attempt: &mut PreemptionAttempt<'_>,
    node: NodeId,
    least: Option<EvictionCost>,
) -> bool {
    let offer = node_cost::node(s, attempt, node, &Rejections::default());
    offer.is_none_or(|offer| least.is_some_and(|least| least <= offer.cost))
}

fn same_costs(s: &Session<'_>, left: &Need, right: &Need) -> bool {
    left.ask == right.ask && same_taker(s, left, right)
}

fn same_taker(s: &Session<'_>, left: &Need, right: &Need) -> bool {
    let spec = |id: WorkloadId| &s.cluster.workloads()[id].spec;
    let (l, r) = (spec(left.id), spec(right.id));
    (l.queue, l.priority) == (r.queue, r.priority)
}
