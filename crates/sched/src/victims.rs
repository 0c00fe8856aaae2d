//! Making room for a workload by evicting others. Owns: the search for victims, the proof that it
//! helps (the placement is made before any eviction is reported), and the minimization of the loss.
//! Does not know about: the fairness of evictions, which each action's [`Rule`] decides.
//!
//! Each node has a cost of its own: the cheapest set of its pods whose eviction would make room for
//! one pod of the workload. The cheapest node is taken, its cost recomputed, and so on until every
//! pod has a place. A cost is an estimate that reads the state and changes nothing; evictions are
//! done in the transaction, where the rule judges each unit.

mod accept;
mod asked;
mod causes;
mod choices;
mod cost_cache;
mod eviction_cost;
mod eviction_units;
mod node_cost;
mod node_victims;
mod own_order;
mod rejections;
mod set_search;
mod together;
mod topology_placer;
mod upper_bound;

use std::collections::{BTreeMap, BTreeSet};

use model::{ConflictingPods, NodeId, PodId, QueueId, WorkloadId};
use smallvec::SmallVec;
use units::{Kind, Resources};

use crate::place::{self, PodRequirements};
use crate::precedence::held_below_it;
use crate::session::Session;
use crate::session::pools;
use crate::session::topology;
pub(crate) use accept::needs_others;
pub(crate) use cost_cache::NodeCostCache;
use cost_cache::NodeCosts;
pub(crate) use eviction_units::{
    EvictionUnit, EvictionUnits, above_minimum_while_safe, freed, halvings, take, unit_priority,
    whole_workload,
};
use reasons::Cause;
pub(crate) use rejections::Rejections;
pub(crate) use set_search::{SETS_MAX, SETS_OF_ONE};
use upper_bound::Feasibility;
pub(crate) use upper_bound::LargestWorkloads;

/// Rules of an action for evictions.
pub(crate) trait Rule {
    /// `true` if the workload may evict others at all.
    fn may_evict(&self, _: &Session<'_>, _: WorkloadId, _: Resources) -> bool {
        true
    }

    /// `true` if the workload might be allowed to evict others after `given` of its own queue gives
    /// way. May be wrongly `true`, never wrongly `false`.
    fn could_evict(&self, _: &Session<'_>, _: WorkloadId, _: Resources, _given: Resources) -> bool {
        true
    }

    /// `true` if this workload may be evicted. For work of another queue the answer is equal for
    /// all takers.
    fn is_victim(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool;

    /// Upper bound of the resources that evictions can free. May be too large, never too small: a
    /// request beyond it could not have been served.
    fn frees_at_most(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        largest_workloads: &mut LargestWorkloads,
    ) -> Resources;

    /// The queues whose work, or work below them, may give way in an attempt that begins now,
    /// besides the taker's own; `None` if any may. May contain too many, never too few.
    fn givers(&self, _: &Session<'_>, _: WorkloadId, _: Resources) -> Option<BTreeSet<QueueId>> {
        None
    }

    /// The units in which this workload is evicted, each on top of the one before.
    fn eviction_units(&self, s: &Session<'_>, _: WorkloadId, victim: WorkloadId) -> EvictionUnits {
        whole_workload(s, victim)
    }

    /// `true` if this workload of its own queue gives way to remove an obstacle in the queue:
    /// limit, quota or entitlement.
    fn own_gives_way(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        self.is_victim(s, id, victim)
    }

    /// `true` if queues within their fair share give way last.
    fn spares_the_entitled(&self) -> bool {
        false
    }

    /// `true` if the queue may end with its present use; it used `held_before`.
    fn fair_outcome(&self, _: &Session<'_>, _: WorkloadId, _held_before: Resources) -> bool {
        true
    }

    /// `true` if it interrupts work beyond lent resources.
    fn disrupts(&self) -> bool {
        true
    }

    /// `true` if one more eviction from the victim is just after the earlier ones. An unjust unit
    /// is also unjust in a larger unit, of more important work of its queue, or after more
    /// evictions from that queue, as long as the taker's queues would use no less; and amounts of
    /// resources that are not requested do not matter. [`Rejections`] relies on it.
    fn just(
        &self,
        _: &Session<'_>,
        _: WorkloadId,
        _: Resources,
        _: WorkloadId,
        _: EvictionUnit,
    ) -> bool {
        true
    }

    /// Maximum number of workloads moved for one; `None` if victims may lose their places.
    fn moves_max(&self, _: &Session<'_>) -> Option<usize> {
        None
    }

    /// The cause given to the victim.
    fn cause(&self, s: &Session<'_>, id: WorkloadId, asked: Resources, victim: WorkloadId)
    -> Cause;
}

/// A workload that needs room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    pub(crate) id: WorkloadId,
    /// The size it is tried with, if elastic.
    gpus: Option<u32>,
    /// Requirements of the pod that is being placed.
    pub(crate) ask: PodRequirements,
    /// Sum of the requests of the pods without a place.
    pub(crate) asked: Resources,
    /// Number of pods without a place.
    pods: usize,
}

/// Makes room for `id` (at `gpus`, if elastic) within the rule, and places it. Changes nothing if
/// it returns `false`. `cost_cache` keeps the costs between equal workloads of one action.
pub(crate) fn make_room(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    cost_cache: &mut NodeCostCache,
    id: WorkloadId,
    gpus: Option<u32>,
) -> bool {
    let attempt = |s: &mut Session<'_>| {
        if make_room_here(s, rule, cost_cache, id, gpus) { Ok(()) } else { Err(()) }
    };
    pools::in_order(s, id, attempt).is_ok()
}

