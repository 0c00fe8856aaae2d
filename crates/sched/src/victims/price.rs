//! What it costs to make room for one pod on one node. Owns: the smallest set of the node's pods
//! whose going is enough. Reads the state, changes nothing.

use std::cmp::Reverse;

use model::{NodeId, PodId, QueueId, WorkloadId};
use units::{GPU_MILLIS, Ratio, Resources};

use super::{Need, Price, Refused, Rule, Taking, freed};
use crate::session::Session;

/// A node's price and what it is made of.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) price: Price,
    /// Who has to give way, and how many pieces.
    pub(crate) victims: Vec<(WorkloadId, usize)>,
}

/// A node as it would be if some pieces were taken.
#[derive(Clone)]
struct Room {
    free_millis: Vec<u64>,
    host: Resources,
    /// Pods that may still come.
    pods: u32,
}

/// One who may be asked, with its pieces and what the first so many of them free here.
struct Candidate {
    id: WorkloadId,
    /// `after[n]` = what `n + 1` pieces free here.
    after: Vec<Vec<Freed>>,
    queue: QueueId,
    priority: u32,
    seq: u64,
}

impl Candidate {
    /// Whether a younger one of the same kind makes looking at this one alone needless.
    fn like(&self, other: &Self) -> bool {
        let millis = |candidate: &Self| -> Vec<u64> {
            let pieces = candidate.after.iter();
            pieces.map(|freed| freed.iter().map(|f| f.gpu_millis()).sum()).collect()
        };
        (self.queue, self.priority) == (other.queue, other.priority)
            && millis(self) == millis(other)
    }
}

/// What a piece frees on this node.
#[derive(Clone, Copy)]
enum Freed {
    Gpu {
        at: usize,
        millis: u64,
    },
    /// The pod goes, and with it its CPU and memory.
    Pod(Resources),
}

impl Freed {
    const fn gpu_millis(self) -> u64 {
        match self {
            Self::Gpu { millis, .. } => millis,
            Self::Pod(_) => 0,
        }
    }
}

/// The cheapest way to make room for one pod of `need` on this node; none if there is none.
pub(super) fn node(
    s: &Session<'_>,
    rule: &dyn Rule,
    need: &Need,
    id: NodeId,
    refused: &Refused,
) -> Option<Offer> {
    if !s.cluster.allows(need.ask.constraints, id) {
        return None;
    }
    let row = &s.cluster.nodes()[id];
    let free_millis = row.gpus.iter().map(|gpu| gpu.free_millis(false)).collect();
    let pods = row.pods_max.saturating_sub(row.pods_committed);
    let room = Room { free_millis, host: row.free(false), pods };
    if fits(s, need, id, &room) {
        return Some(Offer { price: price(s, rule, need, &[]), victims: Vec::new() });
    }
    let candidates = candidates(s, rule, need, id, refused);
    let mut best: Option<Offer> = None;
    let offer = |best: &mut Option<Offer>, chosen: Option<Vec<(usize, usize)>>| {
        let Some(chosen) = chosen else { return };
        let victims: Vec<_> = chosen.iter().map(|&(at, n)| (candidates[at].id, n)).collect();
        let price = price(s, rule, need, &victims);
        if best.as_ref().is_none_or(|best| price < best.price) {
            *best = Some(Offer { price, victims });
        }
    };
    offer(&mut best, in_order(s, need, id, &room, &candidates));
    // The order by rank may begin with small ones that a single larger one makes needless.
    for at in 0..candidates.len() {
        if at > 0 && candidates[at].like(&candidates[at - 1]) {
            continue;
        }
        let one = in_order(s, need, id, &room, &candidates[at..=at]);
        offer(&mut best, one.map(|one| vec![(at, one[0].1)]));
    }
    // Both lose more than is missing: perhaps another set fits better.
    if let Some(lost_millis) = best.as_ref().map(|best| best.price.lost_millis)
        && lost_millis > missing_millis(s, need, id, &room)
        && candidates.len() <= EXHAUSTIVE_MAX
    {
        offer(&mut best, best_set(s, need, id, &room, &candidates, lost_millis));
    }
    best
}

/// Most candidates on a node of which every set is looked at.
const EXHAUSTIVE_MAX: usize = 12;

/// GPU thousandths that have to come free at the least.
fn missing_millis(s: &Session<'_>, need: &Need, id: NodeId, room: &Room) -> u64 {
    let gpus = &s.cluster.nodes()[id].gpus;
    let short = gpus.iter().zip(&room.free_millis).filter_map(|(gpu, free)| {
        need.ask.request.gpu.millis_on(gpu.memory_bytes).map(|millis| millis.saturating_sub(*free))
    });
    let mut short: Vec<_> = short.collect();
    short.sort_unstable();
    short.iter().take(need.ask.request.gpu.devices() as usize).sum()
}

