//! Workloads that delete themselves. Owns: when one that has ended goes (`delete_after_ms`), and that one
//! that wants to goes when it is evicted for others. When it ended is stored, so a restart forgets
//! nothing.

use records::Desired;
use units::Instant;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::state::State;

impl State {
    /// Notes when a workload that has ended is to be deleted, if it is.
    pub(crate) fn note_expiry(&mut self, id: Uuid) {
        self.limits.expiring.extend(self.expiry(id));
    }

    /// The time at which it is to be deleted changes.
    pub(crate) fn forget_expiry(&mut self, id: Uuid) {
        if let Some(expiry) = self.expiry(id) {
            self.limits.expiring.remove(&expiry);
        }
    }

    fn expiry(&self, id: Uuid) -> Option<(Instant, Uuid)> {
        let workload = self.workloads.get(&id)?;
        let after_ms = workload.spec.delete_after_ms?;
        Some((Instant(workload.completed_at?.0.saturating_add(after_ms)), id))
    }

    /// Deletes what has ended for as long as it was to be kept.
    pub(crate) fn expire_due(&mut self) {
        while let Some(&(at, id)) = self.limits.expiring.first().filter(|(at, _)| *at <= self.now) {
            self.limits.expiring.remove(&(at, id));
            let after = self.workloads.get(&id).and_then(|workload| workload.spec.delete_after_ms);
            let seconds = units::format_millis(after.unwrap_or_default());
            self.delete_itself(
                id,
                format!("ended {seconds} s ago, which is as long as it is kept"),
            );
        }
    }

    /// Deletes a workload that goes when it is evicted, and is.
    pub(crate) fn delete_preempted(&mut self, id: Uuid) {
        self.delete_itself(id, "evicted for others, and not to be queued again".to_owned());
    }

    fn delete_itself(&mut self, id: Uuid, why: String) {
        let Some(workload) = self.workloads.get(&id) else { return };
        if workload.desired == Desired::Delete {
            return;
        }
        self.set_desired(id, Desired::Delete);
        self.emit(id, EventBuilder::new("Deleting", why));
        self.release_all(id);
        self.finish_deletion(id);
    }
}
