//! Whether pods that must be in one domain are. Owns: that invariant.

use std::collections::BTreeSet;

use model::{Cluster, PodId, TopologyConstraint, Workload};

/// Checks every workload whose pods must be in one domain: who came in this decision is where the
/// others are.
///
/// # Panics
/// When somebody came to another domain.
pub(crate) fn check(before: &Cluster, after: &Cluster) {
    for (_, workload) in after.workloads().iter() {
        let spec = &workload.spec;
        let groups = (0..spec.groups.len()).map(Some);
        for group in std::iter::once(None).chain(groups) {
            let sets = (0..spec.pod_sets.len()).filter(|&set| spec.is_in(set, group));
            part(before, after, workload, &sets.collect::<Vec<_>>(), spec.topology_of(group));
        }
        for (at, set) in spec.pod_sets.iter().enumerate() {
            part(before, after, workload, &[at], set.topology);
        }
    }
}

fn part(
    before: &Cluster,
    after: &Cluster,
    workload: &Workload,
    sets: &[usize],
    constraint: Option<TopologyConstraint>,
) {
    let Some(TopologyConstraint { topology, required: Some(level), .. }) = constraint else {
        return;
    };
    let place = |cluster: &Cluster, pod: PodId| {
        cluster.pods().get(pod).and_then(|pod| pod.occupancy.effective().map(|at| at.node))
    };
    let domain = |node| after.topology(topology).domains_of(node).get(level).copied();
    let pods = || sets.iter().flat_map(|&set| workload.pods_of(set).iter().copied());
    let stayed = |pod: &PodId| place(before, *pod) == place(after, *pod);
    let at = |pod: PodId| place(after, pod).map(domain);
    let old: BTreeSet<_> = pods().filter(stayed).filter_map(at).collect();
    let new: BTreeSet<_> = pods().filter(|pod| !stayed(pod)).filter_map(at).collect();
    let all: BTreeSet<_> = old.union(&new).collect();
    let name = &workload.spec.name;
    assert!(!new.contains(&None), "{name} came to a node outside of its topology");
    // Labels may have changed under those that were there.
    let together = if old.len() <= 1 { all.len() <= 1 } else { new.is_subset(&old) };
    assert!(together, "{name} is in several domains: {old:?}, {new:?}");
}
