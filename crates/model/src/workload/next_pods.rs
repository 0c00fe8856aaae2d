//! Pods of a workload that are placed next. Owns: their choice in a tree of groups, each with a
//! minimum of its own. Source: scheduling reference §6.4, §10 and §20.

use std::cmp::Reverse;

use units::Ratio;

use crate::{Child, Cluster, Completeness, PodId, PodSetSpec, Workload, WorkloadId, WorkloadSpec};

/// The pods to place next, those of one set together: all that are missing for the minimum at every
/// level; or else the pods by which the workload grows. Empty if too few are left to reach a
/// minimum. Sets in `excluded` found no room before, and others replace them where they may.
#[must_use]
pub fn next_pods(cluster: &Cluster, id: WorkloadId, excluded: &[usize]) -> Vec<PodId> {
    next_pods_if(cluster, id, excluded, |_| true)
}

/// [`next_pods`] restricted to pods for which `may` holds.
pub fn next_pods_if(
    cluster: &Cluster,
    id: WorkloadId,
    excluded: &[usize],
    may: impl Fn(PodId) -> bool,
) -> Vec<PodId> {
    let workload = &cluster.workloads()[id];
    let waits = |pod| cluster.pods()[pod].waits() && may(pod);
    let has = |set: usize| workload.pod_sets[set].counted();
    Selection { workload, excluded, waits, has }.next()
}

/// [`next_pods`] with the pods for which `waits` holds as the only candidates, and counting only
/// pods with a place.
pub fn next_pods_among(
    cluster: &Cluster,
    id: WorkloadId,
    excluded: &[usize],
    waits: impl Fn(PodId) -> bool,
) -> Vec<PodId> {
    let workload = &cluster.workloads()[id];
    let has = |set: usize| workload.pod_sets[set].placed;
    Selection { workload, excluded, waits, has }.next()
}

/// The parts of a group (`None`: of the workload), those of a higher task priority first: they are
/// placed first, and evicted last.
fn by_task_priority(spec: &WorkloadSpec, group: Option<usize>) -> Vec<Child> {
    let mut children: Vec<_> = spec.children(group).collect();
    children.sort_by_key(|&child| Reverse(task_priority(spec, child)));
    children
}

/// The highest task priority of any set in a part.
#[must_use]
pub fn task_priority(spec: &WorkloadSpec, child: Child) -> u32 {
    match child {
        Child::Set(set) => spec.pod_sets[set].task_priority,
        Child::Group(group) => {
            let below = spec.children(Some(group));
            below.map(|child| task_priority(spec, child)).max().unwrap_or(0)
        }
    }
}

/// Rank of a pod set for the next pod, the least first, when none lacks any of its minimum: the
/// fewest pods relative to its minimum, then by name. Source: scheduling reference §6.4.
#[must_use]
pub fn set_rank(spec: &PodSetSpec, placed: u32) -> (Ratio, &str) {
    (Ratio::new(u64::from(placed), u64::from(spec.pods_min)), &spec.name)
}

struct Selection<'a, F, G> {
    workload: &'a Workload,
    excluded: &'a [usize],
    waits: F,
    /// Number of pods of a set that count for its minimum.
    has: G,
}

/// Index of a set, and a number of its pods.
type Part = (usize, usize);