/// Makes room within the node pool in question.
fn make_room_here(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    cost_cache: &mut NodeCostCache,
    id: WorkloadId,
    gpus: Option<u32>,
) -> bool {
    let pods = s.next_pods(id);
    let Some(&first) = pods.first() else { return true };
    let patient_until = s.patient_until(id);
    if rule.disrupts() && patient_until > s.now {
        s.wake(patient_until);
        return false;
    }
    let ask = s.requirements(first, gpus);
    let need = Need { id, gpus, ask, asked: s.asked(&pods, gpus), pods: pods.len() };
    let start = s.cluster.checkpoint();
    let mut attempt = PreemptionAttempt::new(s, rule, need);
    let nearest = attempt.clear_own(s) && attempt.conclude(s, cost_cache);
    let (done, searched) = attempt.improve(s, start, nearest);
    let keep_room_first = done && s.is_reservation_due(id);
    if !done || searched || keep_room_first {
        cost_cache.forget(s, &need);
    }
    if !done || keep_room_first {
        s.cluster.rollback(start);
        if !done {
            return false;
        }
        s.keep_room();
        return make_room(s, rule, cost_cache, id, gpus);
    }
    attempt.tell(s);
    true
}

/// Makes room on its own node for a pod that is to run again with `gpus` GPUs, and places it there.
/// Changes nothing if it returns `false`.
pub(crate) fn make_room_in_place(
    s: &mut Session<'_>,
    rule: &dyn Rule,
    pod: PodId,
    gpus: u32,
) -> bool {
    let Some(here) = s.cluster.pods()[pod].binding.effective() else { return false };
    let (id, node) = (s.cluster.pods()[pod].workload, here.node);
    let (pool, start) = (s.cluster.pool_of(id), s.cluster.checkpoint());
    s.set_target(pod, None, false);
    let done = pools::within(s, id, pool, |s| {
        let ask = s.requirements(pod, Some(gpus));
        let asked = s.asked(&[pod], Some(gpus));
        let need = Need { id, gpus: Some(gpus), ask, asked, pods: 1 };
        let mut attempt = PreemptionAttempt::new(s, rule, need);
        let done = s.next_pods(id) == [pod] && attempt.conclude_on(s, pod, node);
        done.then_some(attempt)
    });
    let Some(attempt) = done else {
        s.cluster.rollback(start);
        return false;
    };
    if s.is_reservation_due(id) {
        s.cluster.rollback(start);
        s.keep_room();
        return make_room_in_place(s, rule, pod, gpus);
    }
    attempt.tell(s);
    true
}

/// One attempt to make room.
#[derive(Clone)]
struct PreemptionAttempt<'r> {
    rule: &'r dyn Rule,
    need: Need,
    first_need: Need,
    /// GPU thousandths that were missing at first.
    missing_millis: u64,
    /// `true` if anything was refused for another reason than room on a node.
    was_refused: bool,
    /// `true` if work of its own queue was taken because that queue was the obstacle.
    cleared_own: bool,
    /// Workloads taken from, in order, and the number of placed pods of each of its sets before.
    givers: Vec<(WorkloadId, SmallVec<[u32; 1]>)>,
    /// The cause given to each victim: its numbers are those before anything was taken from it.
    causes: BTreeMap<WorkloadId, Cause>,
    /// Resources that the taker's queue used before.
    held_before: Resources,
    largest_workloads: LargestWorkloads,
    conflicting: ConflictingPods,
    /// Queues that may give anything, see [`Rule::givers`].
    giving: Option<BTreeSet<QueueId>>,
    /// `true` to search even if the outcome is known.
    exhaustive: bool,
}

impl<'r> PreemptionAttempt<'r> {
    fn new(s: &Session<'_>, rule: &'r dyn Rule, need: Need) -> Self {
        let free = s.cluster.free_soon_of(s.division_of(need.id));
        Self {
            rule,
            need,
            first_need: need,
            missing_millis: need.asked.gpu_millis.saturating_sub(free.gpu_millis),
            was_refused: false,
            cleared_own: false,
            givers: Vec::new(),
            causes: BTreeMap::new(),
            held_before: s.cluster.queues()[s.queue_of(need.id)].held(),
            largest_workloads: LargestWorkloads::default(),
            conflicting: ConflictingPods::default(),
            giving: None,
            exhaustive: false,
        }
    }
}

