//! Allocates free resources, one workload at a time. Owns: the loop that every action shares,
//! because the order changes with each placement.

use std::collections::{BTreeMap, BTreeSet};

use model::{Checkpoint, PodBinding, PoolId, WorkloadId};
use units::Resources;

use crate::candidates::{Candidate, Candidates, FailedTurns, InfeasiblePools};
use crate::knowledge::Row;
use crate::session::pools;
use crate::session::{Blocked, Session};
use crate::victims::{NodeCostCache, Rule, make_room};

/// Places every workload that fits; reserves room for the first that do not.
pub(crate) fn run(s: &mut Session<'_>) {
    loop {
        s.follow();
        let full = infeasible(s, |s, pool| s.cluster.free_soon_of(division(s, pool)));
        let full = if s.may_be_due() { InfeasiblePools::new() } else { full };
        debug_assert!(
            all_fail(s, &full, |s, id| s.place(id, None).is_ok()),
            "there would have been a place"
        );
        // A reservation that is not due yet is considered again when it is.
        for (id, pool) in in_pools(s, &full) {
            pools::within(s, id, pool, |s| s.reserve(id, Blocked::Room));
        }
        each_in_order(s, full, |s, id| {
            let placed = s.place(id, None);
            placed.map_err(|blocked| s.reserve(id, blocked)).is_ok()
        });
        if !s.withdraw_reservations() {
            break;
        }
    }
    s.full_at = s.failed_turns.as_ref().map(|failed| failed.revision);
}

/// Makes room by a rule for workloads that do not fit.
pub(crate) fn by_rule(s: &mut Session<'_>, costs: &mut NodeCostCache, rule: &dyn Rule) {
    s.follow();
    let infeasible = infeasible(s, there);
    debug_assert!(
        all_fail(s, &infeasible, |s, id| make_room(
            s,
            rule,
            &mut NodeCostCache::default(),
            id,
            None
        )),
        "a search would have succeeded"
    );
    each_in_order(s, infeasible, |s, id| make_room(s, rule, costs, id, None));
    costs.end_of_action(s);
}