impl<F: Fn(PodId) -> bool, G: Fn(usize) -> u32> Selection<'_, F, G> {
    fn next(&self) -> Vec<PodId> {
        if self.workload.pod_sets.len() == 1 && self.excluded.is_empty() {
            return self.pods(self.of_only_set());
        }
        let chosen = match self.lacking(None) {
            Some(lacking) if lacking.is_empty() => self.growth(),
            Some(lacking) => lacking,
            None => Vec::new(),
        };
        self.pods(chosen)
    }

    fn waiting(&self, set: usize) -> impl Iterator<Item = PodId> {
        let pods = self.workload.pods_of(set).iter().copied();
        pods.filter(|&pod| (self.waits)(pod))
    }

    /// The pods of these parts, those of a higher task priority first.
    fn pods(&self, mut parts: Vec<Part>) -> Vec<PodId> {
        parts.sort_by_key(|&(set, _)| Reverse(self.workload.spec.pod_sets[set].task_priority));
        parts.into_iter().flat_map(|(set, count)| self.waiting(set).take(count)).collect()
    }

    /// Parts that a group (`None`: the workload) lacks for its minimum; `None` if it cannot be
    /// reached. Parts with pods come first, so that none stays incomplete.
    fn lacking(&self, group: Option<usize>) -> Option<Vec<Part>> {
        let spec = &self.workload.spec;
        let mut missing = spec.children_min_of(group);
        let (mut begun, mut empty) = (Vec::new(), Vec::new());
        for child in by_task_priority(spec, group) {
            match spec.completeness(child, &self.has) {
                Completeness::Whole => missing = missing.saturating_sub(1),
                Completeness::Partial => begun.push(child),
                Completeness::Empty => empty.push(child),
            }
        }
        let mut lacking = Vec::new();
        for child in begun.into_iter().chain(empty) {
            if missing == 0 {
                break;
            }
            if let Some(parts) = self.lacking_of(child) {
                lacking.extend(parts);
                missing -= 1;
            }
        }
        (missing == 0).then_some(lacking)
    }

    fn lacking_of(&self, child: Child) -> Option<Vec<Part>> {
        let set = match child {
            Child::Group(group) => return self.lacking(Some(group)),
            Child::Set(set) => set,
        };
        let pods_min = self.workload.spec.pod_sets[set].pods_min;
        let lacks = pods_min.saturating_sub((self.has)(set)) as usize;
        let can = !self.excluded.contains(&set) && self.waiting(set).take(lacks).count() == lacks;
        can.then(|| if lacks > 0 { vec![(set, lacks)] } else { Vec::new() })
    }

    /// Parts by which a workload that has its minimum grows: an incomplete part; or else the
    /// highest task priority, among equals a part before a single pod, and the pod of the set with
    /// the fewest pods relative to its minimum.
    fn growth(&self) -> Vec<Part> {
        let spec = &self.workload.spec;
        let (mut whole, mut others) = (Vec::new(), Vec::new());
        let mut open = vec![None];
        while let Some(group) = open.pop() {
            for child in by_task_priority(spec, group) {
                match (self.lacking_of(child), child) {
                    (None, _) => {}
                    (Some(parts), _) if !parts.is_empty() => {
                        let begun = spec.completeness(child, &self.has) == Completeness::Partial;
                        others.push((!begun, Reverse(task_priority(spec, child)), parts));
                    }
                    (_, Child::Group(group)) => open.push(Some(group)),
                    (_, Child::Set(set)) => whole.push(set),
                }
            }
        }
        let wants =
            |set: &usize| !self.excluded.contains(set) && self.waiting(*set).next().is_some();
        let rank = |&set: &usize| {
            let of = &spec.pod_sets[set];
            (Reverse(of.task_priority), set_rank(of, (self.has)(set)))
        };
        let set = whole.into_iter().filter(wants).min_by_key(rank);
        let of_set = set.map(|set| (true, Reverse(spec.pod_sets[set].task_priority)));
        let part = others.into_iter().min_by_key(|&(new, priority, _)| (new, priority));
        match part.filter(|&(new, priority, _)| of_set.is_none_or(|own| (new, priority) <= own)) {
            Some((.., parts)) => parts,
            None => set.map(|set| (set, 1)).into_iter().collect(),
        }
    }

    /// The next part of a workload with one set and no groups, the common case.
    fn of_only_set(&self) -> Vec<Part> {
        let pods_min = self.workload.spec.pod_sets[0].pods_min;
        let lacks = pods_min.saturating_sub((self.has)(0)).max(1) as usize;
        let can = self.waiting(0).take(lacks).count() == lacks;
        if can { vec![(0, lacks)] } else { Vec::new() }
    }
}
