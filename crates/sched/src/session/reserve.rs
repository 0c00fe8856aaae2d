//! Reservations for the first workloads that cannot start, so that small work does not starve a
//! large gang. Owns: the choice of workloads with a reservation, and of those that it binds. Does
//! not know about: the places it covers; that is [`claims`].
//!
//! Nothing is stored: each cycle recomputes the reservations from the state. They are stable
//! nevertheless: the places are those with the shortest wait, and no bound workload is placed
//! there, so the places of the last cycle are at least as good as they were, and others are chosen
//! only if they are better. The wait becomes shorter with every end, which bounds both the wait and
//! the time for which a place is idle.

mod claims;

use std::collections::BTreeMap;

use model::{Placement, PodId, PoolId, QueueId, Share, WorkloadId};
use units::{Instant, Kind, Resources};

use crate::entitlement::{
    beyond_share, branches, catches_up, deserved, is_above_share, is_behind_by, may_hold_alone,
    not_entitled, parting, turn_ends,
};
use crate::knowledge::QuietCycle;
use crate::precedence::{gives_way_to, is_next_below};
use crate::session::{Blocked, Session};
use crate::{Profile, rank};
use claims::Claims;
use model::equivalence_class::{EquivalenceClass, is_elastic};
use reasons::Pending;

/// Number of candidates examined for each possible reservation.
pub(crate) const TRIES: usize = 4;

/// The reservations of a cycle.
#[derive(Default)]
pub(crate) struct Reservations {
    /// Workloads that get a reservation, in order, with the reason why each has no place. Its
    /// places are computed when another workload is about to take one: until then none is needed.
    due: Vec<Due>,
    kept: Vec<Reservation>,
    /// Workloads that would have a place without a reservation.
    behind: BTreeMap<EquivalenceClass, Pending>,
}

/// A reservation to be made.
struct Due {
    id: WorkloadId,
    /// The first pool in which it could not start.
    pool: Option<PoolId>,
    queue: QueueId,
    blocked: Blocked,
}

/// Room reserved for one workload.
struct Reservation {
    id: WorkloadId,
    /// The queue that will be charged: that of the pool with the reservation.
    queue: QueueId,
    /// Sum of the requests of its pods.
    asked: Resources,
    claims: Claims,
    /// Less room, which is kept from other queues as long as its queue is not far behind them.
    lean: Option<Claims>,
}

/// Reservations that a placement respects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservationScope {
    /// All reservations of others.
    All,
    /// Reservations that bind the workload.
    Binding,
}

impl Reservations {
    /// The reservation that makes workloads of a class wait.
    pub(crate) fn before(&self, class: &EquivalenceClass) -> Option<&Pending> {
        self.behind.get(class)
    }
}

