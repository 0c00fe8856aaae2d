//! The cost of room for one pod on one node. Owns: the smallest sufficient set of the node's pods
//! to evict. Reads the state, changes nothing.

use std::cmp::{Ordering, Reverse};

use model::{DeviceShare, Gpu, GpuRequest, NodeId, PodId, PodMismatch, QueueId, WorkloadId};
use smallvec::SmallVec;
use units::{GPU_MILLIS, Ratio, Resources};

use super::eviction_cost::{EvictionCost, Top, importance_of, loss};
use super::eviction_units::{part_of, unit_priority};
use super::{EvictionUnit, Need, PreemptionAttempt, Rejections, Rule};
use crate::place;
use crate::session::Session;

/// A node's cost, and the victims it is for.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) cost: EvictionCost,
    /// Victims, and the number of units of each.
    pub(crate) victims: Chosen<WorkloadId>,
}

/// Victims, with the number of units of each.
type Chosen<T> = SmallVec<[(T, usize); 8]>;

/// A node after the eviction of some units.
#[derive(Clone)]
struct Room {
    free_millis: SmallVec<[u64; 8]>,
    host: Resources,
    /// Number of pods that the node still accepts.
    pods: u32,
    /// Number of pods that conflict with the pod to place.
    conflicting: u32,
}

impl Room {
    fn take(&mut self, piece: &Piece) {
        for &(at, millis) in &piece.devices {
            self.free_millis[at] += millis;
        }
        self.host += piece.host;
        self.pods = self.pods.saturating_add(piece.pods);
        self.conflicting -= piece.conflicting;
    }

    fn give_back(&mut self, piece: &Piece) {
        for &(at, millis) in &piece.devices {
            self.free_millis[at] -= millis;
        }
        self.host -= piece.host;
        self.pods -= piece.pods;
        self.conflicting += piece.conflicting;
    }
}

/// A possible victim.
struct Candidate {
    id: WorkloadId,
    queue: QueueId,
    /// Priority of its first unit.
    priority: u32,
    seq: u64,
    entitled: bool,
    saturation: Ratio,
    /// Effect of its first n units, for every n from 1.
    pieces: SmallVec<[Piece; 1]>,
}

/// Resources that some units of a victim free on this node, and their total cost.
#[derive(PartialEq, Eq)]
struct Piece {
    devices: SmallVec<[(usize, u64); 2]>,
    host: Resources,
    pods: u32,
    conflicting: u32,
    cost: EvictionCost,
}

impl Piece {
    /// No resources, at this cost.
    fn of(cost: EvictionCost) -> Self {
        let (devices, host) = (SmallVec::new(), Resources::ZERO);
        Self { devices, host, pods: 0, conflicting: 0, cost }
    }

    fn gpu_millis(&self) -> u64 {
        self.devices.iter().map(|(_, millis)| millis).sum()
    }
}

impl Candidate {
    fn whole(&self) -> Option<&Piece> {
        self.pieces.last()
    }

    /// `true` if it is equivalent to another: of such candidates the first by rank is enough.
    fn like(&self, other: &Self) -> bool {
        let same = |(l, r): (&Piece, &Piece)| {
            (l.gpu_millis(), l.conflicting) == (r.gpu_millis(), r.conflicting)
                && l.cost.same_loss(&r.cost)
        };
        (self.queue, self.priority, self.pieces.len())
            == (other.queue, other.priority, other.pieces.len())
            && self.pieces.iter().zip(&other.pieces).all(same)
    }

    /// `true` if it frees equal resources, on any devices.
    fn interchangeable(&self, other: &Self) -> bool {
        let ([own], [others]) = (self.pieces.as_slice(), other.pieces.as_slice()) else {
            return false;
        };
        let whole = |piece: &Piece| piece.devices.iter().all(|&(_, millis)| millis == GPU_MILLIS);
        whole(own)
            && whole(others)
            && (own.devices.len(), own.host, own.pods)
                == (others.devices.len(), others.host, others.pods)
    }
}

