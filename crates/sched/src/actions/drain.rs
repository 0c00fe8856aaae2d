//! Nodes being drained: their pods are moved where there is a place, or stopped. Owns: the drain
//! that the operator has ordered, regardless of priority and quota.

use std::collections::BTreeMap;

use model::{NodeId, PodId, WorkloadId};

use crate::session::Session;
use reasons::Cause;

/// Removes every pod from draining nodes. The rest of a gang that falls below its minimum keeps its
/// places for as long as any other gang that lost pods.
pub(crate) fn run(s: &mut Session<'_>) {
    let mut leaving: BTreeMap<WorkloadId, Vec<(PodId, NodeId)>> = BTreeMap::new();
    for &node in s.cluster.draining() {
        for &pod in &s.cluster.nodes()[node].pods {
            let row = &s.cluster.pods()[pod];
            if row.binding.effective().is_some_and(|place| place.node == node) {
                leaving.entry(row.workload).or_default().push((pod, node));
            }
        }
    }
    if leaving.is_empty() {
        return;
    }
    s.trials_left = s.policy.trials_max;
    let mut order: Vec<_> = leaving.keys().copied().collect();
    order.sort_by_key(|&id| crate::rank::by_rank(s.cluster, id));
    for &(pod, node) in leaving.values().flatten() {
        take(s, pod, node);
    }
    for id in order {
        go_on(s, id, leaving[&id].len());
    }
}

/// Finds other places for `pods` pods of a workload.
fn go_on(s: &mut Session<'_>, id: WorkloadId, pods: usize) {
    for _ in 0..pods {
        let waits = s.cluster.workloads()[id].pods.iter().any(|&pod| s.cluster.pods()[pod].waits());
        if !waits || !s.may_try() || s.place(id, None).is_err() {
            break;
        }
    }
}

fn take(s: &mut Session<'_>, pod: PodId, node: NodeId) {
    let node = s.cluster.nodes()[node].name.clone();
    s.set_target(pod, None, false);
    s.causes.entry(pod).or_insert(Cause::Drained { node });
}
