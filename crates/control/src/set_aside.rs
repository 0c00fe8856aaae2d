//! Decisions that fail. Owns: that a fault of the scheduler costs one decision and not the server.
//! On which workloads it fails is found by trying, and these are set aside with a reason until
//! somebody changes, suspends or deletes them.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::Engine;
use model::{Cluster, WorkloadId};
use sched::Policy;
use units::Instant;
use uuid::Uuid;

use crate::Error;
use crate::reasons::SET_ASIDE;
use crate::state::State;

/// Most workloads that are looked for one after the other; more, and nothing is decided.
const CULPRITS_MAX: usize = 16;
/// Until then a workload that is set aside is not looked at: as good as for ever.
const NEVER: Instant = Instant(u64::MAX / 2);
const WHY: &str = "the scheduler failed when it looked at it, which is a fault of the server; change \
                   what it asks for, or delete it, and report this with `runai diagnostics`";

/// Is called before each decision, with the cluster it is about, so that a trial can make it fail.
pub type DecisionFault = fn(&Cluster, Instant);

/// What is not decided about. Not stored: it is found again after a start.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Workloads on which decisions fail.
    pub(crate) ids: BTreeSet<Uuid>,
    /// Decisions fail whatever they look at.
    pub(crate) all: bool,
    pub(crate) fault: Option<DecisionFault>,
}

/// No decision is to be had.
pub(crate) fn failed() -> Error {
    Error::Internal {
        message:
            "the scheduler failed, which is a fault of the server: nothing of the request was \
                  done. Try it again, and report it with the log of the server"
                .to_owned(),
    }
}

impl State {
    /// Decides. After a failure nothing of this state counts.
    ///
    /// # Errors
    /// The scheduler failed.
    pub(crate) fn try_decide(&mut self, policy: &Policy, engine: &dyn Engine) -> Result<(), Error> {
        catch_unwind(AssertUnwindSafe(|| self.decide(policy, engine))).map_err(|_| failed())
    }

    /// Sets aside on what decisions fail; nothing is decided any more where that is not found.
    pub(crate) fn set_culprits_aside(&mut self, policy: &Policy, is_again: bool) {
        let mut found = 0;
        loop {
            let now = self.now;
            let waiting = self.cluster.waiting();
            let waiting: Vec<_> =
                waiting.filter(|&id| self.cluster.workloads()[id].not_before <= now).collect();
            if !self.fails_on(&waiting, &waiting, policy) {
                // What fails is not the scheduler alone, if this is not the first time.
                self.aside.all = is_again && found == 0;
                break;
            }
            if waiting.is_empty() || found == CULPRITS_MAX {
                self.aside.all = true;
                break;
            }
            for model in self.culprits_of(&waiting, policy) {
                if let Some(&id) = self.by_model.get(&model) {
                    self.set_aside(id);
                }
            }
            found += 1;
        }
        if self.aside.all {
            tracing::error!("the scheduler fails whatever it looks at: nothing is decided");
        }
    }

    /// Takes over what the state before had set aside.
    pub(crate) fn keep_aside(&mut self, aside: Aside) {
        let Aside { ids, all, fault } = aside;
        self.aside = Aside { all, fault, ..Aside::default() };
        ids.into_iter().for_each(|id| self.set_aside(id));
    }

    /// Keeps a workload out of decisions.
    fn set_aside(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(model) = workload.model else { return };
        tracing::error!(workload = %workload.spec.name, %id, "set aside: decisions fail on it");
        self.cluster.set_not_before(model, NEVER);
        self.aside.ids.insert(id);
    }

    /// Says why those that are set aside wait, or all that wait if nothing is decided.
    pub(crate) fn explain_aside(&mut self) {
        let mut told: Vec<Uuid> = self.aside.ids.iter().copied().collect();
        if self.aside.all {
            told.extend(self.cluster.waiting().filter_map(|model| self.by_model.get(&model)));
        }
        for id in told {
            self.explain_one(id, &[(SET_ASIDE.code, WHY.to_owned())]);
        }
    }

    /// The fewest of these on which a decision fails, as far as halves tell.
    fn culprits_of(&self, waiting: &[WorkloadId], policy: &Policy) -> Vec<WorkloadId> {
        let mut suspects = waiting.to_vec();
        while suspects.len() > 1 {
            let newer = suspects.split_off(suspects.len() / 2);
            if self.fails_on(&newer, waiting, policy) {
                suspects = newer;
            } else if !self.fails_on(&suspects, waiting, policy) {
                // Only together; those that were there before go on.
                return newer;
            }
        }
        suspects
    }

    /// Whether a decision fails that looks at these of all that wait.
    fn fails_on(&self, looked_at: &[WorkloadId], waiting: &[WorkloadId], policy: &Policy) -> bool {
        let mut cluster = self.cluster.clone();
        for id in waiting.iter().filter(|id| !looked_at.contains(id)) {
            cluster.set_not_before(*id, NEVER);
        }
        let decision = || {
            self.fail_if_wanted(&cluster);
            sched::cycle(&mut cluster.clone(), self.now, policy)
        };
        catch_unwind(AssertUnwindSafe(decision)).is_err()
    }

    pub(crate) fn fail_if_wanted(&self, cluster: &Cluster) {
        if let Some(fault) = self.aside.fault {
            fault(cluster, self.now);
        }
    }
}
