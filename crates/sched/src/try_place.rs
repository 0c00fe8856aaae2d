//! Placement of one workload at a time on free resources. Owns: the shortest way to the placement
//! that the actions use, for replaying traces and measuring packing. No pod is stopped or moved.

use model::{Cluster, PodBinding, WorkloadId};

use crate::place::PodRequirements;
use crate::{NodeScoring, Policy, node_scoring};

/// Gives every waiting pod of a workload a place that is free now, or none of them. The scoring is
/// for one cluster and one policy, call after call.
pub fn try_place(
    cluster: &mut Cluster,
    scoring: &mut NodeScoring,
    id: WorkloadId,
    policy: &Policy,
) -> bool {
    let mut placed = Vec::new();
    for pod in cluster.workloads()[id].pods.clone() {
        if !cluster.pods()[pod].waits() {
            continue;
        }
        let ask = PodRequirements::anywhere(cluster, pod, None);
        let Some(to) = node_scoring::find(cluster, scoring, ask, true, policy, |_| true) else {
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
