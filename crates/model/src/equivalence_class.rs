//! Workloads that are equal to every decision. Owns: the criteria. If one of a class finds no
//! place, none of it does; all of a class share their reasons to wait.

use crate::{
    Cluster, ConstraintsId, GpuRequest, PodRequest, PoolId, QueueId, ShapeId, WorkloadId,
    WorkloadSpec,
};
use smallvec::SmallVec;
use units::Instant;

/// All properties of a waiting workload, except its position, that a decision depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EquivalenceClass {
    queue: QueueId,
    priority: u32,
    /// Priority of pods above the minimum.
    spare_priority: u32,
    preemptible: bool,
    elastic: bool,
    /// Time before which it may not preempt others; ignored without a delay.
    patient_until: Instant,
    time_limit_ms: Option<u64>,
    shape: ShapeId,
    /// The workload itself, if topology binds its other pods to its placed ones; else `None`.
    bound: Option<WorkloadId>,
    /// The node pool its pods with a place bind the others to.
    pool: Option<PoolId>,
    sets: SmallVec<[SetClass; 1]>,
}

/// The properties of one of its pod sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SetClass {
    request: PodRequest,
    constraints: ConstraintsId,
    task_priority: u32,
    pods: u32,
    pods_min: u32,
    members: u32,
    placed: u32,
    succeeded: u32,
    /// Number of pods that need a place; others may be gated.
    waiting: usize,
}

/// Time before which a workload may not preempt others: the delay counts from its submission, and
/// again from its last eviction. `None` without a delay.
#[must_use]
pub fn patient_until(cluster: &Cluster, id: WorkloadId) -> Option<Instant> {
    let workload = &cluster.workloads()[id];
    let delay_ms = workload.spec.preemption_delay_ms;
    let since = workload.last_eviction.unwrap_or(workload.spec.created_at);
    (delay_ms > 0).then(|| since.plus_ms(delay_ms))
}

/// `true` if two waiting workloads are equal to every decision, except for their positions.
#[must_use]
pub fn alike(cluster: &Cluster, left: WorkloadId, right: WorkloadId) -> bool {
    EquivalenceClass::of(cluster, left) == EquivalenceClass::of(cluster, right)
}

impl EquivalenceClass {
    /// `true` if its workloads may start with less than their request.
    #[must_use]
    pub const fn is_elastic(&self) -> bool {
        self.elastic
    }

    /// The class of a workload.
    #[must_use]
    pub fn of(cluster: &Cluster, id: WorkloadId) -> Self {
        let workload = &cluster.workloads()[id];
        let spec = &workload.spec;
        let waiting =
            |set| workload.pods_of(set).iter().filter(|&&pod| cluster.pods()[pod].waits()).count();
        let sets = workload.sets().enumerate().map(|(at, (spec, set))| SetClass {
            request: spec.request,
            constraints: set.constraints,
            task_priority: spec.task_priority,
            pods: spec.pods,
            pods_min: spec.pods_min,
            members: set.members,
            placed: set.placed,
            succeeded: set.succeeded,
            waiting: waiting(at),
        });
        Self {
            queue: spec.queue,
            priority: spec.priority,
            spare_priority: spec.priority_of_spare(),
            preemptible: spec.preemptible,
            elastic: spec.elastic,
            patient_until: patient_until(cluster, id).unwrap_or_default(),
            time_limit_ms: spec.time_limit_ms,
            shape: workload.shape,
            bound: (workload.placed > 0 && spec.has_topology()).then_some(id),
            pool: cluster.pool_of(id),
            sets: sets.collect(),
        }
    }
}

/// `true` if the number of GPUs may change: the workload is elastic and requests whole GPUs.
#[must_use]
pub fn is_elastic(spec: &WorkloadSpec) -> bool {
    spec.elastic && matches!(spec.pod_sets[0].request.gpu, GpuRequest::Whole(1..))
}
