//! Workloads that are the same to every decision. Owns: what makes them so. What one of a class
//! could not get, none of it can; why one of it waits, all of it do.

use model::{
    Cluster, ConstraintsId, GpuRequest, PodRequest, PoolId, QueueId, ShapeId, WorkloadId,
    WorkloadSpec,
};
use smallvec::SmallVec;
use units::Instant;

/// Everything of a waiting workload that a decision looks at, except its place in the line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EquivalenceClass {
    queue: QueueId,
    priority: u32,
    /// Of pods above the minimum.
    spare_priority: u32,
    preemptible: bool,
    elastic: bool,
    /// Until when it may not preempt others; ignored without a delay.
    patient_until: Instant,
    time_limit_ms: Option<u64>,
    shape: ShapeId,
    /// Pods that have a place bind the others to where it is, which is its own matter.
    bound: Option<WorkloadId>,
    /// The node pool its pods with a place bind the others to.
    pool: Option<PoolId>,
    sets: SmallVec<[SetClass; 1]>,
}

/// The same of one of its pod sets.
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
    /// Those that ask for a place: others may be held back.
    waiting: usize,
}

/// Until when a workload may not preempt others: it waits so long from its submission, and again
/// after it was evicted. None for one without a delay.
pub(crate) fn patient_until(cluster: &Cluster, id: WorkloadId) -> Option<Instant> {
    let workload = &cluster.workloads()[id];
    let delay_ms = workload.spec.preemption_delay_ms;
    let since = workload.last_eviction.unwrap_or(workload.spec.created_at);
    (delay_ms > 0).then(|| since.plus_ms(delay_ms))
}

/// True if two waiting workloads are the same to every decision, but for their place in the line.
#[must_use]
pub fn alike(cluster: &Cluster, left: WorkloadId, right: WorkloadId) -> bool {
    EquivalenceClass::of(cluster, left) == EquivalenceClass::of(cluster, right)
}

impl EquivalenceClass {
    /// True if its workloads may start with less than they ask for.
    pub(crate) const fn is_elastic(&self) -> bool {
        self.elastic
    }

    pub(crate) fn of(cluster: &Cluster, id: WorkloadId) -> Self {
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

/// Whether the number of GPUs may change: elastic, and whole GPUs at all.
pub(crate) fn is_elastic(spec: &WorkloadSpec) -> bool {
    spec.elastic && matches!(spec.pod_sets[0].request.gpu, GpuRequest::Whole(1..))
}