/// The node pools in which every waiting workload needs more than could become free. Empty if a
/// workload prefers its pools in an order other than that of their ids, because skipping pools
/// would change the order of turns.
fn infeasible(
    s: &Session<'_>,
    there: impl Fn(&Session<'_>, Option<PoolId>) -> Resources,
) -> InfeasiblePools {
    let mut most: BTreeMap<Option<PoolId>, Resources> = BTreeMap::new();
    let mut hopeful = InfeasiblePools::new();
    for (_, class) in s.known.rows() {
        let Some(&(_, id)) = class.members.first() else { continue };
        let choices = s.cluster.choices(id);
        if !choices.is_sorted() {
            return InfeasiblePools::new();
        }
        let none = choices.is_empty().then_some(None);
        let pools = none.into_iter().chain(choices.iter().map(|&pool| Some(pool)));
        if pools.clone().all(|pool| hopeful.contains(&pool)) {
            continue;
        }
        // One of its pod sets may replace another.
        let has_sets = s.cluster.workloads()[id].pod_sets.len() > 1;
        let least = if has_sets { Resources::ZERO } else { s.least(id, s.ask(id, None)) };
        for pool in pools {
            let most = most.entry(pool).or_insert_with(|| there(s, pool));
            // The end of a preemption delay triggers the next decision.
            if least.fits_in(*most) || s.patient_until(id) > s.now {
                hopeful.insert(pool);
            }
        }
    }
    most.into_keys().filter(|pool| !hopeful.contains(pool)).collect()
}

/// The pool whose queues divide the capacity of a pool.
fn division(s: &Session<'_>, pool: Option<PoolId>) -> PoolId {
    pool.filter(|_| s.cluster.is_divided()).unwrap_or_default()
}

/// Free resources of a pool, and those held by work that can give way: an upper bound for evictions
/// and moves.
fn there(s: &Session<'_>, pool: Option<PoolId>) -> Resources {
    let pool = division(s, pool);
    let roots = s.cluster.roots(pool).map(|id| &s.cluster.queues()[id]);
    let held = roots.map(|queue| {
        let lent = Resources { gpu_millis: queue.lent_gpu_millis, ..Resources::ZERO };
        queue.preemptible_held() + lent
    });
    s.cluster.free_soon_of(pool) + held.sum()
}

/// `true` if an attempt fails in every one of these pools: debug builds check the skipped attempts.
/// Changes nothing.
fn all_fail(
    s: &mut Session<'_>,
    infeasible: &InfeasiblePools,
    mut succeeds: impl FnMut(&mut Session<'_>, WorkloadId) -> bool,
) -> bool {
    let (stats, wake_at) = (s.stats, s.wake_at);
    let (trials_left, sets_left) = (s.trials_left, s.sets_left);
    let start = s.cluster.checkpoint();
    let mut pools = in_pools(s, infeasible).into_iter();
    let found = pools.any(|(id, pool)| pools::within(s, id, pool, |s| succeeds(s, id)));
    s.cluster.rollback(start);
    (s.stats, s.wake_at) = (stats, wake_at);
    (s.trials_left, s.sets_left) = (trials_left, sets_left);
    !found
}

/// The first workload of each class, with each of these pools that it may use.
fn in_pools(s: &Session<'_>, pools: &InfeasiblePools) -> Vec<(WorkloadId, Option<PoolId>)> {
    let first = |row: &Row| row.members.first().map(|member| member.1);
    let ids = s.known.rows().filter_map(|(_, row)| first(row));
    let each = ids.flat_map(|id| {
        let choices = s.cluster.choices(id);
        let none = choices.is_empty().then_some(None);
        none.into_iter().chain(choices.iter().map(|&pool| Some(pool))).map(move |pool| (id, pool))
    });
    each.filter(|(_, pool)| pools.contains(pool)).collect()
}

/// Gives each waiting workload a turn, the neediest queue first. A workload that got a place and
/// wants more takes another turn; one that got none is tried in its next node pool or dropped, with
/// its equals.
pub(crate) fn each_in_order(
    s: &mut Session<'_>,
    infeasible: InfeasiblePools,
    mut turn: impl FnMut(&mut Session<'_>, WorkloadId) -> bool,
) {
    s.follow();
    let revision = s.cluster.state_revision();
    let known = s.failed_turns.take().filter(|known| known.are_of(revision, &infeasible));
    let mut failed = Vec::new();
    let (mut candidates, mut all_failed) = match known {
        None => (Candidates::new(&s.shares(), infeasible.clone()), true),
        Some(known) => match replay(s, &known, &mut turn) {
            Replay::Served(candidates) => (candidates, false),
            Replay::CutShort => return,
            Replay::AllFailed => {
                s.failed_turns = Some(known);
                return;
            }
        },
    };
    while let Some(one) = candidates.first() {
        let id = one.id;
        if candidates.goes_elsewhere(&s.shares(), one) {
            continue;
        }
        if !s.may_try() {
            return;
        }
        let before = s.cluster.checkpoint();
        let pool = candidates.pool(one);
        if pools::within(s, id, pool, |s| turn(s, id)) {
            all_failed = false;
            served(s, &mut candidates, one, before);
        } else {
            failed.push((id, pool));
            candidates.fail_equals(&s.shares(), one);
        }
    }
    if all_failed && s.cluster.state_revision() == revision {
        s.failed_turns = Some(FailedTurns { revision, infeasible, turns: failed });
    }
}

/// Updates the candidates after one of them got a place.
fn served(s: &Session<'_>, candidates: &mut Candidates, one: Candidate, before: Checkpoint) {
    let mut others = s.workloads_changed_since(before);
    if s.next_pods(one.id).is_empty() {
        others.remove(&one.id);
        candidates.remove(&s.shares(), one);
    }
    candidates.regroup(&s.shares(), &others);
    for queue in s.queues_changed_since(before) {
        candidates.refresh(&s.shares(), queue);
    }
}

/// Result of repeating failed turns.
enum Replay {
    AllFailed,
    CutShort,
    /// A workload got a place; holds the remaining candidates.
    Served(Candidates),
}

/// Repeats failed turns in their order. The queue of candidates is built only when one of them
/// succeeds.
fn replay(
    s: &mut Session<'_>,
    known: &FailedTurns,
    turn: &mut impl FnMut(&mut Session<'_>, WorkloadId) -> bool,
) -> Replay {
    for (at, &(id, pool)) in known.turns.iter().enumerate() {
        if !s.may_try() {
            return Replay::CutShort;
        }
        let before = s.cluster.checkpoint();
        if !pools::within(s, id, pool, |s| turn(s, id)) {
            continue;
        }
        // The candidates are those before this turn.
        let pods: BTreeSet<_> = s.cluster.changed_since(before).collect();
        let bindings = pods.into_iter().map(|pod| (pod, s.cluster.pods()[pod].binding.clone()));
        let bindings: Vec<_> = bindings.collect();
        s.cluster.rollback(before);
        let mut candidates = Candidates::after(&s.shares(), known, at);
        let one = candidates.first().filter(|one| one.id == id);
        // All pods leave first, so that no place is assigned twice meanwhile.
        for (pod, _) in &bindings {
            s.cluster.set_binding(*pod, PodBinding::default());
        }
        for (pod, binding) in bindings {
            s.cluster.set_binding(pod, binding);
        }
        debug_assert!(one.is_some(), "turns come in the same order");
        if let Some(one) = one {
            served(s, &mut candidates, one, before);
        }
        return Replay::Served(candidates);
    }
    debug_assert!(
        Candidates::after(&s.shares(), known, known.turns.len()).first().is_none(),
        "all have had their turns"
    );
    Replay::AllFailed
}