/// Of all sets of whole candidates that make room and free less than `below_millis`, the one
/// that frees least, then the smallest, then the one of the first by rank.
fn best_set(
    s: &Session<'_>,
    need: &Need,
    id: NodeId,
    room: &Room,
    candidates: &[Candidate],
    below_millis: u64,
) -> Option<Vec<(usize, usize)>> {
    let all = |at: usize| (at, candidates[at].after.len());
    let freed = |at: usize| -> u64 {
        let pieces = candidates[at].after.last().into_iter().flatten();
        pieces.map(|freed| freed.gpu_millis()).sum()
    };
    let freed: Vec<u64> = (0..candidates.len()).map(freed).collect();
    let members = |set: u32| (0..candidates.len()).filter(move |at| set >> at & 1 == 1);
    let sum = |set: u32| members(set).map(|at| freed[at]).sum::<u64>();
    let mut sets: Vec<_> = (1..1_u32 << candidates.len())
        .map(|set| (sum(set), set.count_ones(), set))
        .filter(|&(millis, ..)| millis < below_millis)
        .collect();
    sets.sort_unstable();
    sets.into_iter()
        .map(|(_, _, set)| members(set).map(all).collect::<Vec<_>>())
        .find(|chosen| fits(s, need, id, &with(room, candidates, chosen)))
}

/// Takes from one after the other until there is room, then gives back what was not needed.
fn in_order(
    s: &Session<'_>,
    need: &Need,
    id: NodeId,
    room: &Room,
    candidates: &[Candidate],
) -> Option<Vec<(usize, usize)>> {
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    let mut enough = false;
    'asking: for (at, candidate) in candidates.iter().enumerate() {
        chosen.push((at, 0));
        for pieces in 1..=candidate.after.len() {
            if let Some(last) = chosen.last_mut() {
                last.1 = pieces;
            }
            enough = fits(s, need, id, &with(room, candidates, &chosen));
            if enough {
                break 'asking;
            }
        }
    }
    if !enough {
        return None;
    }
    let mut at = 0;
    while chosen.len() > 1 && at < chosen.len() {
        let kept = chosen.remove(at);
        if !fits(s, need, id, &with(room, candidates, &chosen)) {
            chosen.insert(at, kept);
            at += 1;
        }
    }
    Some(chosen)
}

fn with(room: &Room, candidates: &[Candidate], chosen: &[(usize, usize)]) -> Room {
    let mut room = room.clone();
    for &(at, pieces) in chosen {
        for freed in &candidates[at].after[pieces - 1] {
            match *freed {
                Freed::Gpu { at, millis } => room.free_millis[at] += millis,
                Freed::Pod(amounts) => {
                    room.host += amounts;
                    room.pods = room.pods.saturating_add(1);
                }
            }
        }
    }
    room
}

fn fits(s: &Session<'_>, need: &Need, id: NodeId, room: &Room) -> bool {
    let gpus = &s.cluster.nodes()[id].gpus;
    let host = Resources { gpu_millis: 0, ..need.ask.request.resources(1) };
    if room.pods == 0 || !host.fits_in(Resources { gpu_millis: u64::MAX, ..room.host }) {
        return false;
    }
    let fitting = gpus.iter().zip(&room.free_millis).filter(|(gpu, free)| {
        need.ask.request.gpu.millis_on(gpu.memory_bytes).is_some_and(|millis| **free >= millis)
    });
    fitting.count() >= need.ask.request.gpu.devices() as usize
}

