//! Node pools that have queues of their own. Owns: that each is decided about by a scheduler of its own,
//! which knows nothing but the nodes of the pool and the jobs that are there. Source: scheduling
//! reference §1, §19, §23.

use model::{Node, NodeId, PoolId, WorkloadId};

use crate::session::Session;

/// Decides about one pool as if there were no other.
fn apart<T>(
    s: &mut Session<'_>,
    shard: Option<(PoolId, usize)>,
    work: impl FnOnce(&mut Session<'_>) -> T,
) -> T {
    let outside = std::mem::replace(&mut s.trying.shard, shard);
    let outcome = work(s);
    s.trying.shard = outside;
    outcome
}

impl Session<'_> {
    /// The nodes that are looked at.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let here = |node: &Node| self.trying.shard.is_none_or(|(pool, _)| pool == node.pool);
        self.cluster.nodes().iter().filter(move |(_, node)| here(node))
    }
}

/// Carries out an action in each pool; or once, if all nodes have the same queues. What finds no
/// place in its first pool is handed on to its next one.
pub(super) fn each(s: &mut Session<'_>, mut action: impl FnMut(&mut Session<'_>)) {
    if !s.cluster.is_divided() {
        return action(s);
    }
    let mut choice = 0;
    while s.waiting().any(|id| s.cluster.choices(id).len() > choice) {
        for pool in s.cluster.divisions().collect::<Vec<_>>() {
            apart(s, Some((pool, choice)), &mut action);
        }
        choice += 1;
    }
}

/// True if a pending job is one of those that are looked at.
pub(super) fn is_in_line(s: &Session<'_>, id: WorkloadId) -> bool {
    s.trying.shard.is_none_or(|(pool, choice)| match s.home(id) {
        Some(home) => home == pool && choice == 0,
        None => s.cluster.choices(id).get(choice).is_some_and(|&own| own == pool),
    })
}

/// Keeps a job that has a place in its pool for this cycle, even if it loses the place: or else one that
/// came from another pool would lose it to those for whom this is the first.
pub(super) fn stay(s: &mut Session<'_>, id: WorkloadId) {
    if s.cluster.is_divided()
        && let Some(pool) = s.cluster.pool_of(id)
    {
        s.trying.homes.insert(id, pool);
    }
}

/// Does something about a job in the pool that matters to it now.
pub(super) fn of<T>(
    s: &mut Session<'_>,
    id: WorkloadId,
    work: impl FnOnce(&mut Session<'_>) -> T,
) -> T {
    let pool = s.pool_of(id).filter(|_| s.cluster.is_divided());
    apart(s, pool.map(|pool| (pool, 0)), work)
}
