//! Gangs that lost too many pods: the rest is stopped, since it holds resources without progress.
//! Source: scheduling reference §18.

use model::{Child, Completeness, PodId, Workload};

use crate::session::Session;
use reasons::Cause;

/// Margin after the grace: a pod that comes back when the grace ends finds the others in place,
/// although events of one moment arrive slightly later.
const SAME_MOMENT_MS: u64 = 100;

/// Stops the rest of each gang that has been incomplete for longer than the grace.
pub(crate) fn run(s: &mut Session<'_>) {
    let whole_again = s.cluster.stale().difference(s.cluster.partial());
    for id in whole_again.copied().collect::<Vec<_>>() {
        s.mark_stale(id, None);
    }
    for id in s.cluster.partial().clone() {
        let since = s.cluster.workloads()[id].stale_since.unwrap_or(s.now);
        s.mark_stale(id, Some(since));
        let most = s.policy.stale_grace_ms;
        let grace_ms = s.cluster.workloads()[id].grace_ms.map_or(most, |own| own.min(most));
        let due = since.plus_ms(grace_ms).plus_ms(SAME_MOMENT_MS);
        if due > s.now {
            s.wake(due);
            continue;
        }
        let workload = &s.cluster.workloads()[id];
        let (pods_min, pods) = counts(workload);
        let cause = Cause::StaleGang { pods_min, pods };
        for pod in broken_pods(workload) {
            s.set_target(pod, None, false);
            s.causes.insert(pod, cause.clone());
        }
        s.mark_stale(id, None);
    }
}

/// Numbers of pods that must run together, and of these that are left: of the whole workload, or of
/// the part that is worst off where it may go on without a part.
fn counts(workload: &Workload) -> (u32, u32) {
    let counted = workload.sets().map(|(spec, set)| (spec.pods_min, set.placed.min(spec.pods_min)));
    if workload.spec.needs_all_sets() {
        return counted.fold((0, 0), |(all, left), (pods_min, pods)| (all + pods_min, left + pods));
    }
    let short = counted.filter(|(pods_min, pods)| pods < pods_min);
    // An empty part may be replaced by another.
    short.max_by_key(|(_, pods)| *pods > 0).unwrap_or_default()
}

/// The pods of incomplete parts; all pods if the rest of the workload is incomplete without them.
fn broken_pods(workload: &Workload) -> Vec<PodId> {
    let spec = &workload.spec;
    let placed = |set: usize| workload.counts_as_placed(set);
    let mut broken = Vec::new();
    let mut open = vec![None];
    while let Some(group) = open.pop() {
        let completeness = |&child: &Child| spec.completeness(child, &placed);
        let whole = spec.children(group).filter(|child| completeness(child) == Completeness::Whole);
        if whole.count() < spec.children_min_of(group) {
            broken.extend((0..workload.pod_sets.len()).filter(|&set| spec.is_in(set, group)));
            continue;
        }
        for child in
            spec.children(group).filter(|child| completeness(child) == Completeness::Partial)
        {
            match child {
                Child::Group(group) => open.push(Some(group)),
                Child::Set(set) => broken.push(set),
            }
        }
    }
    broken.into_iter().flat_map(|set| workload.pods_of(set)).copied().collect()
}
