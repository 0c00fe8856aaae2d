//! Gives free resources to the neediest, one workload at a time. Owns: the loop that every
//! action shares, because the order changes with each placement.

use std::collections::BTreeMap;

use model::{PoolId, WorkloadId};
use units::Resources;

use crate::candidates::{Candidates, Hopeless};
use crate::memory::Row;
use crate::pools;
use crate::session::Session;
use crate::victims::{Markets, Rule, make_room};

/// Places whatever fits; keeps room for the first that do not.
pub(crate) fn run(s: &mut Session<'_>) {
    loop {
        each_in_order(s, Hopeless::new(), |s, id| {
            let placed = s.place(id, None);
            placed.map_err(|blocked| s.reserve(id, blocked)).is_ok()
        });
        if !s.withdraw_reservations() {
            break;
        }
    }
}

/// Makes room by a rule for what does not fit.
pub(crate) fn by_rule(s: &mut Session<'_>, rule: &dyn Rule) {
    s.follow();
    let hopeless = hopeless(s);
    debug_assert!(finds_nothing(s, rule, &hopeless), "a search would have succeeded");
    let mut markets = Markets::default();
    each_in_order(s, hopeless, |s, id| make_room(s, rule, &mut markets, id, None));
}

/// The node pools in which everything that may be there needs more than is free or held by work that
/// can give way: neither making room nor moving others makes that more. None where the pools of
/// some workload are not in their own order, because without these others would have their turns
/// in another order.
fn hopeless(s: &Session<'_>) -> Hopeless {
    let mut most: BTreeMap<Option<PoolId>, Resources> = BTreeMap::new();
    let mut hopeful = Hopeless::new();
    for (_, class) in s.memory.rows() {
        let Some(&(_, id)) = class.members.first() else { continue };
        let choices = s.cluster.choices(id);
        if !choices.is_sorted() {
            return Hopeless::new();
        }
        let least = s.least(id, s.ask(id, None));
        let none = choices.is_empty().then_some(None);
        for pool in none.into_iter().chain(choices.iter().map(|&pool| Some(pool))) {
            let most = most.entry(pool).or_insert_with(|| there(s, pool));
            // Those with a delay have the next decision come when that ends.
            if least.fits_in(*most) || s.patient_until(id) > s.now {
                hopeful.insert(pool);
            }
        }
    }
    most.into_keys().filter(|pool| !hopeful.contains(pool)).collect()
}

/// What is free in a pool, and what others there can give.
fn there(s: &Session<'_>, pool: Option<PoolId>) -> Resources {
    let pool = pool.filter(|_| s.cluster.is_divided()).unwrap_or_default();
    let roots = s.cluster.roots(pool).map(|id| &s.cluster.queues()[id]);
    let held = roots.map(|queue| {
        let lent = Resources { gpu_millis: queue.lent_gpu_millis, ..Resources::ZERO };
        queue.preemptible_held() + lent
    });
    s.cluster.free_soon_of(pool) + held.sum()
}

/// Whether nothing finds a place where that is called hopeless: debug builds look every time. Changes
/// nothing.
fn finds_nothing(s: &mut Session<'_>, rule: &dyn Rule, hopeless: &Hopeless) -> bool {
    let (stats, trials_left, wake_at) = (s.stats, s.trials_left, s.wake_at);
    let start = s.cluster.checkpoint();
    let first = |row: &Row| row.members.first().map(|member| member.1);
    let ids: Vec<_> = s.memory.rows().filter_map(|(_, row)| first(row)).collect();
    let found = ids.into_iter().any(|id| {
        let choices = s.cluster.choices(id);
        let none = choices.is_empty().then_some(None);
        let pools = none.into_iter().chain(choices.iter().map(|&pool| Some(pool)));
        let pools: Vec<_> = pools.filter(|pool| hopeless.contains(pool)).collect();
        pools.into_iter().any(|pool| {
            let markets = &mut Markets::default();
            pools::within(s, id, pool, |s| make_room(s, rule, markets, id, None))
        })
    });
    s.cluster.rollback(start);
    (s.stats, s.trials_left, s.wake_at) = (stats, trials_left, wake_at);
    !found
}

/// Offers each waiting workload a turn, the neediest first. One that got something and wants
/// more takes part again; one that got nothing is tried in its next node pool or is out, and its
/// equals with it.
pub(crate) fn each_in_order(
    s: &mut Session<'_>,
    hopeless: Hopeless,
    mut turn: impl FnMut(&mut Session<'_>, WorkloadId) -> bool,
) {
    s.follow();
    let mut candidates = Candidates::new(&s.shares(), hopeless);
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
        if !pools::within(s, id, pool, |s| turn(s, id)) {
            candidates.fail_equals(&s.shares(), one);
            continue;
        }
        let mut others = s.workloads_changed_since(before);
        if s.next_pods(id).is_empty() {
            others.remove(&id);
            candidates.remove(&s.shares(), one);
        }
        candidates.regroup(&s.shares(), &others);
        for queue in s.queues_changed_since(before) {
            candidates.refresh(&s.shares(), queue);
        }
    }
}
