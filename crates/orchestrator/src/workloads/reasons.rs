//! Why workloads wait, as it is shown of them.

use std::borrow::Cow;
use std::sync::Arc;

use records::Desired;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::reasons::{CLEARING_UP, NOT_CONSIDERED};
use crate::state::State;
use crate::workloads::Workload;
use view::ReasonView;

/// A code and its text, made once for all that wait for it.
pub(crate) type ReasonText = (&'static str, Arc<str>);

const NOT_CONSIDERED_YET: &str = "the scheduler has not looked at it yet";

impl Workload {
    pub(crate) fn wants_to_run(&self) -> bool {
        self.desired == Desired::Run && self.completed_at.is_none()
    }
}

impl State {
    /// Says of a workload that waits without a reason that it was not looked at yet, as long as
    /// that is so. Takes back, too, that it waits for an earlier run where it does not any more.
    pub(crate) fn explain_unconsidered(&mut self, id: Uuid) {
        let (now, clears_up) = (self.now, self.waits_for_orphan(id));
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let is_gated = |pod| self.cluster.gated().contains(&pod);
        let waits = workload.model.is_some_and(|model| self.cluster.is_waiting(model))
            || workload.pods.iter().filter_map(|pod| pod.model).any(is_gated);
        let is_past = |why: &ReasonView| {
            why.code == NOT_CONSIDERED.code || why.code == CLEARING_UP.code && !clears_up
        };
        let is_told = workload.pending.iter().any(is_past);
        if waits && workload.pending.is_empty() && !self.halted {
            self.decisions.ask_why(workload.model);
            let (code, message) = (NOT_CONSIDERED.code.into(), NOT_CONSIDERED_YET.into());
            workload.pending = [ReasonView { code, message, at: now }].into();
        } else if !waits && (is_told || workload.desired != Desired::Run) {
            workload.pending = Arc::default();
        }
    }

    /// Gives one these reasons to wait, or none.
    pub(crate) fn explain_one(&mut self, id: Uuid, reasons: &[ReasonText]) {
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let before = &workload.pending;
        let same = |(told, shown): (&ReasonText, &ReasonView)| {
            told.0 == shown.code && told.1 == shown.message
        };
        if reasons.len() == before.len() && reasons.iter().zip(&**before).all(same) {
            return;
        }
        let since = |code: &str| before.iter().find(|why| why.code == code).map_or(now, |w| w.at);
        let fresh = reasons.iter().map(|(code, message)| ReasonView {
            code: Cow::Borrowed(code),
            message: message.clone(),
            at: since(code),
        });
        let fresh: Arc<[ReasonView]> = fresh.collect();
        // Numbers, and in how many pools, change with every decision; what is worth an event is
        // another kind of reason.
        let codes = |list: &[ReasonView]| {
            let mut codes: Vec<_> = list.iter().map(|why| why.code.clone()).collect();
            codes.dedup();
            codes
        };
        let is_new = codes(&fresh) != codes(before);
        workload.pending = fresh;
        self.outbox.show([id]);
        if let Some((first, _)) = reasons.first().filter(|_| is_new) {
            let text: Vec<_> = reasons.iter().map(|(_, message)| &**message).collect();
            self.emit(id, EventBuilder::new("Pending", text.join("; ")).code(first));
        }
    }
}
