//! Whom the causes of evictions name. Owns: that it is who has the place at the end of a decision.

use model::WorkloadId;

use crate::session::Session;
use reasons::{Cause, WorkloadRef};

/// Others may have been stopped in this cycle for one that lost its place again, for this `cause`: they
/// were stopped for the workload that has it now.
pub(super) fn inherit(s: &mut Session<'_>, from: WorkloadId, to: &WorkloadRef, cause: &Cause) {
    if !s.beneficiaries.contains(&from) || s.cluster.workloads()[from].placed > 0 {
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
        } else if let Some(beneficiary) = other.beneficiary_mut() {
            *beneficiary = to.clone();
        }
    }
}
