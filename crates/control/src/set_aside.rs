//! Decisions that fail. Owns: that a fault of the scheduler costs one decision and not the server.
//! On which workloads it fails is found by trying, on copies, and these are set aside with a reason.
//! Each minute, and when a workload goes, it is tried again which of them have to be.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
/// It is tried again so long after the last time.
const AGAIN_MS: u64 = 60_000;
const WHY: &str = "the scheduler failed when it looked at it, which is a fault of the server; delete \
                   it or change what it asks for, and report this with `runai diagnostics`";
const WHY_ALL: &str = "the scheduler fails whatever it looks at, which is a fault of the server: \
                       nothing is placed, and what runs goes on; report this with `runai diagnostics`";

/// Is called before each decision, with the cluster it is about, so that a trial can make it fail.
pub type DecisionFault = fn(&Cluster, Instant);

/// What is not decided about. Not stored: it is found again after a start.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Workloads on which decisions fail.
    pub(crate) ids: BTreeSet<Uuid>,
    /// Decisions fail whatever they look at.
    pub(crate) all: bool,
    /// When it is tried again; none where nothing is set aside.
    pub(crate) again_at: Option<Instant>,
    pub(crate) fault: Option<DecisionFault>,
}

/// The error of a decision that failed.
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
    pub(crate) fn try_decide(&mut self, policy: &Policy) -> Result<(), Error> {
        catch_unwind(AssertUnwindSafe(|| self.decide(policy))).map_err(|_| failed())
    }

    /// Whether it is to be tried again which workloads have to be set aside.
    pub(crate) fn is_to_be_tried_again(&self) -> bool {
        self.aside.again_at.is_some_and(|at| at <= self.now)
    }

    /// Finds on what decisions fail, and sets that aside, and nothing else; nothing is decided where
    /// that is not found.
    pub(crate) fn find_culprits(&mut self, policy: &Policy, is_again: bool) {
        self.take_back_all();
        loop {
            let now = self.now;
            let waiting = self.cluster.waiting();
            let waiting: Vec<_> =
                waiting.filter(|&id| self.cluster.workloads()[id].not_before <= now).collect();
            let found = self.aside.ids.len();
            if !self.fails_on(&waiting, waiting.len(), policy) {
                // It is not the scheduler that fails, if this is not the first time.
                self.aside.all = is_again && found == 0;
                break;
            }
            if found == CULPRITS_MAX || self.fails_on(&waiting, 0, policy) {
                self.aside.all = true;
                break;
            }
            let culprit = self.culprit_of(&waiting, policy);
            let Some(&id) = self.by_model.get(&culprit) else { break };
            self.set_aside(id);
        }
        self.try_again_later();
    }

    fn try_again_later(&mut self) {
        let aside = &mut self.aside;
        let any = aside.all || !aside.ids.is_empty();
        aside.again_at = any.then(|| self.now.plus_ms(AGAIN_MS));
        if aside.all {
            tracing::error!("the scheduler fails whatever it looks at: nothing is decided");
        }
    }

    fn take_back_all(&mut self) {
        self.aside.all = false;
        for id in std::mem::take(&mut self.aside.ids) {
            let Some(workload) = self.workloads.get(&id) else { continue };
            if let Some(model) = workload.model {
                self.cluster.set_not_before(model, workload.not_before.unwrap_or(Instant(0)));
            }
        }
    }

    /// Takes over what the state before had set aside.
    pub(crate) fn keep_aside(&mut self, aside: Aside) {
        let Aside { ids, all, again_at, fault } = aside;
        self.aside = Aside { all, again_at, fault, ..Aside::default() };
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
        let waiting = self.cluster.waiting().filter(|_| self.aside.all);
        let all = waiting.filter_map(|model| self.by_model.get(&model).copied());
        let all: Vec<_> = all.map(|id| (id, WHY_ALL)).collect();
        let some: Vec<_> = self.aside.ids.iter().map(|&id| (id, WHY)).collect();
        for (id, why) in all.into_iter().chain(some) {
            self.explain_one(id, &[(SET_ASIDE.code, why.to_owned())]);
        }
    }

    /// The last of the shortest prefix of the waiting workloads on which a decision fails.
    fn culprit_of(&self, waiting: &[WorkloadId], policy: &Policy) -> WorkloadId {
        let (mut good, mut bad) = (0, waiting.len());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.fails_on(waiting, middle, policy) {
                true => bad = middle,
                false => good = middle,
            }
        }
        waiting[good]
    }

    /// Whether a decision fails that looks at the first so many of those that wait.
    fn fails_on(&self, waiting: &[WorkloadId], first: usize, policy: &Policy) -> bool {
        let mut cluster = self.cluster.clone();
        for &id in &waiting[first..] {
            cluster.set_not_before(id, NEVER);
        }
        let decision = || {
            self.fail_if_wanted(&cluster);
            sched::cycle(&mut cluster, self.now, policy)
        };
        catch_unwind(AssertUnwindSafe(decision)).is_err()
    }

    pub(crate) fn fail_if_wanted(&self, cluster: &Cluster) {
        if let Some(fault) = self.aside.fault {
            fault(cluster, self.now);
        }
    }
}
