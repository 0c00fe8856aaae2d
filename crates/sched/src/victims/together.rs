//! Places for a few pods that compete for free resources. Owns: trying every assignment of nodes to
//! pods, within a budget.

use model::{NodeId, Placement, PodBinding, PodId};

use super::Need;
use crate::place;
use crate::session::Session;
use crate::session::reserve::ReservationScope;
use crate::session::topology;
use model::equivalence_class::is_elastic;

/// Maximum number of pods whose places are chosen together.
pub(super) const PODS_MAX: usize = 8;
/// Maximum number of nodes for each pod.
const NODES_MAX: usize = 16;
/// Maximum number of places tried.
pub(super) const PLACES_MAX: u64 = 256;

/// Pods of the taker, and pods that have left their places.
pub(super) struct Together {
    need: Need,
    taker: Vec<PodId>,
    nodes: Vec<NodeId>,
    /// Number of places tried.
    pub(super) tried: u64,
}

/// Change of one pod: its binding before and after.
pub(super) type Changed = (PodId, PodBinding, PodBinding);

/// A pod, and its earlier place; `None` if it had none.
type Left = (PodId, Option<Placement>);

impl Together {
    /// For pods of the taker, and some of the pods that have left these places.
    pub(super) fn new(s: &Session<'_>, need: &Need, taker: &[PodId], left: &[&Placement]) -> Self {
        let mut nodes: Vec<NodeId> = left.iter().map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let others = s.cluster.nodes().iter().filter(|(id, node)| {
            !nodes.contains(id) && node.schedulable && node.free(false) != units::Resources::ZERO
        });
        let others: Vec<_> = others.map(|(id, _)| id).take(NODES_MAX).collect();
        nodes.extend(others);
        nodes.truncate(NODES_MAX);
        Self { need: *need, taker: taker.to_vec(), nodes, tried: 0 }
    }

    /// Puts removed pods back, except the leaving ones; then calls `is_enough` with each way to
    /// place these and the taker, until it returns `true`. Changes nothing.
    pub(super) fn each(
        &mut self,
        s: &mut Session<'_>,
        (left, leaving): (&[Changed], &[usize]),
        is_enough: &mut dyn FnMut(&mut Session<'_>) -> bool,
    ) {
        let start = s.cluster.checkpoint();
        for (_, (pod, before, _)) in left.iter().enumerate().filter(|(at, _)| !leaving.contains(at))
        {
            s.cluster.set_binding(*pod, before.clone());
            self.tried += 1;
        }
        // The largest pods have the fewest places.
        let leaving = leaving.iter().rev().map(|&at| (left[at].0, left[at].1.effective().cloned()));
        let pods: Vec<Left> = self.taker.iter().map(|&pod| (pod, None)).chain(leaving).collect();
        if pods.len() > PODS_MAX {
            self.tried = PLACES_MAX;
        } else {
            self.place(s, &pods, 0, is_enough);
        }
        s.cluster.rollback(start);
    }

    fn place(
        &mut self,
        s: &mut Session<'_>,
        pods: &[Left],
        at: usize,
        is_enough: &mut dyn FnMut(&mut Session<'_>) -> bool,
    ) -> bool {
        let start = s.cluster.checkpoint();
        let Some((pod, had)) = pods.get(at) else {
            let enough = is_enough(s);
            s.cluster.rollback(start);
            return enough;
        };
        let back = s.place_it_left(*pod);
        let home = back.as_ref().map(|place| place.node);
        // A leaving pod does not stay.
        let back = back.filter(|place| had.as_ref() != Some(place));
        let nodes: Vec<NodeId> =
            self.nodes.iter().copied().filter(|id| Some(*id) != home).collect();
        for place in back.into_iter().map(Ok).chain(nodes.into_iter().map(Err)) {
            if self.tried >= PLACES_MAX {
                break;
            }
            self.tried += 1;
            let found = match place {
                Ok(here) => Some((here, false)),
                Err(node) => self.place_on(s, (*pod, had.as_ref()), node),
            };
            let Some((to, at_once)) = found else { continue };
            s.set_target(*pod, Some(to), at_once);
            let enough = self.place(s, pods, at + 1, is_enough);
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
        (pod, had): (PodId, Option<&Placement>),
        node: NodeId,
    ) -> Option<(Placement, bool)> {
        let id = s.cluster.pods()[pod].workload;
        let (gpus, respected) = if id == self.need.id {
            (self.need.gpus, ReservationScope::Binding)
        } else {
            let had = had?.devices.len();
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
}
