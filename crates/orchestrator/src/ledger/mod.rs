//! Present and past holdings. Owns: the GPUs of each pod, as the ledger has written them, and the
//! recent usage of projects.

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
    /// Recent usage of the projects; `None` if fairness does not depend on it.
    usage: Option<UsageLedger>,
    lags: lags::Lags,
    /// GPU allocation of each pod.
    allocations: BTreeMap<Uuid, AllocationRow>,
}

impl Ledger {
    /// Loads stored allocations; [`Self::restore_usage`] follows.
    pub(crate) fn new(allocations: Vec<AllocationRow>) -> Self {
        let allocations = allocations.into_iter().map(|row| (row.pod_id, row)).collect();
        Self { usage: None, lags: lags::Lags::default(), allocations }
    }

    /// True if fairness depends on the usage of projects.
    pub(crate) const fn counts_usage(&self) -> bool {
        self.usage.is_some()
    }

    /// Time of the next write.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.lags.due()
    }

    /// Records the allocation of a pod from now on; `None`: it holds no GPU.
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
            // The clock may have been set back while the server was off.
            let ended_at = Some(now.max(known.started_at));
            outbox.write([Change::Allocation(AllocationRow { ended_at, ..known })]);
        }
        if let Some(row) = held {
            outbox.write([Change::Allocation(row.clone())]);
            self.allocations.insert(pod, row);
        }
    }
}
