//! The order of workloads in one queue and of pod sets in one workload. Owns: both comparisons.
//! Source: scheduling reference §6.4.

use std::cmp::Reverse;

use model::{Cluster, PodSetSpec, WorkloadId};
use units::Ratio;

/// Position in a queue, least first: by priority, then by age.
pub(crate) type Rank = (Reverse<u32>, u64);

/// Workloads of one queue: higher priority first, then the older.
pub(crate) fn by_rank(cluster: &Cluster, id: WorkloadId) -> Rank {
    let spec = &cluster.workloads()[id].spec;
    (Reverse(spec.priority), spec.seq)
}

/// Which pod set of a workload gets its next pod, least first, when none lacks any of its minimum:
/// the one with the fewest pods for its minimum, then by name. Source: scheduling reference §6.4.
pub(crate) fn set_rank(spec: &PodSetSpec, placed: u32) -> (Ratio, &str) {
    (Ratio::new(u64::from(placed), u64::from(spec.pods_min)), &spec.name)
}
