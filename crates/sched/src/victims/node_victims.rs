//! Workloads on each node, and the least cost of room there. Owns: a lower bound of the cost of a
//! node, computed without a search, and its cache until the node or a queue changes. Errs on one
//! side only: an excluded node has no room to make, and none costs less than its bound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{DeviceShare, Gpu, GpuRequest, NodeId, QueueId, WorkloadId};
use smallvec::SmallVec;
use units::Resources;

use super::asked::Asked;
use super::eviction_cost::{EvictionCost, Top, Weight, WorkLost, importance, lost_here};
use super::eviction_units::whole_workload;
use super::node_cost::missing_millis;
use super::{Need, Rule};
use crate::place;
use crate::session::Session;

/// Cached results about nodes and queues.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeVictims {
    /// Workloads with a place on each node, as of one of its revisions.
    nodes: Vec<Option<(u64, Vec<Victim>)>>,
    /// Number of changes of the queues of the workloads on each node.
    changes: Vec<u64>,
    /// Number of all these changes.
    changed: u64,
    queues: BTreeMap<QueueId, Standing>,
    /// Workloads on each node that could have a place on another node.
    movable: Vec<Movable>,
    /// Number of processed changes of the use of queues.
    seen: usize,
}

/// A workload with a place on a node.
#[derive(Debug, Clone)]
struct Victim {
    id: WorkloadId,
    /// Resources of its pods there.
    devices: SmallVec<[(usize, u64); 2]>,
    held: Resources,
    /// Number of placed pods, on any node, if it is evicted as a whole or not at all.
    whole: Option<u32>,
    /// Its weight there, and the work lost with it.
    weight: Weight,
    lost: WorkLost,
}

/// Workloads on a node that could have another place.
#[derive(Debug, Clone, Default)]
struct Movable {
    who: SmallVec<[WorkloadId; 4]>,
    /// The revision of the state for which that holds.
    as_of: Option<u64>,
    /// Number of changes of the set.
    changes: u64,
}

/// A revision of the state, and the number of changes of nodes that the revision does not include.
pub(super) type Moment = (u64, u64);

/// A revision of a node, and the number of changes of its victims' queues or of its movable ones.
pub(super) type Revision = (u64, u64);

/// State of a queue with its used resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    held: Resources,
    /// Least priority of its preemptible work.
    least: Option<u32>,
    is_over_share: bool,
    saturation: u64,
}

/// Lower bound of the cost of room on a node, whatever is requested besides GPUs.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeastCost {
    /// Free resources; `None` if there are too few GPUs for one more pod.
    free: Option<Resources>,
    /// Free resources without all possible victims, and the least cost of evicting any; `None` if
    /// even that has too few GPUs.
    most: Option<(Resources, EvictionCost)>,
}

impl LeastCost {
    /// `true` if there can be no room for any pod.
    pub(super) const fn is_none(&self) -> bool {
        self.free.is_none() && self.most.is_none()
    }

    /// The bound for a pod; `None` if there can be no room.
    pub(super) fn of(&self, need: &Need) -> Option<EvictionCost> {
        let host = Resources { gpu_millis: 0, ..need.ask.request.resources(1) };
        if self.free.is_some_and(|free| host.fits_in(free)) {
            return Some(EvictionCost::NOTHING);
        }
        self.most.filter(|(most, _)| host.fits_in(*most)).map(|(_, cost)| cost)
    }
}

impl NodeVictims {
    /// Applies the state of queues in a later decision.
    pub(super) fn resume(&mut self, s: &Session<'_>) {
        let mut nodes = BTreeSet::new();
        for (&queue, then) in &mut self.queues {
            let now = standing(s, queue);
            if std::mem::replace(then, now) != now {
                nodes.extend(nodes_of(s, s.workloads_in(queue)));
            }
        }
        self.touch(nodes);
    }

    fn touch(&mut self, nodes: BTreeSet<NodeId>) {
        for node in nodes {
            let at = node.raw() as usize;
            self.changes.resize(self.changes.len().max(at + 1), 0);
            self.changes[at] += 1;
            self.changed += 1;
        }
    }

    /// Applies the changes of the use of queues.
    pub(super) fn follow(&mut self, s: &Session<'_>) {
        let changed = s.cluster.holdings_changed();
        // The last one may have changed after it was processed.
        let new = std::mem::replace(&mut self.seen, changed.len()).saturating_sub(1);
        let mut nodes = BTreeSet::new();
        for &queue in &changed[new..] {
            let Some(then) = self.queues.get_mut(&queue) else { continue };
            let row = &s.cluster.queues()[queue];
            if (then.held, then.least) == (row.held(), row.preemptible.keys().next().copied()) {
                continue;
            }
            *then = standing(s, queue);
            nodes.extend(nodes_of(s, s.workloads_in(queue)));
        }
        self.touch(nodes);
    }

