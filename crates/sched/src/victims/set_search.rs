//! Sets of victims, the smallest first, within a budget. Owns: the search made where choosing node
//! by node failed because a unit was refused, or may have cost too much. Each set is judged by
//! carrying it out: the taker gets its places, and the victims get others if they can. A successful
//! trial is kept.

mod moves;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Checkpoint, NodeId, PodBinding, PodId, WorkloadId};

use super::asked::Asked;
use super::eviction_cost::{
    EvictionCost, Standing, Tally, Top, Weight, cost_of_move, importance_of, lost,
};
use super::together::{Changed, Together};
use super::{EvictionUnit, EvictionUnits, NodeCostCache, PreemptionAttempt, freed};
use crate::session::Session;
use crate::session::reserve::ReservationScope;
use crate::session::topology::{self, Free};

/// Maximum number of sets tried in one action.
pub(crate) const SETS_MAX: u64 = 4096;
/// Maximum number of sets tried for one workload.
pub(crate) const SETS_OF_ONE: u64 = 1024;
/// Maximum number of candidates: those that cost least.
const CANDIDATES_MAX: usize = 48;
/// Number of workloads that can be examined with as much work as one set.
const LOOKS_OF_SET: u64 = 16;
/// Maximum number of placed workloads with which a better set than the one found is searched.
const PLACED_MAX: u64 = 256;

/// Result of an attempt.
struct Outcome<'r> {
    cost: EvictionCost,
    attempt: PreemptionAttempt<'r>,
    changes: Vec<Changed>,
}

/// A possible victim.
struct Candidate {
    id: WorkloadId,
    units: EvictionUnits,
    /// Lower bound of the cost of its first n units, for every n from 1.
    costs: Vec<EvictionCost>,
    frees_millis: u64,
}

/// The search for one workload.
struct SetSearch<'r> {
    attempt: PreemptionAttempt<'r>,
    pods: Vec<PodId>,
    start: Checkpoint,
    /// Nodes reserved for others, in the state at the start.
    closed: BTreeSet<NodeId>,
    candidates: Vec<Candidate>,
    /// State of workloads at the start.
    standings: BTreeMap<WorkloadId, Standing>,
    /// Maximum GPU thousandths freed by one of the candidates from each index on.
    most_millis: Vec<u64>,
    best: Option<Outcome<'r>>,
    sets_left: u64,
    /// `true` if a larger set could be better than the best.
    is_open: bool,
}

/// Number of sets that are as much work as finding the candidates.
const fn effort(s: &Session<'_>) -> u64 {
    s.cluster.placed() / LOOKS_OF_SET
}

/// `true` if sets may still be tried in this action.
const fn may_look(s: &Session<'_>) -> bool {
    effort(s) < s.sets_left
}