/// The cheapest way to make room for the pod of an attempt on this node; `None` if there is none.
pub(super) fn node(
    s: &Session<'_>,
    attempt: &mut PreemptionAttempt<'_>,
    id: NodeId,
    rejections: &Rejections,
) -> Option<Offer> {
    let need = attempt.need;
    if !s.cluster.allows(need.ask.constraints, id) || !s.may_clear(need.id, id) {
        return None;
    }
    let conflicting = match s.cluster.check_pods(need.ask.constraints, id, false) {
        Ok(()) => Vec::new(),
        Err(PodMismatch::Affinity) => return None,
        Err(_) => attempt.conflicting.on(s.cluster, need.ask.constraints, id),
    };
    let row = &s.cluster.nodes()[id];
    let free_millis = row.gpus.iter().map(|gpu| gpu.free_millis(false)).collect();
    let pods = row.pods_max.saturating_sub(row.pods_committed);
    let in_the_way = u32::try_from(conflicting.len()).unwrap_or(u32::MAX);
    let room = Room { free_millis, host: row.free(false), pods, conflicting: in_the_way };
    let divided = row.gpus.iter().any(|gpu| gpu.is_instance() || !gpu.in_service);
    let mut search =
        Search { s, need: &need, node: id, divided, room, candidates: Vec::new(), best: None };
    if search.fits() {
        return Some(Offer { cost: EvictionCost::NOTHING, victims: Chosen::new() });
    }
    let asked = asked(s, attempt, id, &conflicting);
    if conflicting.is_empty() && !search.could_fit(&asked) {
        return None;
    }
    search.candidates = candidates(s, attempt, (id, asked), rejections, &conflicting);
    search.in_order(0..search.candidates.len());
    // If all of them are not enough, no subset is.
    search.best.as_ref()?;
    search.each_alone();
    if !search.any_will_do() && search.is_wasteful() {
        let mut visits = VISITS_MAX;
        search.every_set(0, EvictionCost::NOTHING, &mut Chosen::new(), &mut visits);
    }
    let Search { candidates, best, .. } = search;
    best.map(|(cost, chosen)| {
        let victims = chosen.into_iter().map(|(at, pieces)| (candidates[at].id, pieces)).collect();
        Offer { cost, victims }
    })
}

/// Maximum number of sets of a node's candidates that are tried: all of nine, or the first of more.
const VISITS_MAX: u32 = 512;

/// The search on one node.
struct Search<'a> {
    s: &'a Session<'a>,
    need: &'a Need,
    node: NodeId,
    /// `true` if a device is a MIG instance, or out of service: then not only amounts count.
    divided: bool,
    room: Room,
    /// Possible victims, in the order of eviction.
    candidates: Vec<Candidate>,
    best: Option<(EvictionCost, Chosen<usize>)>,
}

