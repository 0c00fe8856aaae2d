//! Shares of queues, and the point where the paths of two of them part. Owns: comparing use and
//! request with quota and fair share. Does not know about: victims.

use model::{Lag, PodId, QueueId, WorkloadId};
use smallvec::SmallVec;
use units::{GPU_MILLIS, Instant, Kind, Resources};

use crate::session::Session;
use crate::victims::{EvictionUnit, freed};
use reasons::QueueNumbers;

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

/// Kind of resource in which a queue would exceed its fair share with `asked` more, if any.
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

/// Lag of a queue, followed up to this cycle, in which a turn may have begun.
fn lag(s: &Session<'_>, queue: QueueId) -> Lag {
    let row = &s.cluster.queues()[queue];
    // Queues of a removed pool have no shares.
    let fair = s.fair().get(&queue).copied().unwrap_or_default();
    row.lag.followed(s.now, fair.gpu_millis, row.held().gpu_millis).unwrap_or(row.lag)
}

/// End of the turn of `giver`, during which the workload is not stopped for the shares of other
/// queues. `None` without a turn, and if the workload is no larger than the fair share of `giver` and
/// `giver` holds its fair share without it.
pub(crate) fn turn_ends(s: &Session<'_>, giver: QueueId, victim: WorkloadId) -> Option<Instant> {
    let ends = turn_of(s, giver)?;
    let (fair_millis, held) = (s.fair()[&giver].gpu_millis, s.cluster.queues()[giver].held());
    let freed_millis = freed(s, EvictionUnit::All(victim)).gpu_millis;
    let crosses = held.gpu_millis.saturating_sub(freed_millis) < fair_millis;
    (freed_millis > fair_millis || crosses).then_some(ends)
}

/// End of the turn of a queue; `None` if it has no turn now.
pub(crate) fn turn_of(s: &Session<'_>, queue: QueueId) -> Option<Instant> {
    let ends = lag(s, queue).turn_since?.plus_ms(s.policy.turn_ms);
    Some(ends).filter(|ends| *ends > s.now)
}

/// Maximum holdings of a queue for a workload that takes from others: its fair share. Workloads are
/// indivisible, so the maximum is the requested GPU quota where that is larger and the queue holds
/// less than its fair share without this workload and without `given`, which gives way.
pub(crate) fn may_hold(
    s: &Session<'_>,
    queue: QueueId,
    id: WorkloadId,
    given: Resources,
) -> Resources {
    let mut most = s.fair()[&queue];
    let quota_millis = quota_asked_for(s, queue).gpu_millis;
    if quota_millis > most.gpu_millis && held_before(s, queue, id, given) < most.gpu_millis {
        most.gpu_millis = quota_millis;
    }
    most
}

/// Maximum holdings of a queue that holds nothing else: its fair share, and of GPUs at least the
/// requested quota, unless its fair share is 0.
pub(crate) fn may_hold_alone(s: &Session<'_>, queue: QueueId) -> Resources {
    let mut most = s.fair()[&queue];
    if most.gpu_millis > 0 {
        most.gpu_millis = most.gpu_millis.max(quota_asked_for(s, queue).gpu_millis);
    }
    most
}

/// `true` if a queue lacks a whole GPU of its claim without a workload.
pub(crate) fn lacks_a_gpu(s: &Session<'_>, queue: QueueId, id: WorkloadId) -> bool {
    let held_millis = held_before(s, queue, id, Resources::ZERO);
    held_millis.saturating_add(GPU_MILLIS) <= s.fair()[&queue].gpu_millis
}

/// GPU thousandths that a queue holds without the places that a workload got in this cycle, and
/// without `given`.
fn held_before(s: &Session<'_>, queue: QueueId, id: WorkloadId, given: Resources) -> u64 {
    s.cluster.queues()[queue].held().saturating_sub(given + begun(s, id)).gpu_millis
}

/// Resources of the pods of a workload that had no place before this cycle.
fn begun(s: &Session<'_>, id: WorkloadId) -> Resources {
    let pods = s.cluster.workloads()[id].pods.iter();
    let new = pods.filter(|&&pod| s.cluster.original(pod).effective().is_none());
    let amounts = |&pod: &PodId| {
        let place = s.cluster.pods()[pod].binding.effective()?;
        Some(s.cluster.amounts(pod, place))
    };
    new.filter_map(amounts).sum()
}

/// Claim of a queue. Where it is less than the quota, its GPUs are rounded to the nearest whole
/// GPU, and a half down.
pub(crate) fn deserved(s: &Session<'_>, queue: QueueId) -> Resources {
    let (mut deserved, quota) = (claim(s, queue), quota(s, queue));
    let unit = Kind::Gpu.share_unit();
    if deserved.gpu_millis < quota.gpu_millis {
        deserved.gpu_millis = deserved.gpu_millis.saturating_add((unit - 1) / 2) / unit * unit;
    }
    deserved
}

/// Quota of a queue, or its fair share of a resource where that is less than the requested quota.
pub(crate) fn claim(s: &Session<'_>, queue: QueueId) -> Resources {
    let (mut claim, asked_for) = (quota(s, queue), quota_asked_for(s, queue));
    for kind in Kind::ALL {
        let fair = s.fair().get(&queue).map_or(u64::MAX, |fair| fair[kind]);
        if fair < asked_for[kind] {
            claim[kind] = fair;
        }
    }
    claim
}

impl Session<'_> {
    pub(crate) fn numbers(&self, id: QueueId, kind: Kind) -> QueueNumbers {
        let queue = &self.cluster.queues()[id];
        QueueNumbers {
            name: self.cluster.queue_name(id),
            kind,
            allocated: queue.allocated[kind],
            lent: queue.allocated[kind] - queue.held()[kind],
            quota: queue.share.quota[kind],
            fair_share: self.fair().get(&id).map_or(0, |share| share[kind]),
            is_claim: kind == Kind::Gpu && is_scaled(self, id),
        }
    }
}

