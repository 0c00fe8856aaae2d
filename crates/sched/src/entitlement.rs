//! Shares of queues, and the point where the paths of two of them part. Owns: comparing use and
//! request with quota and fair share. Does not know about: victims.

use model::{Lag, PodId, QueueId, WorkloadId};
use smallvec::SmallVec;
use units::{GPU_MILLIS, Instant, Kind, Resources};

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

/// The lag of a queue as of this cycle: a turn may have begun in it.
fn lag(s: &Session<'_>, queue: QueueId) -> Lag {
    let row = &s.cluster.queues()[queue];
    // A pool that has gone is divided no more.
    let fair = s.fair().get(&queue).copied().unwrap_or_default();
    row.lag.followed(s.now, fair.gpu_millis, row.held().gpu_millis).unwrap_or(row.lag)
}

/// Until when a workload is not stopped for the share of others than its own queue: the end of the turn
/// of `giver`, if the workload is larger than the share of that queue.
pub(crate) fn turn_ends(s: &Session<'_>, giver: QueueId, victim: WorkloadId) -> Option<Instant> {
    let ends = turn_of(s, giver)?;
    let fair_millis = s.fair()[&giver].gpu_millis;
    (freed(s, EvictionUnit::All(victim)).gpu_millis > fair_millis).then_some(ends)
}

/// When the turn of a queue ends, if it has one.
pub(crate) fn turn_of(s: &Session<'_>, queue: QueueId) -> Option<Instant> {
    let ends = lag(s, queue).turn_since?.plus_ms(s.policy.turn_ms);
    Some(ends).filter(|ends| *ends > s.now)
}

/// What a queue may come to hold for a workload that takes from others: its share. Work comes in lumps, so
/// one that holds less than that without the workload, and without so much that gives way, may come to
/// hold its quota where that is worth less than it is set to.
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

/// What a queue may come to hold if it holds nothing else.
pub(crate) fn may_hold_alone(s: &Session<'_>, queue: QueueId) -> Resources {
    let mut most = s.fair()[&queue];
    if most.gpu_millis > 0 {
        most.gpu_millis = most.gpu_millis.max(quota_asked_for(s, queue).gpu_millis);
    }
    most
}

/// True if a queue lacks a whole GPU of its claim without a workload.
pub(crate) fn lacks_a_gpu(s: &Session<'_>, queue: QueueId, id: WorkloadId) -> bool {
    let held_millis = held_before(s, queue, id, Resources::ZERO);
    held_millis.saturating_add(GPU_MILLIS) <= s.fair()[&queue].gpu_millis
}

/// GPU thousandths that a queue holds without those that a workload holds since this cycle, and without
/// so much that gives way.
fn held_before(s: &Session<'_>, queue: QueueId, id: WorkloadId, given: Resources) -> u64 {
    s.cluster.queues()[queue].held().saturating_sub(given + begun(s, id)).gpu_millis
}

/// What pods of a workload hold that held nothing before this cycle.
fn begun(s: &Session<'_>, id: WorkloadId) -> Resources {
    let pods = s.cluster.workloads()[id].pods.iter();
    let new = pods.filter(|&&pod| s.cluster.original(pod).effective().is_none());
    let amounts = |&pod: &PodId| {
        let place = s.cluster.pods()[pod].binding.effective()?;
        Some(s.cluster.amounts(pod, place))
    };
    new.filter_map(amounts).sum()
}

/// The quota as far as it can be honoured: where the quotas promise more than there is, a claim, of
/// GPUs to the nearest whole one.
pub(crate) fn deserved(s: &Session<'_>, queue: QueueId) -> Resources {
    let (mut deserved, quota) = (claim(s, queue), quota(s, queue));
    let unit = Kind::Gpu.share_unit();
    if deserved.gpu_millis < quota.gpu_millis {
        deserved.gpu_millis = deserved.gpu_millis.saturating_add((unit - 1) / 2) / unit * unit;
    }
    deserved
}

