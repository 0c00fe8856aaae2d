//! What was and is held. Owns: the GPUs that each pod holds, which the ledger of GPUs has written
//! down, and what projects used lately.

mod allocations;
mod lags;
mod usage;

use std::collections::BTreeMap;

use model::UsageLedger;
use records::{AllocationRow, Change};
use units::Instant;
use uuid::Uuid;

use crate::effect::Outbox;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// What the projects used lately, if that matters.
    usage: Option<UsageLedger>,
    lags: lags::Lags,
    /// The GPUs that each pod holds.
    allocations: BTreeMap<Uuid, AllocationRow>,
}

impl Ledger {
    /// From what is stored; [`Self::restore_usage`] follows.
    pub(crate) fn new(allocations: Vec<AllocationRow>) -> Self {
        let allocations = allocations.into_iter().map(|row| (row.pod_id, row)).collect();
        Self { usage: None, lags: lags::Lags::default(), allocations }
    }

    /// True if it matters what projects used.
    pub(crate) const fn counts_usage(&self) -> bool {
        self.usage.is_some()
    }

    /// When there is something to write.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.lags.due()
    }

    /// What a pod holds from now on; none: nothing.
    fn book(&mut self, pod: Uuid, held: Option<AllocationRow>, now: Instant, outbox: &mut Outbox) {
        let same = |known: &AllocationRow| {
            held.as_ref().is_some_and(|held| {
                (&known.gpu_model, known.gpu_millis) == (&held.gpu_model, held.gpu_millis)
            })
        };
        if self.allocations.get(&pod).is_some_and(same) {
            return;
        }
        if let Some(known) = self.allocations.remove(&pod) {
            // Time may have been set back while the server was away.
            let ended_at = Some(now.max(known.started_at));
            outbox.write([Change::Allocation(AllocationRow { ended_at, ..known })]);
        }
        if let Some(row) = held {
            outbox.write([Change::Allocation(row.clone())]);
            self.allocations.insert(pod, row);
        }
    }
}
