//! Gives free resources to the neediest, one workload at a time. Owns: the loop that every
//! action shares, because the order changes with each placement.

use model::WorkloadId;

use crate::candidates::Candidates;
use crate::pools;
use crate::session::Session;
use crate::victims::{Markets, Rule, make_room};

/// Places whatever fits; keeps room for the first that do not.
pub(crate) fn run(s: &mut Session<'_>) {
    loop {
        each_in_order(s, |s, id| {
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
    let mut markets = Markets::default();
    each_in_order(s, |s, id| make_room(s, rule, &mut markets, id, None));
}

/// Offers each waiting workload a turn, the neediest first. One that got something and wants
/// more takes part again; one that got nothing is tried in its next node pool or is out, and its
/// equals with it.
pub(crate) fn each_in_order(
    s: &mut Session<'_>,
    mut turn: impl FnMut(&mut Session<'_>, WorkloadId) -> bool,
) {
    s.follow();
    let mut candidates = Candidates::new(&s.shares());
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