impl Search<'_> {
    fn fits(&self) -> bool {
        let request = &self.need.ask.request;
        let host = Resources { gpu_millis: 0, ..request.resources(1) };
        let room = &self.room;
        if room.pods == 0
            || room.conflicting > 0
            || !host.fits_in(Resources { gpu_millis: u64::MAX, ..room.host })
        {
            return false;
        }
        place::fits_on(request.gpu, self.gpus())
    }

    /// `true` if there would be room after evicting all of these on the node: most nodes are
    /// excluded by this before any cost is computed.
    fn could_fit(&mut self, asked: &[WorkloadId]) -> bool {
        let mut all = Piece::of(EvictionCost::NOTHING);
        for &pod in &self.s.cluster.nodes()[self.node].pods {
            if asked.contains(&self.s.cluster.pods()[pod].workload) {
                free_pod(self.s, self.node, pod, 0, &mut all);
            }
        }
        self.room.take(&all);
        let fits = self.fits();
        self.room.give_back(&all);
        fits
    }

    /// The devices of the node, and the free thousandths of each.
    fn gpus(&self) -> impl Iterator<Item = (&Gpu, u64)> + Clone {
        let gpus = &self.s.cluster.nodes()[self.node].gpus;
        gpus.iter().zip(self.room.free_millis.iter().copied())
    }

    fn piece(&self, (at, pieces): (usize, usize)) -> &Piece {
        &self.candidates[at].pieces[pieces - 1]
    }

    fn offer(&mut self, chosen: &Chosen<usize>) {
        let costs = chosen.iter().map(|&one| self.piece(one).cost);
        let cost = costs.fold(EvictionCost::NOTHING, EvictionCost::and);
        if self.best.as_ref().is_none_or(|(best, _)| cost < *best) {
            self.best = Some((cost, chosen.clone()));
        }
    }

    /// Takes from one after the other until there is room, then returns what was not needed.
    fn in_order(&mut self, candidates: std::ops::Range<usize>) {
        let before = self.room.clone();
        let mut chosen = Chosen::new();
        let mut enough = false;
        for at in candidates {
            for pieces in 1..=self.candidates[at].pieces.len() {
                if pieces > 1 {
                    self.room.give_back(&self.candidates[at].pieces[pieces - 2]);
                }
                self.room.take(&self.candidates[at].pieces[pieces - 1]);
                enough = self.fits();
                if enough {
                    chosen.push((at, pieces));
                    break;
                }
            }
            if enough {
                break;
            }
            chosen.push((at, self.candidates[at].pieces.len()));
        }
        let mut at = 0;
        while enough && chosen.len() > 1 && at < chosen.len() {
            let (who, pieces) = chosen[at];
            self.room.give_back(&self.candidates[who].pieces[pieces - 1]);
            if self.fits() {
                chosen.remove(at);
            } else {
                self.room.take(&self.candidates[who].pieces[pieces - 1]);
                at += 1;
            }
        }
        if enough {
            self.offer(&chosen);
        }
        self.room = before;
    }

    /// Tries each candidate alone: one may free what several smaller ones, first by rank, do.
    fn each_alone(&mut self) {
        for at in 0..self.candidates.len() {
            let before = at.checked_sub(1).filter(|_| !self.divided);
            let known = before.is_some_and(|it| self.candidates[at].like(&self.candidates[it]));
            if !known {
                self.in_order(at..at + 1);
            }
        }
    }

    /// `true` if only the number of candidates matters: then the first by rank are the best.
    fn any_will_do(&self) -> bool {
        matches!(self.need.ask.request.gpu, GpuRequest::Whole(1..))
            && !self.divided
            && self.room.conflicting == 0
            && self.candidates.windows(2).all(|two| two[0].interchangeable(&two[1]))
    }

    /// `true` if the best so far loses more than the minimum, or all of a workload where some have
    /// pods above their minimum.
    fn is_wasteful(&self) -> bool {
        let missing_millis = missing_millis(self.need.ask.request.gpu, self.gpus());
        self.best.as_ref().is_some_and(|(cost, _)| {
            let has_spare = || self.candidates.iter().any(|one| one.pieces.len() > 1);
            // Each one alone was tried, so two are the fewest.
            cost.interrupted > 1
                || cost.asked > 2
                || cost.exceeds(missing_millis)
                || (cost.top.ends && has_spare())
        })
    }

    /// Tries every set of units that is cheaper than the best so far, as long as `visits` last.
    fn every_set(
        &mut self,
        from: usize,
        cost: EvictionCost,
        chosen: &mut Chosen<usize>,
        visits: &mut u32,
    ) {
        for at in from..self.candidates.len() {
            for pieces in 1..=self.candidates[at].pieces.len() {
                let Some(left) = visits.checked_sub(1) else { return };
                *visits = left;
                let with = cost.and(self.piece((at, pieces)).cost);
                if self.best.as_ref().is_some_and(|(best, _)| with >= *best) {
                    continue;
                }
                chosen.push((at, pieces));
                self.room.take(&self.candidates[at].pieces[pieces - 1]);
                if self.fits() {
                    self.best = Some((with, chosen.clone()));
                } else {
                    self.every_set(at + 1, with, chosen, visits);
                }
                self.room.give_back(&self.candidates[at].pieces[pieces - 1]);
                chosen.pop();
            }
        }
    }
}

