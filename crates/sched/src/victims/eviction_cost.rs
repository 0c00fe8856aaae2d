//! The cost of an eviction. Owns: the order of the criteria, and the amount of lost work. Source:
//! the profile `default`; importance comes before lost work.

use std::cmp::{Ordering, Reverse};

use model::{PodId, WorkloadId};
use units::{GPU_MILLIS, Resources};

use super::eviction_units::{part_of, unit_priority};
use super::{EvictionUnit, Rule};
use crate::session::Session;

/// The cost of a set of units; the least is taken, by the first difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EvictionCost {
    /// Number of victims whose queue is within its fair share.
    pub(super) entitled: u32,
    /// The most important victim within its own queue.
    pub(super) top: Top,
    /// Number of moved workloads, if none may lose its place.
    pub(super) interrupted: u32,
    /// Lost work; see [`lost`].
    pub(super) lost: WorkLost,
    /// Number of workloads that are stopped, moved or shrunk.
    pub(super) asked: u32,
    /// Number of pods that restart.
    pub(super) restarts: u32,
    /// GPU thousandths that are taken.
    pub(super) taken_millis: u64,
    /// Number of victims of other queues.
    pub(super) foreign: u32,
    /// The least saturated queue goes last (in coarse steps: otherwise every unit taken would
    /// change every cost),
    pub(super) saturation: Reverse<u64>,
    /// and the oldest workload goes last.
    pub(super) seq: Reverse<u64>,
}

impl EvictionCost {
    /// No victim.
    pub(super) const NOTHING: Self = Self {
        entitled: 0,
        top: Top::NONE,
        interrupted: 0,
        lost: WorkLost::NONE,
        asked: 0,
        restarts: 0,
        taken_millis: 0,
        foreign: 0,
        saturation: Reverse(u64::MAX),
        seq: Reverse(u64::MAX),
    };

    /// The cost of both sets together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            entitled: self.entitled + other.entitled,
            top: self.top.and(other.top),
            interrupted: self.interrupted + other.interrupted,
            lost: self.lost.and(other.lost),
            asked: self.asked + other.asked,
            restarts: self.restarts.saturating_add(other.restarts),
            taken_millis: self.taken_millis.saturating_add(other.taken_millis),
            foreign: self.foreign + other.foreign,
            saturation: self.saturation.max(other.saturation),
            seq: self.seq.max(other.seq),
        }
    }

    pub(super) const fn lost(&self) -> WorkLost {
        self.lost
    }

    /// `true` if both lose equal amounts.
    pub(super) fn same_loss(&self, other: &Self) -> bool {
        let loss = |cost: &Self| (cost.lost, cost.restarts, cost.taken_millis);
        loss(self) == loss(other)
    }

    /// `true` if more is lost than this many GPU thousandths of work that was never stopped before
    /// and has all its progress saved.
    pub(super) const fn exceeds(&self, gpu_millis: u64) -> bool {
        self.lost.gpu > gpu_millis
    }
}

/// The most important work that loses its place. If other work of its queue is less important, it
/// takes the place of that next, and more workloads than necessary are interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Top {
    /// Priority above the least important work of its queue, plus 1; comparable inside it only.
    priority: u32,
    /// `true` if a workload loses all its places, and not only its optional pods.
    pub(super) ends: bool,
    /// Its lost work.
    lost: WorkLost,
}

impl Top {
    const NONE: Self = Self { priority: 0, ends: false, lost: WorkLost::NONE };

    /// `Top::NONE` for priority 0: it keeps its place.
    pub(super) fn of(priority: u32, ends: bool, lost: WorkLost) -> Self {
        if priority == 0 { Self::NONE } else { Self { priority, ends, lost } }
    }

    fn and(self, other: Self) -> Self {
        match self.priority.cmp(&other.priority) {
            Ordering::Greater => self,
            Ordering::Less => other,
            Ordering::Equal => Self {
                priority: self.priority,
                ends: self.ends || other.ends,
                lost: self.lost.and(other.lost),
            },
        }
    }
}

/// Resources of pods, as far as their work counts: their GPUs, or the cores of pods without GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) gpu_millis: u64,
    pub(super) cpu_millis: u64,
}

