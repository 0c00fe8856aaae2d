//! Check that evictions were necessary. Owns: that invariant, computed from places, limits and
//! labels alone: an evicted workload that still has room where it was, beside all that is there
//! afterwards, was evicted needlessly.

use std::collections::BTreeMap;

use model::{Cluster, NodeId, Placement, PodId, PodMismatch, WorkloadId};
use reasons::Cause;
use sched::{Plan, Step};
use units::{Kind, Resources};

/// Checks the workloads that a plan stops for others; `after` is the cluster with it carried out.
///
/// # Panics
/// When one of them could have gone on.
pub(crate) fn check(after: &Cluster, plan: &Plan) {
    let mut stopped: BTreeMap<WorkloadId, Vec<(PodId, &Placement)>> = BTreeMap::new();
    for step in &plan.steps {
        if let Step::Evict { pod, from, cause } = step
            && matches!(cause, Cause::Reclaimed { .. } | Cause::Preempted { .. })
        {
            stopped.entry(after.pods()[*pod].workload).or_default().push((*pod, from));
        }
    }
    for (id, pods) in stopped {
        let row = &after.workloads()[id];
        let runs = row.enough(|set| row.pod_sets[set].placed);
        // Above its minimum each pod is on its own.
        let alone = runs.then(|| pods.iter().map(std::slice::from_ref));
        let together = (!runs).then_some(&pods[..]);
        for pods in alone.into_iter().flatten().chain(together) {
            assert!(
                !could_stay(after, id, pods),
                "{} was stopped for nothing: {:#?}",
                row.spec.name,
                plan.steps
            );
        }
    }
}

fn could_stay(after: &Cluster, id: WorkloadId, pods: &[(PodId, &Placement)]) -> bool {
    let row = &after.workloads()[id];
    let back = |set: usize| {
        let of_set = pods.iter().filter(|(pod, _)| after.pods()[*pod].set as usize == set);
        u32::try_from(of_set.count()).unwrap_or(u32::MAX)
    };
    let whole = row.enough(|set| row.pod_sets[set].placed + back(set));
    // Its allowed nodes depend on those of its other pods.
    if !whole || row.spec.has_topology() {
        return false;
    }
    let stays = |&(pod, place): &(PodId, &Placement)| {
        let constraints = row.pod_sets[after.pods()[pod].set as usize].constraints;
        let lets_in = after.check_pods(constraints, place.node, false);
        after.pods()[pod].asks()
            && !after.draining().contains(&place.node)
            && after.in_its_pool(pod, place.node)
            && matches!(lets_in, Ok(()) | Err(PodMismatch::Affinity))
    };
    pods.iter().all(stays) && has_room(after, pods) && limits_allow(after, id, pods)
}

fn has_room(after: &Cluster, pods: &[(PodId, &Placement)]) -> bool {
    let mut hosts: BTreeMap<NodeId, Resources> = BTreeMap::new();
    let mut gpus: BTreeMap<(NodeId, u32), u64> = BTreeMap::new();
    for (pod, place) in pods {
        let host = Resources { gpu_millis: 0, ..after.amounts(*pod, place) };
        *hosts.entry(place.node).or_default() += host;
        for share in &place.devices {
            let gpu = &after.nodes()[place.node].gpus[share.gpu as usize];
            *gpus.entry((place.node, share.gpu)).or_default() += gpu.taken_by(share.millis);
        }
    }
    let node = |id: NodeId| &after.nodes()[id];
    hosts.iter().all(|(&id, host)| host.fits_in(node(id).free(false)))
        && gpus
            .iter()
            .all(|(&(id, gpu), &millis)| node(id).gpus[gpu as usize].free_millis(false) >= millis)
}

fn limits_allow(after: &Cluster, id: WorkloadId, pods: &[(PodId, &Placement)]) -> bool {
    let back: Resources = pods.iter().map(|(pod, place)| after.amounts(*pod, place)).sum();
    let pool = pods.first().map(|(_, place)| after.nodes()[place.node].pool).unwrap_or_default();
    let mut lineage = after.lineage(after.queue_in(after.workloads()[id].spec.queue, pool));
    lineage.all(|queue| {
        let queue = &after.queues()[queue];
        let within =
            |kind| back[kind] == 0 || queue.allocated[kind] + back[kind] <= queue.share.limit[kind];
        Kind::ALL.into_iter().all(within)
    })
}