    /// Applies the last changes, rolled back ones too; the next decision counts changes from 0.
    pub(super) fn end_of_action(&mut self, s: &Session<'_>) {
        self.follow(s);
        self.seen = 0;
    }

    /// A value that differs whenever the bound of any node may.
    pub(super) const fn moment(&self, s: &Session<'_>) -> Moment {
        (s.cluster.state_revision(), self.changed)
    }

    /// A value that differs whenever the bound of a node may.
    pub(super) fn revision(&mut self, s: &Session<'_>, asked: Asked, node: NodeId) -> Revision {
        let moves = if asked == Asked::Movable { self.movable(s, node).changes } else { 0 };
        let queues = self.changes.get(node.raw() as usize).copied().unwrap_or(0);
        // Both only grow.
        (s.cluster.revision(node), queues + moves)
    }

    /// Workloads on a node that could have another place in the present state.
    fn movable(&mut self, s: &Session<'_>, node: NodeId) -> &Movable {
        let (at, as_of) = (node.raw() as usize, Some(s.cluster.state_revision()));
        self.movable.resize_with(self.movable.len().max(at + 1), Movable::default);
        if self.movable[at].as_of != as_of {
            s.settle_free_places();
            let here = on_node(&mut self.nodes, s, node);
            let moves = |id: &WorkloadId| s.can_give_way(*id) && s.may_move(*id, node);
            let who = here.iter().map(|victim| victim.id).filter(moves).collect();
            let known = &mut self.movable[at];
            known.changes += u64::from(known.who != who);
            (known.who, known.as_of) = (who, as_of);
        }
        &self.movable[at]
    }

    /// The bound for a GPU request. Except on nodes with work of the taker's queue, it is equal for
    /// all takers of an action.
    pub(super) fn least_cost(
        &mut self,
        s: &Session<'_>,
        rule: &dyn Rule,
        (id, request, asked): (WorkloadId, GpuRequest, Asked),
        node: NodeId,
    ) -> LeastCost {
        let movable = (asked == Asked::Movable).then(|| self.movable(s, node).who.clone());
        let Self { nodes, queues, .. } = self;
        let here = on_node(nodes, s, node);
        let gives = |victim: &Victim| {
            victim.id != id
                && rule.is_victim(s, id, victim.id)
                && movable.as_ref().is_none_or(|who| who.contains(&victim.id))
        };
        let victims: SmallVec<[&Victim; 8]> = here.iter().filter(|one| gives(one)).collect();
        let row = &s.cluster.nodes()[node];
        let mut gpus: SmallVec<[(&Gpu, u64); 8]> =
            row.gpus.iter().map(|gpu| (gpu, gpu.free_millis(false))).collect();
        let missing_millis = missing_millis(request, gpus.iter().copied());
        let takes_one_more = row.pods_committed < row.pods_max;
        let fits = takes_one_more && place::fits_on(request, gpus.iter().copied());
        let mut most = row.free(false);
        let free = fits.then_some(most);
        for victim in &victims {
            victim.devices.iter().for_each(|&(at, millis)| gpus[at].1 += millis);
            most += victim.held;
        }
        if victims.is_empty() || !place::fits_on(request, gpus.iter().copied()) {
            return LeastCost { free, most: None };
        }
        let more = fewest(&victims, missing_millis).max(2);
        let (own, stays) = (s.queue_of(id), rule.moves_max(s).is_some());
        let at_rest = victims.iter().filter(|victim| !s.cluster.workloads()[victim.id].runs());
        let costs_nothing = at_rest.map(|victim| victim.weight.gpu_millis).sum();
        let costs_millis = missing_millis.saturating_sub(costs_nothing);
        let costs = victims.iter().map(|victim| {
            let (workload, queue) = (&s.cluster.workloads()[victim.id], s.queue_of(victim.id));
            let Standing { is_over_share, saturation, .. } =
                *queues.entry(queue).or_insert_with(|| standing(s, queue));
            let restarts = if victim.held.gpu_millis >= missing_millis { 1 } else { more };
            let is_whole = victim.whole == Some(workload.placed);
            let importance = || importance(s, victim.id, workload.spec.priority);
            let importance = if is_whole && !stays { importance() } else { 0 };
            EvictionCost {
                entitled: u32::from(rule.spares_the_entitled() && !is_over_share),
                top: Top::of(importance, is_whole, victim.lost),
                interrupted: if stays { restarts } else { 0 },
                lost: least_lost(costs_millis, if is_whole { victim.lost } else { WorkLost::NONE }),
                asked: restarts,
                restarts,
                taken_millis: 0,
                // For moves the bound is equal for takers of all queues.
                foreign: u32::from(queue != own && !stays),
                saturation: Reverse(saturation),
                seq: Reverse(workload.spec.seq),
            }
        });
        LeastCost { free, most: costs.min().map(|cost| (most, cost)) }
    }
}