/// `true` if the GPU claim of a queue is less than its quota, and a sibling has a fair share of
/// GPUs.
fn is_scaled(s: &Session<'_>, queue: QueueId) -> bool {
    let set_millis = quota(s, queue).gpu_millis;
    let gets = |id: &QueueId| s.fair().get(id).is_some_and(|fair| fair.gpu_millis > 0);
    set_millis < u64::MAX
        && claim(s, queue).gpu_millis < set_millis
        && s.siblings(queue).iter().any(gets)
}

/// Quota of a queue as it is set.
pub(crate) fn quota(s: &Session<'_>, queue: QueueId) -> Resources {
    s.cluster.queues()[queue].share.quota
}

/// Requested part of a quota, at most the limit.
fn quota_asked_for(s: &Session<'_>, queue: QueueId) -> Resources {
    let requested = s.known.entitlements.requested.get(&queue).copied().unwrap_or_default();
    quota(s, queue).min(requested).min(s.cluster.queues()[queue].share.limit)
}

/// `true` if the turn of `taker` has come: it is behind `giver` by at least one turn of its share.
pub(crate) fn is_next(s: &Session<'_>, taker: QueueId, giver: QueueId) -> bool {
    is_behind_by(s, taker, giver, s.fair().get(&taker).map_or(0, |fair| fair.gpu_millis))
}

/// `true` if `taker` is behind `giver` by at least one turn of so many GPU thousandths.
pub(crate) fn is_behind_by(s: &Session<'_>, taker: QueueId, giver: QueueId, millis: u64) -> bool {
    lead(s, taker, giver, millis).0 >= 0
}

/// Earliest time at which the turn of a queue comes that lacks a whole GPU of its claim, while a
/// sibling holds more than its own claim.
pub(crate) fn next_turn(s: &Session<'_>) -> Option<Instant> {
    let fair = |queue: QueueId| s.fair().get(&queue).map_or(0, |fair| fair.gpu_millis);
    let held = |queue: QueueId| s.cluster.queues()[queue].held().gpu_millis;
    let is_above =
        |&queue: &QueueId| held(queue) > fair(queue) && quota(s, queue).gpu_millis > fair(queue);
    let next = s.cluster.queues().ids().filter(is_above).flat_map(|giver| {
        let lacks = |taker: &QueueId| held(*taker) + GPU_MILLIS <= fair(*taker);
        let takers = s.siblings(giver).into_iter().filter(lacks);
        takers.filter_map(move |taker| {
            let (lead, gain) = lead(s, taker, giver, fair(taker));
            let wait_ms =
                (lead < 0 && gain > 0).then(|| lead.unsigned_abs().div_ceil(gain as u128));
            Some(s.now.plus_ms(u64::try_from(wait_ms?).unwrap_or(u64::MAX)))
        })
    });
    next.min()
}

/// Earliest time at which a queue, or one above it, is no longer behind a sibling by a turn of so
/// many GPU thousandths.
pub(crate) fn catches_up(s: &Session<'_>, queue: QueueId, millis: u64) -> Option<Instant> {
    let others = |own: QueueId| s.siblings(own).into_iter().map(move |other| (own, other));
    let ends = s.cluster.lineage(queue).flat_map(others).filter_map(|(own, other)| {
        let (lead, gain) = lead(s, own, other, millis);
        let wait_ms = (lead >= 0 && gain < 0).then(|| lead / -gain + 1)?;
        Some(s.now.plus_ms(u64::try_from(wait_ms).unwrap_or(u64::MAX)))
    });
    ends.min()
}

/// Lead of `taker` in being served next: the difference of both lags, each in milliseconds of its
/// own share, minus one turn of so many GPU thousandths; and the change of it per millisecond. Both
/// are multiplied by both shares.
fn lead(s: &Session<'_>, taker: QueueId, giver: QueueId, millis: u64) -> (i128, i128) {
    let (taker, giver) = (lag(s, taker), lag(s, giver));
    let fair = |lag: &Lag| i128::from(lag.fair_millis);
    let rate = |lag: &Lag| fair(lag) - i128::from(lag.held_millis);
    let difference =
        |taker_by: i128, giver_by: i128| taker_by * fair(&giver) - giver_by * fair(&taker);
    let turn = i128::from(s.policy.turn_ms) * i128::from(millis) * fair(&giver);
    let lags = difference(taker.at(s.now).into(), giver.at(s.now).into());
    (lags - turn, difference(rate(&taker), rate(&giver)))
}

/// `true` if a queue above its claim may lose `freed` for the claim of another: it keeps its claim,
/// or it has no turn.
pub(crate) fn may_lose(s: &Session<'_>, giver: QueueId, freed: Resources) -> bool {
    let left_millis = s.cluster.queues()[giver].held().gpu_millis.saturating_sub(freed.gpu_millis);
    left_millis >= deserved(s, giver).gpu_millis || turn_of(s, giver).is_none()
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

/// Ancestors (or selves) as of [`branches`], for two queues.
pub(crate) fn parting(s: &Session<'_>, own: QueueId, other: QueueId) -> Option<(QueueId, QueueId)> {
    let path = |queue: QueueId| s.cluster.lineage(queue).collect::<SmallVec<[QueueId; 8]>>();
    let (own, other) = (path(own), path(other));
    let mut levels = own.iter().rev().zip(other.iter().rev());
    levels.find(|(own, other)| own != other).map(|(&own, &other)| (own, other))
}
