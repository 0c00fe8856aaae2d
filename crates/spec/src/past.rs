//! History of a workload, as far as decisions depend on it. Owns: its document, and the fields of
//! the model that it restores.

use model::{Cluster, WorkloadId};
use serde::{Deserialize, Serialize};
use units::Instant;

use crate::document::Document;

/// History of a workload, as far as decisions depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadPast {
    /// When a pod of it was last placed.
    pub last_start: Option<Instant>,
    /// When it last changed size.
    pub last_resize: Option<Instant>,
    /// When it was last evicted.
    pub last_eviction: Option<Instant>,
    /// When it last saved its progress.
    pub checkpointed_at: Option<Instant>,
    /// Since when it has fewer pods than its minimum, some of them running.
    pub stale_since: Option<Instant>,
    /// Number of times that it was preempted, moved or resized.
    pub restarts: u32,
}

impl Document for WorkloadPast {
    const WHAT: &'static str = "the past of a workload";
}

impl WorkloadPast {
    /// The history of a workload of the model.
    #[must_use]
    pub fn of(workload: &model::Workload) -> Self {
        Self {
            last_start: workload.last_start,
            last_resize: workload.last_resize,
            last_eviction: workload.last_eviction,
            checkpointed_at: workload.checkpointed_at,
            stale_since: workload.stale_since,
            restarts: workload.restarts,
        }
    }

    /// Restores the history of a workload of the model.
    pub fn restore(self, cluster: &mut Cluster, id: WorkloadId) {
        cluster.set_starts(id, self.last_start, self.last_resize);
        self.last_eviction.into_iter().for_each(|at| cluster.set_evicted(id, at));
        cluster.set_checkpointed(id, self.checkpointed_at);
        cluster.set_stale(id, self.stale_since);
        cluster.set_restarts(id, self.restarts);
    }

    /// All its moments, to shift them.
    pub const fn moments_mut(&mut self) -> [&mut Option<Instant>; 5] {
        [
            &mut self.last_start,
            &mut self.last_resize,
            &mut self.last_eviction,
            &mut self.checkpointed_at,
            &mut self.stale_since,
        ]
    }
}
