//! Reasons of waiting workloads whose text changes as time passes. Owns: the time of their next
//! publication. Does not know about: the texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use reasons::{ClassId, Pending};
use units::Instant;
use uuid::Uuid;

use crate::state::State;
use crate::workloads::reasons::InWords;

/// Reasons whose text changes as time passes, as the scheduler gave them.
#[derive(Debug, Default)]
pub(crate) struct TimedReasons {
    of_classes: BTreeMap<ClassId, Arc<[Pending]>>,
    /// Reasons of single workloads that do not have those of a class, by workload id.
    own: BTreeMap<Uuid, Arc<[Pending]>>,
    /// Time at which the first text changes; `None` if none does.
    due: Option<Instant>,
}

impl TimedReasons {
    /// Time of the next publication; `None` if no text changes.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Forgets the reasons of all classes, which have other numbers now.
    pub(crate) fn end_classes(&mut self) {
        self.of_classes.clear();
    }

    /// Records the reasons of a class if their text changes, and forgets its earlier ones.
    pub(crate) fn follow_class(&mut self, class: ClassId, reasons: &Arc<[Pending]>, now: Instant) {
        match first_change(reasons, now) {
            Some(_) => drop(self.of_classes.insert(class, reasons.clone())),
            None => drop(self.of_classes.remove(&class)),
        }
    }

    /// Records a workload's own reasons if their text changes, and forgets its earlier ones; `None`
    /// if it has none.
    pub(crate) fn follow(&mut self, id: Uuid, reasons: Option<&Arc<[Pending]>>, now: Instant) {
        match reasons.filter(|reasons| first_change(reasons, now).is_some()) {
            Some(reasons) => drop(self.own.insert(id, reasons.clone())),
            None => drop(self.own.remove(&id)),
        }
    }

    /// Determines the time at which the first text changes.
    pub(crate) fn schedule(&mut self, now: Instant) {
        let all = self.of_classes.values().chain(self.own.values());
        self.due = all.filter_map(|reasons| first_change(reasons, now)).min();
    }
}

fn first_change(reasons: &[Pending], now: Instant) -> Option<Instant> {
    reasons.iter().filter_map(|why| why.changes_at(now)).min()
}

impl State {
    /// Publishes all these reasons with their text at this time, once the text of one has changed.
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

    /// `true` if the workload's own published reasons have the codes of these.
    fn waits_for(&self, id: Uuid, reasons: &[Pending]) -> bool {
        let Some(workload) = self.workloads.get(&id) else { return false };
        let told = workload.pending.iter().map(|why| why.own().map(|own| &*own.code));
        told.eq(reasons.iter().map(|why| Some(why.code().code)))
    }
}