/// Who on this node may be asked: the least important first, of equals the youngest.
fn candidates(
    s: &Session<'_>,
    rule: &dyn Rule,
    need: &Need,
    node: NodeId,
    refused: &Refused,
) -> Vec<Candidate> {
    let here = s.cluster.nodes()[node].pods.iter().map(|&pod| s.cluster.pods()[pod].workload);
    let mut ids: Vec<_> = here.filter(|id| *id != need.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let askable = ids.into_iter().filter(|&id| rule.may_be_asked(s, need.id, id));
    let mut candidates: Vec<_> = askable
        .filter_map(|id| {
            let spec = &s.cluster.workloads()[id].spec;
            let takings = rule.takings(s, id);
            let least = takings.first().map_or(0, |&first| freed(s, first).gpu_millis);
            let too_much = refused.queues.get(&spec.queue).is_some_and(|&millis| least >= millis);
            if too_much || refused.victims.contains(&id) {
                return None;
            }
            let after = pieces(s, node, &takings);
            Some(Candidate { id, after, queue: spec.queue, priority: spec.priority, seq: spec.seq })
        })
        .filter(|candidate| candidate.after.last().is_some_and(|all| !all.is_empty()))
        .collect();
    candidates.sort_by_cached_key(|candidate| {
        let fairness = rule.spares_the_entitled().then(|| {
            let entitled = !s.shares().over_share(candidate.queue);
            (entitled, Reverse(s.saturation(candidate.queue)))
        });
        (fairness, candidate.priority, Reverse(candidate.seq))
    });
    candidates
}

/// What the first n pieces free on this node, for every n.
fn pieces(s: &Session<'_>, node: NodeId, takings: &[Taking]) -> Vec<Vec<Freed>> {
    let mut shrunk: Vec<(PodId, usize)> = Vec::new();
    let mut stopped: Vec<PodId> = Vec::new();
    let mut after = Vec::with_capacity(takings.len());
    for &taking in takings {
        match taking {
            Taking::Shrink(pod, gpus) => match shrunk.iter_mut().find(|(other, _)| *other == pod) {
                Some(entry) => entry.1 = gpus,
                None => shrunk.push((pod, gpus)),
            },
            Taking::One(pod) => stopped.push(pod),
            Taking::All(id) => stopped.clone_from(&s.cluster.workloads()[id].pods),
        }
        let mut freed = Vec::new();
        for &pod in &stopped {
            free_pod(s, node, pod, 0, &mut freed);
        }
        for &(pod, gpus) in &shrunk {
            if !stopped.contains(&pod) {
                free_pod(s, node, pod, gpus, &mut freed);
            }
        }
        after.push(freed);
    }
    after
}

/// What is free here when the pod keeps only its first `gpus` devices; none kept means it stops.
fn free_pod(s: &Session<'_>, node: NodeId, pod: PodId, gpus: usize, freed: &mut Vec<Freed>) {
    let Some(place) = s.cluster.pods()[pod].occupancy.effective() else { return };
    if place.node != node {
        return;
    }
    let devices = place.devices.iter().skip(gpus);
    freed.extend(devices.map(|d| Freed::Gpu { at: d.gpu as usize, millis: d.millis }));
    if gpus == 0 {
        freed.push(Freed::Pod(s.cluster.amounts(pod, place)));
    }
}

/// The price of asking these.
fn price(s: &Session<'_>, rule: &dyn Rule, need: &Need, victims: &[(WorkloadId, usize)]) -> Price {
    let own = s.cluster.workloads()[need.id].spec.queue;
    let stays = rule.moves_max(s).is_some();
    let mut price = Price {
        entitled: 0,
        priority: 0,
        lost_millis: 0,
        restarts: 0,
        foreign: 0,
        saturation: Reverse(Ratio::ZERO),
        seq: Reverse(u64::MAX),
    };
    let mut saturation: Option<Ratio> = None;
    for &(victim, pieces) in victims {
        let workload = &s.cluster.workloads()[victim];
        let queue = &s.cluster.queues()[workload.spec.queue];
        let takings = rule.takings(s, victim);
        let ends = matches!(takings.get(pieces.wrapping_sub(1)), Some(Taking::All(_)));
        if ends && !stays {
            let least = queue.preemptible.keys().next().copied().unwrap_or(0);
            let above = workload.spec.priority.saturating_sub(least);
            price.priority = price.priority.max(above + 1);
        }
        let spared = rule.spares_the_entitled() && !s.shares().over_share(workload.spec.queue);
        price.entitled += u32::from(spared);
        price.lost_millis += lost(s, &takings[..pieces]);
        price.restarts += if ends { workload.placed } else { 1 };
        price.foreign += u32::from(workload.spec.queue != own);
        let held = s.saturation(workload.spec.queue);
        saturation = Some(saturation.map_or(held, |least| held.min(least)));
        price.seq = Reverse(price.seq.0.min(workload.spec.seq));
    }
    price.saturation = Reverse(saturation.unwrap_or(Ratio::ZERO));
    price
}

/// GPU thousandths that are gone after these pieces. Pieces of an elastic workload add up pod by
/// pod, so the last one of each pod counts; all of it covers what came before.
fn lost(s: &Session<'_>, takings: &[Taking]) -> u64 {
    if let Some(&last @ Taking::All(_)) = takings.last() {
        return freed(s, last).gpu_millis;
    }
    let mut sizes: Vec<(PodId, u64)> = Vec::new();
    for &taking in takings {
        let (pod, left) = match taking {
            Taking::Shrink(pod, gpus) => (pod, gpus as u64 * GPU_MILLIS),
            Taking::One(pod) => (pod, 0),
            Taking::All(_) => continue,
        };
        sizes.retain(|(other, _)| *other != pod);
        sizes.push((pod, left));
    }
    let held = |pod: PodId| freed(s, Taking::One(pod)).gpu_millis;
    sizes.into_iter().map(|(pod, left)| held(pod).saturating_sub(left)).sum()
}
