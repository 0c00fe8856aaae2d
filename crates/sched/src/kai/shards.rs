//! Node pools with queues of their own. Owns: the isolation of each pool, whose scheduler knows
//! only the nodes of the pool and the jobs there. Source: scheduling reference §1, §19, §23.

use model::{Node, NodeId, PoolId, WorkloadId};

use crate::session::Session;

/// Runs `work` on one pool as if there were no other.
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
    /// The nodes under consideration.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let here = |node: &Node| self.trying.shard.is_none_or(|(pool, _)| pool == node.pool);
        self.cluster.nodes().iter().filter(move |(_, node)| here(node))
    }
}

/// Carries out an action in each pool; or once, if all nodes have common queues. A job that finds
/// no place in its first pool is tried in its next one.
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

/// `true` if a pending job is queued for the pool under consideration.
pub(super) fn is_in_line(s: &Session<'_>, id: WorkloadId) -> bool {
    s.trying.shard.is_none_or(|(pool, choice)| match s.home(id) {
        Some(home) => home == pool && choice == 0,
        None => s.cluster.choices(id).get(choice).is_some_and(|&own| own == pool),
    })
}

/// Keeps a job that has a place in its pool for this cycle, even if it loses the place: otherwise a
/// job from another pool would lose it to jobs with this as their first pool.
pub(super) fn stay(s: &mut Session<'_>, id: WorkloadId) {
    if s.cluster.is_divided()
        && let Some(pool) = s.cluster.pool_of(id)
    {
        s.trying.homes.insert(id, pool);
    }
}

/// Runs `work` in the pool of a job.
pub(super) fn of<T>(
    s: &mut Session<'_>,
    id: WorkloadId,
    work: impl FnOnce(&mut Session<'_>) -> T,
) -> T {
    let pool = s.pool_of(id).filter(|_| s.cluster.is_divided());
    apart(s, pool.map(|pool| (pool, 0)), work)
}
