//! Optional pods and parts of a workload. Owns: the order in which pods above a minimum are
//! removed, and parts above the minimum of a group. Source: scheduling reference §6.4, §14 and §20.

use std::cmp::Reverse;

use crate::{Child, WorkloadSpec, set_rank, task_priority};

/// The next pods to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// The last pod of a set.
    PodOf(usize),
    /// All pods of a part.
    Part(Child),
}

/// The next pods to remove from a workload with these numbers of pods in its sets: the lowest task
/// priority among sets above their minimum and optional parts. Of equals a pod goes before a part,
/// that of the set with the most pods for its minimum. `None` if only its minimum is left.
#[must_use]
pub fn next_spare(spec: &WorkloadSpec, pods: &impl Fn(usize) -> u32) -> Option<Spare> {
    let above = (0..spec.pod_sets.len()).filter(|&at| pods(at) > spec.pod_sets[at].pods_min);
    let worst = above.max_by_key(|&at| {
        let set = &spec.pod_sets[at];
        (Reverse(set.task_priority), set_rank(set, pods(at)))
    });
    let is_lower = |&part: &Child| {
        worst.is_none_or(|at| task_priority(spec, part) < spec.pod_sets[at].task_priority)
    };
    spare_part(spec, pods).filter(is_lower).map(Spare::Part).or_else(|| worst.map(Spare::PodOf))
}

/// The first optional part to remove, at any depth of groups: that with the lowest task priority,
/// of equals with the fewest pods. A part that contains an optional part goes after that.
#[must_use]
pub fn spare_part(spec: &WorkloadSpec, pods: &impl Fn(usize) -> u32) -> Option<Child> {
    let mut parts = Vec::new();
    spare_parts_of(spec, None, pods, &mut parts);
    parts.into_iter().min_by_key(|&part| rank(spec, part, pods))
}

/// Sort key of removal, least first: by task priority, then by the number of pods.
fn rank(spec: &WorkloadSpec, part: Child, pods: &impl Fn(usize) -> u32) -> (u32, u32) {
    let own = (0..spec.pod_sets.len()).filter(|&set| holds(spec, part, set));
    (task_priority(spec, part), own.map(pods).sum())
}

/// Adds the optional parts of a group (`None`: of the workload); returns `true` if there are any.
fn spare_parts_of(
    spec: &WorkloadSpec,
    group: Option<usize>,
    pods: &impl Fn(usize) -> u32,
    parts: &mut Vec<Child>,
) -> bool {
    let mut there: Vec<_> = spec.children(group).collect();
    there.retain(|&part| {
        (0..spec.pod_sets.len()).any(|set| pods(set) > 0 && holds(spec, part, set))
    });
    let first = there.iter().rev().min_by_key(|&&part| rank(spec, part, pods));
    let mut spare = first.copied().filter(|_| there.len() > spec.children_min_of(group));
    let known = parts.len();
    for part in there {
        if let Child::Group(group) = part
            && spare_parts_of(spec, Some(group), pods, parts)
        {
            spare = spare.filter(|&other| other != part);
        }
    }
    parts.extend(spare);
    parts.len() > known
}

/// `true` if a set is in a part of a workload.
#[must_use]
pub fn holds(spec: &WorkloadSpec, part: Child, set: usize) -> bool {
    match part {
        Child::Group(group) => spec.is_in(set, Some(group)),
        Child::Set(own) => set == own,
    }
}
