//! Gangs that lost too many pods: what is left of them is stopped, since it holds resources and
//! gets nowhere. Source: scheduling reference §18.

use crate::Cause;
use crate::session::Session;

/// Stops what is left of each gang that has been incomplete for longer than the grace.
pub(crate) fn run(s: &mut Session<'_>) {
    let whole_again = s.cluster.stale().difference(s.cluster.partial());
    for id in whole_again.copied().collect::<Vec<_>>() {
        s.cluster.set_stale(id, None);
    }
    for id in s.cluster.partial().clone() {
        let since = s.cluster.workloads()[id].stale_since.unwrap_or(s.now);
        s.cluster.set_stale(id, Some(since));
        let due = since.plus_ms(s.policy.stale_grace_ms);
        if due > s.now {
            s.wake(due);
            continue;
        }
        let workload = &s.cluster.workloads()[id];
        let short = workload.sets().find(|(spec, set)| set.placed < spec.pods_min);
        let (pods_min, pods) = short.map_or((0, 0), |(spec, set)| (spec.pods_min, set.placed));
        let cause = Cause::StaleGang { pods_min, pods };
        for pod in workload.pods.clone() {
            s.settle(pod, None, false);
            s.causes.insert(pod, cause.clone());
        }
        s.cluster.set_stale(id, None);
    }
}
