//! Node pools in order of preference: a workload goes to the first in which it can be, all of it.
//! Owns: the order in which they are tried.

use model::WorkloadId;

use crate::session::Session;

/// Makes an attempt in each pool that comes into question until one succeeds. What has a place
/// binds the rest to its pool. An attempt inside an attempt is made where that one is.
pub(crate) fn in_order<E>(
    s: &mut Session<'_>,
    id: WorkloadId,
    mut attempt: impl FnMut(&mut Session<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let pools = s.cluster.pools(id);
    if pools == 1 || s.cluster.confined(id).is_some() {
        return attempt(s);
    }
    let (first, last) = s.cluster.pool_of(id).map_or((0, pools - 1), |pool| (pool, pool));
    let mut outcome = attempt_in(s, id, first, &mut attempt);
    for pool in first + 1..=last {
        if outcome.is_ok() {
            break;
        }
        outcome = attempt_in(s, id, pool, &mut attempt);
    }
    outcome
}

fn attempt_in<E>(
    s: &mut Session<'_>,
    id: WorkloadId,
    pool: usize,
    attempt: &mut impl FnMut(&mut Session<'_>) -> Result<(), E>,
) -> Result<(), E> {
    s.cluster.confine(id, Some(pool));
    let outcome = attempt(s);
    s.cluster.confine(id, None);
    outcome
}
