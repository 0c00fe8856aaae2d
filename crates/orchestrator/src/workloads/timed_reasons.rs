//! Reasons to wait of which the text changes as time passes. Owns: when they are told again. Does not
//! know about: the texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use reasons::{ClassId, Pending};
use units::Instant;
use uuid::Uuid;

use crate::state::State;
use crate::workloads::reasons::InWords;

/// Reasons of which the text changes, as the scheduler gave them.
#[derive(Debug, Default)]
pub(crate) struct TimedReasons {
    of_classes: BTreeMap<ClassId, Arc<[Pending]>>,
    /// Of workloads that wait for reasons of their own.
    own: BTreeMap<Uuid, Arc<[Pending]>>,
    /// When the first text is another.
    due: Option<Instant>,
}

impl TimedReasons {
    /// When a text is to be told again.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes in that classes have other numbers.
    pub(crate) fn end_classes(&mut self) {
        self.of_classes.clear();
    }

    /// Takes in the reasons of a class.
    pub(crate) fn follow_class(&mut self, class: ClassId, reasons: &Arc<[Pending]>, now: Instant) {
        match first_change(reasons, now) {
            Some(_) => drop(self.of_classes.insert(class, reasons.clone())),
            None => drop(self.of_classes.remove(&class)),
        }
    }

    /// Takes in the reasons of a workload of its own; none if it has no such reasons.
    pub(crate) fn follow(&mut self, id: Uuid, reasons: Option<&Arc<[Pending]>>, now: Instant) {
        match reasons.filter(|reasons| first_change(reasons, now).is_some()) {
            Some(reasons) => drop(self.own.insert(id, reasons.clone())),
            None => drop(self.own.remove(&id)),
        }
    }

    /// Finds when the first text changes.
    pub(crate) fn schedule(&mut self, now: Instant) {
        let all = self.of_classes.values().chain(self.own.values());
        self.due = all.filter_map(|reasons| first_change(reasons, now)).min();
    }
}

fn first_change(reasons: &[Pending], now: Instant) -> Option<Instant> {
    reasons.iter().filter_map(|why| why.changes_at(now)).min()
}

impl State {
    /// Tells again what has another text by now.
    pub(crate) fn tell_timed_reasons(&mut self) {
        if self.workloads.timed.due().is_none_or(|due| due > self.now) {
            return;
        }
        let mut timed = std::mem::take(&mut self.workloads.timed);
        let mut words = InWords::at(self.now);
        timed.of_classes.retain(|&class, _| self.workloads.classes().reasons(class).is_some());
        for (&class, reasons) in &timed.of_classes {
            self.explain_class(class, &words.of(reasons), &BTreeMap::new());
        }
        timed.own.retain(|&id, reasons| self.waits_for(id, reasons));
        for (&id, reasons) in &timed.own {
            self.explain_one(id, &words.of(reasons));
        }
        timed.schedule(self.now);
        self.workloads.timed = timed;
    }

    /// True if reasons of a workload's own are still these.
    fn waits_for(&self, id: Uuid, reasons: &[Pending]) -> bool {
        let Some(workload) = self.workloads.get(&id) else { return false };
        let told = workload.pending.iter().map(|why| why.own().map(|own| &*own.code));
        told.eq(reasons.iter().map(|why| Some(why.code().code)))
    }
}
