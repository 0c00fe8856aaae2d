//! One workload at a time, onto what is free at once. Owns: the shortest way to the placement
//! the actions use, for replaying traces and measuring packing. Nobody is stopped or moved.

use model::{Cluster, PodBinding, WorkloadId};

use crate::place::{self, Ask};
use crate::{Policy, Ranking};

/// Gives every waiting pod of a workload a place that is free now, or none of them. The ranking
/// serves one cluster and one policy, call after call.
pub fn try_place(
    cluster: &mut Cluster,
    ranking: &mut Ranking,
    id: WorkloadId,
    policy: &Policy,
) -> bool {
    let mut placed = Vec::new();
    for pod in cluster.workloads()[id].pods.clone() {
        if !cluster.pods()[pod].waits() {
            continue;
        }
        let ask = Ask::anywhere(cluster, pod, None);
        let Some(to) = place::find(cluster, ranking, ask, true, policy, |_| true) else {
            for pod in placed {
                cluster.set_binding(pod, PodBinding::default());
            }
            return false;
        };
        cluster.set_binding(pod, PodBinding::at(to));
        placed.push(pod);
    }
    true
}
