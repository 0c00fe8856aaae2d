//! What happened to a workload, as far as decisions follow from it. Owns: its document, and which
//! figures of the model it is.

use model::{Cluster, WorkloadId};
use serde::{Deserialize, Serialize};
use units::Instant;

use crate::document::Document;

/// What happened to a workload, as far as decisions follow from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadPast {
    /// When a pod of it was last given a place.
    pub last_start: Option<Instant>,
    /// When it last changed size.
    pub last_resize: Option<Instant>,
    /// When it was last evicted.
    pub last_eviction: Option<Instant>,
    /// When it last saved its progress.
    pub checkpointed_at: Option<Instant>,
    /// Since when it has fewer pods than its minimum, some of them running.
    pub stale_since: Option<Instant>,
    /// How often it was stopped for others, moved or resized.
    pub restarts: u32,
}

impl Document for WorkloadPast {
    const WHAT: &'static str = "the past of a workload";
}

impl WorkloadPast {
    /// That of a workload of the model.
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

    /// Has a workload of the model go on from it.
    pub fn restore(self, cluster: &mut Cluster, id: WorkloadId) {
        cluster.set_starts(id, self.last_start, self.last_resize);
        self.last_eviction.into_iter().for_each(|at| cluster.set_evicted(id, at));
        cluster.set_checkpointed(id, self.checkpointed_at);
        cluster.set_stale(id, self.stale_since);
        cluster.set_restarts(id, self.restarts);
    }

    /// All its moments, to date them otherwise.
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
