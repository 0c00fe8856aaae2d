//! The tree of a workload: groups of pod sets, groups of groups. Owns: the condition under which a
//! part is complete, so that every level starts with its minimum or not at all.

use std::collections::BTreeMap;

use crate::{PodSetSpec, TopologyConstraint, WorkloadSpec};

/// Id of the tree of groups and topology constraints of a workload. The first is that of a plain
/// workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ShapeId(u32);

type Shape = (
    Vec<GroupSpec>,
    Option<u32>,
    Option<TopologyConstraint>,
    Vec<(Option<usize>, Option<TopologyConstraint>)>,
);

/// All shapes that ever existed except for the plain one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shapes(BTreeMap<Shape, ShapeId>);

impl Shapes {
    pub(crate) fn intern(&mut self, spec: &WorkloadSpec) -> ShapeId {
        if spec.groups.is_empty() && spec.children_min.is_none() && !spec.has_topology() {
            return ShapeId::default();
        }
        let sets = spec.pod_sets.iter().map(|set| (set.group, set.topology)).collect();
        let shape = (spec.groups.clone(), spec.children_min, spec.topology, sets);
        let next = ShapeId(u32::try_from(self.0.len() + 1).unwrap_or(u32::MAX));
        *self.0.entry(shape).or_insert(next)
    }
}

/// A group of pod sets and of other groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupSpec {
    /// Name, for explanations.
    pub name: String,
    /// Index of the parent group, listed before it; `None` for the workload itself.
    pub parent: Option<usize>,
    /// Minimum number of its children that can run together; `None` for all of them.
    pub children_min: Option<u32>,
    /// Topology constraint of its pods.
    pub topology: Option<TopologyConstraint>,
}

/// A part of a group, by its index in the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// A group.
    Group(usize),
    /// A pod set.
    Set(usize),
}

/// State of a part of a workload relative to its minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// It has its minimum at every level below.
    Whole,
    /// It has no pods and lacks some.
    Empty,
    /// It has pods, but fewer than its minimum, or a part of it does.
    Partial,
}

impl WorkloadSpec {
    /// The parts of a group (`None`: of the workload): groups, then pod sets.
    pub fn children(&self, group: Option<usize>) -> impl Iterator<Item = Child> {
        let groups = (0..).zip(&self.groups).filter(move |(_, child)| child.parent == group);
        let sets = (0..).zip(&self.pod_sets).filter(move |(_, child)| child.group == group);
        groups.map(|(at, _)| Child::Group(at)).chain(sets.map(|(at, _)| Child::Set(at)))
    }

    /// Minimum number of parts of a group (`None`: of the workload) that can run together.
    #[must_use]
    pub fn children_min_of(&self, group: Option<usize>) -> usize {
        let least = group.map_or(self.children_min, |at| self.groups[at].children_min);
        least.map_or_else(|| self.children(group).count(), |least| least as usize)
    }

    /// Topology constraint of a group (`None`: of the workload).
    #[must_use]
    pub fn topology_of(&self, group: Option<usize>) -> Option<TopologyConstraint> {
        group.map_or(self.topology, |at| self.groups[at].topology)
    }

    /// True if any pods have a topology constraint.
    #[must_use]
    pub fn has_topology(&self) -> bool {
        self.topology.is_some()
            || self.pod_sets.iter().any(|set| set.topology.is_some())
            || self.groups.iter().any(|group| group.topology.is_some())
    }

    /// True if a pod set is in a group (`None`: in the workload), at any depth.
    #[must_use]
    pub fn is_in(&self, set: usize, group: Option<usize>) -> bool {
        let first = self.pod_sets[set].group;
        let above = std::iter::successors(Some(first), |at| at.map(|at| self.groups[at].parent));
        above.into_iter().any(|at| at == group)
    }

    /// True if these numbers of pods of each set reach the minimum of the workload.
    #[must_use]
    pub fn is_whole(&self, pods: &impl Fn(usize) -> u32) -> bool {
        if self.groups.is_empty() && self.children_min.is_none() {
            return (0..).zip(&self.pod_sets).all(|(at, set)| pods(at) >= set.pods_min);
        }
        self.group_completeness(None, pods) == Completeness::Whole
    }

    /// State of a part of the workload with these numbers of pods of each set.
    #[must_use]
    pub fn completeness(&self, child: Child, pods: &impl Fn(usize) -> u32) -> Completeness {
        match child {
            Child::Group(at) => self.group_completeness(Some(at), pods),
            Child::Set(at) if pods(at) >= self.pod_sets[at].pods_min => Completeness::Whole,
            Child::Set(at) if pods(at) == 0 => Completeness::Empty,
            Child::Set(_) => Completeness::Partial,
        }
    }

    /// True if enough parts of a group (`None`: the workload) reach their minimum with these
    /// numbers of pods of each set. A part that does not is left out, as it is where it finds no
    /// room.
    #[must_use]
    pub fn reaches_minimum(&self, group: Option<usize>, pods: &impl Fn(usize) -> u32) -> bool {
        let reaches = |child: &Child| match *child {
            Child::Group(at) => self.reaches_minimum(Some(at), pods),
            Child::Set(at) => pods(at) >= self.pod_sets[at].pods_min,
        };
        self.children(group).filter(reaches).count() >= self.children_min_of(group)
    }

    fn group_completeness(
        &self,
        group: Option<usize>,
        pods: &impl Fn(usize) -> u32,
    ) -> Completeness {
        let (mut whole, mut partial) = (0, false);
        for child in self.children(group) {
            match self.completeness(child, pods) {
                Completeness::Whole => whole += 1,
                Completeness::Empty => {}
                Completeness::Partial => partial = true,
            }
        }
        let has_pods = || (0..self.pod_sets.len()).any(|at| pods(at) > 0 && self.is_in(at, group));
        match whole >= self.children_min_of(group) {
            _ if partial => Completeness::Partial,
            true => Completeness::Whole,
            false if has_pods() => Completeness::Partial,
            false => Completeness::Empty,
        }
    }

    /// True if the groups form a tree: parents come first, each has children, and no minimum is
    /// above the number of parts.
    pub(crate) fn is_tree(&self) -> bool {
        let in_order = |(at, group): (usize, &crate::GroupSpec)| group.parent < Some(at);
        let known = |set: &PodSetSpec| set.group < Some(self.groups.len());
        let groups = (0..self.groups.len()).map(Some);
        let sound = |group| {
            let children = self.children(group).count();
            (1..=children).contains(&self.children_min_of(group))
        };
        self.groups.iter().enumerate().all(in_order)
            && self.pod_sets.iter().all(known)
            && std::iter::once(None).chain(groups).all(sound)
    }
}
