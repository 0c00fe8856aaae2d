//! Workloads that delete themselves. Owns: when one that has ended goes (`delete_after_ms`), and that one
//! that wants to goes when it is evicted for others. When it ended is stored, so a restart forgets
//! nothing.

use records::Desired;
use units::Instant;
use uuid::Uuid;

use crate::state::{News, State};

impl State {
    /// Notes when a workload that has ended is to be deleted, if it is.
    pub(crate) fn note_expiry(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let (ended, after_ms) = (workload.completed_at, workload.spec.delete_after_ms);
        if let (Some(ended), Some(after_ms)) = (ended, after_ms) {
            self.expiring.insert((Instant(ended.0.saturating_add(after_ms)), id));
        }
    }

    /// Deletes what has ended for as long as it was to be kept.
    pub(crate) fn expire_due(&mut self) {
        while let Some(&(at, id)) = self.expiring.first().filter(|(at, _)| *at <= self.now) {
            self.expiring.remove(&(at, id));
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
        self.say(id, News::new("Deleting", why));
        self.release_all(id);
        self.finish_deletion(id);
    }
}