/// The quota, or where the quotas promise more than there is the fair share, which is less.
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

/// True if the GPU quota of a queue is worth less than it is set to, as others have quotas, too.
pub(crate) fn is_scaled(s: &Session<'_>, queue: QueueId) -> bool {
    let set_millis = quota(s, queue).gpu_millis;
    let gets = |id: &QueueId| s.fair().get(id).is_some_and(|fair| fair.gpu_millis > 0);
    set_millis < u64::MAX
        && claim(s, queue).gpu_millis < set_millis
        && s.siblings(queue).iter().any(gets)
}

/// The quota as it is set.
pub(crate) fn quota(s: &Session<'_>, queue: QueueId) -> Resources {
    s.cluster.queues()[queue].share.quota
}

/// The part of a quota that is asked for.
fn quota_asked_for(s: &Session<'_>, queue: QueueId) -> Resources {
    let requested = s.known.entitlements.requested.get(&queue).copied().unwrap_or_default();
    quota(s, queue).min(requested).min(s.cluster.queues()[queue].share.limit)
}

/// True if a queue has lacked so much more of its share than another that its turn has come.
pub(crate) fn is_next(s: &Session<'_>, taker: QueueId, giver: QueueId) -> bool {
    lead(s, taker, giver).0 >= 0
}

/// When the next turn of a queue comes that lacks a whole GPU of its claim, while another holds more than its
/// own.
pub(crate) fn next_turn(s: &Session<'_>) -> Option<Instant> {
    let fair = |queue: QueueId| s.fair().get(&queue).map_or(0, |fair| fair.gpu_millis);
    let held = |queue: QueueId| s.cluster.queues()[queue].held().gpu_millis;
    let is_above =
        |&queue: &QueueId| held(queue) > fair(queue) && quota(s, queue).gpu_millis > fair(queue);
    let next = s.cluster.queues().ids().filter(is_above).flat_map(|giver| {
        let lacks = |taker: &QueueId| held(*taker) + GPU_MILLIS <= fair(*taker);
        let takers = s.siblings(giver).into_iter().filter(lacks);
        takers.filter_map(move |taker| {
            let (lead, gain) = lead(s, taker, giver);
            let wait_ms =
                (lead < 0 && gain > 0).then(|| lead.unsigned_abs().div_ceil(gain as u128));
            Some(s.now.plus_ms(u64::try_from(wait_ms?).unwrap_or(u64::MAX)))
        })
    });
    next.min()
}

/// How much more of its share than another, and than one turn, a queue has lacked, and how much more that
/// becomes each millisecond: milliseconds times both shares.
fn lead(s: &Session<'_>, taker: QueueId, giver: QueueId) -> (i128, i128) {
    let (taker, giver) = (lag(s, taker), lag(s, giver));
    let fair = |lag: &Lag| i128::from(lag.fair_millis);
    let rate = |lag: &Lag| fair(lag) - i128::from(lag.held_millis);
    let difference =
        |taker_by: i128, giver_by: i128| taker_by * fair(&giver) - giver_by * fair(&taker);
    let turn = i128::from(s.policy.turn_ms) * fair(&taker) * fair(&giver);
    let lags = difference(taker.at(s.now).into(), giver.at(s.now).into());
    (lags - turn, difference(rate(&taker), rate(&giver)))
}

/// True if a queue above its claim may lose a piece of its work for the claim of another: work that is
/// partly within the claim has a turn.
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

/// As [`branches`], for two queues.
pub(crate) fn parting(s: &Session<'_>, own: QueueId, other: QueueId) -> Option<(QueueId, QueueId)> {
    let path = |queue: QueueId| s.cluster.lineage(queue).collect::<SmallVec<[QueueId; 8]>>();
    let (own, other) = (path(own), path(other));
    let mut levels = own.iter().rev().zip(other.iter().rev());
    levels.find(|(own, other)| own != other).map(|(&own, &other)| (own, other))
}