impl Weight {
    /// The weight of one pod with these resources.
    pub(super) const fn of(held: Resources) -> Self {
        match held.gpu_millis {
            0 => Self { gpu_millis: 0, cpu_millis: held.cpu_millis },
            gpu_millis => Self { gpu_millis, cpu_millis: 0 },
        }
    }

    /// The weight of one pod in its place.
    pub(super) fn held(s: &Session<'_>, pod: PodId) -> Self {
        let place = s.cluster.pods()[pod].binding.effective();
        place.map_or_else(Self::default, |place| Self::of(s.cluster.amounts(pod, place)))
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            gpu_millis: self.gpu_millis.saturating_add(other.gpu_millis),
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
        }
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self {
            gpu_millis: self.gpu_millis.saturating_sub(other.gpu_millis),
            cpu_millis: self.cpu_millis.saturating_sub(other.cpu_millis),
        }
    }
}

/// Lost work, in thousandths of GPU minutes; where that is equal, in thousandths of core minutes of
/// pods without GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkLost {
    pub(super) gpu: u64,
    pub(super) cpu: u64,
}

impl WorkLost {
    pub(super) const NONE: Self = Self { gpu: 0, cpu: 0 };

    const fn and(self, other: Self) -> Self {
        Self { gpu: self.gpu.saturating_add(other.gpu), cpu: self.cpu.saturating_add(other.cpu) }
    }
}

/// The work lost by these units: for all pods that stop, the time since the last checkpoint, in
/// whole minutes; and for the lost GPUs, one minute for the restart, or as many as the workload was
/// stopped before. Thus a large gang costs more than a small one, a workload that was stopped often
/// costs more than others, and one that has just saved its progress costs least. Cores of pods
/// without GPUs count likewise.
pub(super) fn lost(s: &Session<'_>, id: WorkloadId, eviction_units: &[EvictionUnit]) -> WorkLost {
    loss(s, id, eviction_units).0
}

/// The work lost by these units, and the GPU thousandths that they take.
pub(super) fn loss(
    s: &Session<'_>,
    id: WorkloadId,
    eviction_units: &[EvictionUnit],
) -> (WorkLost, u64) {
    let (gone, restarting) = touched(s, eviction_units);
    (work_lost(gone, restarts(s, id), restarting, s.unsaved_ms(id)), gone.gpu_millis)
}

/// The work lost if pods with these resources stop.
pub(super) fn lost_here(s: &Session<'_>, id: WorkloadId, held: Weight) -> WorkLost {
    work_lost(held, restarts(s, id), held, s.unsaved_ms(id))
}

/// The cost of moving a pod with these resources, besides the interruption.
pub(super) fn cost_of_move(s: &Session<'_>, id: WorkloadId, held: Weight) -> EvictionCost {
    EvictionCost { lost: lost_here(s, id, held), restarts: 1, ..EvictionCost::NOTHING }
}

fn work_lost(gone: Weight, times: u64, restarting: Weight, unsaved_ms: u64) -> WorkLost {
    let sum = |gone: u64, restarting: u64| {
        let unsaved = restarting.saturating_mul(unsaved_ms / MINUTE_MS);
        gone.saturating_mul(times).saturating_add(unsaved)
    };
    WorkLost {
        gpu: sum(gone.gpu_millis, restarting.gpu_millis),
        cpu: sum(gone.cpu_millis, restarting.cpu_millis),
    }
}

/// Number of times a workload was stopped before, at least 1; 0 if no pod of it runs, as stopping
/// it is no restart.
fn restarts(s: &Session<'_>, id: WorkloadId) -> u64 {
    let workload = &s.cluster.workloads()[id];
    if workload.runs() { u64::from(workload.restarts.max(1)) } else { 0 }
}

/// Priority above the least of the preemptible work in the queue of a workload, plus 1.
pub(super) fn importance(s: &Session<'_>, id: WorkloadId, priority: u32) -> u32 {
    let queue = &s.cluster.queues()[s.queue_of(id)];
    let least = queue.preemptible.keys().next().copied().unwrap_or(0);
    priority.saturating_sub(least) + 1
}

