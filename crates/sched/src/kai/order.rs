//! The order of turns: a tree of queues with a heap of jobs in each leaf. Owns: the comparisons of
//! jobs and of queues, for pending jobs and, reversed, for victims. Source: scheduling reference
//! §6.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use model::{PoolId, QueueId, WorkloadId};
use units::{Kind, Ratio, Resources};

use super::{jobs, shards};
use crate::session::Session;

/// Position of a job in its queue: higher priority first, then jobs below their minimum, then the
/// older.
pub(super) type Rank = (Reverse<u32>, u32, u64);

pub(super) fn rank(s: &Session<'_>, id: WorkloadId, active: impl Fn(usize) -> u32) -> Rank {
    let spec = &s.cluster.workloads()[id].spec;
    (Reverse(spec.priority), jobs::fullness(s, id, active), spec.seq)
}

/// Change of the resources that a queue uses: its best job added, or its victims removed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Plus(Resources),
    Minus(Resources),
}

/// Queued jobs, by queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    leaves: BTreeMap<QueueId, BTreeSet<(Rank, WorkloadId)>>,
    /// `true` if the last job is taken first.
    reversed: bool,
}

impl Line {
    /// A queue of victims: the last in every order goes first.
    pub(super) fn reversed() -> Self {
        Self { reversed: true, ..Self::default() }
    }

    /// The pending jobs, at most `depth` of each queue.
    pub(super) fn pending(s: &Session<'_>, depth: usize) -> Self {
        let mut line = Self::default();
        for id in s.waiting() {
            let evicted = jobs::Evicted::new();
            if shards::is_in_line(s, id)
                && jobs::is_ready(s, id)
                && !jobs::next_tasks(s, id, &evicted).is_empty()
            {
                line.push(s, id);
            }
        }
        for leaf in line.leaves.values_mut() {
            while leaf.len() > depth {
                leaf.pop_last();
            }
        }
        line
    }

    /// Adds a job in its present state.
    pub(super) fn push(&mut self, s: &Session<'_>, id: WorkloadId) {
        let sets = &s.cluster.workloads()[id].pod_sets;
        self.push_ranked(s, id, rank(s, id, |set| sets[set].placed));
    }

    pub(super) fn push_ranked(&mut self, s: &Session<'_>, id: WorkloadId, rank: Rank) {
        let queue = s.queue_of(id);
        self.leaves.entry(queue).or_default().insert((rank, id));
    }

    /// Removes a job.
    pub(super) fn remove(&mut self, s: &Session<'_>, id: WorkloadId) {
        let queue = s.queue_of(id);
        if let Some(leaf) = self.leaves.get_mut(&queue) {
            leaf.retain(|&(_, other)| other != id);
        }
    }

    /// The job that takes the next turn. `change` returns the change of its queue by its turn.
    pub(super) fn pop(
        &mut self,
        s: &Session<'_>,
        change: &dyn Fn(WorkloadId) -> Change,
    ) -> Option<WorkloadId> {
        let pool = s.trying.shard.map_or(PoolId::DEFAULT, |(pool, _)| pool);
        let (_, id, _) = self.best(s, s.cluster.roots(pool), change)?;
        let queue = s.queue_of(id);
        let leaf = self.leaves.get_mut(&queue)?;
        let popped = if self.reversed { leaf.pop_last() } else { leaf.pop_first() };
        popped.map(|(_, id)| id)
    }

    /// The best of sibling queues, with the best job in or below it.
    fn best(
        &self,
        s: &Session<'_>,
        siblings: impl Iterator<Item = QueueId>,
        change: &dyn Fn(WorkloadId) -> Change,
    ) -> Option<(QueueId, WorkloadId, Change)> {
        let mut best: Option<(QueueId, WorkloadId, Change)> = None;
        for queue in siblings {
            let Some((id, changed)) = self.best_in(s, queue, change) else { continue };
            let better = best.is_none_or(|(other, _, theirs)| {
                let order = compare(s, (queue, changed), (other, theirs));
                let order = if self.reversed { order.reverse() } else { order };
                order == Ordering::Less
            });
            if better {
                best = Some((queue, id, changed));
            }
        }
        best
    }

