//! The nodes that fit a pod, best first. Owns: their order, and a cache of results for each node
//! until the node changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::fragmentation::{Allowed, Free, Shapes};
use model::{Cluster, DeviceShare, GpuRequest, Node, NodeId};
use units::GPU_MILLIS;

use crate::place::{self, PodRequirements};
use crate::policy::{Placement, Policy};
use model::Fill;

/// Maximum number of different requests with cached results.
const ASKS_MAX: usize = 512;
/// The shapes are recomputed when one of this many parts of all GPUs was allocated or freed.
const FREE_PARTS: u64 = 10;
const MILLION: u64 = 1_000_000;

/// Cached results about the nodes of one cluster.
#[derive(Debug, Default)]
pub struct NodeScoring {
    shapes: Shapes,
    /// Number of pods with these shapes, and GPU thousandths that were free then.
    pods: u64,
    free_millis: u64,
    /// The shapes that each node allows, and the value of the node to them.
    worth: Vec<Known<u64, (Allowed, u64)>>,
    /// The last computed loss: equal nodes mostly follow one another.
    last: Option<Loss>,
    keys: BTreeMap<(PodRequirements, bool), Keys>,
}

/// Loss of value where a pod changes the free GPUs of a node that allows these shapes.
#[derive(Debug, PartialEq, Eq)]
struct Loss {
    allowed: Allowed,
    before: Free,
    after: Free,
    loss: u64,
}

/// A result about a node at one of its revisions.
type Known<R, T> = Option<(R, T)>;

/// For each node, its key if the pod fits.
type Keys = Vec<Known<(u64, u64), Option<Key>>>;

/// Sort key of a node, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Preference of the pod for the node.
    liking: Reverse<i64>,
    /// Loss of value to other pods.
    loss: u64,
    /// Number of whole GPUs broken by a shared request; 1 if a pod without GPUs takes a GPU node.
    misuse: usize,
    /// The fullest node first, or the emptiest.
    room: u64,
}

impl NodeScoring {
    /// The best node for a pod, among those where it fits on an open place.
    fn best(
        &mut self,
        cluster: &Cluster,
        ask: PodRequirements,
        now: bool,
        policy: &Policy,
        open: impl Fn(&model::Placement) -> bool,
    ) -> Option<NodeId> {
        let fits = |id: NodeId| {
            let place =
                place::on_node(cluster, id, ask, now, placement_at(cluster, id, policy).devices);
            place.is_some_and(|to| open(&to))
        };
        if !self.keys.contains_key(&(ask, now)) {
            // Without a choice, no results about the nodes are needed.
            let mut fitting = candidates(cluster, ask, now).filter(|&id| fits(id));
            let first = fitting.next()?;
            if fitting.next().is_none() {
                return Some(first);
            }
        }
        self.look_at_requests(cluster, ask, policy);
        if self.keys.len() >= ASKS_MAX && !self.keys.contains_key(&(ask, now)) {
            self.keys.clear();
        }
        let mut keys = self.keys.remove(&(ask, now)).unwrap_or_default();
        let mut best: Option<(Key, NodeId)> = None;
        for id in candidates(cluster, ask, now) {
            let at = id.raw() as usize;
            let revision = cluster.revision_for(ask.constraints, id);
            if keys.len() <= at {
                keys.resize(at + 1, None);
            }
            let key = match keys[at] {
                Some((seen, key)) if seen == revision => key,
                _ => self.key(cluster, id, ask, now, policy),
            };
            keys[at] = Some((revision, key));
            let Some(key) = key else { continue };
            if best.is_none_or(|least| (key, id) < least) && fits(id) {
                best = Some((key, id));
            }
        }
        self.keys.insert((ask, now), keys);
        best.map(|(_, id)| id)
    }

    /// The key of a node for a pod, least first; `None` if it does not fit there.
    pub(crate) fn rank(
        &mut self,
        cluster: &Cluster,
        id: NodeId,
        ask: PodRequirements,
        now: bool,
        policy: &Policy,
    ) -> Option<Key> {
        self.look_at_requests(cluster, ask, policy);
        self.key(cluster, id, ask, now, policy)
    }

    /// Recomputes the shapes, unless the requests and the free GPUs are nearly those of the last
    /// computation.
    fn look_at_requests(&mut self, cluster: &Cluster, ask: PodRequirements, policy: &Policy) {
        let packs = |placement: Placement| placement.nodes(ask.request.gpu) == Fill::BinPack;
        if !policy.placements().any(packs) {
            return;
        }
        let pods = cluster.requests().pods();
        let free_millis = cluster.free_soon().gpu_millis;
        let freed_millis = free_millis.abs_diff(self.free_millis);
        if pods.abs_diff(self.pods).saturating_mul(2) >= self.pods
            || freed_millis.saturating_mul(FREE_PARTS) >= cluster.capacity().gpu_millis.max(1)
        {
            let shapes = Shapes::of(cluster);
            *self = Self { shapes, pods, free_millis, ..Self::default() };
        }
    }

