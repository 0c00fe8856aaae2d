//! Reclaims resources that other queues use above their share. Owns: the conditions of reclaim.
//! Source: Run:ai reference D.3b "may it reclaim", scheduling reference §15.

use std::collections::BTreeSet;

use model::{QueueId, WorkloadId};
use units::{Kind, Resources};

use super::preempt::{Preempt, preempted};
use crate::entitlement::{
    beyond, beyond_share, branches, claim, deserved, is_next, lacks_a_gpu, lineage_below, may_hold,
    may_lose, quota, turn_ends, within,
};
use crate::precedence::gives_way_to;
use crate::session::Session;
use crate::victims::{
    EvictionUnit, EvictionUnits, LargestWorkloads, Rule, above_minimum_while_safe, freed,
    unit_priority,
};
use reasons::{Cause, Strategy};

pub(crate) struct Reclaim;

impl Rule for Reclaim {
    fn may_evict(&self, s: &Session<'_>, id: WorkloadId, asked: Resources) -> bool {
        self.could_evict(s, id, asked, Resources::ZERO)
    }

    fn could_evict(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        given: Resources,
    ) -> bool {
        let queue = s.queue_of(id);
        let held = s.cluster.queues()[queue].held().saturating_sub(given);
        beyond(held, asked + s.reserved_before(id), may_hold(s, queue, id, given)).is_none()
    }

    fn is_victim(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        let queue = |id: WorkloadId| s.queue_of(id);
        s.can_give_way(victim) && queue(victim) != queue(id)
    }

