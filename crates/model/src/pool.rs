//! Node pools in order of preference. Owns: which pool a workload is tried in, and which it is in.
//! Refuses to know: in what order pools are tried; that is the scheduler's.

use crate::{Cluster, ConstraintsId, NodeId, PodId, WorkloadId, pool_of};

impl Cluster {
    /// How many node pools a workload is tried in, one after the other; 1 if it does not matter.
    #[must_use]
    pub fn pools(&self, id: WorkloadId) -> usize {
        let sets = self.workloads[id].pod_sets.iter();
        sets.map(|set| set.pools.len()).max().unwrap_or(0).max(1)
    }

    /// Which of its pools a workload with a choice is in; none while it has no place.
    #[must_use]
    pub fn pool_of(&self, id: WorkloadId) -> Option<usize> {
        if self.pools(id) == 1 || self.workloads[id].placed == 0 {
            return None;
        }
        let mut pods = self.workloads[id].pods.iter();
        pods.find_map(|&pod| self.pool_at(pod, self.pods[pod].occupancy.effective()?.node))
    }

    /// Which of its pools a node is to a pod.
    #[must_use]
    pub fn pool_at(&self, pod: PodId, node: NodeId) -> Option<usize> {
        let here = pool_of(&self.nodes[node].labels);
        let set = self.pods[pod].set as usize;
        let pools = &self.workload_of(pod).spec.pod_sets[set].constraints.pools;
        pools.iter().position(|pool| pool == here)
    }

    /// Whether a node is in the pool to which the other pods of its workload bind a pod.
    #[must_use]
    pub fn in_its_pool(&self, pod: PodId, node: NodeId) -> bool {
        let pool = self.pool_of(self.pods[pod].workload);
        pool.is_none() || pool == self.pool_at(pod, node)
    }

    /// Lets places for a workload's pods be sought in one of its pools only, or again in all. It
    /// is no part of the state that decisions are made from: whoever sets it takes it back.
    pub fn confine(&mut self, id: WorkloadId, pool: Option<usize>) {
        self.workloads[id].confined = pool;
    }

    /// Where a workload is confined to at the moment.
    #[must_use]
    pub fn confined(&self, id: WorkloadId) -> Option<usize> {
        self.workloads[id].confined
    }

    /// What a pod demands of nodes: those of the pool it is confined to.
    #[must_use]
    pub fn constraints_of(&self, pod: PodId) -> ConstraintsId {
        let set = self.set_of(pod);
        let confined = self.workload_of(pod).confined;
        confined.and_then(|pool| set.pools.get(pool).copied()).unwrap_or(set.constraints)
    }
}
