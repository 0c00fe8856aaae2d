//! Who goes next, and who is taken from first. Owns: the comparisons of queues and of
//! workloads. Source: Run:ai reference D.3b "which queue goes next", scheduling reference §6.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use model::{Cluster, PodSetSpec, Queue, QueueId, WorkloadId};
use units::{Kind, Ratio, Resources};

use crate::class::Class;

/// Workloads that wait for their turn, ranked within each queue.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    by_queue: BTreeMap<QueueId, BTreeSet<(Rank, WorkloadId)>>,
}

impl Candidates {
    pub(crate) fn new(cluster: &Cluster, ids: impl IntoIterator<Item = WorkloadId>) -> Self {
        let mut candidates = Self::default();
        for id in ids {
            let queue = cluster.workloads()[id].spec.queue;
            candidates.by_queue.entry(queue).or_default().insert((by_rank(cluster, id), id));
        }
        candidates
    }

    pub(crate) fn remove(&mut self, cluster: &Cluster, id: WorkloadId) {
        let queue = cluster.workloads()[id].spec.queue;
        if let Some(ranked) = self.by_queue.get_mut(&queue) {
            ranked.remove(&(by_rank(cluster, id), id));
        }
    }

    /// Drops a workload and its equals: what it could not get, none of them can.
    pub(crate) fn remove_equals(&mut self, cluster: &Cluster, id: WorkloadId) {
        let class = Class::of(cluster, id);
        if let Some(ranked) = self.by_queue.get_mut(&cluster.workloads()[id].spec.queue) {
            ranked.retain(|&(_, other)| Class::of(cluster, other) != class);
        }
    }
}

/// What the order of queues is computed from.
pub(crate) struct Shares<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) fair: &'a BTreeMap<QueueId, Resources>,
}

/// Place in the line of one queue.
pub(crate) type Rank = (Reverse<u32>, u64);

/// Workloads of one queue: higher priority first, then the older.
pub(crate) fn by_rank(cluster: &Cluster, id: WorkloadId) -> Rank {
    let spec = &cluster.workloads()[id].spec;
    (Reverse(spec.priority), spec.seq)
}

/// Which pod set of a workload gets its next pod, least first, when none lacks any of its minimum:
/// the one with the fewest pods for its minimum, then by name. Source: scheduling reference §6.4.
pub(crate) fn set_rank(spec: &PodSetSpec, placed: u32) -> (Ratio, &str) {
    (Ratio::new(u64::from(placed), u64::from(spec.pods_min)), &spec.name)
}

impl Shares<'_> {
    /// The workload to try next: the neediest department, in it the neediest project, in it the
    /// first by rank.
    pub(crate) fn next(&self, candidates: &Candidates) -> Option<WorkloadId> {
        let best = candidates
            .by_queue
            .iter()
            .filter_map(|(&queue, ranked)| ranked.first().map(|&(_, id)| (queue, id)));
        let mut level: BTreeMap<QueueId, WorkloadId> = best.collect();
        // Walk the leaves' winners up, level by level, to the root.
        loop {
            let mut above: BTreeMap<Option<QueueId>, (QueueId, WorkloadId)> = BTreeMap::new();
            for (&queue, &id) in &level {
                let parent = self.cluster.queues()[queue].parent;
                let slot = above.entry(parent).or_insert((queue, id));
                if self.before(queue, id, slot.0, slot.1) {
                    *slot = (queue, id);
                }
            }
            if let (1, Some(&(_, id))) = (above.len(), above.get(&None)) {
                return Some(id);
            }
            if above.is_empty() {
                return None;
            }
            level = above.iter().map(|(&up, &(own, id))| (up.unwrap_or(own), id)).collect();
        }
    }

    fn before(
        &self,
        left: QueueId,
        left_job: WorkloadId,
        right: QueueId,
        right_job: WorkloadId,
    ) -> bool {
        self.compare(left, left_job, right, right_job) == Ordering::Less
    }

    /// First difference decides; `Less` goes first.
    fn compare(&self, l: QueueId, l_job: WorkloadId, r: QueueId, r_job: WorkloadId) -> Ordering {
        let (left, right) = (&self.cluster.queues()[l], &self.cluster.queues()[r]);
        let (l_ask, r_ask) = (self.ask(l_job), self.ask(r_job));
        self.over_share(l)
            .cmp(&self.over_share(r))
            .then_with(|| within_quota(right, r_ask).cmp(&within_quota(left, l_ask)))
            .then_with(|| right.share.priority.cmp(&left.share.priority))
            .then_with(|| self.without_share(l, l_ask).cmp(&self.without_share(r, r_ask)))
            .then_with(|| self.dominant(l, l_ask).cmp(&self.dominant(r, r_ask)))
            .then_with(|| self.dominant(l, Resources::ZERO).cmp(&self.dominant(r, Resources::ZERO)))
            .then_with(|| left.seq.cmp(&right.seq))
    }

    fn ask(&self, id: WorkloadId) -> Resources {
        self.cluster.workloads()[id].demand()
    }

    pub(crate) fn over_share(&self, id: QueueId) -> bool {
        !self.cluster.queues()[id].held().fits_in(self.fair[&id])
    }

    fn without_share(&self, id: QueueId, ask: Resources) -> bool {
        Kind::ALL.iter().any(|&kind| ask[kind] > 0 && self.allocatable(id)[kind] == 0)
    }

    /// What the queue may come to hold: its quota or fair share, whichever is more, up to its
    /// limit; unlimited means the whole cluster.
    fn allocatable(&self, id: QueueId) -> Resources {
        let queue = &self.cluster.queues()[id];
        let mut result = Resources::ZERO;
        for kind in Kind::ALL {
            let quota = queue.share.quota[kind];
            let entitled = if quota == u64::MAX { quota } else { quota.max(self.fair[&id][kind]) };
            result[kind] = entitled.min(queue.share.limit[kind]).min(self.cluster.capacity()[kind]);
        }
        result
    }

    /// The largest ratio of held to allocatable over all resources, with `extra` added.
    pub(crate) fn dominant(&self, id: QueueId, extra: Resources) -> Ratio {
        let held = self.cluster.queues()[id].held() + extra;
        let whole = self.allocatable(id);
        Kind::ALL
            .iter()
            .map(|&kind| Ratio::new(held[kind], whole[kind]))
            .max()
            .unwrap_or(Ratio::ZERO)
    }
}

fn within_quota(queue: &Queue, ask: Resources) -> bool {
    (queue.held() + ask).fits_in(queue.share.quota)
}
