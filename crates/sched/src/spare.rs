//! What a workload can do without. Owns: the order in which pods above a minimum go, and parts
//! above the minimum of a group. Source: scheduling reference §6.4, §14 and §20.

use std::cmp::Reverse;

use model::{Child, WorkloadSpec};

use crate::next_pods::by_task_priority;
use crate::rank::set_rank;

/// What goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spare {
    /// The last pod of a set.
    PodOf(usize),
    /// All pods of a part.
    Part(Child),
}

/// What goes next of a workload with so many pods of each set: of the sets above their minimum
/// a pod of the one with the lowest task priority, of equals with the most pods for its minimum; or
/// else a part that a group can do without. None if nothing is left but its minimum.
pub(crate) fn next_spare(spec: &WorkloadSpec, pods: &impl Fn(usize) -> u32) -> Option<Spare> {
    let above = (0..spec.pod_sets.len()).filter(|&at| pods(at) > spec.pod_sets[at].pods_min);
    let worst = above.max_by_key(|&at| {
        let set = &spec.pod_sets[at];
        (Reverse(set.task_priority), set_rank(set, pods(at)))
    });
    worst.map(Spare::PodOf).or_else(|| spare_part(spec, None, pods).map(Spare::Part))
}

/// The last part of a group (none: of the workload), however deep, that it can do without.
pub(crate) fn spare_part(
    spec: &WorkloadSpec,
    group: Option<usize>,
    pods: &impl Fn(usize) -> u32,
) -> Option<Child> {
    let mut there = by_task_priority(spec, group);
    there.retain(|&part| {
        (0..spec.pod_sets.len()).any(|set| pods(set) > 0 && holds(spec, part, set))
    });
    if there.len() > spec.children_min_of(group) {
        return there.last().copied();
    }
    there.into_iter().rev().find_map(|child| match child {
        Child::Group(at) => spare_part(spec, Some(at), pods),
        Child::Set(_) => None,
    })
}

/// Whether a set is in a part of a workload.
pub(crate) fn holds(spec: &WorkloadSpec, part: Child, set: usize) -> bool {
    match part {
        Child::Group(group) => spec.is_in(set, Some(group)),
        Child::Set(own) => set == own,
    }
}