impl PreemptionAttempt<'_> {
    /// If its own queue, or one above it, is the obstacle (limit, quota, entitlement), only work
    /// below that can remove it: takes from there, of the taker's queue before others and of those
    /// from the most saturated first; of one queue the least important first, of them the cheapest
    /// and youngest, until the obstacle is gone. Units that turn out not to be needed are put back
    /// in the end.
    fn clear_own(&mut self, s: &mut Session<'_>) -> bool {
        if self.is_clear(s) {
            return true;
        }
        let Need { id, asked, .. } = self.need;
        if !self.rule.could_evict(s, id, asked, held_below_it(s, id).unwrap_or_default()) {
            return false;
        }
        self.cleared_own = true;
        let above = s.refusing_queue(id, asked);
        if !self.can_clear(s, above) {
            return false;
        }
        let mut own = s.workloads_below(above);
        own.retain(|&victim| victim != id && self.rule.own_gives_way(s, id, victim));
        for (victim, only_spare) in own_order::ordered(s, id, &own) {
            for eviction_unit in self.rule.eviction_units(s, self.need.id, victim) {
                if only_spare && !own_order::is_spare(s, victim, eviction_unit) {
                    break;
                }
                if !self.take(s, victim, eviction_unit) {
                    break;
                }
                if self.is_clear(s) {
                    return true;
                }
            }
        }
        false
    }

    /// `true` if a queue could free so much that its limit allows the request.
    fn can_clear(&self, s: &Session<'_>, above: QueueId) -> bool {
        let asked = self.need.asked;
        let queue = &s.cluster.queues()[above];
        let least = queue.allocated.saturating_sub(queue.preemptible_held()) + asked;
        Kind::ALL.into_iter().all(|kind| asked[kind] == 0 || least[kind] <= queue.share.limit[kind])
    }

    fn is_clear(&self, s: &Session<'_>) -> bool {
        let Need { id, asked, .. } = self.need;
        s.check_queue(id, asked).is_ok()
            && s.leaves_headroom(id, asked)
            && self.rule.may_evict(s, id, asked)
    }

    /// Finds places for the workload, and for the workloads taken from.
    fn conclude(&mut self, s: &mut Session<'_>, cost_cache: &mut NodeCostCache) -> bool {
        let id = self.need.id;
        if !self.place(s, cost_cache) {
            // Different pods may find no place one by one; pods with affinity find none where the
            // others are stopped.
            let spec = &s.cluster.workloads()[id].spec;
            self.was_refused |=
                spec.pod_sets.len() > 1 || spec.has_topology() || needs_others(s, id);
            return false;
        }
        let concludes = self.rule.fair_outcome(s, id, self.held_before) && self.go_on(s);
        self.was_refused |= !concludes;
        concludes
    }

    /// As [`Self::conclude`], for one pod, on one node only.
    fn conclude_on(&mut self, s: &mut Session<'_>, pod: PodId, node: NodeId) -> bool {
        let rejections = &mut Rejections::default();
        self.is_clear(s)
            && node_cost::node(s, self, node, rejections)
                .is_some_and(|offer| self.accept(s, node, &offer, rejections))
            && self.set_target(s, pod, node)
            && self.rule.fair_outcome(s, self.need.id, self.held_before)
            && self.go_on(s)
    }

    /// Takes the cheapest node, one after the other.
    fn place_all(&mut self, s: &mut Session<'_>, cost_cache: &mut NodeCostCache) -> bool {
        let id = self.need.id;
        self.find_givers(s);
        let pods = s.next_pods(id);
        let placed = topology::place(
            s,
            &mut topology_placer::TopologyPlacer::new(self, cost_cache),
            id,
            &pods,
        )
        .is_ok();
        if !placed {
            self.was_refused |= self.may_need_sets(s, cost_cache);
        }
        placed
    }

    fn place_one(
        &mut self,
        s: &mut Session<'_>,
        costs: &mut NodeCosts,
        pod: PodId,
        rejections: &mut Rejections,
    ) -> bool {
        let mut looked = false;
        loop {
            let Some((believed, node)) = costs.pop(s, self) else {
                if costs.ask_again(s, &self.need, rejections) {
                    continue;
                }
                return false;
            };
            if !s.may_try() {
                return false;
            }
            let offer = node_cost::node(s, self, node, rejections);
            let cost = offer.as_ref().map(|offer| offer.cost);
            let Some(offer) = offer.filter(|offer| offer.cost <= believed) else {
                costs.put(node, cost, rejections);
                continue;
            };
            let accepted = self.accept(s, node, &offer, rejections);
            // A refused offer changes nothing, so one check is enough.
            if !accepted
                && !std::mem::replace(&mut looked, true)
                && self.feasibility(s) == Feasibility::Infeasible
            {
                debug_assert!(!self.found_anyway(s), "a search would have succeeded");
                return false;
            }
            let placed = accepted && self.set_target(s, pod, node);
            // The node has another cost now in any case.
            let offer = node_cost::node(s, self, node, rejections);
            costs.put(node, offer.map(|offer| offer.cost), rejections);
            if placed {
                return true;
            }
        }
    }

    fn set_target(&mut self, s: &mut Session<'_>, pod: PodId, node: NodeId) -> bool {
        let fill = s.policy.placement_in(s.cluster.nodes()[node].pool).devices;
        let place = |now| place::on_node(s.cluster, node, self.need.ask, now, fill);
        let found = place(true).map(|to| (to, true)).or_else(|| place(false).map(|to| (to, false)));
        let Some((to, at_once)) = found else { return false };
        // The placed pod is counted in its queue now, and no longer requested.
        let placed = s.cluster.amounts(pod, &to);
        self.need.asked = self.need.asked.saturating_sub(placed);
        s.set_target(pod, Some(to), at_once);
        true
    }

    /// Takes one unit, if it is just.
    fn take(
        &mut self,
        s: &mut Session<'_>,
        victim: WorkloadId,
        eviction_unit: EvictionUnit,
    ) -> bool {
        if !self.rule.just(s, self.need.id, self.need.asked, victim, eviction_unit) {
            self.was_refused = true;
            return false;
        }
        if !self.causes.contains_key(&victim) {
            let most = self.rule.moves_max(s);
            if most.is_some_and(|most| self.givers.len() >= most) {
                self.was_refused = true;
                return false;
            }
            let cause = self.rule.cause(s, self.need.id, self.need.asked, victim);
            self.causes.insert(victim, cause);
            let sets = &s.cluster.workloads()[victim].pod_sets;
            self.givers.push((victim, sets.iter().map(|set| set.placed).collect()));
        }
        eviction_units::take(s, eviction_unit);
        true
    }

    /// Finds other places for the workloads taken from, the first by rank first. Returns `true`
    /// unless the rule demands a place for all of them and one found none; or unless one could
    /// continue in its place, and the taker's queue would then use more than the rule allows. GPUs
    /// that no other workload uses stay with their holders.
    fn go_on(&self, s: &mut Session<'_>) -> bool {
        let mut order: Vec<_> = self.givers.iter().collect();
        order.sort_by_key(|&&(victim, _)| crate::rank::by_rank(s.cluster, victim));
        for (victim, had) in order {
            let full = |s: &Session<'_>| {
                let sets = (0..).zip(&s.cluster.workloads()[*victim].pod_sets).zip(had);
                let full = sets.filter(|((_, set), had)| set.placed >= **had);
                full.map(|((at, _), _)| at).collect::<SmallVec<[usize; 1]>>()
            };
            // It is put back in its former shape: no set grows in place of another. A gang that has
            // lost a pod for good has no next pods and cannot be placed.
            let mut sets = full(s);
            while sets.len() < had.len() && !s.next_pods_beside(*victim, &sets).is_empty() {
                let start = s.cluster.checkpoint();
                let goes_on = s.put_back(*victim, &sets);
                let placed = goes_on || s.place_again(*victim, &sets);
                if !placed || !self.rule.fair_outcome(s, self.need.id, self.held_before) {
                    if goes_on {
                        return false;
                    }
                    s.cluster.rollback(start);
                    break;
                }
                sets = full(s);
            }
            if sets.len() < had.len() && self.rule.moves_max(s).is_some() {
                return false;
            }
        }
        true
    }

    /// Records the cause for each stopped pod. A pod that only changes size gets that cause, under
    /// any rule.
    fn tell(self, s: &mut Session<'_>) {
        let beneficiary = s.reference(self.need.id);
        s.beneficiaries.insert(self.need.id);
        for (victim, cause) in self.causes {
            causes::inherit(s, victim, &beneficiary, &cause);
            for pod in s.cluster.workloads()[victim].pods.clone() {
                let before = s.cluster.original(pod).current.as_ref();
                let after = s.cluster.pods()[pod].binding.effective();
                let cause = match (before, after) {
                    (Some(before), Some(after))
                        if before.node == after.node
                            && before.devices.len() != after.devices.len() =>
                    {
                        Cause::Resized {
                            gpus_before: before.devices.len(),
                            gpus_after: after.devices.len(),
                            beneficiary: Some(beneficiary.clone()),
                        }
                    }
                    _ => cause.clone(),
                };
                s.causes.insert(pod, cause);
            }
        }
    }
}
