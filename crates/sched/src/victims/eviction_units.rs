//! Units in which workloads are evicted. Owns: the resources that a unit frees, and its execution.
//! Changes the state only in [`take`].

use model::{Child, Placement, PodId, Share, Workload, WorkloadId};
use smallvec::SmallVec;
use units::Resources;

use crate::place;
use crate::session::Session;
use model::equivalence_class::is_elastic;
use model::spare::{Spare, holds, next_spare};

/// A unit of eviction from a victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EvictionUnit {
    /// Shrink an elastic pod to this number of GPUs.
    Shrink(PodId, usize),
    /// Stop a pod above the workload's minimum.
    One(PodId),
    /// Stop all pods of an optional part of the workload.
    Part(WorkloadId, Child),
    /// Stop all its pods.
    All(WorkloadId),
}

/// Units, each on top of the one before.
pub(crate) type EvictionUnits = SmallVec<[EvictionUnit; 1]>;

/// All of a workload, in units: elastic GPUs by halves, pods above the minimum one by one, optional
/// parts, then everything.
pub(crate) fn whole_workload(s: &Session<'_>, victim: WorkloadId) -> EvictionUnits {
    let workload = &s.cluster.workloads()[victim];
    let mut eviction_units = halvings(s, victim, 1);
    eviction_units.extend(spare(s, workload, victim));
    eviction_units.push(EvictionUnit::All(victim));
    eviction_units
}

/// `true` if a workload can be evicted in part.
pub(super) fn gives_in_parts(s: &Session<'_>, id: WorkloadId) -> bool {
    let workload = &s.cluster.workloads()[id];
    let placed = |at: usize| workload.pod_sets[at].placed;
    is_elastic(&workload.spec) || next_spare(&workload.spec, &placed).is_some()
}

/// The units above the minimum, in their order.
fn spare(s: &Session<'_>, workload: &Workload, id: WorkloadId) -> EvictionUnits {
    let spec = &workload.spec;
    let mut spare = EvictionUnits::new();
    if next_spare(spec, &|at| workload.pod_sets[at].placed).is_none() {
        return spare;
    }
    let placed = |pod: &PodId| s.cluster.pods()[*pod].binding.effective().is_some();
    let sets = 0..workload.pod_sets.len();
    let mut pods: Vec<Vec<PodId>> =
        sets.map(|at| workload.pods_of(at).iter().copied().filter(placed).collect()).collect();
    let count = |pods: &[Vec<PodId>], at: usize| u32::try_from(pods[at].len()).unwrap_or(u32::MAX);
    while let Some(next) = next_spare(spec, &|at| count(&pods, at)) {
        match next {
            Spare::PodOf(set) => spare.extend(pods[set].pop().map(EvictionUnit::One)),
            Spare::Part(part) => {
                spare.push(EvictionUnit::Part(id, part));
                let own = (0..pods.len()).filter(|&at| holds(spec, part, at));
                own.collect::<Vec<_>>().into_iter().for_each(|at| pods[at].clear());
            }
        }
    }
    spare
}

/// The units of [`whole_workload`]; during its guaranteed run time only those above the minimum:
/// pods above the minimum, GPUs above one.
pub(crate) fn above_minimum_while_safe(
    s: &Session<'_>,
    victim: WorkloadId,
    guaranteed: impl Fn(&Share) -> Option<u64>,
) -> EvictionUnits {
    let mut eviction_units = whole_workload(s, victim);
    if s.safe_until(victim, guaranteed) > s.now {
        eviction_units.retain(|eviction_unit| !matches!(eviction_unit, EvictionUnit::All(_)));
    }
    eviction_units
}

/// The steps by which an elastic workload shrinks, down to `floor` GPUs.
pub(crate) fn halvings(s: &Session<'_>, victim: WorkloadId, floor: u32) -> EvictionUnits {
    let workload = &s.cluster.workloads()[victim];
    let mut eviction_units = EvictionUnits::new();
    if !is_elastic(&workload.spec) {
        return eviction_units;
    }
    for &pod in &workload.pods {
        let place = s.cluster.pods()[pod].binding.effective();
        let mut gpus = place.map_or(0, |place| place.devices.len()) / 2;
        while gpus >= (floor as usize).max(1) {
            eviction_units.push(EvictionUnit::Shrink(pod, gpus));
            gpus /= 2;
        }
    }
    eviction_units
}

/// The amounts that a unit frees.
pub(crate) fn freed(s: &Session<'_>, eviction_unit: EvictionUnit) -> Resources {
    let held = |pod: PodId| {
        let place = s.cluster.pods()[pod].binding.effective();
        place.map_or(Resources::ZERO, |place| s.cluster.amounts(pod, place))
    };
    match eviction_unit {
        EvictionUnit::Shrink(pod, gpus) => {
            let gpu_millis = held(pod).gpu_millis.saturating_sub(gpus as u64 * units::GPU_MILLIS);
            Resources { gpu_millis, ..Resources::ZERO }
        }
        EvictionUnit::One(pod) => held(pod),
        EvictionUnit::Part(id, part) => part_of(s, id, part).into_iter().map(held).sum(),
        EvictionUnit::All(id) => s.cluster.workloads()[id].pods.iter().map(|&pod| held(pod)).sum(),
    }
}

/// The priority of a unit: that of the workload, or of its pods above the minimum.
pub(crate) fn unit_priority(s: &Session<'_>, id: WorkloadId, unit: EvictionUnit) -> u32 {
    let spec = &s.cluster.workloads()[id].spec;
    match unit {
        EvictionUnit::One(_) => spec.priority_of_spare(),
        EvictionUnit::Shrink(..) | EvictionUnit::Part(..) | EvictionUnit::All(_) => spec.priority,
    }
}

/// The placed pods of a part of a workload.
pub(super) fn part_of(s: &Session<'_>, id: WorkloadId, part: Child) -> Vec<PodId> {
    let workload = &s.cluster.workloads()[id];
    let sets = (0..workload.pod_sets.len()).filter(|&set| holds(&workload.spec, part, set));
    let placed = |pod: &PodId| s.cluster.pods()[*pod].binding.effective().is_some();
    sets.flat_map(|set| workload.pods_of(set)).copied().filter(placed).collect()
}

/// Evicts a unit.
pub(crate) fn take(s: &mut Session<'_>, eviction_unit: EvictionUnit) {
    match eviction_unit {
        EvictionUnit::Shrink(pod, gpus) => {
            let binding = s.cluster.pods()[pod].binding.clone();
            if let Some(place) = binding.effective() {
                let devices = place::kept(&s.cluster.nodes()[place.node], place, gpus);
                let smaller = Placement { node: place.node, devices };
                s.set_target(pod, Some(smaller), binding.current.is_some());
            }
        }
        EvictionUnit::One(pod) => s.set_target(pod, None, false),
        EvictionUnit::Part(id, part) => {
            for pod in part_of(s, id, part) {
                s.set_target(pod, None, false);
            }
        }
        EvictionUnit::All(workload) => {
            for pod in s.cluster.workloads()[workload].pods.clone() {
                s.set_target(pod, None, false);
            }
        }
    }
}
