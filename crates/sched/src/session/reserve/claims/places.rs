//! The earliest places of a waiting workload of any shape. Owns: the times when running work makes
//! room, and the choice of the work that has to end. The search is that of real placement: ending
//! pods are removed in a transaction, the pods are placed, and all of it is undone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{NodeId, Placement, PodBinding, PodId, PodMismatch, WorkloadId, fitting};
use units::{Instant, Resources};

use crate::entitlement::branches;
use crate::place::{self, PodRequirements};
use crate::precedence::is_all_below;
use crate::session::Session;
use crate::session::reserve::ReservationScope;
use crate::session::topology::{self, Free, Placer};

/// Time when work of unknown run time ends: after all known times.
pub(super) const SOME_DAY: Instant = Instant(u64::MAX);

/// Number of workloads whose ends are examined one by one.
const ENDS_TRIED: usize = 4;

/// The place of one pod, and the time when it is free.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) pod: PodId,
    pub(super) node: NodeId,
    /// Time when it is free.
    pub(super) at: Instant,
}

/// The places of the pods of a workload, and the pods that must be gone by then.
pub(super) type Found = (Vec<Place>, Vec<PodId>);

/// Room for one more pod, and the pods that have to end for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    /// Time when it is free.
    at: Instant,
    /// GPU thousandths on the node that have to be released first.
    drained_millis: u64,
    /// Number of pods on the node that have to end first.
    drained: usize,
    node: NodeId,
}

/// A pod that will make room.
#[derive(Debug, Clone)]
struct End {
    at: Instant,
    pod: PodId,
    place: Placement,
}

/// Pods that will make room, by node, in the order of their ends; nodes reserved for others are
/// left out.
type Ends = Rc<BTreeMap<NodeId, Vec<End>>>;

/// Gives pods the places that become free first, or last.
struct First {
    ends: Ends,
    gpus: Option<u32>,
    /// Latest end that counts.
    until: Instant,
    /// `true` if places that become free last are taken first: the fewest GPUs are idle until then.
    last: bool,
    found: Found,
    /// Numbers of places and of removed pods at the beginning of each nested attempt.
    begun: Vec<(usize, usize)>,
}

impl First {
    /// Pods that are still on a node and end in time.
    fn ends<'a>(
        &'a self,
        s: &'a Session<'_>,
        node: NodeId,
    ) -> impl Iterator<Item = &'a End> + use<'a> {
        let stands = |end: &&End| s.cluster.pods()[end.pod].binding.effective().is_some();
        let ends = self.ends.get(&node).map_or(&[][..], Vec::as_slice);
        ends.iter().take_while(|end| end.at <= self.until).filter(stands)
    }

    /// The places of one node, in the order in which they become free.
    fn slots(&self, s: &Session<'_>, ask: PodRequirements, id: NodeId, most: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        let row = &s.cluster.nodes()[id];
        let lets_in = s.cluster.check_pods(ask.constraints, id, false);
        if !self.ends.contains_key(&id)
            || !s.cluster.allows(ask.constraints, id)
            || lets_in == Err(PodMismatch::Affinity)
        {
            return slots;
        }
        let most = place::most_pods(s.cluster, ask, u32::try_from(most).unwrap_or(u32::MAX));
        let mut free: Vec<_> = row.gpus.iter().map(|gpu| (gpu, gpu.free_millis(false))).collect();
        let mut host = row.free(false);
        let mut pods = u64::from(row.pods_max.saturating_sub(row.pods_committed));
        let (mut at, mut drained_millis, mut drained) = (Instant::default(), 0, 0);
        let mut ends = self.ends(s, id).peekable();
        loop {
            // Any of the ending pods may be the one that rules the node out.
            if lets_in.is_ok() || ends.peek().is_none() {
                let fits = fitting(ask.request, host, pods.min(most), free.iter().copied());
                let slot = Slot { at, drained_millis, drained, node: id };
                slots.resize((fits as usize).max(slots.len()), slot);
            }
            let Some(end) = ends.next().filter(|_| (slots.len() as u64) < most) else {
                return slots;
            };
            for share in &end.place.devices {
                let (gpu, free) = &mut free[share.gpu as usize];
                *free = (*free + gpu.taken_by(share.millis)).min(gpu.capacity_millis());
            }
            let amounts = s.cluster.amounts(end.pod, &end.place);
            host += Resources { gpu_millis: 0, ..amounts };
            pods += 1;
            at = end.at;
            // A pod that gives way at once causes no wait.
            if at > Instant::default() {
                drained_millis += amounts.gpu_millis;
            }
            drained += 1;
        }
    }

    /// Takes a place, and removes all pods that have to be gone before.
    fn take(&mut self, s: &mut Session<'_>, pod: PodId, slot: Slot, gone: usize) -> bool {
        let Slot { node, at, .. } = slot;
        let leave: Vec<_> = self.ends(s, node).take(gone).map(|end| end.pod).collect();
        for other in leave {
            s.cluster.set_binding(other, PodBinding::default());
            self.found.1.push(other);
        }
        let ask = s.requirements(pod, self.gpus);
        let fill = s.policy.placement_in(s.cluster.nodes()[node].pool).devices;
        let Some(to) = place::on_node(s.cluster, node, ask, false, fill) else { return false };
        s.set_target(pod, Some(to), false);
        self.found.0.push(Place { pod, node, at });
        true
    }
}

