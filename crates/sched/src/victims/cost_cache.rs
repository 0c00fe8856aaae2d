//! What room on each node costs. Owns: finding out no more of them than is needed, keeping them
//! between equal workloads of one action, and what they are at the least until the cluster changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use model::{GpuRequest, NodeId, QueueId, WorkloadId};
use units::Instant;

use super::asked::Asked;
use super::eviction_cost::EvictionCost;
use super::node_victims::{
    LeastCost, Moment, NodeVictims, Revision, at_most, each_node_below, nodes_of,
};
use super::rejections::Rejections;
use super::{Need, PreemptionAttempt, node_cost};
use crate::node_scoring::candidates;
use crate::place;
use crate::session::Session;

/// Nodes by cost. Costs change as the search goes on; one is believed when it still holds at
/// the moment its node is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeCosts {
    nodes: BinaryHeap<Reverse<(EvictionCost, NodeId, Known)>>,
    /// Nodes that have nothing to offer because something was refused.
    dropped: Vec<NodeId>,
    /// True if that was in an earlier attempt.
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

/// The bounds for one size of request.
#[derive(Debug, Clone, Default)]
struct LeastCosts {
    /// Of each node, as of a revision.
    nodes: Vec<Option<(Revision, LeastCost)>>,
    /// Nodes that may have a bound, in order, as of a moment: on the others there can be no room.
    open: Option<(Moment, Vec<NodeId>)>,
}

impl LeastCosts {
    /// Of these nodes, or all, those to look at.
    fn open_or_own(
        &mut self,
        (s, moment): (&Session<'_>, Moment),
        own: &BTreeSet<NodeId>,
        among: Option<&[NodeId]>,
    ) -> Vec<NodeId> {
        if self.open.as_ref().is_none_or(|(seen, _)| *seen != moment) {
            self.open = Some((moment, s.cluster.nodes().ids().collect()));
        }
        let open = self.open.as_ref().map_or(&[][..], |(_, open)| open);
        match among {
            Some(nodes) => {
                let is_open = |node: &NodeId| open.binary_search(node).is_ok();
                let nodes = nodes.iter().copied();
                nodes.filter(|node| own.contains(node) || is_open(node)).collect()
            }
            None => {
                let others = open.iter().filter(|node| !own.contains(node));
                own.iter().chain(others).copied().collect()
            }
        }
    }

    /// The bound of a node, which is found out if it is not known as of this revision.
    fn of(
        &mut self,
        node: NodeId,
        revision: Revision,
        find: impl FnOnce() -> LeastCost,
    ) -> LeastCost {
        let at = node.raw() as usize;
        self.nodes.resize(self.nodes.len().max(at + 1), None);
        let known = self.nodes[at].filter(|(seen, _)| *seen == revision);
        let (_, least) = *self.nodes[at].insert(known.unwrap_or_else(|| (revision, find())));
        least
    }

    /// There can be no room on these nodes.
    fn close(&mut self, closed: &BTreeSet<NodeId>) {
        if let Some((_, open)) = self.open.as_mut().filter(|_| !closed.is_empty()) {
            open.retain(|node| !closed.contains(node));
        }
    }
}

/// The costs of a workload, and the queues that were to give then; none if all.
#[derive(Debug, Clone)]
struct Kept {
    /// The revision of the state as of which nodes without a bound have no room; none if all that may
    /// come to have some have a cost.
    as_of: Option<u64>,
    need: Need,
    giving: Option<BTreeSet<QueueId>>,
    costs: NodeCosts,
}

impl Kept {
    /// True if the costs are those of this attempt as well, in which no other queue may give.
    fn is_of(&self, s: &Session<'_>, attempt: &PreemptionAttempt<'_>) -> bool {
        let all_gave = match (&attempt.giving, &self.giving) {
            (_, None) => true,
            (Some(now), Some(then)) => now.is_subset(then),
            (None, Some(_)) => false,
        };
        let holds = self.as_of.is_none_or(|as_of| as_of == s.cluster.state_revision());
        all_gave && holds && same_costs(s, &self.need, &attempt.need)
    }
}

/// Costs kept between equal workloads of one action, and bounds of them kept between all, also of
/// later decisions while the cluster stays as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeCostCache {
    /// When the last bound may have been found out.
    as_of: Instant,
    costs: Vec<Kept>,
    /// Bounds for nodes without work of the taker's queue.
    least: BTreeMap<(GpuRequest, Asked), LeastCosts>,
    victims: NodeVictims,
}

impl NodeCostCache {
    /// Takes in what has changed since the last decision, which was quiet: the time, and how queues stand.
    pub(crate) fn resume(&mut self, s: &Session<'_>) {
        // Where the clock was put back, work may have cost more then.
        if self.as_of > s.now {
            *self = Self::default();
        }
        self.victims.resume(s);
    }

    /// Forgets what holds in one action only. Bounds hold until the cluster changes: as time passes, costs
    /// only grow.
    pub(crate) fn end_of_action(&mut self, s: &Session<'_>) {
        self.as_of = s.now;
        self.costs.clear();
        self.victims.end_of_action(s);
    }

    /// The costs of all nodes. What one move makes possible for another is found by the next decision.
    pub(super) fn of(
        &mut self,
        s: &Session<'_>,
        attempt: &mut PreemptionAttempt<'_>,
    ) -> &mut NodeCosts {
        let at = self.costs.iter().position(|kept| kept.is_of(s, attempt));
        let at = at.unwrap_or_else(|| {
            let costs = self.among(s, attempt, None);
            let (need, giving) = (attempt.need, attempt.giving.clone());
            let as_of = (!is_used_again(s, attempt)).then(|| s.cluster.state_revision());
            self.costs.push(Kept { as_of, need, giving, costs });
            self.costs.len() - 1
        });
        let Kept { giving, costs, .. } = &mut self.costs[at];
        // Nodes of those that give no more may be lost now.
        giving.clone_from(&attempt.giving);
        costs.is_used = !costs.dropped.is_empty();
        costs
    }

