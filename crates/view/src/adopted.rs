//! Pods of a cluster with an API of its own, as readers see them.

use std::sync::Arc;

use spec::{AdoptedPod, PlacementReport};
use units::Instant;
use uuid::Uuid;

/// A pod that this server has to place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedPodView {
    /// The pod, as its cluster has it.
    pub pod: Arc<AdoptedPod>,
    /// The workload that it is a pod of; `None` if it is in none.
    pub workload_id: Option<Uuid>,
    /// The reason that keeps it out of a workload; `None` if it is in one, or has ended.
    pub held: Option<HeldPod>,
}

/// The reason that keeps a pod out of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPod {
    /// The project that would be charged for it; `None` if that is the reason.
    pub project_id: Option<u64>,
    /// The reason, as its cluster shows it.
    pub reason: PlacementReport,
    /// Time since which it applies.
    pub at: Instant,
}
