//! Check that pods that must be in one domain, or in one node pool, are. Owns: this check of a
//! decision, for tests and fault runs.

use std::collections::BTreeSet;

use crate::{Cluster, PodId, TopologyConstraint, Workload, WorkloadId};

impl Cluster {
    /// Checks every workload with a required topology: newly placed pods are in the domain of the
    /// others. `before` is the state before the decision.
    ///
    /// # Errors
    /// The name of the first workload with a pod in another domain.
    pub fn verify_together(&self, before: &Self) -> Result<(), String> {
        for (_, workload) in self.workloads.iter() {
            let spec = &workload.spec;
            let groups = (0..spec.groups.len()).map(Some);
            for group in std::iter::once(None).chain(groups) {
                let sets = (0..spec.pod_sets.len()).filter(|&set| spec.is_in(set, group));
                self.verify_part(before, workload, sets, spec.topology_of(group))?;
            }
            for (at, set) in spec.pod_sets.iter().enumerate() {
                self.verify_part(before, workload, std::iter::once(at), set.topology)?;
            }
        }
        Ok(())
    }

    /// Checks that no workload with a choice of node pools was placed in two of them.
    ///
    /// # Errors
    /// The name of the first such workload.
    pub fn verify_pools(&self, before: &Self) -> Result<(), String> {
        for (id, workload) in self.workloads.iter() {
            // A node may have been moved to another pool with its pods, even to one that the
            // workload does not name: then the others go to a named pool.
            let is_elsewhere = self.pool_of(id).is_some_and(|pool| !workload.pools.contains(&pool));
            if self.is_scattered(id) && !before.is_scattered(id) && !is_elsewhere {
                return Err(format!("{} is in two node pools", workload.spec.name));
            }
        }
        Ok(())
    }

    fn is_scattered(&self, id: WorkloadId) -> bool {
        let pods = self.workloads.get(id).into_iter().flat_map(|workload| &workload.pods);
        let place = |pod: &PodId| self.pods[*pod].binding.effective();
        let mut placed = pods.filter_map(|pod| Some((*pod, place(pod)?.node)));
        placed.any(|(pod, node)| !self.in_its_pool(pod, node))
    }

    fn verify_part(
        &self,
        before: &Self,
        workload: &Workload,
        sets: impl Iterator<Item = usize>,
        constraint: Option<TopologyConstraint>,
    ) -> Result<(), String> {
        let Some(TopologyConstraint { topology, required: Some(level), .. }) = constraint else {
            return Ok(());
        };
        let place = |cluster: &Self, pod: PodId| {
            cluster.pods.get(pod).and_then(|pod| pod.binding.effective().map(|at| at.node))
        };
        let domain = |node| self.topology(topology).domains_of(node).get(level).copied();
        let pods: Vec<_> = sets.flat_map(|set| workload.pods_of(set).iter().copied()).collect();
        let stayed = |pod: &PodId| place(before, *pod) == place(self, *pod);
        let at = |pod: PodId| place(self, pod).map(domain);
        let old: BTreeSet<_> = pods.iter().copied().filter(stayed).filter_map(at).collect();
        let came = pods.iter().copied().filter(|pod| !stayed(pod));
        let new: BTreeSet<_> = came.filter_map(at).collect();
        let name = &workload.spec.name;
        if new.contains(&None) {
            return Err(format!("{name} came to a node outside of its topology"));
        }
        // Labels may have changed under placed pods.
        let together = match old.len() {
            0 => new.len() <= 1,
            _ => new.is_subset(&old),
        };
        if together {
            Ok(())
        } else {
            Err(format!("{name} is in several domains: {old:?}, {new:?}"))
        }
    }
}
