//! Decisions that fail. Owns: that the workloads on which they do are set aside with a reason, and that
//! each minute, and when a workload goes, it is tried again which of them have to be.

use std::collections::BTreeSet;

use model::WorkloadId;
use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

use crate::effect::Note;
use crate::reasons::SET_ASIDE;
use crate::state::State;

/// Until then a workload that is set aside is not looked at: as good as for ever.
pub const NEVER: Instant = Instant(u64::MAX / 2);
/// It is tried again so long after the last time.
const AGAIN_MS: u64 = 60_000;
const WHY: &str = "the scheduler failed when it looked at it, which is a fault of the server; delete \
                   it or change what it asks for, and report this with `runai diagnostics`";
const WHY_ALL: &str = "the scheduler fails whatever it looks at, which is a fault of the server: \
                       nothing is placed, and what runs goes on; report this with `runai diagnostics`";

/// What is not decided about. Not stored: it is found again after a start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Aside {
    /// Workloads on which decisions fail.
    pub(crate) ids: BTreeSet<Uuid>,
    /// Decisions fail whatever they look at.
    pub(crate) all: bool,
    /// When it is tried again; none where nothing is set aside.
    pub(crate) again_at: Option<Instant>,
}

/// On what decisions fail.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Culprits {
    /// These workloads, in the order in which they were found.
    pub ids: Vec<WorkloadId>,
    /// They fail whatever they look at.
    pub all: bool,
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
            let note = "the scheduler fails whatever it looks at: nothing is decided";
            self.outbox.notes.push(Note::Error(note.to_owned()));
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
        let name = &workload.spec.name;
        let note = format!("workload {name} ({id}) is set aside: decisions fail on it");
        self.outbox.notes.push(Note::Error(note));
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