impl Placer for First {
    fn ask(&self, s: &Session<'_>, pod: PodId) -> PodRequirements {
        s.requirements(pod, self.gpus)
    }

    fn room(&self, s: &Session<'_>, ask: PodRequirements, node: NodeId) -> (u32, u32) {
        let slots = self.slots(s, ask, node, usize::MAX);
        let now = slots.iter().filter(|slot| slot.drained == 0).count();
        let count = |slots: usize| u32::try_from(slots).unwrap_or(u32::MAX);
        (count(now), count(slots.len()))
    }

    fn effort_first(&self) -> bool {
        true
    }

    fn place(&mut self, s: &mut Session<'_>, pods: &[PodId], among: Option<&[NodeId]>) -> bool {
        let Some(&one) = pods.first() else { return true };
        let ask = self.ask(s, one);
        let all: Vec<_> = self.ends.keys().copied().filter(|_| among.is_none()).collect();
        let nodes = among.unwrap_or(&all).iter();
        let slots = nodes.flat_map(|&node| self.slots(s, ask, node, pods.len()));
        let mut slots: Vec<_> = slots.collect();
        if slots.len() < pods.len() {
            return false;
        }
        match self.last {
            false => slots.sort_unstable(),
            true => slots.sort_unstable_by(|left, right| right.cmp(left)),
        }
        let mut gone: BTreeMap<NodeId, usize> = BTreeMap::new();
        pods.iter().zip(slots).all(|(&pod, slot)| {
            let gone = gone.entry(slot.node).or_default();
            let before = std::mem::replace(gone, slot.drained.max(*gone));
            self.take(s, pod, slot, slot.drained.saturating_sub(before))
        })
    }

    fn begin(&mut self) {
        self.begun.push((self.found.0.len(), self.found.1.len()));
    }

    fn end(&mut self, _: &Session<'_>, kept: bool) {
        if let Some((places, gone)) = self.begun.pop().filter(|_| !kept) {
            self.found.0.truncate(places);
            self.found.1.truncate(gone);
        }
    }
}

