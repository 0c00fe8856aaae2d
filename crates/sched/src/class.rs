//! Workloads that are the same to every decision. Owns: what makes them so. What one of a class
//! could not get, none of it can; why one of it waits, all of it do.

use model::{Cluster, ConstraintsId, PodRequest, QueueId, WorkloadId};

/// Everything of a waiting workload that a decision looks at, except its place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class {
    queue: QueueId,
    request: PodRequest,
    constraints: ConstraintsId,
    priority: u32,
    preemptible: bool,
    elastic: bool,
    pods: u32,
    pods_min: u32,
    placed: u32,
}

impl Class {
    pub(crate) fn of(cluster: &Cluster, id: WorkloadId) -> Self {
        let workload = &cluster.workloads()[id];
        let spec = &workload.spec;
        Self {
            queue: spec.queue,
            request: spec.request,
            constraints: workload.constraints,
            priority: spec.priority,
            preemptible: spec.preemptible,
            elastic: spec.elastic,
            pods: spec.pods,
            pods_min: spec.pods_min,
            placed: workload.placed,
        }
    }
}