impl Session<'_> {
    /// Makes a reservation due for a workload that found no place in its turn, if it has waited
    /// long enough and could start at all.
    pub(crate) fn reserve(&mut self, id: WorkloadId, blocked: Blocked) {
        let known = &self.reservations.due;
        if known.len() >= self.policy.reservations_max.saturating_mul(TRIES)
            || known.iter().any(|due| due.id == id)
            || self.reservations.kept.iter().any(|kept| kept.id == id)
        {
            return;
        }
        // A workload that can never start gets no reservation.
        if self.has_started(id) || !self.could_start(id, self.ask(id, self.least_size(id))) {
            return;
        }
        let due = self.waits_since(id).plus_ms(self.policy.reserve_after_ms);
        if due <= self.now {
            let (pool, queue) = (self.pool_of(id), self.queue_of(id));
            self.reservations.due.push(Due { id, pool, queue, blocked });
        } else {
            self.wake(due);
        }
    }

    /// `true` if a waiting workload may be due for a reservation, if none exists. In a class whose
    /// first workload was never evicted, no other has waited longer.
    pub(crate) fn may_be_due(&self) -> bool {
        let mut first = self.known.rows().filter_map(|(_, row)| row.members.first());
        first.any(|&(_, id)| {
            self.cluster.workloads()[id].last_eviction.is_some()
                || self.waits_since(id).plus_ms(self.policy.reserve_after_ms) <= self.now
        })
    }

    /// `true` if another workload gets a reservation before this workload may take anything.
    pub(crate) fn is_reservation_due(&self, id: WorkloadId) -> bool {
        let mut due = self.reservations.due.iter();
        due.any(|due| {
            due.id != id
                && !self.has_started(due.id)
                && self.competes(id, due.queue)
                && !self.goes_before(id, (due.queue, due.id))
        })
    }

    /// Makes the reservations that are due.
    pub(crate) fn keep_room(&mut self) {
        for due in std::mem::take(&mut self.reservations.due) {
            let reservation = super::pools::within(self, due.id, due.pool, |s| s.reservation(&due));
            self.reservations.kept.extend(reservation);
        }
    }

    /// The smallest size with which an elastic workload starts; `None` for others.
    fn least_size(&self, id: WorkloadId) -> Option<u32> {
        is_elastic(&self.cluster.workloads()[id].spec).then_some(1)
    }

    fn reservation(&mut self, due: &Due) -> Option<Reservation> {
        let Due { id, queue, .. } = *due;
        let gpus = self.least_size(id);
        let asked = self.ask(id, gpus);
        if self.reservations.kept.len() >= self.policy.reservations_max
            || self.has_started(id)
            || !self.could_start(id, asked + self.held_above(id))
        {
            return None;
        }
        let (claims, lean) = match due.blocked {
            // Its queue must use less first; its places are chosen then.
            Blocked::Queue => (Claims::default(), None),
            Blocked::Room => self.claims(id, gpus)?,
        };
        Some(Reservation { id, queue, asked, claims, lean })
    }

    /// `true` if a workload would be charged to queues of the same pool as this one.
    fn competes(&self, id: WorkloadId, queue: QueueId) -> bool {
        self.division_of(id) == self.cluster.queues()[queue].pool
    }

    /// The summary of a decision that changed nothing; `None` if the next may differ nevertheless.
    /// `earlier`: the summary before, if this decision considered only new classes.
    pub(crate) fn rests(&self, earlier: Option<QuietCycle>) -> Option<QuietCycle> {
        let cut = self.stats.exhausted || matches!(self.policy.profile, Profile::Kai(_));
        let kept = self.is_room_kept() || !self.reservations.behind.is_empty();
        let before = earlier.map_or((0, 0), |quiet| (quiet.trials, quiet.due));
        // Elastic work grows at the cost of others once their guaranteed time has ended.
        let by_time = !self.cluster.elastic().is_empty() && self.guarantees_time();
        (!cut && !kept && !by_time).then(|| QuietCycle {
            revision: 0,
            wake_at: self.wake_at,
            trials: before.0 + self.stats.trials,
            due: before.1 + self.reservations.due.len(),
        })
    }

    /// `true` if the state is known to have no free place for a waiting pod. The search for several
    /// pods may have been cut short.
    pub(crate) fn is_known_full(&self, id: WorkloadId, pods: usize) -> bool {
        self.full_at == Some(self.cluster.state_revision())
            && !self.is_room_kept()
            && pods == 1
            && !self.cluster.workloads()[id].spec.has_topology()
    }

    /// `true` if there is any reservation.
    pub(crate) fn is_room_kept(&self) -> bool {
        !self.reservations.kept.is_empty()
    }

    /// Withdraws reservations of workloads that have started in another of their pools; returns
    /// `true` if that kept any workload waiting.
    pub(crate) fn withdraw_reservations(&mut self) -> bool {
        let mut kept = std::mem::take(&mut self.reservations.kept);
        let before = kept.len();
        kept.retain(|kept| !self.has_started(kept.id));
        self.reservations.kept = kept;
        let withdrawn = self.reservations.kept.len() < before;
        withdrawn && !std::mem::take(&mut self.reservations.behind).is_empty()
    }

    /// `true` if all pods that must start together have a place.
    fn has_started(&self, id: WorkloadId) -> bool {
        let workload = &self.cluster.workloads()[id];
        workload.enough(|set| workload.pod_sets[set].placed)
    }

    /// `true` if limit, quota and fair share have room for a request at every level; the fair share
    /// is [`may_hold_alone`]. A preemptible workload of a queue that holds less than that may use
    /// all the capacity that is not guaranteed to siblings, since the queue gets a turn.
    fn could_start(&self, id: WorkloadId, asked: Resources) -> bool {
        let spec = &self.cluster.workloads()[id].spec;
        let mut left = self.cluster.capacity_of(self.division_of(id));
        self.cluster.lineage(self.queue_of(id)).all(|queue| {
            let row = &self.cluster.queues()[queue];
            left = left.saturating_sub(self.guaranteed_beside(queue));
            let mut most = may_hold_alone(self, queue);
            if spec.preemptible && row.held().gpu_millis < most.gpu_millis {
                most = most.max(left);
            }
            most = most.min(row.share.limit);
            if !spec.preemptible {
                most = most.min(row.share.quota);
            }
            asked.fits_in(most)
        })
    }

    /// Guaranteed and requested resources of the siblings of a queue.
    fn guaranteed_beside(&self, queue: QueueId) -> Resources {
        let guaranteed = |sibling: QueueId| {
            let requested = self.known.entitlements.requested.get(&sibling).copied();
            deserved(self, sibling).min(requested.unwrap_or_default())
        };
        self.siblings(queue).into_iter().map(guaranteed).sum()
    }

    /// Resources of more important work in its queue, which is not expected to end.
    fn held_above(&self, id: WorkloadId) -> Resources {
        let workload = |id: WorkloadId| &self.cluster.workloads()[id];
        let spec = &workload(id).spec;
        let above = self.workloads_in(self.queue_of(id)).filter(|&other| {
            workload(other).placed > 0 && workload(other).spec.priority > spec.priority
        });
        let pods = above.flat_map(|other| &workload(other).pods);
        let held = pods.filter_map(|&pod| {
            let place = self.cluster.pods()[pod].binding.effective()?;
            Some(self.cluster.amounts(pod, place))
        });
        held.sum()
    }

    /// `true` if no respected reservation forbids a place to a pod.
    pub(crate) fn is_open(&self, pod: PodId, respected: ReservationScope, to: &Placement) -> bool {
        let amounts = self.cluster.amounts(pod, to);
        let id = self.cluster.pods()[pod].workload;
        let leave_room = |claims: &Claims| claims.leave_room(self.cluster, to, amounts);
        self.respected_reservations(id, respected).all(|kept| {
            let lean = || kept.lean.as_ref().filter(|_| respected == ReservationScope::Binding);
            leave_room(&kept.claims)
                || lean().is_some_and(|lean| leave_room(lean) && self.is_lent(kept, id))
        })
    }

    /// Earliest time at which more of the kept room may be lent.
    pub(crate) fn next_loan(&self) -> Option<Instant> {
        let lean = self.reservations.kept.iter().filter(|kept| kept.lean.is_some());
        lean.filter_map(|kept| catches_up(self, kept.queue, kept.asked.gpu_millis)).min()
    }

    /// `true` if a workload of another queue may use room that the holder does not need yet: the
    /// queue of the holder is not far behind.
    fn is_lent(&self, kept: &Reservation, id: WorkloadId) -> bool {
        let paths = parting(self, kept.queue, self.queue_of(id));
        let is_far = |(own, other)| is_behind_by(self, own, other, kept.asked.gpu_millis);
        paths.is_some_and(|paths| !is_far(paths))
    }

    /// `true` if room may be made for a workload on a node.
    pub(crate) fn may_clear(&self, id: WorkloadId, node: model::NodeId) -> bool {
        self.respected_reservations(id, ReservationScope::Binding)
            .all(|kept| !kept.claims.cover(node))
    }

    /// `true` if the limits of its queues have room for a workload and for those that have a
    /// reservation before it.
    pub(crate) fn leaves_headroom(&self, id: WorkloadId, asked: Resources) -> bool {
        let spec = |id: WorkloadId| &self.cluster.workloads()[id].spec;
        self.respected_reservations(id, ReservationScope::Binding).all(|kept| {
            let own = |queue: &QueueId| {
                self.cluster.lineage(self.queue_of(id)).any(|other| other == *queue)
            };
            self.cluster.lineage(kept.queue).filter(own).all(|queue| {
                let queue = &self.cluster.queues()[queue];
                let fixed = !spec(id).preemptible && !spec(kept.id).preemptible;
                Kind::ALL.into_iter().filter(|&kind| asked[kind] > 0).all(|kind| {
                    let both = asked[kind].saturating_add(kept.asked[kind]);
                    let within = |held: u64, most: u64| held.saturating_add(both) <= most;
                    within(queue.allocated[kind], queue.share.limit[kind])
                        && (!fixed
                            || within(
                                queue.allocated_non_preemptible[kind],
                                queue.share.quota[kind],
                            ))
                })
            })
        })
    }

    /// Requests of workloads that have a reservation in its own queue and go before it: they use
    /// the share of the queue first.
    pub(crate) fn reserved_before(&self, id: WorkloadId) -> Resources {
        let queue = self.queue_of(id);
        let own = self
            .respected_reservations(id, ReservationScope::Binding)
            .filter(|kept| kept.queue == queue);
        own.map(|kept| kept.asked).sum()
    }

    /// Records that a workload has no place because of a reservation.
    pub(crate) fn note_behind(&mut self, id: WorkloadId) {
        let Some(kept) = self.respected_reservations(id, ReservationScope::Binding).next() else {
            return;
        };
        let behind = Pending::BehindReservation {
            holder: self.reference(kept.id),
            since: self.waits_since(kept.id),
            gpu_millis: kept.asked.gpu_millis,
            starts_at: kept.claims.starts_at(),
        };
        self.reservations.behind.insert(EquivalenceClass::of(self.cluster, id), behind);
    }

    fn respected_reservations(
        &self,
        id: WorkloadId,
        respected: ReservationScope,
    ) -> impl Iterator<Item = &Reservation> {
        self.reservations.kept.iter().filter(move |kept| {
            let stands =
                kept.id != id && !self.has_started(kept.id) && self.competes(id, kept.queue);
            stands && (respected == ReservationScope::All || self.binds(kept, id))
        })
    }

    /// A reservation binds all workloads except those that go before its holder, those known to end
    /// before it starts, and those that would give way to it at once.
    fn binds(&self, kept: &Reservation, id: WorkloadId) -> bool {
        !self.goes_before(id, (kept.queue, kept.id))
            && !self.ends_in_time(id, kept)
            && !self.would_give_way(id, kept)
    }

    fn goes_before(&self, id: WorkloadId, (queue, other): (QueueId, WorkloadId)) -> bool {
        let outranks =
            |left, right| rank::by_rank(self.cluster, left) < rank::by_rank(self.cluster, right);
        let own = self.queue_of(id);
        let Some((own_side, theirs)) = parting(self, own, queue) else {
            return outranks(id, other);
        };
        // The position of its queue in the order is that of the first workload in it.
        let is_first =
            self.reservations.kept.iter().all(|kept| {
                kept.queue != own || self.has_started(kept.id) || !outranks(kept.id, id)
            });
        is_first && self.shares().before((own_side, id), (theirs, other))
    }

    fn ends_in_time(&self, id: WorkloadId, kept: &Reservation) -> bool {
        let limit_ms = self.cluster.workloads()[id].spec.time_limit_ms;
        let ends = limit_ms.map(|ms| self.now.plus_ms(ms));
        ends.zip(kept.claims.starts_at()).is_some_and(|(ends, starts)| ends <= starts)
    }

    /// `true` if a workload without a place could be stopped for the holder as soon as it had one:
    /// no time is lost if it runs until then.
    fn would_give_way(&self, id: WorkloadId, kept: &Reservation) -> bool {
        let workload = &self.cluster.workloads()[id];
        let own = self.queue_of(id);
        let guaranteed = |what: fn(&Share) -> Option<u64>| self.guaranteed_ms(own, what) > 0;
        match parting(self, kept.queue, own) {
            None => {
                is_next_below(self, kept.id, id)
                    && !guaranteed(|share| share.preempt_min_runtime_ms)
            }
            Some((_, giver)) => {
                workload.spec.preemptible
                    && !guaranteed(|share| share.reclaim_min_runtime_ms)
                    && beyond_share(self, kept.queue, kept.asked).is_none()
                    && is_above_share(self, giver, kept.asked, self.ask(id, None))
            }
        }
    }

    /// `true` if a running workload can be stopped for another at once.
    fn gives_way_now(&self, victim: WorkloadId, id: WorkloadId, asked: Resources) -> bool {
        match branches(self, id, victim) {
            None => {
                gives_way_to(self, id, victim)
                    && self.safe_until(victim, |share| share.preempt_min_runtime_ms) <= self.now
            }
            Some((_, giver)) => {
                self.can_give_way(victim)
                    && self.safe_until(victim, |share| share.reclaim_min_runtime_ms) <= self.now
                    && not_entitled(self, id, asked).is_none()
                    && is_above_share(self, giver, asked, Resources::ZERO)
                    && turn_ends(self, giver, victim).is_none()
            }
        }
    }
}
