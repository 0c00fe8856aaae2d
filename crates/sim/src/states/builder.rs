//! Construction of a state. Owns: numbering, and short functions for common workloads.

use model::{
    Cluster, DeviceShare, GpuRequest, NodeSpec, Placement, PodBinding, PodRequest, PodSetSpec,
    QueueId, QueueSpec, Share, TopologyConstraint, Weights, WorkloadId, WorkloadSpec,
};
use units::{GPU_MILLIS, Idx, Resources};

pub(super) struct Builder {
    pub(super) cluster: Cluster,
    nodes: u32,
    seq: u64,
}

impl Builder {
    pub(super) fn new(nodes: u32) -> Self {
        let mut cluster = Cluster::new();
        for number in 0..nodes {
            let name = format!("node-{number:05}");
            cluster.add_node(NodeSpec::new(name, vec![80 << 30; 8], 20_000_000, 1 << 50));
        }
        Self { cluster, nodes, seq: 0 }
    }

    pub(super) fn queue(
        &mut self,
        name: &str,
        parent: Option<QueueId>,
        quota_gpus: u64,
        weight: u64,
    ) -> QueueId {
        self.seq += 1;
        let quota = Resources { gpu_millis: quota_gpus * GPU_MILLIS, ..Resources::UNLIMITED };
        let share = Share {
            over_quota_weight: Weights::all(weight),
            ..Share::new(quota, Resources::UNLIMITED)
        };
        let spec = QueueSpec { name: name.into(), parent, share, seq: self.seq };
        self.cluster.add_queue(spec).expect("states add queues under queues only")
    }

    fn workload(&mut self, queue: QueueId, pods: u32, gpus: u32) -> WorkloadId {
        self.seq += 1;
        let request = PodRequest { gpu: GpuRequest::Whole(gpus), cpu_millis: 0, memory_bytes: 0 };
        let name = format!("job-{}", self.seq);
        let gang = PodSetSpec::gang(request, pods);
        self.add(WorkloadSpec::new(name, queue, self.seq, gang))
    }

    fn add(&mut self, spec: WorkloadSpec) -> WorkloadId {
        let id = self.cluster.add_workload(spec).expect("states add workloads to leaves only");
        for pod in self.cluster.workloads()[id].pods.clone() {
            self.cluster.set_wants(pod, true);
        }
        id
    }

    /// Adds a pending gang.
    pub(super) fn pending(&mut self, queue: QueueId, pods: u32, gpus: u32) {
        self.workload(queue, pods, gpus);
    }

    /// Adds a pending gang of one-GPU pods that must be in one of 5 zones, each of 10 blocks of 10
    /// racks; nodes are assigned to the racks in order.
    pub(super) fn pending_in_one_zone(&mut self, queue: QueueId, pods: u32) {
        let ids: Vec<_> = self.cluster.nodes().iter().map(|(id, _)| id).collect();
        for (number, id) in (0_u64..).zip(ids) {
            let rack = number * 500 / u64::from(self.nodes);
            let labels = [("zone", rack / 100), ("block", rack / 10 % 10), ("rack", rack % 10)];
            let labels = labels.map(|(level, at)| (level.to_owned(), format!("{level}-{at}")));
            self.cluster.set_labels(id, labels.into_iter().collect(), Vec::new());
        }
        let levels = ["zone", "block", "rack"].map(str::to_owned).to_vec();
        let topology = self.cluster.add_topology("net", levels).expect("the first topology");
        self.seq += 1;
        let request = PodRequest { gpu: GpuRequest::Whole(1), cpu_millis: 0, memory_bytes: 0 };
        let gang = PodSetSpec::gang(request, pods);
        let mut spec = WorkloadSpec::new("gang", queue, self.seq, gang);
        spec.topology = Some(TopologyConstraint { topology, required: Some(0), preferred: None });
        self.add(spec);
    }

    /// Adds a one-GPU job that runs on this GPU.
    pub(super) fn running(&mut self, queue: QueueId, node: u32, gpu: u32) {
        let id = self.workload(queue, 1, 1);
        let device = DeviceShare { gpu, millis: GPU_MILLIS };
        let place = Placement { node: Idx::new(node), devices: [device].into_iter().collect() };
        let pod = self.cluster.workloads()[id].pods[0];
        self.cluster.set_binding(pod, PodBinding::at(place));
    }

    /// Gives every GPU to a one-GPU job of a queue with quota `held`, and adds pending gangs in a
    /// queue with quota `deserved`; no queue has a weight above its quota.
    pub(super) fn full_with_pending(&mut self, held: u64, deserved: u64, gangs: &[(u32, u32)]) {
        let running = self.queue("queue-0", None, held, 0);
        let pending = self.queue("queue-1", None, deserved, 0);
        // Jobs are assigned to the nodes one by one, as in the published benchmark.
        for gpu in 0..8 {
            (0..self.nodes).for_each(|node| self.running(running, node, gpu));
        }
        for &(pods, gpus) in gangs {
            self.pending(pending, pods, gpus);
        }
    }
}
