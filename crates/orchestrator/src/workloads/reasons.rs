//! Why workloads wait, as it is shown of them.

use records::Desired;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::reasons::NOT_CONSIDERED;
use crate::state::State;
use crate::view::ReasonView;
use crate::workloads::Workload;

const NOT_CONSIDERED_YET: &str = "the scheduler has not looked at it yet";

impl Workload {
    pub(crate) fn wants_to_run(&self) -> bool {
        self.desired == Desired::Run && self.completed_at.is_none()
    }
}

impl State {
    /// Says of a workload that waits without a reason that it was not looked at yet, as long as that is
    /// so.
    pub(crate) fn explain_unconsidered(&mut self, id: Uuid) {
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let is_gated = |pod| self.cluster.gated().contains(&pod);
        let waits = workload.model.is_some_and(|model| self.cluster.is_waiting(model))
            || workload.pods.iter().filter_map(|pod| pod.model).any(is_gated);
        let is_told = workload.pending.iter().any(|reason| reason.code == NOT_CONSIDERED.code);
        if waits && workload.pending.is_empty() && !self.halted {
            self.decisions.ask_why(workload.model);
            let (code, message) = (NOT_CONSIDERED.code.to_owned(), NOT_CONSIDERED_YET.to_owned());
            workload.pending = vec![ReasonView { code, message, at: now }];
        } else if !waits && (is_told || workload.desired != Desired::Run) {
            workload.pending.clear();
        }
    }

    /// Gives one these reasons to wait, or none.
    pub(crate) fn explain_one(&mut self, id: Uuid, reasons: &[(&'static str, String)]) {
        let now = self.now;
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let since = |code: &str| {
            workload.pending.iter().find(|reason| reason.code == code).map_or(now, |r| r.at)
        };
        let fresh: Vec<_> = reasons
            .iter()
            .map(|(code, message)| {
                let (at, message) = (since(code), message.clone());
                ReasonView { code: (*code).to_owned(), message, at }
            })
            .collect();
        if fresh == workload.pending {
            return;
        }
        // Numbers change with every decision; what is worth an event is another kind of reason.
        let codes = |list: &[ReasonView]| list.iter().map(|r| r.code.clone()).collect::<Vec<_>>();
        let is_new = codes(&fresh) != codes(&workload.pending);
        workload.pending = fresh;
        self.outbox.shown.insert(id);
        if let Some((first, _)) = reasons.first().filter(|_| is_new) {
            let text: Vec<_> = reasons.iter().map(|(_, message)| message.as_str()).collect();
            self.emit(id, EventBuilder::new("Pending", text.join("; ")).code(first));
        }
    }
}