    fn best_in(
        &self,
        s: &Session<'_>,
        queue: QueueId,
        change: &dyn Fn(WorkloadId) -> Change,
    ) -> Option<(WorkloadId, Change)> {
        let children = &s.cluster.queues()[queue].children;
        if !children.is_empty() {
            let below = self.best(s, children.iter().copied(), change);
            return below.map(|(_, id, change)| (id, change));
        }
        let leaf = self.leaves.get(&queue)?;
        let end = if self.reversed { leaf.last() } else { leaf.first() };
        end.map(|&(_, id)| (id, change(id)))
    }
}

/// Order of two queues; the first difference decides.
fn compare(s: &Session<'_>, l: (QueueId, Change), r: (QueueId, Change)) -> Ordering {
    let (left, right) = (Standing::of(s, l), Standing::of(s, r));
    left.is_over_share()
        .cmp(&right.is_over_share())
        .then_with(|| right.is_starved().cmp(&left.is_starved()))
        .then_with(|| right.priority.cmp(&left.priority))
        .then_with(|| left.goes_beyond().cmp(&right.goes_beyond()))
        .then_with(|| left.dominant(left.changed).cmp(&right.dominant(right.changed)))
        .then_with(|| left.dominant(left.allocated).cmp(&right.dominant(right.allocated)))
        .then_with(|| right.is_weaker_than(&left).cmp(&left.is_weaker_than(&right)))
        .then_with(|| left.seq.cmp(&right.seq))
}

/// State of a queue, before and after the change.
struct Standing {
    allocated: Resources,
    changed: Resources,
    with_job: Resources,
    quota: Resources,
    fair: Resources,
    allocatable: Resources,
    capacity: Resources,
    priority: u32,
    seq: u64,
}

impl Standing {
    fn of(s: &Session<'_>, (id, change): (QueueId, Change)) -> Self {
        let queue = &s.cluster.queues()[id];
        // Victims count in the dominant share only.
        let (changed, with_job) = match change {
            Change::Plus(job) => (queue.allocated + job, queue.allocated + job),
            Change::Minus(victims) => (queue.allocated.saturating_sub(victims), queue.allocated),
        };
        Self {
            allocated: queue.allocated,
            changed,
            with_job,
            quota: queue.share.quota,
            fair: s.fair()[&id],
            allocatable: allocatable(s, id),
            capacity: s.cluster.capacity_of(queue.pool),
            priority: queue.share.priority,
            seq: queue.seq,
        }
    }

    /// `true` if it is over its share in every resource.
    fn is_over_share(&self) -> bool {
        Kind::ALL.into_iter().all(|kind| self.fair[kind] < self.allocated[kind])
    }

    fn is_starved(&self) -> bool {
        self.with_job.fits_in(self.quota)
    }

    fn goes_beyond(&self) -> bool {
        Kind::ALL.into_iter().any(|kind| self.with_job[kind] > 0 && self.allocatable[kind] == 0)
    }

    fn dominant(&self, held: Resources) -> Ratio {
        let ratio = |kind: Kind| match self.allocatable[kind] {
            // Where nothing is allocatable, each whole GPU, thousandth of a core or byte counts a
            // thousandfold.
            0 => Ratio::new(held[kind].saturating_mul(1000), kind.share_unit()),
            u64::MAX => Ratio::new(held[kind], self.capacity[kind]),
            allocatable => Ratio::new(held[kind], allocatable),
        };
        Kind::ALL.into_iter().map(ratio).max().unwrap_or(Ratio::ZERO)
    }

    fn is_weaker_than(&self, other: &Self) -> bool {
        self.allocatable != other.allocatable && self.allocatable.fits_in(other.allocatable)
    }
}

/// Maximum resources of a queue: its limit if its quota is unlimited, else its quota or fair share,
/// whichever is more, up to the limit. `u64::MAX` is unlimited.
pub(super) fn allocatable(s: &Session<'_>, id: QueueId) -> Resources {
    let share = &s.cluster.queues()[id].share;
    let mut result = share.limit;
    for kind in Kind::ALL {
        if share.quota[kind] != u64::MAX {
            result[kind] = result[kind].min(share.quota[kind].max(s.fair()[&id][kind]));
        }
    }
    result
}
