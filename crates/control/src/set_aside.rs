//! Decisions that fail. Owns: that a fault of the scheduler costs one decision and not the server.
//! On which workloads it fails is found by trying, on copies, and these are set aside with a reason.
//! Each minute, and when a workload goes, it is tried again which of them have to be.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use model::{Cluster, WorkloadId};
use sched::Policy;
use units::Instant;
use uuid::Uuid;

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

/// Is called before each decision, with the cluster it is about, so that a trial can make it fail or
/// wait.
pub type DecisionFault = Arc<dyn Fn(&Cluster, Instant) + Send + Sync>;

/// What is not decided about. Not stored: it is found again after a start.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Workloads on which decisions fail.
    pub(crate) ids: BTreeSet<Uuid>,
    /// Decisions fail whatever they look at.
    pub(crate) all: bool,
    /// When it is tried again; none where nothing is set aside.
    pub(crate) again_at: Option<Instant>,
}

/// On what decisions fail.
#[derive(Debug)]
pub(crate) struct Culprits {
    pub(crate) ids: Vec<WorkloadId>,
    /// They fail whatever they look at.
    pub(crate) all: bool,
}

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
        if ids.len() == CULPRITS_MAX || trial.fails_on(&waiting, 0) {
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

    /// Whether a decision fails that looks at the first so many of those that wait.
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

impl State {
    /// Takes back what was set aside, if it is time to find out again what has to be.
    pub(crate) fn retry_aside_due(&mut self) {
        if self.aside.again_at.is_some_and(|at| at <= self.now) {
            self.aside.again_at = None;
            self.retells |= self.aside.all;
            self.take_back_all();
            self.cluster.renew();
        }
    }

    /// Sets aside what decisions fail on.
    pub(crate) fn set_culprits_aside(&mut self, culprits: Culprits) {
        let Culprits { ids, all } = culprits;
        self.is_deciding = false;
        let ids = ids.iter().filter_map(|id| self.by_model.get(id).copied());
        ids.collect::<Vec<_>>().into_iter().for_each(|id| self.set_aside(id));
        self.aside.all = all;
        if all || !self.aside.ids.is_empty() {
            self.aside.again_at = Some(self.now.plus_ms(AGAIN_MS));
        }
        if all {
            self.wake_at = None;
            tracing::error!("the scheduler fails whatever it looks at: nothing is decided");
        }
        self.explain_aside();
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
        let Aside { ids, all, again_at } = aside;
        self.aside = Aside { all, again_at, ..Aside::default() };
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
}