/// Importance of a unit; 0 for a pod that is only shrunk, as it keeps its place.
pub(super) fn importance_of(s: &Session<'_>, id: WorkloadId, unit: EvictionUnit) -> u32 {
    match unit {
        EvictionUnit::Shrink(..) => 0,
        _ => importance(s, id, unit_priority(s, id, unit)),
    }
}

/// Effect of evictions on the pods of one workload.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Resources that it has lost.
    pub(super) gone: Weight,
    /// Resources before of the pods that are stopped or moved.
    pub(super) restarting: Weight,
    /// Number of pods that are stopped or moved, and number of those that have lost their places.
    pub(super) pods: u32,
    pub(super) stopped: u32,
}

/// State of a workload before anything is taken.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) entitled: bool,
    pub(super) foreign: bool,
    importance: u32,
    /// Importance of its pods above the minimum.
    importance_of_spare: u32,
    placed: u32,
    restarts: u64,
    unsaved_ms: u64,
    seq: u64,
}

impl Standing {
    pub(super) fn of(s: &Session<'_>, rule: &dyn Rule, taker: WorkloadId, id: WorkloadId) -> Self {
        let queue = s.queue_of(id);
        let foreign = queue != s.queue_of(taker);
        let workload = &s.cluster.workloads()[id];
        Self {
            entitled: foreign && rule.spares_the_entitled() && !s.shares().over_share(queue),
            foreign,
            importance: importance(s, id, workload.spec.priority),
            importance_of_spare: importance(s, id, workload.spec.priority_of_spare()),
            placed: workload.placed,
            restarts: restarts(s, id),
            unsaved_ms: s.unsaved_ms(id),
            seq: workload.spec.seq,
        }
    }

    /// The cost of these effects. A moved workload loses only its unsaved work; where none may lose
    /// its place, its restart counts too.
    pub(super) fn cost(&self, tally: &Tally, moves: bool) -> EvictionCost {
        let gone = if moves { tally.restarting } else { tally.gone };
        let is_gone = tally.stopped > 0 && !moves;
        let ends = is_gone && tally.stopped >= self.placed;
        let lost = work_lost(gone, self.restarts, tally.restarting, self.unsaved_ms);
        let importance = match (is_gone, ends) {
            (false, _) => 0,
            (_, true) => self.importance,
            (_, false) => self.importance_of_spare,
        };
        EvictionCost {
            entitled: u32::from(self.entitled && is_gone),
            top: Top::of(importance, ends, lost),
            interrupted: u32::from(moves),
            lost,
            asked: 1,
            restarts: tally.pods,
            taken_millis: gone.gpu_millis,
            foreign: u32::from(self.foreign),
            seq: Reverse(self.seq),
            ..EvictionCost::NOTHING
        }
    }
}

const MINUTE_MS: u64 = 60_000;

/// Resources lost by these units, and resources of all pods that stop for them. Units of an elastic
/// workload add up pod by pod, so the last one of each pod counts; `All` includes all earlier ones.
fn touched(s: &Session<'_>, eviction_units: &[EvictionUnit]) -> (Weight, Weight) {
    if let Some(EvictionUnit::All(id)) = eviction_units.last() {
        let pods = s.cluster.workloads()[*id].pods.iter();
        let all = pods.map(|&pod| Weight::held(s, pod)).fold(Weight::default(), Weight::and);
        return (all, all);
    }
    let mut sizes: Vec<(PodId, u64)> = Vec::new();
    for &eviction_unit in eviction_units {
        let (pod, left) = match eviction_unit {
            EvictionUnit::Shrink(pod, gpus) => (pod, gpus as u64 * GPU_MILLIS),
            EvictionUnit::One(pod) => (pod, 0),
            EvictionUnit::Part(id, part) => {
                let pods = part_of(s, id, part);
                sizes.retain(|(pod, _)| !pods.contains(pod));
                sizes.extend(pods.into_iter().map(|pod| (pod, 0)));
                continue;
            }
            EvictionUnit::All(_) => continue,
        };
        sizes.retain(|(other, _)| *other != pod);
        sizes.push((pod, left));
    }
    let none = Weight::default();
    sizes.into_iter().fold((none, none), |(gone, stops), (pod, left)| {
        let held = Weight::held(s, pod);
        let kept = Weight { gpu_millis: left, cpu_millis: 0 };
        (gone.and(held.without(kept)), stops.and(held))
    })
}
