//! Pods to move from a set of workloads, where none may lose its place. Owns: the search for the
//! cheapest pods that have to leave. The others stay in their places.

use model::{NodeId, Placement};
use units::GPU_MILLIS;

use super::{Outcome, SetSearch, changes_since};
use crate::session::Session;
use crate::victims::choices::Choices;
use crate::victims::eviction_cost::{EvictionCost, Weight, cost_of_move};
use crate::victims::together::{Changed, PLACES_MAX, PODS_MAX, Together};

/// Maximum number of subsets of pods of one set of workloads.
const CHOICES_MAX: usize = 256;

impl SetSearch<'_> {
    /// Searches the cheapest of the removed pods that serve the taker by moving; returns `true` if
    /// there are any that cost less than the best.
    pub(super) fn move_fewest(&mut self, s: &mut Session<'_>) -> bool {
        let mut left = changes_since(s, self.start);
        left.retain(|(_, had, has)| had.effective().is_some() && has.effective().is_none());
        left.sort_by_cached_key(|one| kind(s, one));
        let kinds = left.iter().map(|one| kind(s, one));
        let places: Vec<_> = left.iter().filter_map(|(_, before, _)| before.effective()).collect();
        let need = self.attempt.need;
        let mut together = Together::new(s, &need, &self.pods, &places);
        let millis = |(one, at): (&Changed, &&Placement)| s.cluster.amounts(one.0, at).gpu_millis;
        let millis: Vec<u64> = left.iter().zip(&places).map(millis).collect();
        let on = |node: NodeId, of: &[usize]| {
            of.iter().filter(|&&at| places[at].node == node).map(|&at| millis[at]).sum::<u64>()
        };
        let (all, least) = ((0..left.len()).collect::<Vec<_>>(), s.least(need.id, need.asked));
        let missing = |node: NodeId| {
            let free = s.cluster.nodes()[node].free(false).gpu_millis;
            (node, (least.gpu_millis + on(node, &all)).saturating_sub(free))
        };
        let missing: Vec<_> = places.iter().map(|place| missing(place.node)).collect();
        // A single pod finds room only on a node that enough pods leave.
        let any_will_do = self.pods.len() > 1;
        let makes_room = |of: &[usize]| {
            any_will_do || missing.iter().any(|&(node, millis)| on(node, of) >= millis)
        };
        let workloads = u32::try_from(self.attempt.givers.len()).unwrap_or(u32::MAX);
        let workloads = EvictionCost { interrupted: workloads, ..EvictionCost::NOTHING };
        let choices = Choices::new(kinds, PODS_MAX.saturating_sub(self.pods.len()));
        let mut serves = false;
        for (cost, leaving) in choices.take(CHOICES_MAX) {
            let is_less = |best: &Outcome<'_>| workloads.and(cost) < best.cost;
            if together.tried >= PLACES_MAX || !self.best.as_ref().is_none_or(is_less) {
                break;
            }
            serves =
                makes_room(&leaving) && self.place_together(s, &mut together, (&left, &leaving));
            if serves {
                break;
            }
        }
        self.sets_left = self.sets_left.saturating_sub(together.tried / 8);
        serves
    }
}

/// The cost of moving a pod, and a key that is equal for equivalent pods: where devices are shared,
/// each pod is different.
fn kind(s: &Session<'_>, (pod, before, _): &Changed) -> (EvictionCost, impl Ord + use<>) {
    let row = &s.cluster.pods()[*pod];
    let place = before.effective();
    let held = place.map(|place| Weight::of(s.cluster.amounts(*pod, place)));
    let cost = cost_of_move(s, row.workload, held.unwrap_or_default());
    let is_whole = |place: &&Placement| place.devices.iter().all(|at| at.millis == GPU_MILLIS);
    let whole = place.filter(is_whole).map(|place| (place.node, place.devices.len()));
    (cost, (row.workload, row.set, whole, whole.is_none().then_some(*pod)))
}
