//! The end of a batch: updates of derived state, and the result of the batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Op;
use records::Change;
use uuid::Uuid;

use crate::effect::{Action, Note, Sent, Tally};
use crate::state::State;
use crate::workloads::Workload;
use view::{Event, View, WorkloadView};

/// Maximum number of pods up to which a test checks the derived state after each batch.
const CHECKED_MAX: usize = 100;

/// A finished batch, to be written, shown and executed, in this order.
pub struct Batch {
    /// Database changes, written first, in one transaction.
    pub changes: Vec<Change>,
    /// New view, published after that.
    pub view: View,
    /// Last views of deleted and archived workloads.
    pub gone: BTreeMap<Uuid, Arc<WorkloadView>>,
    /// Events to publish.
    pub events: Vec<Arc<Event>>,
    /// Requests to the engine, in order.
    pub actions: Vec<Action>,
    /// Metrics, counted once the batch is on disk.
    pub tally: Tally,
    /// Messages for the log of the server.
    pub notes: Vec<Note>,
    /// Changes for the scheduler's replica.
    pub ops: Vec<Op>,
    /// True if a decision of the scheduler is requested.
    pub decides: bool,
}

impl State {
    /// Ends the batch: updates phases and flags and empties the outbox.
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
        let rows = events.iter().map(|(event, owner)| event.row(owner.clone()));
        changes.extend(rows.map(Change::Event));
        let actions = self.with_verbs(actions, events.iter().map(|(event, _)| &**event));
        changes.retain(|change| !self.adopted.is_row_of_one(change));
        let ended = touched.deleted.keys().filter(|id| self.workloads.get(id).is_none());
        self.adopted.end_batch(ended);
        let events = events.into_iter().map(|(event, _)| event).collect();
        let decides = self.asks_for_decision();
        let ops = self.cluster.take_ops();
        Batch { changes, view, gone, events, actions, tally, notes, ops, decides }
    }

    /// Recomputes every account, for tests; too slow for large clusters.
    fn books_are_right(&self) -> bool {
        self.cluster.pods().len() > CHECKED_MAX
            || (self.cluster.verify() == Ok(())
                && self.workloads.is_in_step()
                && self.lives_fit_places())
    }
}
