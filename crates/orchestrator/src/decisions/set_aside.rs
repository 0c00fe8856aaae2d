//! Decisions that fail. Owns: that the workloads on which they fail are set aside with a reason,
//! and that each minute, and when a workload is deleted, a retry finds the present ones.

use units::Instant;
use uuid::Uuid;

use crate::decisions::{Aside, Culprits, HandedOver, NEVER};
use crate::effect::Note;
use crate::state::State;
use view::codes::SET_ASIDE;

/// Time between two retries, in milliseconds.
const AGAIN_MS: u64 = 60_000;
const WHY: &str = "the scheduler failed when it looked at it, which is a fault of the server; delete \
                   it or change what it asks for, and report this with `runai diagnostics`";
const WHY_ALL: &str = "the scheduler fails whatever it looks at, which is a fault of the server: \
                       nothing is placed, and what runs goes on; report this with `runai diagnostics`";

impl State {
    /// Makes all set-aside workloads considered again, if a retry is due.
    pub(crate) fn retry_aside_due(&mut self) {
        if self.decisions.aside.again_at.is_some_and(|at| at <= self.now) {
            self.decisions.aside.again_at = None;
            self.decisions.retells |= self.decisions.aside.all;
            self.take_back_all();
            self.cluster.renew();
        }
    }

    /// Sets aside the workloads on which decisions fail.
    pub(crate) fn set_culprits_aside(&mut self, culprits: Culprits) {
        let Culprits { ids, all } = culprits;
        self.decisions.is_deciding = false;
        let ids = ids.iter().filter_map(|id| self.workloads.of_model(*id));
        ids.collect::<Vec<_>>().into_iter().for_each(|id| self.set_aside(id));
        self.decisions.aside.all = all;
        if all || !self.decisions.aside.ids.is_empty() {
            self.decisions.aside.again_at = Some(self.now.plus_ms(AGAIN_MS));
        }
        if all {
            self.decisions.wake_at = None;
            let note = "the scheduler fails whatever it looks at: nothing is decided";
            self.outbox.note(Note::Error(note.to_owned()));
        }
        self.explain_aside();
    }

    fn take_back_all(&mut self) {
        self.decisions.aside.all = false;
        for id in std::mem::take(&mut self.decisions.aside.ids) {
            let Some(workload) = self.workloads.get(&id) else { continue };
            if let Some(model) = workload.model {
                self.cluster.set_not_before(model, workload.not_before.unwrap_or(Instant(0)));
            }
        }
    }

    /// Takes over the set-aside workloads of the state before.
    pub(crate) fn keep_aside(&mut self, before: HandedOver) {
        let Aside { ids, all, again_at } = before.aside;
        self.decisions.aside = Aside { all, again_at, ..Aside::default() };
        ids.into_iter().for_each(|id| self.set_aside(id));
    }

    /// Excludes a workload from decisions.
    fn set_aside(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(model) = workload.model else { return };
        let name = &workload.spec.name;
        let note = format!("workload {name} ({id}) is set aside: decisions fail on it");
        self.outbox.note(Note::Error(note));
        self.cluster.set_not_before(model, NEVER);
        self.decisions.aside.ids.insert(id);
    }

    /// Publishes the reason of set-aside workloads, or of all waiting ones if there are no
    /// decisions.
    pub(crate) fn explain_aside(&mut self) {
        let waiting = self.decisions.aside.all.then(|| self.cluster.waiting());
        let all = waiting.into_iter().flatten();
        let all = all.filter_map(|model| self.workloads.of_model(model));
        let all: Vec<_> = all.map(|id| (id, WHY_ALL)).collect();
        let some: Vec<_> = self.decisions.aside.ids.iter().map(|&id| (id, WHY)).collect();
        for (id, why) in all.into_iter().chain(some) {
            self.explain_one(id, &[(SET_ASIDE.code, why.into())]);
        }
    }
}