    /// Less important work of its own queue counts against the entitlement, so it gives way first.
    /// Below a queue that is at its limit other queues give way, as far as that is just.
    fn own_gives_way(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> bool {
        gives_way_to(s, id, victim) || self.is_victim(s, id, victim)
    }

    fn fair_outcome(&self, s: &Session<'_>, id: WorkloadId, _: Resources) -> bool {
        let (row, queue) = (&s.cluster.workloads()[id], s.queue_of(id));
        let (asked, most) = (row.demand(), may_hold(s, queue, id, Resources::ZERO));
        let held = s.cluster.queues()[queue].held();
        Kind::ALL.into_iter().all(|kind| asked[kind] == 0 || held[kind] <= most[kind])
    }

    fn spares_the_entitled(&self) -> bool {
        true
    }

    fn frees_at_most(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        largest_workloads: &mut LargestWorkloads,
    ) -> Resources {
        let most = |giver| gives_at_most(s, giver, asked, largest_workloads);
        givers(s, id, asked, most).1
    }

    fn givers(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
    ) -> Option<BTreeSet<QueueId>> {
        // An upper bound of the amount, found at once.
        let most = |giver: QueueId| s.cluster.queues()[giver].preemptible_held();
        Some(givers(s, id, asked, most).0)
    }

    fn eviction_units(&self, s: &Session<'_>, id: WorkloadId, victim: WorkloadId) -> EvictionUnits {
        if s.queue_of(victim) == s.queue_of(id) {
            return Preempt.eviction_units(s, id, victim);
        }
        above_minimum_while_safe(s, victim, |share| share.reclaim_min_runtime_ms)
    }

    /// Three rights, checked where the two paths in the tree part. A queue that stays within its
    /// quota takes from one above its quota, even if that one falls below it: workloads are
    /// indivisible, and the quota is guaranteed. Where quotas exceed the capacity, a queue that
    /// stays within its claim takes from one above its claim, and work that is partly within a
    /// claim gives way by turn. A queue that stays within its fair share takes from one above its
    /// fair share, but nothing within the quota of that one, and its least important work first;
    /// without this, two queues with large gangs take the same GPUs from each other for ever (found
    /// by random histories).
    fn just(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        victim: WorkloadId,
        eviction_unit: EvictionUnit,
    ) -> bool {
        // Shares do not matter inside its own queue.
        let Some((taker, giver)) = branches(s, id, victim) else { return true };
        // Above the point where the paths part the use does not change; below it, every level of
        // the taker's side must be entitled.
        let leaf = s.queue_of(id);
        let below = || lineage_below(s, leaf, taker);
        let held = |queue: QueueId| s.cluster.queues()[queue].held();
        let may_take = |queue: QueueId| {
            beyond(held(queue), asked, may_hold(s, queue, id, Resources::ZERO)).is_none()
        };
        if !below().all(may_take) {
            return false;
        }
        if by_quota(s, id, asked, (taker, giver), freed(s, eviction_unit)) {
            return true;
        }
        let priority = unit_priority(s, victim, eviction_unit);
        let (freed, less) = (freed(s, eviction_unit), held_below(s, victim, priority));
        let kinds = || Kind::ALL.into_iter().filter(|&kind| asked[kind] > 0);
        // The surplus of a queue is its least important work: more important work within its share
        // is not taken for another's share. Otherwise two queues that lack different resources take
        // from each other for ever, one the GPUs, the other the cores (found by random histories).
        // The rule holds at every level: work within the share of a project is not the surplus of
        // its department, or else it takes that back from its siblings, and so on for ever.
        let is_its_turn =
            matches!(eviction_unit, EvictionUnit::All(_)) && turn_ends(s, giver, victim).is_some();
        !is_its_turn
            && below().all(|queue| beyond_share(s, queue, asked).is_none())
            && lineage_below(s, s.queue_of(victim), giver).all(|queue| {
                let (left, without_less) =
                    (held(queue).saturating_sub(freed), held(queue).saturating_sub(less));
                let (fair, quota) = (s.fair()[&queue], deserved(s, queue));
                kinds().any(|kind| {
                    without_less[kind] > fair[kind].max(quota[kind])
                        && (left[kind] >= quota[kind] || !s.policy.protects_quota)
                })
            })
    }

    fn cause(
        &self,
        s: &Session<'_>,
        id: WorkloadId,
        asked: Resources,
        victim: WorkloadId,
    ) -> Cause {
        if gives_way_to(s, id, victim) || s.queue_of(victim) == s.queue_of(id) {
            return preempted(s, id, victim);
        }
        let queue = |id: WorkloadId| s.queue_of(id);
        let (winner, loser) = branches(s, id, victim).unwrap_or_else(|| (queue(id), queue(victim)));
        let (held, fair) = (s.cluster.queues()[loser].held(), s.fair()[&loser]);
        let above = |most: Resources| {
            Kind::ALL.into_iter().find(|&kind| asked[kind] > 0 && held[kind] > most[kind])
        };
        let is_within = |most: fn(&Session<'_>, QueueId) -> Resources| {
            lineage_below(s, queue(id), winner).all(|queue| within(s, queue, asked, most(s, queue)))
        };
        let by_claim = above(deserved(s, loser)).filter(|_| is_within(deserved));
        let by_quota = || above(deserved(s, loser)).filter(|_| is_within(quota));
        let by_share = || above(fair.max(deserved(s, loser)));
        let (strategy, kind) = match by_claim.or_else(by_quota) {
            Some(kind) => (Strategy::QuotaGuaranteed, kind),
            None => (Strategy::FairShareMaintained, by_share().unwrap_or(Kind::Gpu)),
        };
        Cause::Reclaimed {
            strategy,
            beneficiary: s.reference(id),
            requested: asked[kind],
            loser: s.numbers(loser, kind),
            winner: s.numbers(winner, kind),
            lost: s.lost(victim),
        }
    }
}

/// `true` if a queue takes by quota: it stays within its quota, and takes from one above its quota;
/// or, where quotas exceed the capacity, from one above its claim, for its own claim or by turn.
fn by_quota(
    s: &Session<'_>,
    id: WorkloadId,
    asked: Resources,
    (taker, giver): (QueueId, QueueId),
    freed: Resources,
) -> bool {
    let is_within = |most: fn(&Session<'_>, QueueId) -> Resources| {
        lineage_below(s, s.queue_of(id), taker).all(|queue| within(s, queue, asked, most(s, queue)))
    };
    let held = s.cluster.queues()[giver].held();
    let is_above = |most: Resources| {
        Kind::ALL.into_iter().any(|kind| asked[kind] > 0 && held[kind] > most[kind])
    };
    if !is_within(quota) {
        return false;
    }
    let is_claimed = || is_within(deserved) && is_above(deserved(s, giver));
    let may_cross =
        |queue: QueueId| within(s, queue, asked, deserved(s, queue)) || lacks_a_gpu(s, queue, id);
    let may_turn =
        || lineage_below(s, s.queue_of(id), taker).all(may_cross) && is_next(s, taker, giver);
    is_above(quota(s, giver))
        || (is_above(claim(s, giver)) && may_lose(s, giver, freed) && (is_claimed() || may_turn()))
}

/// Queues beside the taker's path that may all give, and the maximum amount that they give
/// together. A queue gives as long as it holds more than its claim, and, where the taker's side
/// would exceed its quota, more than its share, on every level down to the work that gives way. The
/// last piece may be as large as its largest workload. Amounts given below a level reduce the
/// holdings of that level, so it may be entitled to take from its own siblings only then.
fn givers(
    s: &Session<'_>,
    id: WorkloadId,
    asked: Resources,
    mut at_most: impl FnMut(QueueId) -> Resources,
) -> (BTreeSet<QueueId>, Resources) {
    let is_one_set = s.cluster.workloads()[id].spec.pod_sets.len() == 1;
    let (mut all, mut most, mut within_quota) = (BTreeSet::new(), Resources::ZERO, true);
    for queue in s.cluster.lineage(s.queue_of(id)) {
        let held = s.cluster.queues()[queue].held().saturating_sub(most);
        // With several pod sets, the request of one may be within the entitlement.
        if is_one_set && beyond(held, asked, may_hold(s, queue, id, most)).is_some() {
            break;
        }
        within_quota &= (held + asked).fits_in(quota(s, queue));
        for giver in s.siblings(queue) {
            if !within_quota {
                most += surplus(s, giver, asked, &mut at_most, &mut all);
            } else if is_over_quota(s, giver, asked) {
                most += at_most(giver);
                all.insert(giver);
            }
        }
    }
    (all, most)
}

/// Maximum amount that a queue gives up of its surplus. Adds the leaf queues with a surplus at
/// every level to `from`.
fn surplus(
    s: &Session<'_>,
    giver: QueueId,
    asked: Resources,
    at_most: &mut impl FnMut(QueueId) -> Resources,
    from: &mut BTreeSet<QueueId>,
) -> Resources {
    if !has_surplus(s, giver, asked) {
        return Resources::ZERO;
    }
    let children = &s.cluster.queues()[giver].children;
    if children.is_empty() {
        from.insert(giver);
        return at_most(giver);
    }
    let below = children.iter().map(|&child| surplus(s, child, asked, at_most, from)).sum();
    at_most(giver).min(below)
}

/// `true` if a queue holds more than its claim of a requested resource.
fn is_over_quota(s: &Session<'_>, giver: QueueId, asked: Resources) -> bool {
    let (held, quota) = (s.cluster.queues()[giver].held(), claim(s, giver));
    Kind::ALL.into_iter().any(|kind| asked[kind] > 0 && held[kind] > quota[kind])
}

/// `true` if a queue uses more than its quota and its share of a requested resource.
fn has_surplus(s: &Session<'_>, giver: QueueId, asked: Resources) -> bool {
    let held = s.cluster.queues()[giver].held();
    let most = s.fair()[&giver].max(deserved(s, giver));
    Kind::ALL.into_iter().any(|kind| asked[kind] > 0 && held[kind] > most[kind])
}

fn gives_at_most(
    s: &Session<'_>,
    giver: QueueId,
    asked: Resources,
    largest_workloads: &mut LargestWorkloads,
) -> Resources {
    let row = &s.cluster.queues()[giver];
    let (held, claim) = (row.held(), claim(s, giver));
    let mut over =
        Kind::ALL.into_iter().filter(|&kind| asked[kind] > 0 && held[kind] > claim[kind]);
    let Some(kind) = over.next() else { return Resources::ZERO };
    let mut most = row.preemptible_held();
    // Above its share in one resource only, it stops giving when that surplus is used up.
    if over.next().is_none() && most != Resources::ZERO {
        let lent_millis = if kind == Kind::Gpu { row.lent_gpu_millis } else { 0 };
        let beyond = held[kind] - claim[kind] - 1 + lent_millis;
        most[kind] =
            most[kind].min(beyond.saturating_add(largest_workloads.largest(s, giver)[kind]));
    }
    most
}

/// Preemptible resources of less important work in the queue of a workload.
fn held_below(s: &Session<'_>, id: WorkloadId, priority: u32) -> Resources {
    let tiers = s.cluster.queues()[s.queue_of(id)].preemptible.range(..priority);
    tiers.map(|(_, tier)| tier.held).sum()
}
