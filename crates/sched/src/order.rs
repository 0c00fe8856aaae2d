//! Who goes next, and who is taken from first. Owns: the comparisons of queues and of
//! workloads. Source: Run:ai reference D.3b "which queue goes next", scheduling reference §6.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Cluster, PodSetSpec, PoolId, QueueId, WorkloadId};
use units::{Kind, Ratio, Resources};

use crate::class::Class;

/// Workloads that wait for their turn, ranked within each queue; and the queues in line for
/// theirs, which are put in order again only where something changed.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    ranked: BTreeMap<QueueId, BTreeSet<(Rank, WorkloadId)>>,
    /// Under each queue (none: at the top of each node pool) those with candidates, and whom each
    /// would send.
    lines: BTreeMap<(Option<QueueId>, PoolId), Line>,
    /// Where each queue stands in its line.
    turns: BTreeMap<QueueId, Turn>,
    /// The node pool in which each stands in line; none for those to whom all are the same.
    pools: BTreeMap<WorkloadId, PoolId>,
}

/// Queues in the order of their turns, and whom each would send.
type Line = BTreeMap<(Turn, QueueId), WorkloadId>;

/// What decides which of two siblings goes first: the first difference, the lesser of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    over_share: bool,
    beyond_quota: bool,
    priority: Reverse<u32>,
    without_share: bool,
    /// How saturated it would be with what is asked for, and is.
    saturation_then: Ratio,
    saturation: Ratio,
    seq: u64,
}

impl Candidates {
    pub(crate) fn new(shares: &Shares<'_>, ids: impl IntoIterator<Item = WorkloadId>) -> Self {
        let mut candidates = Self::default();
        for id in ids {
            if let Some(&first) = shares.cluster.choices(id).first() {
                candidates.pools.insert(id, first);
            }
            let queue = candidates.queue(shares, id);
            candidates.ranked.entry(queue).or_default().insert((by_rank(shares.cluster, id), id));
        }
        for queue in candidates.ranked.keys().copied().collect::<Vec<_>>() {
            candidates.refresh(shares, queue);
        }
        candidates
    }

    /// The workload to try next: the neediest department, in it the neediest project, in it the
    /// first by rank. Every pool has an order of its own; one comes after the other.
    pub(crate) fn first(&self) -> Option<WorkloadId> {
        let top = self.lines.iter().take_while(|((above, _), _)| above.is_none());
        top.filter_map(|(_, line)| line.first_key_value()).map(|(_, &id)| id).next()
    }

    /// The node pool a workload is to be tried in; none if all are the same to it.
    pub(crate) fn pool(&self, id: WorkloadId) -> Option<PoolId> {
        self.pools.get(&id).copied()
    }

    /// Lets a workload that is bound to another pool by now stand in line there; says whether it is.
    pub(crate) fn goes_elsewhere(&mut self, shares: &Shares<'_>, id: WorkloadId) -> bool {
        let Some(pool) = self.pool(id) else { return false };
        let choices = shares.cluster.choices(id);
        let Some(&first) = choices.first().filter(|_| !choices.contains(&pool)) else {
            return false;
        };
        self.remove(shares, id);
        self.pools.insert(id, first);
        let queue = self.queue(shares, id);
        self.ranked.entry(queue).or_default().insert((by_rank(shares.cluster, id), id));
        self.refresh(shares, queue);
        true
    }

    fn queue(&self, shares: &Shares<'_>, id: WorkloadId) -> QueueId {
        let project = shares.cluster.workloads()[id].spec.queue;
        shares.cluster.queue_in(project, self.pool(id).unwrap_or_default())
    }

