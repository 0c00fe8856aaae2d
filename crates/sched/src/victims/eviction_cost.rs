//! What an eviction costs. Owns: the order of what counts, and how lost work is counted.
//! Source: the profile `default`; importance comes before what is lost.

use std::cmp::Reverse;

use model::{PodId, WorkloadId};
use units::GPU_MILLIS;

use super::{EvictionUnit, freed};
use crate::session::Session;

/// What a set of pieces costs; the least is taken, by the first difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EvictionCost {
    /// Workloads asked whose queue holds no more than its fair share.
    pub(super) entitled: u32,
    /// How far the most important workload that loses its place is above the least important
    /// one of its own queue: priority counts inside a queue only.
    pub(super) priority: u32,
    /// GPU time that is lost, in thousandths of GPU minutes; see [`lost`].
    pub(super) lost: u64,
    /// Pods that restart.
    pub(super) restarts: u32,
    /// Workloads of other queues.
    pub(super) foreign: u32,
    /// The least saturated queue asked goes last (in coarse steps: otherwise every piece taken would
    /// change every cost),
    pub(super) saturation: Reverse<u64>,
    /// and the oldest workload asked.
    pub(super) seq: Reverse<u64>,
}

impl EvictionCost {
    /// No victim.
    pub(super) const NOTHING: Self = Self {
        entitled: 0,
        priority: 0,
        lost: 0,
        restarts: 0,
        foreign: 0,
        saturation: Reverse(u64::MAX),
        seq: Reverse(u64::MAX),
    };

    /// The cost of asking these and those.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            entitled: self.entitled + other.entitled,
            priority: self.priority.max(other.priority),
            lost: self.lost.saturating_add(other.lost),
            restarts: self.restarts.saturating_add(other.restarts),
            foreign: self.foreign + other.foreign,
            saturation: self.saturation.max(other.saturation),
            seq: self.seq.max(other.seq),
        }
    }

    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether both lose the same amount.
    pub(super) fn same_loss(&self, other: &Self) -> bool {
        (self.lost, self.restarts) == (other.lost, other.restarts)
    }

    /// Whether more is lost than so many GPU thousandths that were never stopped before and have
    /// all their work saved.
    pub(super) const fn exceeds(&self, gpu_millis: u64) -> bool {
        self.lost > gpu_millis
    }
}

/// The GPU time lost by these pieces, in thousandths of GPU minutes: the work of all pods that
/// stop since it was last saved, in whole minutes; and for the GPUs that are gone a minute each
/// for the restart, or as many minutes as the workload was stopped before. Thus a large gang costs
/// more than a small one, who was stopped again and again more than others, and who has just saved
/// its work costs least.
pub(super) fn lost(s: &Session<'_>, id: WorkloadId, eviction_units: &[EvictionUnit]) -> u64 {
    let (gone_millis, restarting_millis) = touched(s, eviction_units);
    let times = u64::from(s.cluster.workloads()[id].restarts.max(1));
    let unsaved = restarting_millis.saturating_mul(s.unsaved_ms(id) / MINUTE_MS);
    gone_millis.saturating_mul(times).saturating_add(unsaved)
}

const MINUTE_MS: u64 = 60_000;

/// GPU thousandths that are gone after these pieces, and those of all pods that stop for it.
/// Pieces of an elastic workload add up pod by pod, so the last one of each pod counts; all of it
/// covers what came before.
fn touched(s: &Session<'_>, eviction_units: &[EvictionUnit]) -> (u64, u64) {
    if let Some(&last @ EvictionUnit::All(_)) = eviction_units.last() {
        let all = freed(s, last).gpu_millis;
        return (all, all);
    }
    let mut sizes: Vec<(PodId, u64)> = Vec::new();
    for &eviction_unit in eviction_units {
        let (pod, left) = match eviction_unit {
            EvictionUnit::Shrink(pod, gpus) => (pod, gpus as u64 * GPU_MILLIS),
            EvictionUnit::One(pod) => (pod, 0),
            EvictionUnit::All(_) => continue,
        };
        sizes.retain(|(other, _)| *other != pod);
        sizes.push((pod, left));
    }
    let held = |pod: PodId| freed(s, EvictionUnit::One(pod)).gpu_millis;
    sizes.into_iter().fold((0, 0), |(gone, stops), (pod, left)| {
        let held = held(pod);
        (gone + held.saturating_sub(left), stops + held)
    })
}
