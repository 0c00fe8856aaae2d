//! Gives free resources to the neediest, one workload at a time. Owns: the loop that every
//! action shares, because the order changes with each placement.

use model::WorkloadId;

use crate::order::Candidates;
use crate::session::Session;
use crate::victims::{Markets, Rule, make_room};

/// Places whatever fits; keeps room for the first that do not.
pub(crate) fn run(s: &mut Session<'_>) {
    each_in_order(s, |s, id| {
        let placed = s.place(id, None);
        placed.map_err(|blocked| s.reserve(id, blocked)).is_ok()
    });
}

/// Makes room by a rule for what does not fit.
pub(crate) fn by_rule(s: &mut Session<'_>, rule: &dyn Rule) {
    let mut markets = Markets::default();
    each_in_order(s, |s, id| make_room(s, rule, &mut markets, id, None));
}

/// Offers each waiting workload a turn, the neediest first. One that got something and wants
/// more takes part again; one that got nothing is out, and its equals with it.
pub(crate) fn each_in_order(
    s: &mut Session<'_>,
    mut turn: impl FnMut(&mut Session<'_>, WorkloadId) -> bool,
) {
    let mut candidates = Candidates::new(&s.shares(), s.waiting());
    while let Some(id) = candidates.first() {
        if !s.may_try() {
            return;
        }
        let before = s.cluster.checkpoint();
        if !turn(s, id) {
            candidates.remove_equals(&s.shares(), id);
            continue;
        }
        if s.next_pods(id).is_empty() {
            candidates.remove(&s.shares(), id);
        }
        for queue in s.projects_changed_since(before) {
            candidates.refresh(&s.shares(), queue);
        }
    }
}