impl PreemptionAttempt<'_> {
    /// `true` if several victims may find places where one of them finds none.
    pub(super) fn may_need_sets(&self, s: &Session<'_>, cost_cache: &mut NodeCostCache) -> bool {
        self.asked(s) == Asked::Movable && may_look(s) && cost_cache.has_room(s, self)
    }

    /// Searches a set of victims that costs less than the changes since the start (`done`), or any
    /// set if these failed. Returns `true` if there is a solution, which is carried out then, and
    /// `true` if it searched.
    pub(super) fn improve(
        &mut self,
        s: &mut Session<'_>,
        start: Checkpoint,
        done: bool,
    ) -> (bool, bool) {
        if !done && !self.was_refused {
            return (false, false);
        }
        let effort = effort(s);
        if !may_look(s) || (done && s.cluster.placed() > PLACED_MAX) {
            return (done, false);
        }
        let changes = changes_since(s, start);
        if !self.is_worth_it(s, &changes, done) {
            return (done, false);
        }
        s.sets_left -= effort;
        s.cluster.rollback(start);
        let mut attempt = Self::new(s, self.rule, self.need);
        attempt.need = self.first_need;
        let mut candidates = candidates(s, &attempt);
        let too_many = candidates.len() > CANDIDATES_MAX;
        candidates.truncate(CANDIDATES_MAX);
        candidates.sort_by_cached_key(|one| order(s, &attempt, one));
        let victims = changes.iter().map(|(pod, ..)| s.cluster.pods()[*pod].workload);
        let known = candidates.iter().map(|one| one.id).chain(victims);
        let standings: BTreeMap<_, _> =
            known.map(|id| (id, Standing::of(s, attempt.rule, attempt.need.id, id))).collect();
        let cost = cost_of(s, &attempt, &standings, &changes);
        let best = done.then(|| Outcome { cost, attempt: self.clone(), changes });
        let mut most_millis: Vec<u64> = candidates.iter().map(|one| one.frees_millis).collect();
        for at in (1..most_millis.len()).rev() {
            most_millis[at - 1] = most_millis[at - 1].max(most_millis[at]);
        }
        let pods = s.next_pods(attempt.need.id);
        let sets_left = if too_many && done { 0 } else { s.sets_left.min(SETS_OF_ONE) };
        let closed = |node: &NodeId| !s.may_clear(attempt.need.id, *node);
        let closed = s.cluster.nodes().ids().filter(|node| s.is_room_kept() && closed(node));
        let closed = closed.collect();
        let mut search = SetSearch {
            attempt,
            pods,
            start,
            closed,
            candidates,
            standings,
            most_millis,
            best,
            sets_left,
            is_open: true,
        };
        search.run(s);
        s.sets_left -= sets_left - search.sets_left;
        let Some(best) = search.best else { return (false, true) };
        *self = best.attempt;
        // All pods leave first, so that no place is assigned twice meanwhile.
        for (pod, ..) in &best.changes {
            s.set_target(*pod, None, false);
        }
        for (pod, _, after) in best.changes {
            s.cluster.set_binding(pod, after);
        }
        (true, true)
    }

    /// `true` if another set may be better. Without a refusal, a single pod has found the cheapest
    /// node; and if no more is lost than is missing, and none is moved, nothing costs less. Where
    /// the taker's own queue was the obstacle, victims were taken one after the other: fewer may
    /// lose as much.
    fn is_worth_it(&self, s: &Session<'_>, changes: &[Changed], done: bool) -> bool {
        let moves = self.rule.moves_max(s).is_some();
        if !done || moves {
            return self.was_refused || (moves && done && !self.givers.is_empty());
        }
        let gone: u64 = changes.iter().map(|change| gone(s, change).gpu_millis).sum();
        let is_moved = |(pod, before, after): &Changed| {
            s.cluster.pods()[*pod].workload != self.need.id
                && before.effective().is_some()
                && after.effective().is_some()
                && before.effective() != after.effective()
        };
        let several = self.givers.len() > 1 && (self.cleared_own || self.first_need.pods > 1);
        several
            || (self.was_refused || self.first_need.pods > 1)
                && (gone > self.missing_millis || changes.iter().any(is_moved))
    }
}

