//! Jobs like a failed one are not tried again in the same action. Owns: the criteria for similar
//! and for easier jobs. Source: scheduling reference §14.

use std::collections::BTreeMap;

use model::{ConstraintsId, GpuRequest, PodId, PodRequest, QueueId, WorkloadId};

use super::amounts::demand;
use super::jobs;
use crate::session::Session;

/// Common properties of jobs that one representative stands for: the queue, if that matters, and
/// for each pod set the constraints and the number of its pending tasks.
type Signature = (Option<QueueId>, u32, Vec<(ConstraintsId, usize)>);

/// The smallest job of each signature that failed, by the sorted requests of its pending tasks.
#[derive(Debug, Default)]
pub(super) struct Failed(BTreeMap<Signature, Vec<PodRequest>>);

impl Failed {
    /// `true` if a job is in no respect easier than one that failed.
    pub(super) fn covers(&self, s: &Session<'_>, id: WorkloadId, per_queue: bool) -> bool {
        let requests = requests(s, id);
        self.0.get(&signature(s, id, per_queue)).is_some_and(|least| !is_easier(&requests, least))
    }

    pub(super) fn insert(&mut self, s: &Session<'_>, id: WorkloadId, per_queue: bool) {
        self.0.insert(signature(s, id, per_queue), requests(s, id));
    }
}

fn pending(s: &Session<'_>, id: WorkloadId) -> impl Iterator<Item = PodId> {
    let none = jobs::Evicted::new();
    let pods = s.cluster.workloads()[id].pods.iter().copied();
    pods.filter(move |&pod| jobs::is_pending(s, pod, &none))
}

fn signature(s: &Session<'_>, id: WorkloadId, per_queue: bool) -> Signature {
    let workload = &s.cluster.workloads()[id];
    let count = |set: usize| {
        pending(s, id).filter(|&pod| s.cluster.pods()[pod].set as usize == set).count()
    };
    let sets =
        (0..workload.pod_sets.len()).map(|set| (workload.pod_sets[set].constraints, count(set)));
    let queue = per_queue.then(|| s.queue_of(id));
    (queue, workload.spec.priority, sets.collect())
}

fn requests(s: &Session<'_>, id: WorkloadId) -> Vec<PodRequest> {
    let mut requests: Vec<_> = pending(s, id).map(|pod| jobs::request(s, pod)).collect();
    requests.sort_unstable();
    requests
}

/// `true` if the job has fewer tasks, or a smaller one.
fn is_easier(job: &[PodRequest], other: &[PodRequest]) -> bool {
    let size = |request: &PodRequest| {
        let amounts = demand(*request);
        [amounts.gpu_millis, amounts.cpu_millis, amounts.memory_bytes]
    };
    let smaller = |(left, right): (&PodRequest, &PodRequest)| {
        size(left).iter().zip(size(right)).any(|(left, right)| *left < right)
    };
    // Instances of another profile are different, not smaller.
    let other_kind = |(left, right): (&PodRequest, &PodRequest)| {
        matches!(left.gpu, GpuRequest::Mig(_)) && left.gpu != right.gpu
    };
    job.len() < other.len() || job.iter().zip(other).any(|pair| smaller(pair) || other_kind(pair))
}