/// Minimum GPU thousandths that pods have to lose on devices with these free amounts. For an
/// instance that is all that its pod is charged for, whatever the request.
pub(super) fn missing_millis<'a>(
    request: GpuRequest,
    gpus: impl Iterator<Item = (&'a Gpu, u64)> + Clone,
) -> u64 {
    let missing = |part: GpuRequest| {
        let short = gpus.clone().filter_map(|(gpu, free)| {
            let lacks = part.needs_of(gpu)?.saturating_sub(free);
            Some(if gpu.part.is_some() && lacks > 0 { gpu.committed_millis } else { lacks })
        });
        let mut short: SmallVec<[u64; 8]> = short.collect();
        short.sort_unstable();
        short.iter().take(part.devices() as usize).sum::<u64>()
    };
    request.parts().map(missing).sum()
}

/// Possible victims on this node, in id order.
fn asked(
    s: &Session<'_>,
    attempt: &PreemptionAttempt<'_>,
    node: NodeId,
    conflicting: &[PodId],
) -> SmallVec<[WorkloadId; 8]> {
    let here = s.cluster.nodes()[node].pods.iter().chain(conflicting);
    let here = here.map(|&pod| s.cluster.pods()[pod].workload);
    let mut ids: SmallVec<[WorkloadId; 8]> = here.filter(|id| *id != attempt.need.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| attempt.asks(s, *id, node));
    ids
}

/// The victims with costs: the least important first, of equals the cheapest, then the youngest.
fn candidates(
    s: &Session<'_>,
    attempt: &PreemptionAttempt<'_>,
    (node, asked): (NodeId, SmallVec<[WorkloadId; 8]>),
    rejections: &Rejections,
    conflicting: &[PodId],
) -> Vec<Candidate> {
    let (rule, need) = (attempt.rule, &attempt.need);
    let mut candidates: Vec<Candidate> = Vec::with_capacity(asked.len());
    for id in asked {
        let workload = &s.cluster.workloads()[id];
        let queue = s.queue_of(id);
        let mut eviction_units = rule.eviction_units(s, need.id, id);
        if !rejections.is_empty() {
            rejections.cut(s, need, (node, id), &mut eviction_units);
        }
        if eviction_units.is_empty() {
            continue;
        }
        // Candidates of one queue are often adjacent.
        let known = candidates.last().filter(|other| other.queue == queue);
        let (entitled, saturation) = known.map_or_else(
            || {
                let entitled = rule.spares_the_entitled() && !s.shares().over_share(queue);
                (entitled, s.saturation(queue))
            },
            |other| (other.entitled, other.saturation),
        );
        let mut candidate = Candidate {
            id,
            queue,
            priority: unit_priority(s, id, eviction_units[0]),
            seq: workload.spec.seq,
            entitled,
            saturation,
            pieces: SmallVec::new(),
        };
        candidate.pieces = pieces(s, rule, need, node, &candidate, &eviction_units, conflicting);
        let frees = |all: &Piece| !all.devices.is_empty() || all.pods > 0 || all.conflicting > 0;
        if candidate.whole().is_some_and(frees) {
            candidates.push(candidate);
        }
    }
    let spares = rule.spares_the_entitled();
    let fairness = |c: &Candidate| spares.then_some((c.entitled, Reverse(c.saturation)));
    let lost = |c: &Candidate| c.whole().map(|all| all.cost.lost());
    candidates.sort_by(|l, r| {
        let key = |c: &Candidate| (c.priority, lost(c), Reverse(c.seq));
        let of_queues = || fairness(l).cmp(&fairness(r));
        let queues = if l.queue == r.queue { Ordering::Equal } else { of_queues() };
        queues.then_with(|| key(l).cmp(&key(r)))
    });
    candidates
}

