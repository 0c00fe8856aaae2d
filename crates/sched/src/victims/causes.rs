//! Beneficiaries in causes. Owns: that a cause names the workload that has the place in the end.

use model::WorkloadId;

use crate::session::Session;
use reasons::{Cause, WorkloadRef};

/// Replaces the beneficiary of evictions if it has lost the place in this cycle, for this `cause`:
/// the workload that has it now becomes the beneficiary.
pub(super) fn inherit(s: &mut Session<'_>, from: WorkloadId, to: &WorkloadRef, cause: &Cause) {
    if !s.beneficiaries.contains(&from) || has_gained(s, from) {
        return;
    }
    let is_theirs = |other: &Cause| other.beneficiary().is_some_and(|other| other.id == from);
    for other in s.causes.values_mut().filter(|other| is_theirs(other)) {
        let mut new = cause.clone();
        if let (Cause::Preempted { lost, .. }, Cause::Reclaimed { lost: new_lost, .. }) =
            (&*other, &mut new)
        {
            *new_lost = *lost;
            *other = new;
        } else if let (
            Cause::Preempted { beneficiary, beneficiary_priority, .. },
            Cause::Preempted { beneficiary_priority: priority, .. },
        ) = (&mut *other, &new)
        {
            (*beneficiary, *beneficiary_priority) = (to.clone(), *priority);
        } else if let Some(beneficiary) = other.beneficiary_mut() {
            *beneficiary = to.clone();
        }
    }
}

/// `true` if a workload has a place that it did not have before this cycle.
fn has_gained(s: &Session<'_>, id: WorkloadId) -> bool {
    s.cluster.workloads()[id].pods.iter().any(|&pod| {
        let now = s.cluster.pods()[pod].binding.effective();
        now.is_some() && now != s.cluster.original(pod).effective()
    })
}
