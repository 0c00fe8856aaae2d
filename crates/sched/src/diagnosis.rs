//! The diagnosis of a pending workload: unsuitable nodes, holders of the resources it needs,
//! reasons why nothing is taken for it, and changes that would let it start. Owns: the order of the
//! parts. Computed on demand and on a copy: a cycle pays nothing for it. Does not know about: the
//! texts, which are in `reasons`.

mod advice;
mod holders;
mod nodes;
mod search;

use model::{Cluster, WorkloadId};
use units::Instant;

use crate::actions::explain::queue_reasons;
use crate::session::Session;
use crate::{Policy, cycle, never_fits};
#[cfg(feature = "kai")]
use crate::{Profile, kai};
use reasons::Pending;
use reasons::diagnosis::{Ahead, Diagnosis, Holders};

#[cfg(feature = "kai")]
pub(crate) use search::refusals;

/// Diagnoses one workload; `None` if it does not exist or would not wait after the next decision.
///
/// Costs a few dozen decisions on copies of the cluster, fewer on a large one. Equal cluster,
/// instant and policy give equal diagnoses.
#[must_use]
pub fn diagnose(
    cluster: &Cluster,
    id: WorkloadId,
    now: Instant,
    policy: &Policy,
) -> Option<Diagnosis> {
    cluster.workloads().get(id)?;
    let mut after = cluster.clone();
    let plan = cycle(&mut after, now, policy);
    let reasons = plan.pending.get(&id)?.to_vec();
    let mut s = Session::begin(&mut after, now, policy);
    let (mut parts, mut searches) = (Vec::new(), Vec::new());
    let (mut holders, mut in_pools) = (Holders::default(), Vec::new());
    let held_back = s.cluster.workloads()[id].not_before > now;
    if !held_back && !s.next_pods(id).is_empty() {
        parts = nodes::parts(&mut s, id);
        if reasons.iter().any(|reason| matches!(reason, Pending::InPools { .. })) {
            in_pools = queue_reasons(&mut s, id);
        }
        holders = holders::holders(&s, id, &parts);
        #[cfg(feature = "kai")]
        let searches_of = match policy.profile {
            Profile::Default => search::searches,
            Profile::Kai(_) => kai::searches,
        };
        #[cfg(not(feature = "kai"))]
        let searches_of = search::searches;
        searches = searches_of(&mut s, id);
    }
    let asked = s.ask(id, None);
    let times = search::times(&s, id);
    let _ = after.commit();
    let base = advice::Base { cluster: &after, id, asked, now, policy };
    let advice::Found { advice, tries, complete } = advice::advice(base, &parts, &times);
    let could_start = |other| never_fits(&after, &after.workloads()[other].spec).is_none();
    let ahead = Ahead::of(&after, id, now, could_start);
    let runs = after.workloads()[id].placed > 0;
    Some(Diagnosis {
        reasons,
        in_pools,
        parts,
        holders,
        searches,
        runs,
        ahead,
        advice,
        tries,
        complete,
    })
}
