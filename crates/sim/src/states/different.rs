//! States in which every workload differs from every other. Owns: the differences, which follow
//! from the number of each workload alone, and the tree of queues. CPU and memory are scarce here.

use std::ops::Range;

use model::{
    Cluster, Constraints, DeviceShare, GpuRequest, NodeId, NodeSpec, Operator, POOL_LABEL,
    Placement, PodBinding, PodRequest, PodSetSpec, QueueId, QueueSpec, Requirement, Share, Weights,
    WorkloadId, WorkloadSpec,
};
use units::{GPU_MILLIS, Resources};

use crate::rng::Rng;

/// Number of queues below each queue, by level: 1,000 that hold workloads.
const BRANCHES: [usize; 4] = [5, 5, 4, 10];
/// First sequence number of workloads added after the initial ones.
const SEQ_OF_OTHERS: u64 = 1 << 32;
const MODELS: [&str; 4] = ["large", "medium", "small", "tiny"];

/// A cluster in which all workloads differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Different {
    /// Number of pending workloads.
    pub pending: u32,
    /// Percentage of all GPUs that is held.
    pub held_percent: u64,
    /// Number of node pools; 1 for none.
    pub pools: u32,
}

struct Draw {
    cluster: Cluster,
    rng: Rng,
    leaves: Vec<QueueId>,
    pools: u32,
    /// Number of running workloads so far.
    held: usize,
    seq: u64,
}

impl Different {
    /// Builds the cluster with `nodes` nodes.
    #[must_use]
    pub fn build(self, nodes: u32) -> Cluster {
        let mut draw = Draw::new(Cluster::new(), 1, self.pools);
        for number in 0..nodes {
            draw.node(number);
        }
        let gpus = draw.cluster.capacity().gpu_millis / GPU_MILLIS;
        draw.queues(None, &BRANCHES, gpus);
        if self.pools > 1 {
            draw.cluster.divide_by_pool();
        }
        for id in draw.cluster.nodes().ids().collect::<Vec<_>>() {
            draw.hold(id, self.held_percent);
        }
        for _ in 0..self.pending {
            let spec = draw.spec();
            draw.add(spec);
        }
        draw.cluster
    }

    /// Another workload for a cluster built by [`Self::build`]; different for each number, from 1.
    #[must_use]
    pub fn another(self, cluster: &Cluster, number: u64) -> WorkloadSpec {
        let mut draw = Draw::new(Cluster::new(), 1 + number, self.pools);
        let is_leaf = |id: &QueueId| {
            let queue = &cluster.queues()[*id];
            queue.children.is_empty() && cluster.project_of(*id) == *id
        };
        draw.leaves = cluster.queues().ids().filter(is_leaf).collect();
        draw.seq = SEQ_OF_OTHERS + number;
        draw.spec()
    }
}

impl Draw {
    fn new(cluster: Cluster, seed: u64, pools: u32) -> Self {
        Self { cluster, rng: Rng::new(seed), leaves: Vec::new(), pools, held: 0, seq: 0 }
    }

    fn node(&mut self, number: u32) {
        let (gpus, memory, cores, model) = match number % 8 {
            0..4 => (8, 80 << 30, 128, MODELS[0]),
            4..6 => (8, 40 << 30, 96, MODELS[1]),
            6 => (4, 24 << 30, 64, MODELS[2]),
            _ => (2, 16 << 30, 48, MODELS[3]),
        };
        let name = format!("node-{number:05}");
        let mut spec = NodeSpec::new(name, vec![memory; gpus], cores * 1000, cores * (6 << 30));
        spec.labels.insert("model".into(), model.into());
        spec.labels.insert("zone".into(), format!("zone-{}", number % 5));
        if self.pools > 1 {
            spec.labels.insert(POOL_LABEL.into(), format!("pool-{}", number / 8 % self.pools));
        }
        self.cluster.add_node(spec);
    }

    /// Adds queues below one, each with an equal part of `gpus` GPUs as its quota.
    fn queues(&mut self, parent: Option<QueueId>, branches: &[usize], gpus: u64) {
        let Some((&count, below)) = branches.split_first() else { return };
        for number in 0..count as u64 {
            self.seq += 1;
            // The remainder goes to the first queues.
            let part = gpus / count as u64 + u64::from(number < gpus % count as u64);
            let quota = Resources { gpu_millis: part * GPU_MILLIS, ..Resources::UNLIMITED };
            let share = Share {
                over_quota_weight: Weights::all(1 + self.seq % 4),
                ..Share::new(quota, Resources::UNLIMITED)
            };
            let name = format!("queue-{}", self.seq);
            let spec = QueueSpec { name, parent, share, seq: self.seq };
            let id = self.cluster.add_queue(spec).expect("queues are added under queues only");
            match below.is_empty() {
                true => self.leaves.push(id),
                false => self.queues(Some(id), below, part),
            }
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.rng.below(usize::try_from(end).unwrap_or(usize::MAX)) as u64
    }

    fn small(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(end.into())).unwrap_or(0)
    }

