//! Gangs that lost too many tasks. Source: scheduling reference §18.

use model::WorkloadId;

use crate::session::Session;
use reasons::Cause;

/// Stops the rest of each gang that has been incomplete for longer than the grace.
pub(super) fn run(s: &mut Session<'_>) {
    for id in s.cluster.workloads().ids().collect::<Vec<_>>() {
        let since = s.cluster.workloads()[id].stale_since;
        if !is_stale(s, id) {
            s.mark_stale(id, None);
            continue;
        }
        let since = since.unwrap_or(s.now);
        s.mark_stale(id, Some(since));
        let due = since.plus_ms(s.policy.stale_grace_ms);
        if due > s.now {
            s.wake(due);
            continue;
        }
        let workload = &s.cluster.workloads()[id];
        let (pods_min, pods) = (workload.spec.pods_min(), workload.placed);
        for pod in workload.pods.clone() {
            s.set_target(pod, None, false);
            s.causes.insert(pod, Cause::StaleGang { pods_min, pods });
        }
        s.mark_stale(id, None);
    }
}

/// `true` if some tasks are placed, stopping ones included, but fewer than the minimum, and none
/// has succeeded.
fn is_stale(s: &Session<'_>, id: WorkloadId) -> bool {
    let workload = &s.cluster.workloads()[id];
    let used = |set: usize| {
        let pods = workload.pods_of(set).iter().map(|&pod| &s.cluster.pods()[pod].binding);
        let there = pods.filter(|place| place.current.is_some() || place.next.is_some()).count();
        u32::try_from(there).unwrap_or(u32::MAX)
    };
    workload.placed > 0 && workload.succeeded == 0 && !workload.enough(used)
}
