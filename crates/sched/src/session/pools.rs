//! Node pools in order of preference: a workload is entirely in one of them. Owns: the pool in
//! which a workload is being placed, and the queue charged for it there.

use std::collections::BTreeMap;

use model::{ConstraintsId, PodId, PoolId, QueueId, WorkloadId};

use crate::place::PodRequirements;
use crate::session::Session;

/// Makes an attempt in each possible pool until one succeeds. A nested attempt stays in the pool of
/// the outer one.
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

/// Runs `work` as if a workload could only be in this pool.
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

/// The nested attempts in progress: the workload and the pool of each.
#[derive(Debug, Default)]
pub(crate) struct Trying {
    attempts: Vec<(WorkloadId, PoolId)>,
    /// In profile `kai`, the only pool to consider, for workloads whose first choice (0), second
    /// choice, and so on it is; `None` if all pools are considered.
    pub(crate) shard: Option<(PoolId, usize)>,
    /// In profile `kai`, the pools of workloads that lost places of the last cycle in this one.
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
    /// The pool in question for a workload: the one it is being placed in, or is in, or would be
    /// tried in first. `None` if it may use all pools.
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

    /// The queue that is charged for a workload in the pool in question.
    #[inline]
    pub(crate) fn queue_of(&self, id: WorkloadId) -> QueueId {
        let project = self.cluster.workloads()[id].spec.queue;
        if self.cluster.is_divided() { self.queue_there(project, id) } else { project }
    }

    fn queue_there(&self, project: QueueId, id: WorkloadId) -> QueueId {
        self.cluster.queue_in(project, self.pool_of(id).unwrap_or_default())
    }

    /// The pool whose queues divide the resources that a workload would use.
    pub(crate) fn division_of(&self, id: WorkloadId) -> PoolId {
        self.cluster.queues()[self.queue_of(id)].pool
    }

    /// The node constraints of a pod in the pool in question.
    pub(crate) fn constraints_of(&self, pod: PodId) -> ConstraintsId {
        self.cluster.constraints_in(pod, self.pool_of(self.cluster.pods()[pod].workload))
    }

    /// A pod's requirements in the pool in question; `gpus` replaces the size of an elastic one.
    pub(crate) fn requirements(&self, pod: PodId, gpus: Option<u32>) -> PodRequirements {
        let anywhere = PodRequirements::anywhere(self.cluster, pod, gpus);
        PodRequirements { constraints: self.constraints_of(pod), ..anywhere }
    }

    /// `true` if a placed workload is in the pool in which another is being placed.
    pub(crate) fn shares_pool(&self, id: WorkloadId, other: WorkloadId) -> bool {
        !self.cluster.is_divided() || self.pool_of(id) == self.pool_of(other)
    }
}
