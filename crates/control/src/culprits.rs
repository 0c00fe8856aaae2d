//! Decisions that fail: on which workloads, is found by trying, on copies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use model::{Cluster, WorkloadId};
use orchestrator::{Culprits, NEVER};
use sched::Policy;
use units::Instant;

/// Most workloads that are looked for one after the other; more, and nothing is decided.
const CULPRITS_MAX: usize = 16;

/// Is called before each decision, with the cluster it is about, so that a trial can make it fail
/// or wait.
pub type DecisionFault = Arc<dyn Fn(&Cluster, Instant) + Send + Sync>;

/// Finds on what decisions about a cluster fail; it is tried on copies.
pub(crate) fn culprits(
    cluster: &Cluster,
    now: Instant,
    policy: &Policy,
    fault: Option<&DecisionFault>,
) -> Culprits {
    let mut trial = Trial { cluster: cluster.clone(), now, policy, fault };
    let mut ids = Vec::new();
    loop {
        let rows = trial.cluster.workloads();
        let waiting = trial.cluster.waiting().filter(|&id| rows[id].not_before <= now);
        let waiting: Vec<_> = waiting.collect();
        if !trial.fails_on(&waiting, waiting.len()) {
            return Culprits { ids, all: false };
        }
        if ids.len() == CULPRITS_MAX || waiting.is_empty() || trial.fails_on(&waiting, 0) {
            return Culprits { ids, all: true };
        }
        let culprit = trial.culprit_of(&waiting);
        trial.cluster.set_not_before(culprit, NEVER);
        ids.push(culprit);
    }
}

struct Trial<'a> {
    cluster: Cluster,
    now: Instant,
    policy: &'a Policy,
    fault: Option<&'a DecisionFault>,
}

impl Trial<'_> {
    /// The last of the shortest prefix of the waiting workloads on which a decision fails.
    fn culprit_of(&self, waiting: &[WorkloadId]) -> WorkloadId {
        let (mut good, mut bad) = (0, waiting.len());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.fails_on(waiting, middle) {
                true => bad = middle,
                false => good = middle,
            }
        }
        waiting[good]
    }

    /// True if a decision about the first `first` waiting workloads fails.
    fn fails_on(&self, waiting: &[WorkloadId], first: usize) -> bool {
        let mut cluster = self.cluster.clone();
        for &id in &waiting[first..] {
            cluster.set_not_before(id, NEVER);
        }
        let decision = || {
            fail_if_wanted(self.fault, &cluster, self.now);
            sched::cycle(&mut cluster, self.now, self.policy)
        };
        catch_unwind(AssertUnwindSafe(decision)).is_err()
    }
}

pub(crate) fn fail_if_wanted(fault: Option<&DecisionFault>, cluster: &Cluster, now: Instant) {
    if let Some(fault) = fault {
        fault(cluster, now);
    }
}