/// The request rounded down to steps, so that there are fewer different ones.
pub(super) fn at_most(request: GpuRequest) -> GpuRequest {
    const MILLIS: u64 = 100;
    match request {
        GpuRequest::Share { devices, millis } => {
            GpuRequest::Share { devices, millis: (millis / MILLIS * MILLIS).max(1) }
        }
        GpuRequest::Memory { devices, bytes } => {
            GpuRequest::Memory { devices, bytes: (bytes >> 30 << 30).max(1) }
        }
        other => other,
    }
}

/// Nodes with pods of these workloads.
pub(super) fn nodes_of(
    s: &Session<'_>,
    ids: impl IntoIterator<Item = WorkloadId>,
) -> BTreeSet<NodeId> {
    let pods = ids.into_iter().flat_map(|id| &s.cluster.workloads()[id].pods);
    pods.filter_map(|&pod| Some(s.cluster.pods()[pod].binding.effective()?.node)).collect()
}

/// Visits the nodes with work of a queue and of all below it, some of them more than once.
pub(super) fn each_node_below(s: &Session<'_>, queue: QueueId, visit: &mut impl FnMut(NodeId)) {
    for id in s.workloads_in(queue) {
        let pods = s.cluster.workloads()[id].pods.iter();
        let places = pods.filter_map(|&pod| s.cluster.pods()[pod].binding.effective());
        places.for_each(|place| visit(place.node));
    }
    for &child in &s.cluster.queues()[queue].children {
        each_node_below(s, child, visit);
    }
}

/// The least loss if these GPU thousandths of running work have to be freed.
fn least_lost(running_millis: u64, lost: WorkLost) -> WorkLost {
    WorkLost { gpu: lost.gpu.max(running_millis), ..lost }
}

/// Minimum number of victims that free the missing GPU thousandths.
fn fewest(victims: &[&Victim], missing_millis: u64) -> u32 {
    let sizes = victims.iter().map(|victim| victim.held.gpu_millis);
    let mut sizes: SmallVec<[u64; 8]> = sizes.collect();
    sizes.sort_unstable_by_key(|&millis| Reverse(millis));
    let (mut count, mut left) = (0, missing_millis);
    for millis in sizes {
        if left == 0 {
            break;
        }
        count += 1;
        left = left.saturating_sub(millis);
    }
    count
}

fn on_node<'a>(
    nodes: &'a mut Vec<Option<(u64, Vec<Victim>)>>,
    s: &Session<'_>,
    node: NodeId,
) -> &'a [Victim] {
    let (at, revision) = (node.raw() as usize, s.cluster.revision(node));
    if nodes.len() <= at {
        nodes.resize_with(at + 1, || None);
    }
    let known = nodes[at].take().filter(|(seen, _)| *seen == revision);
    &nodes[at].insert(known.unwrap_or_else(|| (revision, look(s, node)))).1
}

fn look(s: &Session<'_>, node: NodeId) -> Vec<Victim> {
    let mut victims: Vec<Victim> = Vec::new();
    let row = &s.cluster.nodes()[node];
    let frees = |at: &DeviceShare| {
        let gpu = at.gpu as usize;
        (gpu, row.gpus[gpu].taken_by(at.millis))
    };
    for &pod in &row.pods {
        let here = s.cluster.pods()[pod].binding.effective().filter(|place| place.node == node);
        let Some(place) = here else { continue };
        let id = s.cluster.pods()[pod].workload;
        let at = victims.iter().position(|victim| victim.id == id).unwrap_or_else(|| {
            let is_whole = whole_workload(s, id).len() == 1;
            let whole = is_whole.then(|| s.cluster.workloads()[id].placed);
            let held = Resources::ZERO;
            let (weight, lost) = (Weight::default(), WorkLost::NONE);
            victims.push(Victim { id, devices: SmallVec::new(), held, whole, weight, lost });
            victims.len() - 1
        });
        let victim = &mut victims[at];
        victim.devices.extend(place.devices.iter().map(frees));
        let held = s.cluster.amounts(pod, place);
        victim.held += held;
        victim.weight = victim.weight.and(Weight::of(held));
    }
    for victim in &mut victims {
        victim.lost = lost_here(s, victim.id, victim.weight);
    }
    victims
}

fn standing(s: &Session<'_>, queue: QueueId) -> Standing {
    let row = &s.cluster.queues()[queue];
    Standing {
        held: row.held(),
        least: row.preemptible.keys().next().copied(),
        is_over_share: s.shares().over_share(queue),
        saturation: s.saturation(queue).coarse(),
    }
}