/// The resources freed on this node by the first n units, and their cost, for every n.
fn pieces(
    s: &Session<'_>,
    rule: &dyn Rule,
    need: &Need,
    node: NodeId,
    candidate: &Candidate,
    eviction_units: &[EvictionUnit],
    conflicting: &[PodId],
) -> SmallVec<[Piece; 1]> {
    let workload = &s.cluster.workloads()[candidate.id];
    let own = s.queue_of(need.id);
    let stays = rule.moves_max(s).is_some();
    fn count<T>(pods: &[T]) -> u32 {
        u32::try_from(pods.len()).unwrap_or(u32::MAX)
    }
    let mut shrunk: SmallVec<[(PodId, usize); 2]> = SmallVec::new();
    let mut stopped: SmallVec<[PodId; 2]> = SmallVec::new();
    let mut all = SmallVec::with_capacity(eviction_units.len());
    for (at, &eviction_unit) in eviction_units.iter().enumerate() {
        match eviction_unit {
            EvictionUnit::Shrink(pod, gpus) => {
                match shrunk.iter_mut().find(|(other, _)| *other == pod) {
                    Some(entry) => entry.1 = gpus,
                    None => shrunk.push((pod, gpus)),
                }
            }
            EvictionUnit::One(pod) => stopped.push(pod),
            EvictionUnit::Part(id, part) => {
                let pods = part_of(s, id, part);
                stopped.retain(|pod| !pods.contains(pod));
                stopped.extend(pods);
            }
            EvictionUnit::All(_) => {
                shrunk.clear();
                stopped = SmallVec::from_slice(&workload.pods);
            }
        }
        let ends = matches!(eviction_unit, EvictionUnit::All(_));
        let importance = if stays { 0 } else { importance_of(s, candidate.id, eviction_unit) };
        let (lost, taken_millis) = loss(s, candidate.id, &eviction_units[..=at]);
        let mut piece = Piece::of(EvictionCost {
            entitled: u32::from(candidate.entitled),
            top: Top::of(importance, ends, lost),
            interrupted: u32::from(stays),
            lost,
            asked: 1,
            restarts: if ends { workload.placed } else { count(&stopped) + count(&shrunk) },
            taken_millis,
            foreign: u32::from(candidate.queue != own),
            saturation: Reverse(candidate.saturation.coarse()),
            seq: Reverse(candidate.seq),
        });
        for &pod in &stopped {
            free_pod(s, node, pod, 0, &mut piece);
            piece.conflicting += u32::from(conflicting.binary_search(&pod).is_ok());
        }
        for &(pod, gpus) in &shrunk {
            if !stopped.contains(&pod) {
                free_pod(s, node, pod, gpus, &mut piece);
            }
        }
        all.push(piece);
    }
    all
}

/// Adds the resources freed here if the pod keeps its first `gpus` devices; 0 stops it.
fn free_pod(s: &Session<'_>, node: NodeId, pod: PodId, gpus: usize, piece: &mut Piece) {
    let Some(place) = s.cluster.pods()[pod].binding.effective() else { return };
    if place.node != node {
        return;
    }
    let row = &s.cluster.nodes()[node];
    let kept = place::kept(row, place, gpus);
    let devices = place.devices.iter().filter(|share| !kept.contains(share));
    let frees = |share: &DeviceShare| {
        let at = share.gpu as usize;
        (at, row.gpus[at].taken_by(share.millis))
    };
    piece.devices.extend(devices.map(frees));
    if gpus == 0 {
        piece.host += s.cluster.amounts(pod, place);
        piece.pods += 1;
    }
}