    fn key(
        &mut self,
        cluster: &Cluster,
        id: NodeId,
        ask: PodRequirements,
        now: bool,
        policy: &Policy,
    ) -> Option<Key> {
        let placement = placement_at(cluster, id, policy);
        let place = place::on_node(cluster, id, ask, now, placement.devices)?;
        let node = &cluster.nodes()[id];
        let free = node.free(now);
        let (misuse, free, total) = match ask.request.gpu {
            GpuRequest::Whole(0) => {
                (node.gpus.len().min(1), free.cpu_millis, node.capacity.cpu_millis)
            }
            _ if placement.devices == Fill::Spread => {
                (0, free.gpu_millis, node.capacity.gpu_millis)
            }
            _ => (broken(node, &place.devices, now), free.gpu_millis, node.capacity.gpu_millis),
        };
        let (loss, room) = match placement.nodes(ask.request.gpu) {
            Fill::BinPack => (self.loss(cluster, id, ask, &place.devices), free),
            // The part in use, in millionths.
            Fill::Spread => (0, MILLION - free.saturating_mul(MILLION) / total.max(1)),
        };
        let liking = Reverse(cluster.preference(ask.constraints, id));
        Some(Key { liking, loss, misuse, room })
    }

    /// The loss of value to other pods when the pod gets these devices.
    fn loss(
        &mut self,
        cluster: &Cluster,
        id: NodeId,
        ask: PodRequirements,
        devices: &[DeviceShare],
    ) -> u64 {
        let node = &cluster.nodes()[id];
        let before = Free::of(node);
        let (at, revision) = (id.raw() as usize, cluster.revision(id));
        if self.worth.len() <= at {
            self.worth.resize(at + 1, None);
        }
        let Self { shapes, worth, last, .. } = self;
        let known = worth[at].take().filter(|(seen, _)| *seen == revision);
        let (_, (allowed, worth)) = worth[at].insert(known.unwrap_or_else(|| {
            let allowed = shapes.allowed(cluster, id);
            let worth = shapes.worth(node, &allowed, &before);
            (revision, (allowed, worth))
        }));
        let mut after = before.clone();
        after.take(node, devices, ask.request);
        let same = |last: &Loss| {
            last.after == after
                && last.before == before
                && last.allowed == *allowed
                && shapes.only_amounts_count(&before)
        };
        let find = || worth.saturating_sub(shapes.worth(node, allowed, &after));
        if let Some(last) = last.as_ref().filter(|last| same(last)) {
            debug_assert_eq!(last.loss, find(), "the same on nodes that are alike");
            return last.loss;
        }
        let loss = find();
        *last = Some(Loss { allowed: allowed.clone(), before, after, loss });
        loss
    }
}

/// Finds a place for a pod that is `open` to it: free at once (`now`), or free after releasing pods
/// have terminated.
pub(crate) fn find(
    cluster: &Cluster,
    node_scoring: &mut NodeScoring,
    ask: PodRequirements,
    now: bool,
    policy: &Policy,
    open: impl Fn(&model::Placement) -> bool,
) -> Option<model::Placement> {
    if let GpuRequest::Whole(gpus @ 1..) = ask.request.gpu
        && !cluster.has_preferences(ask.constraints)
        && cluster.gpu_nodes_alike()
        && policy.placements().all(|other| other.gpu == policy.placement.gpu)
    {
        return find_whole(cluster, ask, gpus, now, policy.placement.gpu, open);
    }
    let node = node_scoring.best(cluster, ask, now, policy, &open)?;
    let devices = policy.placement_in(cluster.nodes()[node].pool).devices;
    place::on_node(cluster, node, ask, now, devices)
}

/// Whole GPUs: the index already has the nodes in the wanted order.
fn find_whole(
    cluster: &Cluster,
    ask: PodRequirements,
    gpus: u32,
    now: bool,
    nodes: Fill,
    open: impl Fn(&model::Placement) -> bool,
) -> Option<model::Placement> {
    let mut fullest_first = cluster.nodes_with_free(gpus, now);
    // Whole devices are all equal.
    let fitting = |id| place::on_node(cluster, id, ask, now, Fill::BinPack).filter(&open);
    match nodes {
        Fill::BinPack => fullest_first.find_map(fitting),
        Fill::Spread => fullest_first.rev().find_map(fitting),
    }
}

/// The nodes that may have room for a pod, in any order.
pub(crate) fn candidates(
    cluster: &Cluster,
    ask: PodRequirements,
    now: bool,
) -> impl Iterator<Item = NodeId> + use<'_> {
    let gpus = match ask.request.gpu {
        GpuRequest::Whole(gpus) => gpus,
        _ => 0,
    };
    let (with_gpus, all) = match gpus {
        0 => (None, Some(cluster.nodes().ids())),
        _ => (Some(cluster.nodes_with_free(gpus, now)), None),
    };
    with_gpus.into_iter().flatten().chain(all.into_iter().flatten())
}

/// The placement strategy on a node.
fn placement_at(cluster: &Cluster, id: NodeId, policy: &Policy) -> Placement {
    policy.placement_in(cluster.nodes()[id].pool)
}

/// Number of free whole devices that a shared request would break.
fn broken(node: &Node, devices: &[DeviceShare], now: bool) -> usize {
    let breaks = |share: &&DeviceShare| {
        share.millis < GPU_MILLIS && node.gpus[share.gpu as usize].is_whole(now)
    };
    devices.iter().filter(breaks).count()
}