    /// The costs of some nodes, or all.
    pub(super) fn among(
        &mut self,
        s: &Session<'_>,
        attempt: &mut PreemptionAttempt<'_>,
        nodes: Option<&[NodeId]>,
    ) -> NodeCosts {
        let bounds = self.bounds(s, attempt, attempt.asked(s), nodes);
        debug_assert!(
            nodes.map_or_else(|| s.cluster.nodes().ids().collect(), <[_]>::to_vec).into_iter().all(
                |node| {
                    let bound = bounds.iter().find(|(_, at)| *at == node);
                    is_below(s, attempt, node, bound.map(|(least, _)| *least))
                }
            ),
            "a node costs less than the least"
        );
        let bounds = bounds.into_iter();
        let nodes = if is_used_again(s, attempt) {
            bounds.filter_map(|(_, node)| exactly(s, attempt, node)).map(Reverse).collect()
        } else {
            bounds.map(|(least, node)| Reverse((least, node, Known::AtLeast))).collect()
        };
        NodeCosts { nodes, ..NodeCosts::default() }
    }

    /// True if there could be room on any node if all that is there gave way.
    pub(super) fn has_room(&mut self, s: &Session<'_>, attempt: &PreemptionAttempt<'_>) -> bool {
        !self.bounds(s, attempt, Asked::All, None).is_empty()
    }

    /// What room costs at the least on each of these nodes, or of all, where there may be any.
    fn bounds(
        &mut self,
        s: &Session<'_>,
        attempt: &PreemptionAttempt<'_>,
        asked: Asked,
        nodes: Option<&[NodeId]>,
    ) -> Vec<(EvictionCost, NodeId)> {
        let PreemptionAttempt { rule, need, .. } = *attempt;
        let Self { least, victims, .. } = self;
        victims.follow(s);
        // What can be moved is the same for all but what has pods there itself.
        let own = match rule.moves_max(s) {
            Some(_) => nodes_of(s, [need.id]),
            None => {
                let project = s.cluster.workloads()[need.id].spec.queue;
                nodes_of(s, s.cluster.queues()[project].placed.iter().copied())
            }
        };
        let minds_pods = s.cluster.minds_pods(need.ask.constraints);
        let request = at_most(need.ask.request.gpu);
        let known = least.entry((request, asked)).or_default();
        let (mut bounds, mut closed) = (Vec::new(), BTreeSet::new());
        let looked_at = match &attempt.giving {
            Some(giving) if !minds_pods => {
                let serving = nodes_that_serve(s, &need, giving, &own);
                let among = |these: &[NodeId]| {
                    let these = these.iter().copied();
                    these.filter(|node| serving.binary_search(node).is_ok()).collect()
                };
                nodes.map(among).unwrap_or(serving)
            }
            _ => known.open_or_own((s, victims.moment(s)), &own, nodes),
        };
        for node in looked_at {
            if !s.cluster.allows(need.ask.constraints, node) || !s.may_clear(need.id, node) {
                continue;
            }
            let revision = victims.revision(s, asked, node);
            let mut find = || victims.least_cost(s, rule, (need.id, request, asked), node);
            let bound = if minds_pods {
                Some(EvictionCost::NOTHING)
            } else if own.contains(&node) {
                find().of(&need)
            } else {
                let least = known.of(node, revision, find);
                if least.is_none() {
                    closed.insert(node);
                }
                least.of(&need)
            };
            bounds.extend(bound.map(|cost| (cost, node)));
        }
        if attempt.giving.is_none() {
            known.close(&closed);
        }
        bounds
    }

    /// What was rolled back has its old cost again, whichever pod of the workload it was for.
    pub(super) fn forget(&mut self, s: &Session<'_>, need: &Need) {
        self.costs.retain(|kept| !same_taker(s, &kept.need, need));
    }
}

/// These nodes, those with work that may give, and those with room that is free, in order.
fn nodes_that_serve(
    s: &Session<'_>,
    need: &Need,
    giving: &BTreeSet<QueueId>,
    own: &BTreeSet<NodeId>,
) -> Vec<NodeId> {
    let mut serving = Vec::new();
    let mut add = |node: NodeId| {
        let at = node.raw() as usize;
        serving.resize(serving.len().max(at + 1), false);
        serving[at] = true;
    };
    own.iter().copied().for_each(&mut add);
    giving.iter().for_each(|&queue| each_node_below(s, queue, &mut add));
    if need.gpus.is_some() || !s.is_known_full(need.id, need.pods) {
        let fits = |node: &NodeId| place::fits(s.cluster, *node, need.ask, false);
        candidates(s.cluster, need.ask, false).filter(fits).for_each(add);
    }
    let serves = |node: &NodeId| serving.get(node.raw() as usize).is_some_and(|serves| *serves);
    s.cluster.nodes().ids().filter(serves).collect()
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

/// True if costs are asked for after something has changed: by the next pod, or the next that is
/// alike. What a node is believed to cost is what it did before then; where none may lose its place,
/// few costs are found out at all.
fn is_used_again(s: &Session<'_>, attempt: &PreemptionAttempt<'_>) -> bool {
    let need = &attempt.need;
    let row = s.known.row_of(need.id).and_then(|(row, _)| s.known.row(row));
    let alike = row.is_some_and(|row| row.members.len() > 1);
    attempt.rule.moves_max(s).is_none() && (need.pods > 1 || alike)
}

/// True if a node costs no less than this, and has no room to make without it.
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