    /// A workload that differs from all others: sizes, CPU, memory, affinity, priority and queue
    /// are random.
    fn spec(&mut self) -> WorkloadSpec {
        self.seq += 1;
        let (gpu, gpus) = match self.below(20) {
            0 => (GpuRequest::Whole(0), 1),
            1..5 => (GpuRequest::Share { devices: 1, millis: 100 + self.below(800) }, 1),
            5 => (GpuRequest::Memory { devices: 1, bytes: (1 + self.below(12)) << 30 }, 1),
            6..13 => (GpuRequest::Whole(1), 1),
            13..16 => (GpuRequest::Whole(2), 2),
            16..18 => (GpuRequest::Whole(4), 4),
            _ => (GpuRequest::Whole(8), 8),
        };
        let cpu_millis = gpus * (1000 + self.below(9000));
        let memory_bytes = gpus * ((4 << 30) + (self.below(40 << 10) << 20));
        let request = PodRequest { gpu, cpu_millis, memory_bytes };
        let mut constraints = Constraints::default();
        match self.below(10) {
            0..2 => self.require(&mut constraints, "model", &MODELS),
            2 => self.require(&mut constraints, "zone", &["zone-0", "zone-1", "zone-2"]),
            _ => {}
        }
        if self.pools > 1 {
            let mut pools: Vec<_> =
                (0..1 + self.below(3)).map(|_| self.below(self.pools.into())).collect();
            pools.sort_unstable();
            pools.dedup();
            constraints.pools = pools.into_iter().map(|pool| format!("pool-{pool}")).collect();
        }
        let pods = if self.below(10) == 0 { 2 + self.small(7) } else { 1 };
        let gang = PodSetSpec { constraints, ..PodSetSpec::gang(request, pods) };
        let queue = self.leaves[self.rng.below(self.leaves.len())];
        let mut spec = WorkloadSpec::new(format!("job-{}", self.seq), queue, self.seq, gang);
        spec.priority = 40 + self.small(40);
        spec.preemptible = self.below(10) > 0;
        spec
    }

    fn require(&mut self, constraints: &mut Constraints, key: &str, values: &[&str]) {
        let value = values[self.rng.below(values.len())];
        let operator = Operator::In(vec![value.to_owned()]);
        constraints.required.push(vec![Requirement { key: key.to_owned(), operator }]);
    }

    fn add(&mut self, spec: WorkloadSpec) -> WorkloadId {
        let id = self.cluster.add_workload(spec).expect("workloads are added to leaves only");
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, true);
        }
        id
    }

    /// Fills `percent` of a node's GPUs with workloads of one pod, of different sizes.
    fn hold(&mut self, node: NodeId, percent: u64) {
        let gpus = self.cluster.nodes()[node].gpus.len() as u64;
        let held = u32::try_from(gpus * percent / 100).unwrap_or(u32::MAX);
        let mut first = 0;
        while first < held {
            let count = (1 + self.small(4)).min(held - first);
            self.running(node, first..first + count);
            first += count;
        }
    }

    fn running(&mut self, node: NodeId, gpus: Range<u32>) {
        self.seq += 1;
        let count = u64::from(gpus.end - gpus.start);
        let request = PodRequest {
            gpu: GpuRequest::Whole(gpus.end - gpus.start),
            cpu_millis: count * (1000 + self.below(9000)),
            memory_bytes: count * ((4 << 30) + (self.below(20 << 10) << 20)),
        };
        let mut constraints = Constraints::default();
        if self.pools > 1 {
            let pool = self.cluster.nodes()[node].labels[POOL_LABEL].clone();
            constraints.pools.push(pool);
        }
        let set = PodSetSpec { constraints, ..request.into() };
        // Round robin, so that each queue holds about its quota.
        let queue = self.leaves[self.held % self.leaves.len()];
        self.held += 1;
        let mut spec = WorkloadSpec::new(format!("held-{}", self.seq), queue, self.seq, set);
        spec.priority = 40 + self.small(40);
        spec.preemptible = self.below(10) > 0;
        let id = self.add(spec);
        let pod = self.cluster.workloads()[id].pods[0];
        let share = |gpu| DeviceShare { gpu, millis: GPU_MILLIS };
        let place = Placement { node, devices: gpus.map(share).collect() };
        self.cluster.set_binding(pod, PodBinding::at(place));
    }
}

#[cfg(test)]
mod tests {
    use sched::alike;

    use super::Different;

    #[test]
    fn no_two_that_wait_are_alike() {
        let state = Different { pending: 200, held_percent: 50, pools: 1 };
        let cluster = state.build(16);
        assert_eq!(cluster.verify(), Ok(()));
        let ids: Vec<_> = cluster.waiting().collect();
        assert_eq!(ids.len(), 200);
        for (at, &id) in ids.iter().enumerate() {
            assert!(ids[..at].iter().all(|&other| !alike(&cluster, id, other)));
        }
        let gpus = cluster.capacity().gpu_millis;
        assert_eq!(cluster.free_soon().gpu_millis, gpus / 2);
    }

    #[test]
    fn pools_divide_the_nodes() {
        let state = Different { pending: 100, held_percent: 100, pools: 3 };
        let cluster = state.build(48);
        assert_eq!(cluster.verify(), Ok(()));
        assert_eq!(cluster.divisions().count(), 4, "and the pool of nodes that do not say");
        assert_eq!(cluster.free_soon().gpu_millis, 0);
    }
}