impl Session<'_> {
    /// The places of a workload's next pods, those that are free first; `None` if it would have no
    /// place even after all ends. Also the places that become free last, if the workload can start
    /// there as early; where the time is not known, after the end of one workload.
    pub(super) fn first_places(
        &mut self,
        id: WorkloadId,
        gpus: Option<u32>,
    ) -> Option<(Found, Option<Found>)> {
        let ends = self.all_ends(id, gpus);
        let mut full = Vec::new();
        loop {
            let pods = self.next_pods_beside(id, &full);
            if pods.is_empty() {
                return None;
            }
            let places = self.places_until(id, &pods, gpus, (&ends, SOME_DAY, false));
            match places {
                Ok(places) => {
                    let first = self.earliest(id, &pods, gpus, &ends, places);
                    let last = self.latest(id, &pods, gpus, &ends, &first);
                    return Some((first, last));
                }
                // Another part may replace it.
                Err(set) => full.push(set),
            }
            if self.cluster.workloads()[id].pod_sets.len() == 1 {
                return None;
            }
        }
    }

    /// The earliest places, where several must fit together: the first found need not be the
    /// earliest, so the least time is searched.
    fn earliest(
        &mut self,
        id: WorkloadId,
        pods: &[PodId],
        gpus: Option<u32>,
        ends: &Ends,
        mut found: Found,
    ) -> Found {
        let workload = &self.cluster.workloads()[id];
        if workload.pod_sets.len() == 1 && !workload.spec.has_topology() {
            return found;
        }
        let last = found.0.iter().map(|place| place.at).max();
        let mut times: Vec<_> = ends.values().flatten().map(|end| end.at).collect();
        times.push(Instant::default());
        times.retain(|&at| Some(at) < last);
        times.sort_unstable();
        times.dedup();
        let (mut low, mut high) = (0, times.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.places_until(id, pods, gpus, (ends, times[middle], false)) {
                Ok(earlier) => (high, found) = (middle, earlier),
                Err(_) => low = middle + 1,
            }
        }
        found
    }

    /// The places that become free last, if they are free as early as the first ones. If that time
    /// is not known, the end of one workload must be enough: the largest one possible.
    fn latest(
        &mut self,
        id: WorkloadId,
        pods: &[PodId],
        gpus: Option<u32>,
        ends: &Ends,
        first: &Found,
    ) -> Option<Found> {
        let until = first.0.iter().map(|place| place.at).max().filter(|at| *at > self.now)?;
        if until < SOME_DAY {
            return self.places_until(id, pods, gpus, (ends, until, true)).ok();
        }
        let mut sizes: BTreeMap<WorkloadId, u64> = BTreeMap::new();
        for end in ends.values().flatten().filter(|end| end.at == SOME_DAY) {
            let size = sizes.entry(self.cluster.pods()[end.pod].workload).or_default();
            *size += end.place.gpu_millis();
        }
        let mut largest: Vec<_> =
            sizes.into_iter().map(|(one, size)| (Reverse(size), one)).collect();
        largest.sort_unstable();
        largest.into_iter().take(ENDS_TRIED).find_map(|(_, one)| {
            let ends_in_time =
                |end: &&End| end.at < SOME_DAY || self.cluster.pods()[end.pod].workload == one;
            let of_node = |(node, ends): (&NodeId, &Vec<End>)| {
                (*node, ends.iter().filter(ends_in_time).cloned().collect())
            };
            let ends = Rc::new(ends.iter().map(of_node).collect());
            self.places_until(id, pods, gpus, (&ends, SOME_DAY, true)).ok()
        })
    }

    /// Places for all these pods after the ends up to a time; or the pod set that finds none.
    fn places_until(
        &mut self,
        id: WorkloadId,
        pods: &[PodId],
        gpus: Option<u32>,
        (ends, until, last): (&Ends, Instant, bool),
    ) -> Result<Found, usize> {
        let start = self.cluster.checkpoint();
        let (found, begun) = (Found::default(), Vec::new());
        let mut first = First { ends: ends.clone(), gpus, until, last, found, begun };
        let placed = topology::place(self, &mut first, id, pods);
        self.cluster.rollback(start);
        match placed {
            Ok(()) => Ok(first.found),
            Err(set) => self.when_all_is_gone(id, pods, &first).ok_or(set),
        }
    }

    /// The places of the pods after all ends in time: the places that become free first may not fit
    /// together.
    fn when_all_is_gone(&mut self, id: WorkloadId, pods: &[PodId], first: &First) -> Option<Found> {
        let start = self.cluster.checkpoint();
        let ends = |node: NodeId| {
            let ends = first.ends.get(&node).map_or(&[][..], Vec::as_slice);
            ends.iter().take_while(|end| end.at <= first.until)
        };
        for end in first.ends.keys().flat_map(|&node| ends(node)) {
            self.cluster.set_binding(end.pod, PodBinding::default());
        }
        let respected = Some(ReservationScope::All);
        let mut free = Free { gpus: first.gpus, respected };
        let placed = topology::place(self, &mut free, id, pods);
        let place = |&pod: &PodId| {
            let node = self.cluster.pods()[pod].binding.effective()?.node;
            let at = ends(node).last().map_or(Instant::default(), |end| end.at);
            Some(Place { pod, node, at })
        };
        let places = placed.ok().and_then(|()| pods.iter().map(place).collect::<Option<Vec<_>>>());
        self.cluster.rollback(start);
        let places = places?;
        let nodes: BTreeSet<_> = places.iter().map(|place| place.node).collect();
        let gone = nodes.into_iter().flat_map(ends).map(|end| end.pod).collect();
        Some((places, gone))
    }

    /// Times when running work makes room for a workload, on every node not reserved for another.
    fn all_ends(&self, holder: WorkloadId, gpus: Option<u32>) -> Ends {
        let asked = self.ask(holder, gpus);
        let kept = |node| self.reservations.kept.iter().any(|kept| kept.claims.cover(node));
        let nodes = self.cluster.nodes().iter().filter(|(id, _)| !kept(*id));
        let ends = nodes.map(|(id, node)| {
            let end = |&pod: &PodId| {
                let place = self.cluster.pods()[pod].binding.effective()?;
                let at = self.ends(pod, holder, asked).filter(|_| place.node == id)?;
                Some(End { at, pod, place: place.clone() })
            };
            let mut ends: Vec<_> = node.pods.iter().filter_map(end).collect();
            ends.sort_by_key(|end| (end.at, end.pod));
            (id, ends)
        });
        Rc::new(ends.collect())
    }

    /// `true` if the holder may take this pod: of some workloads of its own queue only pods above
    /// the minimum are less important.
    fn may_be_taken(&self, pod: PodId, holder: WorkloadId) -> bool {
        let cluster = &self.cluster;
        let (id, set) = (cluster.pods()[pod].workload, cluster.pods()[pod].set as usize);
        let workload = &cluster.workloads()[id];
        let has_place = |pod: &PodId| cluster.pods()[*pod].binding.effective().is_some();
        let before = workload.pods_of(set).iter().take_while(|other| **other != pod);
        branches(self, id, holder).is_some()
            || is_all_below(self, holder, id)
            || before.copied().filter(has_place).count()
                >= workload.spec.pod_sets[set].pods_min as usize
    }

    /// Time when a pod will have made room for the holder; `None` if that cannot be expected.
    fn ends(&self, pod: PodId, holder: WorkloadId, asked: Resources) -> Option<Instant> {
        let id = self.cluster.pods()[pod].workload;
        let workload = &self.cluster.workloads()[id];
        if id == holder {
            return None;
        }
        if self.gives_way_now(id, holder, asked) && self.may_be_taken(pod, holder) {
            return Some(Instant::default());
        }
        if let Some(limit_ms) = workload.spec.time_limit_ms {
            let start = workload.last_start.unwrap_or(self.now);
            return Some(start.plus_ms(limit_ms).max(self.now));
        }
        // Non-preemptible or more important work may stay for ever.
        let above = branches(self, id, holder).is_none()
            && workload.spec.priority > self.cluster.workloads()[holder].spec.priority;
        (workload.spec.preemptible && !above).then_some(SOME_DAY)
    }
}
