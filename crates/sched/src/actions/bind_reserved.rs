//! Starts workloads whose reserved places are free. Owns: turning a reservation into a start.

use std::collections::BTreeMap;

use model::{PodBinding, PodId, WorkloadId};

use crate::session::Session;
use crate::session::pools;

/// Starts every workload whose reserved places are all free; a workload that has to wait but could
/// start elsewhere at once does so. A gang that lost a part of its reserved places gives up the
/// rest: it starts whole or not at all.
pub(crate) fn run(s: &mut Session<'_>) {
    let mut reserved: BTreeMap<WorkloadId, Vec<PodId>> = BTreeMap::new();
    for &pod in s.cluster.reserved() {
        reserved.entry(s.cluster.pods()[pod].workload).or_default().push(pod);
    }
    let mut order: Vec<_> = reserved.keys().copied().collect();
    order.sort_by_key(|&id| crate::rank::by_rank(s.cluster, id));
    for id in order {
        let workload = &s.cluster.workloads()[id];
        // Fewer pods than its minimum have a place. It waits for the others while they are gated.
        if !workload.enough(|set| workload.pod_sets[set].counted()) {
            if others_wait(s, id) {
                reserved[&id].iter().for_each(|&pod| give_up(s, pod));
            }
            continue;
        }
        let start = s.cluster.checkpoint();
        if !reserved[&id].iter().all(|&pod| start_pod(s, pod)) {
            s.cluster.rollback(start);
        }
    }
}

fn others_wait(s: &Session<'_>, id: WorkloadId) -> bool {
    s.cluster.workloads()[id].pods.iter().any(|&pod| s.cluster.pods()[pod].waits())
}

fn give_up(s: &mut Session<'_>, pod: PodId) {
    if s.cluster.pods()[pod].binding.current.is_none() {
        s.set_target(pod, None, false);
    }
}

fn start_pod(s: &mut Session<'_>, pod: PodId) -> bool {
    let binding = s.cluster.pods()[pod].binding.clone();
    let (None, Some(to)) = (&binding.current, &binding.next) else { return false };
    let room = s.cluster.amounts(pod, to);
    let has_room = s.cluster.nodes()[to.node].has_room_now(&to.devices, room);
    if has_room && s.cluster.may_start(pod, to.node) {
        s.cluster.set_binding(pod, PodBinding::at(to.clone()));
        return true;
    }
    let elastic = s.cluster.workload_of(pod).spec.elastic;
    let gpus = u32::try_from(to.devices.len()).ok().filter(|_| elastic);
    let id = s.cluster.pods()[pod].workload;
    let pool = s.cluster.nodes()[to.node].pool;
    let elsewhere = pools::within(s, id, Some(pool), |s| {
        let ask = s.requirements(pod, gpus);
        s.find_beside(pod, ask, true)
    });
    let Some(elsewhere) = elsewhere else { return false };
    s.cluster.set_binding(pod, PodBinding::at(elsewhere));
    true
}
