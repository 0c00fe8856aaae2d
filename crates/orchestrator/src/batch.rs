//! The end of a batch: what is brought up to date because of it, and what it comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Op;
use records::Change;
use uuid::Uuid;

use crate::effect::{Action, Note, Sent, Tally};
use crate::state::State;
use crate::workloads::Workload;
use view::{Event, View, WorkloadView};

/// Most pods with which a test checks after each batch what is kept up to date.
const CHECKED_MAX: usize = 100;

/// A batch, ready to be written, shown and acted on, in this order.
pub struct Batch {
    /// To be written first, in one transaction.
    pub changes: Vec<Change>,
    /// To be shown then.
    pub view: View,
    /// Last views of what was deleted or archived.
    pub gone: BTreeMap<Uuid, Arc<WorkloadView>>,
    /// To be told.
    pub events: Vec<Arc<Event>>,
    /// To be asked of the engine, in order.
    pub actions: Vec<Action>,
    /// Counted once the batch is on disk.
    pub tally: Tally,
    /// For the log of the server.
    pub notes: Vec<Note>,
    /// What the scheduler's replica has to follow.
    pub ops: Vec<Op>,
    /// True if the scheduler is to decide.
    pub decides: bool,
}

impl State {
    /// Ends the batch: brings phases and flags up to date and empties the outbox.
    pub fn finish(&mut self, before: &View) -> Batch {
        let touched: Vec<_> = self.outbox.touched().workloads.iter().copied().collect();
        // The phase of an inference follows from those of its revisions.
        let (revisions, others): (Vec<_>, Vec<_>) = touched
            .into_iter()
            .partition(|id| self.workloads.get(id).is_some_and(|w| w.spec.revision.is_some()));
        for id in revisions.into_iter().chain(others) {
            self.drop_members(id);
            self.settle(id);
            self.explain_unconsidered(id);
        }
        self.plan_limits();
        self.book_allocations();
        self.flag_over_quota();
        self.archive_ended();
        debug_assert!(self.books_are_right());
        let outbox = std::mem::take(&mut self.outbox);
        let view = self.view(before, &outbox);
        self.nodes.note_shown(|id| self.cluster.revision(id));
        let (touched, sent) = outbox.end();
        let Sent { mut changes, events, actions, tally, notes } = sent;
        let deleted = touched.deleted.values();
        let last_view = |workload: &Workload| {
            let deleted_at = Some(self.now);
            (workload.id, Arc::new(WorkloadView { deleted_at, ..self.workload_view(workload) }))
        };
        let gone = deleted.map(last_view).chain(touched.archived).collect();
        changes.extend(self.changed_rows(&touched.workloads));
        let rows = events.iter().map(|(event, project)| event.row(*project));
        changes.extend(rows.map(Change::Event));
        let events = events.into_iter().map(|(event, _)| event).collect();
        let decides = self.asks_for_decision();
        let ops = self.cluster.take_ops();
        Batch { changes, view, gone, events, actions, tally, notes, ops, decides }
    }

    /// Recomputes every account, for tests; too slow for large clusters.
    fn books_are_right(&self) -> bool {
        self.cluster.pods().len() > CHECKED_MAX
            || (self.cluster.verify() == Ok(()) && self.workloads.is_in_step())
    }
}
