//! Check of the causes of evictions. Owns: that invariant: the beneficiary of an eviction has a
//! place afterwards that it did not have before, the stated right follows from the numbers beside
//! it, and the lost work agrees with the clocks.

use model::{Cluster, WorkloadId};
use reasons::{Cause, Lost, Strategy, WorkloadRef};
use sched::{Plan, Step};
use units::Instant;

/// Checks the causes that a plan names, made at `now` of the cluster `before`; `after` is the
/// cluster with it carried out.
///
/// # Panics
/// When one of them is not so.
pub(crate) fn check(before: &Cluster, after: &Cluster, plan: &Plan, now: Instant) {
    for step in &plan.steps {
        let (Step::Evict { pod, cause, .. } | Step::Move { pod, cause, .. }) = step else {
            continue;
        };
        let id = after.pods()[*pod].workload;
        let fault = fault(before, after, (id, cause), now);
        assert!(
            fault.is_none(),
            "{}: {cause}: {}: {:#?}",
            after.workloads()[id].spec.name,
            fault.unwrap_or_default(),
            plan.steps
        );
    }
}

fn fault(
    before: &Cluster,
    after: &Cluster,
    (id, cause): (WorkloadId, &Cause),
    now: Instant,
) -> Option<&'static str> {
    if cause.beneficiary().is_some_and(|one| !gained(before, after, one)) {
        return Some("whom it was stopped for got nothing");
    }
    if lost(cause).is_some_and(|lost| lost != lost_by(before, id, now)) {
        return Some("other work is lost");
    }
    match cause {
        Cause::Reclaimed { strategy, requested, loser, winner, .. } => {
            let (from, to) = (loser.allocated - loser.lent, winner.allocated - winner.lent);
            let least = match strategy {
                Strategy::QuotaGuaranteed => loser.quota.min(loser.fair_share),
                Strategy::FairShareMaintained => loser.fair_share,
            };
            if from <= least {
                return Some("the loser holds no more than it may");
            }
            let most = winner.quota.max(winner.fair_share);
            (to + requested > most).then_some("the winner may not have as much")
        }
        Cause::Preempted { beneficiary, priority, beneficiary_priority, .. } => {
            // A workload that cannot be preempted has a right to the quota.
            let least = beneficiary_priority
                + u32::from(!before.workloads()[beneficiary.id].spec.preemptible);
            (*priority >= least).then_some("it is as important")
        }
        _ => None,
    }
}

/// True if a workload holds, or has reserved, what it did not before.
fn gained(before: &Cluster, after: &Cluster, one: &WorkloadRef) -> bool {
    let place = |cluster: &Cluster, pod| cluster.pods()[pod].binding.effective().cloned();
    let pods = &after.workloads()[one.id].pods;
    pods.iter().any(|&pod| {
        let now = place(after, pod);
        now.is_some() && now != place(before, pod)
    })
}

const fn lost(cause: &Cause) -> Option<Lost> {
    match cause {
        Cause::Reclaimed { lost, .. }
        | Cause::Preempted { lost, .. }
        | Cause::Consolidated { lost, .. } => Some(*lost),
        _ => None,
    }
}

fn lost_by(before: &Cluster, id: WorkloadId, now: Instant) -> Lost {
    let workload = &before.workloads()[id];
    let since = workload.last_start.max(workload.checkpointed_at);
    Lost {
        unsaved_ms: since.map_or(0, |since| now.0 - since.0),
        checkpointed: workload.checkpointed_at > workload.last_start,
    }
}
