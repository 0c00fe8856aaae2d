//! Costs of room on each node. Owns: the computation of no more costs than needed, a cache of costs
//! between equal workloads of one action, and lower bounds that hold until the cluster changes.

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

/// Nodes by cost. Costs change during the search; a cost is used only if it still holds when its
/// node is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeCosts {
    nodes: BinaryHeap<Reverse<(EvictionCost, NodeId, Known)>>,
    /// Nodes that have nothing to offer because a unit was refused.
    dropped: Vec<NodeId>,
    /// `true` if nodes were dropped in an earlier attempt.
    is_used: bool,
}

/// Precision of a node's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// The cost is a lower bound.
    AtLeast,
    Exactly,
}

impl NodeCosts {
    /// The node with the least cost, and that cost. Exact costs are computed only for nodes that
    /// may be it.
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

    /// Sets the new cost of a node, or removes the node.
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

    /// Checks again the victims that may have become eligible; `false` if there are none.
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

/// The lower bounds for one size of request.
#[derive(Debug, Clone, Default)]
struct LeastCosts {
    /// Bound of each node, as of a revision.
    nodes: Vec<Option<(Revision, LeastCost)>>,
    /// Nodes that may have a bound, in order, as of a moment: the others can have no room.
    open: Option<(Moment, Vec<NodeId>)>,
}

impl LeastCosts {
    /// The nodes to examine, of these or of all.
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

    /// The bound of a node, which is computed if it is not known as of this revision.
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

    /// Excludes nodes that can have no room.
    fn close(&mut self, closed: &BTreeSet<NodeId>) {
        if let Some((_, open)) = self.open.as_mut().filter(|_| !closed.is_empty()) {
            open.retain(|node| !closed.contains(node));
        }
    }
}

/// The costs of a workload, and the queues that could give at that time; `None` for all queues.
#[derive(Debug, Clone)]
struct Kept {
    /// The revision of the state up to which nodes without a bound have no room; `None` if all
    /// nodes that may get room have a cost.
    as_of: Option<u64>,
    need: Need,
    giving: Option<BTreeSet<QueueId>>,
    costs: NodeCosts,
}

impl Kept {
    /// `true` if the costs are also those of this attempt, in which no other queue may give.
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

/// Costs kept between equal workloads of one action, and lower bounds kept between all workloads,
/// also for later decisions while the cluster does not change.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeCostCache {
    /// Latest time at which a bound may have been computed.
    as_of: Instant,
    costs: Vec<Kept>,
    /// Bounds for nodes without work of the taker's queue.
    least: BTreeMap<(GpuRequest, Asked), LeastCosts>,
    victims: NodeVictims,
}

impl NodeCostCache {
    /// Applies changes since the last decision, which moved no pod: of time and of queues.
    pub(crate) fn resume(&mut self, s: &Session<'_>) {
        // After the clock was put back, work may cost less now.
        if self.as_of > s.now {
            *self = Self::default();
        }
        self.victims.resume(s);
    }

    /// Drops results that hold in one action only. Bounds hold until the cluster changes: as time
    /// passes, costs only grow.
    pub(crate) fn end_of_action(&mut self, s: &Session<'_>) {
        self.as_of = s.now;
        self.costs.clear();
        self.victims.end_of_action(s);
    }

    /// The costs of all nodes. The next decision finds room that one move makes for another.
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
        // Nodes of queues that give no more may have been lost.
        giving.clone_from(&attempt.giving);
        costs.is_used = !costs.dropped.is_empty();
        costs
    }

    /// The costs of some nodes, or of all.
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

    /// `true` if any node could have room if all work on it gave way.
    pub(super) fn has_room(&mut self, s: &Session<'_>, attempt: &PreemptionAttempt<'_>) -> bool {
        !self.bounds(s, attempt, Asked::All, None).is_empty()
    }

    /// Lower bound of the cost of room on each of these nodes, or of all, where room is possible.
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
        // The movable work on a node is equal for all takers without pods on it.
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

    /// Drops the costs of a workload, for all of its pods, after a rollback restored the old ones.
    pub(super) fn forget(&mut self, s: &Session<'_>, need: &Need) {
        self.costs.retain(|kept| !same_taker(s, &kept.need, need));
    }
}

/// These nodes, those with work of queues that may give, and those with free room, in order.
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

/// The exact cost of a node.
fn exactly(
    s: &Session<'_>,
    attempt: &mut PreemptionAttempt<'_>,
    node: NodeId,
) -> Option<(EvictionCost, NodeId, Known)> {
    let offer = node_cost::node(s, attempt, node, &Rejections::default())?;
    Some((offer.cost, node, Known::Exactly))
}

/// `true` if costs are read again after a change: by the next pod, or by the next equal workload.
/// They are then computed exactly, as they were before the change; where none may lose its place,
/// few costs are computed at all.
fn is_used_again(s: &Session<'_>, attempt: &PreemptionAttempt<'_>) -> bool {
    let need = &attempt.need;
    let row = s.known.row_of(need.id).and_then(|(row, _)| s.known.row(row));
    let alike = row.is_some_and(|row| row.members.len() > 1);
    attempt.rule.moves_max(s).is_none() && (need.pods > 1 || alike)
}

/// `true` if a node costs no less than `least`; if `None`, if it has no room to make.
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
