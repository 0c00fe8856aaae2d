//! Nodes that are being emptied: their pods are moved where there is a place, or stopped. Owns:
//! carrying out what the operator has decided; no priority or quota speaks against it.

use std::collections::BTreeMap;

use model::{NodeId, PodBinding, PodId, WorkloadId};

use crate::session::Session;
use reasons::Cause;

/// Takes every pod off the nodes that are being drained. What is left of a gang that falls below
/// its minimum, and finds no other place for it, is stopped too.
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
        take(s, pod, &Cause::Drained { node: s.cluster.nodes()[node].name.clone() });
    }
    for id in order {
        let node = leaving[&id][0].1;
        let node = s.cluster.nodes()[node].name.clone();
        go_on(s, id, leaving[&id].len(), &Cause::Drained { node });
    }
}

/// Finds other places for so many pods of a workload, or stops what makes no sense without them.
fn go_on(s: &mut Session<'_>, id: WorkloadId, pods: usize, cause: &Cause) {
    for _ in 0..pods {
        let waits = s.cluster.workloads()[id].pods.iter().any(|&pod| s.cluster.pods()[pod].waits());
        if !waits || !s.may_try() || s.place(id, None).is_err() {
            break;
        }
    }
    if s.cluster.partial().contains(&id) {
        for pod in s.cluster.workloads()[id].pods.clone() {
            take(s, pod, cause);
        }
    }
}

fn take(s: &mut Session<'_>, pod: PodId, cause: &Cause) {
    if s.cluster.pods()[pod].binding == PodBinding::default() {
        return;
    }
    s.set_target(pod, None, false);
    s.causes.entry(pod).or_insert_with(|| cause.clone());
}
