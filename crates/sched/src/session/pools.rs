//! Node pools in order of preference: a workload is all in one of them. Owns: in which one a
//! workload is being placed, and which queue is charged for it there.

use std::collections::BTreeMap;

use model::{ConstraintsId, PodId, PoolId, QueueId, WorkloadId};

use crate::place::PodRequirements;
use crate::session::Session;

/// Makes an attempt in each pool that comes into question until one succeeds. An attempt inside an
/// attempt is made where that one is.
pub(crate) fn in_order<E>(
    s: &mut Session<'_>,
    id: WorkloadId,
    mut attempt: impl FnMut(&mut Session<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if s.cluster.choices(id).len() < 2 || s.trying.contains(id) {
        return attempt(s);
    }
    let mut outcome = Ok(());
    for at in 0..s.cluster.choices(id).len() {
        let Some(&pool) = s.cluster.choices(id).get(at) else { break };
        outcome = within(s, id, Some(pool), &mut attempt);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Does something about a workload as if it could only be in this pool.
pub(crate) fn within<T>(
    s: &mut Session<'_>,
    id: WorkloadId,
    pool: Option<PoolId>,
    work: impl FnOnce(&mut Session<'_>) -> T,
) -> T {
    let Some(pool) = pool else { return work(s) };
    let outside = s.trying.enter(id, pool);
    let outcome = work(s);
    s.trying.leave(outside);
    outcome
}

/// The attempts under way, one inside the other: which workload in which pool.
#[derive(Debug, Default)]
pub(crate) struct Trying {
    attempts: Vec<(WorkloadId, PoolId)>,
    /// In profile `kai`, the pool outside of which nothing is looked at, for those to whom it is the
    /// first choice (0), the second, and so on; none if all pools are looked at.
    pub(crate) shard: Option<(PoolId, usize)>,
    /// In profile `kai`, where those are in this cycle that have given up a place of the last.
    pub(crate) homes: BTreeMap<WorkloadId, PoolId>,
}

impl Trying {
    fn enter(&mut self, id: WorkloadId, pool: PoolId) -> usize {
        self.attempts.push((id, pool));
        self.attempts.len() - 1
    }

    fn leave(&mut self, outside: usize) {
        self.attempts.truncate(outside);
    }

    fn contains(&self, id: WorkloadId) -> bool {
        self.attempts.iter().any(|&(other, _)| other == id)
    }

    fn pool(&self, id: WorkloadId) -> Option<PoolId> {
        self.attempts.iter().rev().find(|&&(other, _)| other == id).map(|&(_, pool)| pool)
    }
}

impl Session<'_> {
    /// The pool that matters to a workload now: the one it is being placed in, or is in, or would be
    /// tried in first. None if all are the same to it.
    pub(crate) fn pool_of(&self, id: WorkloadId) -> Option<PoolId> {
        if self.cluster.workloads()[id].pools.is_empty() {
            return None;
        }
        let choices = self.cluster.choices(id);
        let apart = self.trying.shard.map(|(pool, _)| pool);
        let here = self.trying.pool(id).or_else(|| self.cluster.pool_of(id));
        here.or_else(|| self.home(id))
            .or_else(|| apart.filter(|pool| choices.contains(pool)))
            .or_else(|| choices.first().copied())
    }

    /// The pool in which a workload stays in this cycle.
    pub(crate) fn home(&self, id: WorkloadId) -> Option<PoolId> {
        self.trying.homes.get(&id).copied()
    }

    /// The queue that is charged for a workload there.
    #[inline]
    pub(crate) fn queue_of(&self, id: WorkloadId) -> QueueId {
        let project = self.cluster.workloads()[id].spec.queue;
        if self.cluster.is_divided() { self.queue_there(project, id) } else { project }
    }

    fn queue_there(&self, project: QueueId, id: WorkloadId) -> QueueId {
        self.cluster.queue_in(project, self.pool_of(id).unwrap_or_default())
    }

    /// The pool whose queues divide what a workload would get there.
    pub(crate) fn division_of(&self, id: WorkloadId) -> PoolId {
        self.cluster.queues()[self.queue_of(id)].pool
    }

    /// What a pod demands of nodes there.
    pub(crate) fn constraints_of(&self, pod: PodId) -> ConstraintsId {
        self.cluster.constraints_in(pod, self.pool_of(self.cluster.pods()[pod].workload))
    }

    /// What a pod needs there; `gpus` stands in for the size of an elastic one.
    pub(crate) fn requirements(&self, pod: PodId, gpus: Option<u32>) -> PodRequirements {
        let anywhere = PodRequirements::anywhere(self.cluster, pod, gpus);
        PodRequirements { constraints: self.constraints_of(pod), ..anywhere }
    }

    /// True if a workload with a place is where another is being placed.
    pub(crate) fn shares_pool(&self, id: WorkloadId, other: WorkloadId) -> bool {
        !self.cluster.is_divided() || self.pool_of(id) == self.pool_of(other)
    }
}
