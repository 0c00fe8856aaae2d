//! The order of workloads in one queue. Owns: that comparison.
//! Source: scheduling reference §6.4.

use std::cmp::Reverse;

use model::{Cluster, WorkloadId};

/// Position in a queue, least first: by priority, then by age.
pub(crate) type Rank = (Reverse<u32>, u64);

/// Workloads of one queue: higher priority first, then the older.
pub(crate) fn by_rank(cluster: &Cluster, id: WorkloadId) -> Rank {
    let spec = &cluster.workloads()[id].spec;
    (Reverse(spec.priority), spec.seq)
}