impl SetSearch<'_> {
    fn run(&mut self, s: &mut Session<'_>) {
        let most = self.attempt.rule.moves_max(s).unwrap_or(usize::MAX);
        for size in 1..=most.min(self.candidates.len()) {
            if !std::mem::take(&mut self.is_open) || self.sets_left == 0 {
                break;
            }
            self.extend(s, 0, size, EvictionCost::NOTHING);
        }
        s.cluster.rollback(self.start);
    }

    /// Tries every set with `more` more of the candidates from an index on.
    fn extend(&mut self, s: &mut Session<'_>, from: usize, more: usize, cost: EvictionCost) {
        for at in from..=self.candidates.len() - more {
            if !self.could_do(s, at, more) {
                // A larger set may be enough.
                self.is_open = true;
                return;
            }
            let start = s.cluster.checkpoint();
            let givers = self.attempt.givers.len();
            for piece in 0..self.candidates[at].units.len() {
                let Some(left) = self.sets_left.checked_sub(1) else { break };
                self.sets_left = left;
                let Candidate { id, units, costs, .. } = &self.candidates[at];
                let with = cost.and(costs[piece]);
                if self.best.as_ref().is_some_and(|best| with >= best.cost)
                    || !self.attempt.take(s, *id, units[piece])
                {
                    break;
                }
                self.is_open = true;
                if more > 1 {
                    self.extend(s, at + 1, more - 1, with);
                } else if self.judge(s) {
                    break;
                }
            }
            s.cluster.rollback(start);
            for (victim, _) in self.attempt.givers.drain(givers..) {
                self.attempt.causes.remove(&victim);
            }
        }
    }

    /// `true` if `more` candidates from an index on could free what is missing.
    fn could_do(&self, s: &Session<'_>, from: usize, more: usize) -> bool {
        let need = &self.attempt.need;
        let free = s.cluster.free_soon_of(s.division_of(need.id)).gpu_millis;
        let most = self.most_millis[from].saturating_mul(more as u64);
        s.least(need.id, need.asked).gpu_millis <= free.saturating_add(most)
    }

    /// `true` if the evictions serve the taker. The cheapest ones become the best.
    fn judge(&mut self, s: &mut Session<'_>) -> bool {
        let need = self.attempt.need;
        let free = s.cluster.free_soon_of(s.division_of(need.id));
        let moves = self.attempt.rule.moves_max(s).is_some();
        if !s.least(need.id, need.asked).fits_in(free) || !self.attempt.is_clear(s) {
            return false;
        }
        if !s.may_try() {
            self.sets_left = 0;
            return false;
        }
        let start = s.cluster.checkpoint();
        let is_placed = self.place(s);
        let mut serves = is_placed && self.concludes(s);
        if serves {
            self.keep(s);
        }
        s.cluster.rollback(start);
        if moves && (is_placed || self.pods.len() > 1) {
            serves |= self.move_fewest(s);
        } else if !moves && !serves {
            let mut together = Together::new(s, &need, &self.pods, &[]);
            serves = self.place_together(s, &mut together, (&[], &[]));
            self.sets_left = self.sets_left.saturating_sub(together.tried / 8);
        }
        serves
    }

    /// Tries every way to place the taker and the leaving pods, until one serves it.
    fn place_together(
        &mut self,
        s: &mut Session<'_>,
        together: &mut Together,
        leaving: (&[Changed], &[usize]),
    ) -> bool {
        let mut serves = false;
        together.each(s, leaving, &mut |s| {
            serves = self.concludes(s);
            if serves {
                self.keep(s);
            }
            serves
        });
        serves
    }

    /// Gives the taker places that are free now.
    fn place(&self, s: &mut Session<'_>) -> bool {
        let need = &self.attempt.need;
        let respected = s.is_room_kept().then_some(ReservationScope::Binding);
        let mut free = Free { gpus: need.gpus, respected };
        topology::place(s, &mut free, need.id, &self.pods).is_ok()
    }

    fn concludes(&self, s: &mut Session<'_>) -> bool {
        let PreemptionAttempt { rule, need, held_before, .. } = &self.attempt;
        let places = self.pods.iter().filter_map(|&pod| s.cluster.pods()[pod].binding.effective());
        let mut nodes = places.map(|place| place.node);
        nodes.all(|node| !self.closed.contains(&node))
            && rule.fair_outcome(s, need.id, *held_before)
            && self.attempt.go_on(s)
    }

    fn keep(&mut self, s: &Session<'_>) {
        let changes = changes_since(s, self.start);
        let cost = cost_of(s, &self.attempt, &self.standings, &changes);
        if self.best.as_ref().is_none_or(|best| cost < best.cost) {
            self.best = Some(Outcome { cost, attempt: self.attempt.clone(), changes });
        }
    }
}

/// Changes of pods since a point of this cycle.
fn changes_since(s: &Session<'_>, start: Checkpoint) -> Vec<Changed> {
    let mut before: BTreeMap<PodId, &PodBinding> = BTreeMap::new();
    for change in s.cluster.changes_since(start) {
        before.entry(change.pod).or_insert(&change.before);
    }
    let after = |pod: PodId| &s.cluster.pods()[pod].binding;
    let changed = before.into_iter().filter(|(pod, before)| after(*pod) != *before);
    changed.map(|(pod, before)| (pod, before.clone(), after(pod).clone())).collect()
}

/// Weight that a pod has lost.
fn gone(s: &Session<'_>, (pod, before, after): &Changed) -> Weight {
    let held = |binding: &PodBinding| {
        let place = binding.effective();
        place.map_or_else(Weight::default, |place| Weight::of(s.cluster.amounts(*pod, place)))
    };
    held(before).without(held(after))
}

/// The cost of the changes of all victims.
fn cost_of(
    s: &Session<'_>,
    attempt: &PreemptionAttempt<'_>,
    standings: &BTreeMap<WorkloadId, Standing>,
    changes: &[Changed],
) -> EvictionCost {
    let moves = attempt.rule.moves_max(s).is_some();
    let mut tallies: BTreeMap<WorkloadId, Tally> = BTreeMap::new();
    for change @ (pod, before, after) in changes {
        let id = s.cluster.pods()[*pod].workload;
        let Some(place) = before.effective().filter(|place| Some(*place) != after.effective())
        else {
            continue;
        };
        let tally = tallies.entry(id).or_default();
        tally.gone = tally.gone.and(gone(s, change));
        tally.restarting = tally.restarting.and(Weight::of(s.cluster.amounts(*pod, place)));
        tally.pods += 1;
        tally.stopped += u32::from(after.effective().is_none());
    }
    let costs = tallies.iter().filter_map(|(id, tally)| {
        (*id != attempt.need.id).then(|| standings.get(id))?.map(|at| at.cost(tally, moves))
    });
    costs.fold(EvictionCost::NOTHING, EvictionCost::and)
}