    /// Looks again at a queue that holds more or less than before, and at all above it.
    pub(crate) fn refresh(&mut self, shares: &Shares<'_>, leaf: QueueId) {
        let mut sends = self.ranked.get(&leaf).and_then(|ranked| ranked.first()).map(|r| r.1);
        for queue in shares.cluster.lineage(leaf) {
            let row = &shares.cluster.queues()[queue];
            let line = self.lines.entry((row.parent, row.pool)).or_default();
            if let Some(turn) = self.turns.remove(&queue) {
                line.remove(&(turn, queue));
            }
            if let Some(id) = sends {
                let turn = shares.turn(queue, id);
                line.insert((turn, queue), id);
                self.turns.insert(queue, turn);
            }
            sends = line.first_key_value().map(|(_, &id)| id);
        }
    }

    pub(crate) fn remove(&mut self, shares: &Shares<'_>, id: WorkloadId) {
        let queue = self.queue(shares, id);
        if let Some(ranked) = self.ranked.get_mut(&queue) {
            ranked.remove(&(by_rank(shares.cluster, id), id));
        }
        self.refresh(shares, queue);
    }

    /// What a workload could not get where it was tried, its equals cannot either: all of them go
    /// on to their next pool, or are out.
    pub(crate) fn fail_equals(&mut self, shares: &Shares<'_>, id: WorkloadId) {
        let (queue, pool) = (self.queue(shares, id), self.pool(id));
        let class = Class::of(shares.cluster, id);
        let pools = &self.pools;
        let equal = |&(_, other): &(Rank, WorkloadId)| {
            pools.get(&other).copied() == pool && Class::of(shares.cluster, other) == class
        };
        let Some(ranked) = self.ranked.get_mut(&queue) else { return };
        let failed: Vec<_> = ranked.extract_if(.., equal).collect();
        let choices = shares.cluster.choices(id);
        let at = choices.iter().position(|&choice| Some(choice) == pool);
        if let Some(&next) = at.and_then(|at| choices.get(at + 1)) {
            for (rank, other) in failed {
                self.pools.insert(other, next);
                let queue = self.queue(shares, other);
                self.ranked.entry(queue).or_default().insert((rank, other));
            }
            self.refresh(shares, self.queue(shares, id));
        }
        self.refresh(shares, queue);
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
    /// Where a queue stands among its siblings, for what it would have placed.
    fn turn(&self, id: QueueId, job: WorkloadId) -> Turn {
        let queue = &self.cluster.queues()[id];
        let ask = self.cluster.workloads()[job].demand();
        Turn {
            over_share: self.over_share(id),
            beyond_quota: !(queue.held() + ask).fits_in(queue.share.quota),
            priority: Reverse(queue.share.priority),
            without_share: self.without_share(id, ask),
            saturation_then: self.dominant(id, ask),
            saturation: self.dominant(id, Resources::ZERO),
            seq: queue.seq,
        }
    }

    /// Whether a queue, for what it would have placed, goes before a sibling.
    pub(crate) fn before(&self, own: (QueueId, WorkloadId), other: (QueueId, WorkloadId)) -> bool {
        self.turn(own.0, own.1) < self.turn(other.0, other.1)
    }

    pub(crate) fn over_share(&self, id: QueueId) -> bool {
        !self.cluster.queues()[id].held().fits_in(self.fair[&id])
    }

    fn without_share(&self, id: QueueId, ask: Resources) -> bool {
        Kind::ALL.iter().any(|&kind| ask[kind] > 0 && self.allocatable(id)[kind] == 0)
    }

    /// What the queue may come to hold: its quota or fair share, whichever is more, up to its
    /// limit; unlimited means all there is.
    fn allocatable(&self, id: QueueId) -> Resources {
        let queue = &self.cluster.queues()[id];
        let capacity = self.cluster.capacity_of(queue.pool);
        let mut result = Resources::ZERO;
        for kind in Kind::ALL {
            let quota = queue.share.quota[kind];
            let entitled = if quota == u64::MAX { quota } else { quota.max(self.fair[&id][kind]) };
            result[kind] = entitled.min(queue.share.limit[kind]).min(capacity[kind]);
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
