//! Shares of queues, and the point where the paths of two of them part. Owns: comparing use and
//! request with quota and fair share. Does not know about: victims.

use model::{QueueId, WorkloadId};
use smallvec::SmallVec;
use units::{Instant, Kind, Resources};

use crate::session::Session;
use crate::victims::{EvictionUnit, freed};

/// `true` if a queue that uses `extra` more is above quota and fair share of a requested resource.
pub(crate) fn is_above_share(
    s: &Session<'_>,
    giver: QueueId,
    asked: Resources,
    extra: Resources,
) -> bool {
    let queue = &s.cluster.queues()[giver];
    let (held, most) = (queue.held() + extra, s.fair()[&giver].max(queue.share.quota));
    Kind::ALL.into_iter().any(|kind| asked[kind] > 0 && held[kind] > most[kind])
}

/// Kind of resource in which a workload's queue would exceed its fair share with it, if any.
pub(crate) fn not_entitled(s: &Session<'_>, id: WorkloadId, asked: Resources) -> Option<Kind> {
    beyond_share(s, s.queue_of(id), asked)
}

/// As [`not_entitled`], for a queue.
pub(crate) fn beyond_share(s: &Session<'_>, queue: QueueId, asked: Resources) -> Option<Kind> {
    beyond(s.cluster.queues()[queue].held(), asked, s.fair()[&queue])
}

/// The kind of resource in which `held` plus `asked` exceeds the share; `None` if none does.
pub(crate) fn beyond(held: Resources, asked: Resources, share: Resources) -> Option<Kind> {
    let beyond =
        |kind: &Kind| asked[*kind] > 0 && held[*kind].saturating_add(asked[*kind]) > share[*kind];
    Kind::ALL.into_iter().find(beyond)
}

/// `true` if a queue with the requested resources uses no more than `most`.
pub(crate) fn within(s: &Session<'_>, queue: QueueId, asked: Resources, most: Resources) -> bool {
    (s.cluster.queues()[queue].held() + asked).fits_in(most)
}

/// A queue and all above it, up to and including `top`.
pub(crate) fn lineage_below<'a>(
    s: &'a Session<'_>,
    leaf: QueueId,
    top: QueueId,
) -> impl Iterator<Item = QueueId> + use<'a> {
    s.cluster.lineage(leaf).take_while(move |&queue| queue != top).chain([top])
}

/// Time until which a workload is not stopped for the share of other queues: the end of the turn of
/// `giver`, if the workload is larger than the share of that queue.
pub(crate) fn turn_ends(s: &Session<'_>, giver: QueueId, victim: WorkloadId) -> Option<Instant> {
    let row = &s.cluster.queues()[giver];
    let fair_millis = s.fair()[&giver].gpu_millis;
    // A turn may have begun in this cycle.
    let lag = row.lag.followed(s.now, fair_millis, row.held().gpu_millis).unwrap_or(row.lag);
    let ends = lag.turn_since?.plus_ms(s.policy.turn_ms);
    let is_larger = || freed(s, EvictionUnit::All(victim)).gpu_millis > fair_millis;
    (ends > s.now && is_larger()).then_some(ends)
}

/// The quota as far as it can be honoured: where the quotas exceed the capacity, the fair share
/// replaces it.
pub(crate) fn deserved(s: &Session<'_>, queue: QueueId) -> Resources {
    let row = &s.cluster.queues()[queue];
    let requested = s.known.entitlements.requested.get(&queue).copied().unwrap_or_default();
    let mut deserved = row.share.quota;
    for kind in Kind::ALL {
        let fair = s.fair()[&queue][kind];
        if fair < deserved[kind].min(requested[kind]).min(row.share.limit[kind]) {
            deserved[kind] = fair;
        }
    }
    deserved
}

/// The ancestors (or selves) of the queues of both, just below the point where their paths part;
/// `None` if the queues are equal.
pub(crate) fn branches(
    s: &Session<'_>,
    id: WorkloadId,
    victim: WorkloadId,
) -> Option<(QueueId, QueueId)> {
    parting(s, s.queue_of(id), s.queue_of(victim))
}

/// As [`branches`], for two queues.
pub(crate) fn parting(s: &Session<'_>, own: QueueId, other: QueueId) -> Option<(QueueId, QueueId)> {
    let path = |queue: QueueId| s.cluster.lineage(queue).collect::<SmallVec<[QueueId; 8]>>();
    let (own, other) = (path(own), path(other));
    let mut levels = own.iter().rev().zip(other.iter().rev());
    levels.find(|(own, other)| own != other).map(|(&own, &other)| (own, other))
}
