//! Places for a few pods that have to share what is free. Owns: trying every way to give each a
//! node, within a budget.

use model::{NodeId, PodId};

use super::Need;
use crate::equivalence_class::is_elastic;
use crate::place;
use crate::session::Session;
use crate::session::reserve::ReservationScope;
use crate::session::topology;

/// Most pods whose places are chosen together.
const PODS_MAX: usize = 8;
/// Most nodes that each may go to.
const NODES_MAX: usize = 16;
/// Most places tried.
const PLACES_MAX: u64 = 256;

/// Pods of the taker, and pods that have left their places.
pub(super) struct Together {
    need: Need,
    pods: Vec<PodId>,
    nodes: Vec<NodeId>,
    tried: u64,
}

impl Together {
    pub(super) fn new(s: &Session<'_>, need: &Need, pods: &[PodId], left: &[PodId]) -> Self {
        let pods: Vec<PodId> = pods.iter().chain(left).copied().collect();
        let here = left.iter().filter_map(|&pod| s.cluster.original(pod).effective());
        let mut nodes: Vec<NodeId> = here.map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let others = s.cluster.nodes().iter().filter(|(id, node)| {
            !nodes.contains(id) && node.schedulable && node.free(false) != units::Resources::ZERO
        });
        let others: Vec<_> = others.map(|(id, _)| id).take(NODES_MAX).collect();
        nodes.extend(others);
        nodes.truncate(NODES_MAX);
        let tried = if pods.len() > PODS_MAX { PLACES_MAX } else { 0 };
        Self { need: *need, pods, nodes, tried }
    }

    /// How many places were tried.
    pub(super) const fn tried(&self) -> u64 {
        self.tried
    }

    /// Does this with each way to place all of them, until it is enough. Nothing changes.
    pub(super) fn each(
        &mut self,
        s: &mut Session<'_>,
        is_enough: &mut dyn FnMut(&mut Session<'_>) -> bool,
    ) {
        self.place(s, 0, is_enough);
    }

    fn place(
        &mut self,
        s: &mut Session<'_>,
        at: usize,
        is_enough: &mut dyn FnMut(&mut Session<'_>) -> bool,
    ) -> bool {
        let start = s.cluster.checkpoint();
        let Some(&pod) = self.pods.get(at) else {
            self.wait_together(s);
            let enough = is_enough(s);
            s.cluster.rollback(start);
            return enough;
        };
        let left = s.place_it_left(pod);
        let known = left.as_ref().map(|place| place.node);
        let nodes: Vec<NodeId> =
            self.nodes.iter().copied().filter(|id| Some(*id) != known).collect();
        let places = left.into_iter().map(Ok).chain(nodes.into_iter().map(Err));
        for place in places {
            if self.tried >= PLACES_MAX {
                break;
            }
            self.tried += 1;
            let found = match place {
                Ok(here) => Some((here, false)),
                Err(node) => self.place_on(s, pod, node),
            };
            let Some((to, at_once)) = found else { continue };
            s.set_target(pod, Some(to), at_once);
            let enough = self.place(s, at + 1, is_enough);
            s.cluster.rollback(start);
            if enough {
                return true;
            }
        }
        false
    }

    fn place_on(
        &self,
        s: &Session<'_>,
        pod: PodId,
        node: NodeId,
    ) -> Option<(model::Placement, bool)> {
        let id = s.cluster.pods()[pod].workload;
        let (gpus, respected) = if id == self.need.id {
            (self.need.gpus, ReservationScope::Binding)
        } else {
            let had = s.cluster.original(pod).effective()?.devices.len();
            let elastic = is_elastic(&s.cluster.workloads()[id].spec);
            (elastic.then(|| u32::try_from(had).ok()).flatten(), ReservationScope::All)
        };
        if !topology::may_go(s.cluster, pod, node) || !s.cluster.in_its_pool(pod, node) {
            return None;
        }
        let ask = s.requirements(pod, gpus);
        let fill = s.policy.placement_in(s.cluster.nodes()[node].pool).devices;
        let place = |now| place::on_node(s.cluster, node, ask, now, fill).map(|to| (to, now));
        let found = place(true).or_else(|| place(false));
        found.filter(|(to, _)| s.is_open(pod, respected, to))
    }

    /// A gang never starts in part.
    fn wait_together(&self, s: &mut Session<'_>) {
        let mut ids: Vec<_> = self.pods.iter().map(|&pod| s.cluster.pods()[pod].workload).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let own = |pod: &&PodId| s.cluster.pods()[**pod].workload == id;
            let pods: Vec<PodId> = self.pods.iter().filter(own).copied().collect();
            s.reserve_together(id, &pods);
        }
    }
}
