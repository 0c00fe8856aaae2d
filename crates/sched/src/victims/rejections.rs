//! Units that need not be tried again in an attempt. Owns: scope and duration of a rejection.
//!
//! If a queue may not lose a unit, it may not lose a larger one or more important work either, as
//! long as it uses no more and the taker's side no less ([`super::Rule::just`]). The taker's side
//! does change: after evictions in the taker's department, the department may be entitled to more.

use std::collections::{BTreeMap, BTreeSet};

use model::{NodeId, QueueId, WorkloadId};
use smallvec::SmallVec;
use units::{Kind, Resources};

use super::{EvictionUnit, EvictionUnits, Need, freed, unit_priority};
use crate::entitlement::{branches, deserved, lineage_below};
use crate::session::Session;

/// Units that were rejected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rejections {
    /// Rejections by the queue that would have lost the unit.
    queues: BTreeMap<QueueId, Vec<Rejection>>,
    /// Rejections after others on the node were evicted, which have no meaning on other nodes.
    here: BTreeMap<(NodeId, EvictionUnit), Holdings>,
    /// The only possible victims, if as many are involved as allowed; `None` for no restriction.
    only: Option<BTreeSet<WorkloadId>>,
}

/// Rejects all units at least this large and this important, after at least this much was taken.
#[derive(Debug, Clone)]
struct Rejection {
    priority: u32,
    taken: Resources,
    freed: Resources,
    holdings: Holdings,
}

impl Rejection {
    /// `true` if it includes another rejection, and is newer.
    fn covers(&self, other: &Self) -> bool {
        self.priority <= other.priority
            && self.freed.fits_in(other.freed)
            && self.taken.fits_in(other.taken)
    }
}

/// Resources of both sides at the rejection.
#[derive(Debug, Clone)]
struct Holdings {
    giver: QueueId,
    /// Resources of the giver.
    held: Resources,
    /// Resources that the taker's queues would have used, from its own to the sibling of the giver.
    would_hold: SmallVec<[Resources; 2]>,
}

impl Rejections {
    /// Records the rejection of a unit that frees `freed`, after `taken`, which was returned.
    pub(super) fn piece(
        &mut self,
        s: &Session<'_>,
        need: &Need,
        (victim, unit): (WorkloadId, EvictionUnit),
        (mut taken, mut freed): (Resources, Resources),
    ) {
        let holdings = Holdings::now(s, need, victim);
        let quota = deserved(s, holdings.giver);
        // How far it is below its quota does not matter; nor do resources that are not requested.
        let no_matter =
            |kind: &Kind| need.asked[*kind] == 0 || holdings.held[*kind] <= quota[*kind];
        for kind in Kind::ALL.into_iter().filter(no_matter) {
            (taken[kind], freed[kind]) = (0, 0);
        }
        let priority = unit_priority(s, victim, unit);
        let new = Rejection { priority, taken, freed, holdings };
        let alike = self.queues.entry(s.queue_of(victim)).or_default();
        alike.retain(|old| !new.covers(old));
        alike.push(new);
    }

    /// Records the rejection of a unit after others on its node were evicted.
    pub(super) fn here(
        &mut self,
        s: &Session<'_>,
        need: &Need,
        at: (NodeId, WorkloadId, EvictionUnit),
    ) {
        let (node, victim, eviction_unit) = at;
        self.here.insert((node, eviction_unit), Holdings::now(s, need, victim));
    }

    /// `true` if a unit is known to be rejected, after these resources were taken from work of its
    /// queue that is as important.
    pub(super) fn knows(
        &self,
        s: &Session<'_>,
        need: &Need,
        (victim, unit): (WorkloadId, EvictionUnit),
        (taken, freed): (Resources, Resources),
    ) -> bool {
        let priority = unit_priority(s, victim, unit);
        let alike = self.queues.get(&s.queue_of(victim)).into_iter().flatten();
        alike.into_iter().any(|alike| {
            alike.priority <= priority
                && alike.freed.fits_in(freed)
                && alike.taken.fits_in(taken)
                && alike.holdings.holds(s, need)
        })
    }

    /// Excludes all workloads except these.
    pub(super) fn all_but(&mut self, givers: BTreeSet<WorkloadId>) {
        self.only = Some(givers);
    }

    /// Removes the first of a workload's units on a node known to be rejected, and all after it.
    pub(super) fn cut(
        &self,
        s: &Session<'_>,
        need: &Need,
        (node, victim): (NodeId, WorkloadId),
        eviction_units: &mut EvictionUnits,
    ) {
        let is_known = eviction_units.first().is_some_and(|&first| {
            self.knows(s, need, (victim, first), (Resources::ZERO, freed(s, first)))
        });
        let involved = self.only.as_ref().is_none_or(|only| only.contains(&victim));
        if !involved || is_known {
            eviction_units.clear();
        }
        if !self.here.is_empty() {
            let rejections = |eviction_unit: &EvictionUnit| {
                self.here
                    .get(&(node, *eviction_unit))
                    .is_some_and(|holdings| holdings.holds(s, need))
            };
            eviction_units.truncate(
                eviction_units.iter().position(rejections).unwrap_or(eviction_units.len()),
            );
        }
    }

    /// Drops the rejections that hold no longer; returns `true` if there were any.
    pub(super) fn forgive(&mut self, s: &Session<'_>, need: &Need) -> bool {
        let count = |all: &Self| all.here.len() + all.queues.values().map(Vec::len).sum::<usize>();
        let before = count(self);
        self.here.retain(|_, holdings| holdings.holds(s, need));
        for alike in self.queues.values_mut() {
            alike.retain(|alike| alike.holdings.holds(s, need));
        }
        count(self) < before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.here.is_empty() && self.queues.is_empty() && self.only.is_none()
    }
}

impl Holdings {
    fn now(s: &Session<'_>, need: &Need, victim: WorkloadId) -> Self {
        let (taker, giver) = match branches(s, need.id, victim) {
            Some((taker, giver)) => (Some(taker), giver),
            None => (None, s.queue_of(victim)),
        };
        let held = s.cluster.queues()[giver].held();
        let own = taker.map(|taker| lineage_below(s, s.queue_of(need.id), taker));
        let would_hold = own.into_iter().flatten().map(|queue| would_hold(s, need, queue));
        Self { giver, held, would_hold: would_hold.collect() }
    }

    fn holds(&self, s: &Session<'_>, need: &Need) -> bool {
        let own = s.cluster.lineage(s.queue_of(need.id));
        s.cluster.queues()[self.giver].held().fits_in(self.held)
            && own
                .zip(&self.would_hold)
                .all(|(queue, then)| then.fits_in(would_hold(s, need, queue)))
    }
}

/// Resources that a queue would use if all that is still requested were placed.
fn would_hold(s: &Session<'_>, need: &Need, queue: QueueId) -> Resources {
    s.cluster.queues()[queue].held() + need.asked
}
