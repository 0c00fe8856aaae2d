//! The order of queues for allocation and for eviction. Owns: the comparisons of queues. Source:
//! Run:ai reference D.3b "which queue goes next", scheduling reference §6.

use std::cmp::Reverse;

use model::{Cluster, QueueId, WorkloadId};
use units::{Instant, Kind, Ratio, Resources};

use crate::knowledge::Knowledge;

/// Sort key of sibling queues: the first difference decides, the lesser goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueRank {
    over_share: bool,
    beyond_quota: bool,
    priority: Reverse<u32>,
    /// Lag behind its share of the GPUs, as a time.
    behind_ms: Reverse<i64>,
    without_share: bool,
    /// Saturation with the request, and without it.
    saturation_then: Ratio,
    saturation: Ratio,
    waits_since: Instant,
    seq: u64,
}

/// Input of the order of queues.
pub(crate) struct Shares<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) known: &'a Knowledge,
    pub(crate) now: Instant,
}

impl Shares<'_> {
    /// The key of a queue among its siblings, for a workload that it would place.
    pub(crate) fn queue_rank(&self, id: QueueId, job: WorkloadId) -> QueueRank {
        let queue = &self.cluster.queues()[id];
        let workload = &self.cluster.workloads()[job];
        let ask = workload.demand();
        let fair_millis = self.known.shares()[&id].gpu_millis;
        QueueRank {
            over_share: self.over_share(id),
            beyond_quota: !(queue.held() + ask).fits_in(queue.share.quota),
            priority: Reverse(queue.share.priority),
            behind_ms: Reverse(queue.lag.behind_ms(self.now, fair_millis)),
            without_share: self.without_share(id, ask),
            saturation_then: self.dominant(id, ask),
            saturation: self.dominant(id, Resources::ZERO),
            waits_since: workload.waits_since(),
            seq: queue.seq,
        }
    }

    /// `true` if a queue, for a workload that it would place, goes before a sibling.
    pub(crate) fn before(&self, own: (QueueId, WorkloadId), other: (QueueId, WorkloadId)) -> bool {
        self.queue_rank(own.0, own.1) < self.queue_rank(other.0, other.1)
    }

    pub(crate) fn over_share(&self, id: QueueId) -> bool {
        !self.cluster.queues()[id].held().fits_in(self.known.shares()[&id])
    }

    fn without_share(&self, id: QueueId, ask: Resources) -> bool {
        Kind::ALL.iter().any(|&kind| ask[kind] > 0 && self.allocatable(id)[kind] == 0)
    }

    /// Maximum resources of a queue: its quota or fair share, whichever is more, up to its limit;
    /// unlimited means the capacity.
    fn allocatable(&self, id: QueueId) -> Resources {
        let queue = &self.cluster.queues()[id];
        let capacity = self.cluster.capacity_of(queue.pool);
        let mut result = Resources::ZERO;
        for kind in Kind::ALL {
            let quota = queue.share.quota[kind];
            let entitled =
                if quota == u64::MAX { quota } else { quota.max(self.known.shares()[&id][kind]) };
            result[kind] = entitled.min(queue.share.limit[kind]).min(capacity[kind]);
        }
        result
    }

    /// The largest ratio of used to allocatable over all resources, with `extra` added.
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