/// Possible victims: those that are eligible at once first, and of them the cheapest.
fn candidates(s: &Session<'_>, attempt: &PreemptionAttempt<'_>) -> Vec<Candidate> {
    let PreemptionAttempt { rule, need, .. } = attempt;
    let (rule, id) = (*rule, need.id);
    let own = !attempt.is_clear(s);
    let roots: Vec<_> = s.cluster.roots(s.division_of(id)).collect();
    let mut all: Vec<_> = roots.into_iter().flat_map(|root| s.workloads_below(root)).collect();
    all.retain(|&victim| {
        let here = |pod: &PodId| {
            let place = s.cluster.pods()[*pod].binding.effective();
            place.is_some_and(|place| s.may_clear(id, place.node))
        };
        victim != id
            && (rule.is_victim(s, id, victim) || (own && rule.own_gives_way(s, id, victim)))
            && s.cluster.workloads()[victim].pods.iter().any(here)
    });
    let moves = rule.moves_max(s).is_some();
    all.sort_by_cached_key(|&victim| {
        let makes_room = moves && makes_room(s, attempt, victim);
        (!makes_room, lost(s, victim, &[EvictionUnit::All(victim)]))
    });
    all.truncate(4 * CANDIDATES_MAX);
    let mut candidates: Vec<_> =
        all.into_iter().filter_map(|victim| candidate(s, attempt, victim)).collect();
    candidates.sort_by_cached_key(|one| {
        let refused = !rule.just(s, id, need.asked, one.id, one.units[0]);
        let lost = lost(s, one.id, &one.units);
        let makes_room = moves && makes_room(s, attempt, one.id);
        let age = Reverse(s.cluster.workloads()[one.id].spec.seq);
        (refused, !makes_room, one.costs[0], lost, age)
    });
    candidates
}

/// `true` if a node has the GPUs for the first pod without this workload.
fn makes_room(s: &Session<'_>, attempt: &PreemptionAttempt<'_>, id: WorkloadId) -> bool {
    let first_millis = attempt.need.ask.request.gpu.devices() as u64 * units::GPU_MILLIS;
    let places = s.cluster.workloads()[id]
        .pods
        .iter()
        .filter_map(|&pod| s.cluster.pods()[pod].binding.effective().map(|place| (pod, place)));
    let mut freed: BTreeMap<NodeId, u64> = BTreeMap::new();
    for (pod, place) in places {
        *freed.entry(place.node).or_default() += s.cluster.amounts(pod, place).gpu_millis;
    }
    let free = |node: NodeId| s.cluster.nodes()[node].free(false).gpu_millis;
    freed.into_iter().any(|(node, millis)| free(node) + millis >= first_millis)
}

fn candidate(
    s: &Session<'_>,
    attempt: &PreemptionAttempt<'_>,
    victim: WorkloadId,
) -> Option<Candidate> {
    let PreemptionAttempt { rule, need, .. } = attempt;
    let units = rule.eviction_units(s, need.id, victim);
    let standing = Standing::of(s, *rule, need.id, victim);
    let moves = rule.moves_max(s).is_some();
    let cost = |last: usize| {
        if moves {
            // All of its pods but one may stay.
            let pods = s.cluster.workloads()[victim].pods.iter();
            let held =
                pods.map(|&pod| Weight::held(s, pod)).filter(|held| *held != Weight::default());
            let least = held.map(|held| cost_of_move(s, victim, held)).min();
            return EvictionCost { interrupted: 1, ..least.unwrap_or(EvictionCost::NOTHING) };
        }
        let ends = matches!(units[last], EvictionUnit::All(_));
        let lost = lost(s, victim, &units[..=last]);
        EvictionCost {
            entitled: u32::from(standing.entitled),
            top: Top::of(importance_of(s, victim, units[last]), ends, lost),
            lost,
            asked: 1,
            foreign: u32::from(standing.foreign),
            ..EvictionCost::NOTHING
        }
    };
    let costs = (0..units.len()).map(cost).collect();
    let frees_millis = freed(s, EvictionUnit::All(victim)).gpu_millis;
    (!units.is_empty()).then(|| Candidate { id: victim, units, costs, frees_millis })
}

/// Sort key of the victims of a set: those of its own queue first, on which the eligibility of
/// others may depend; then the less important, because they are the surplus of a queue; then the
/// smaller, because the last may exceed the surplus of its queue.
fn order(
    s: &Session<'_>,
    attempt: &PreemptionAttempt<'_>,
    one: &Candidate,
) -> (bool, u32, u64, Reverse<u64>) {
    let spec = &s.cluster.workloads()[one.id].spec;
    let foreign = s.queue_of(one.id) != s.queue_of(attempt.need.id);
    (foreign, spec.priority, one.frees_millis, Reverse(spec.seq))
}
