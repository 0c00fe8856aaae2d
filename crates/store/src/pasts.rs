//! Pasts of workloads: the history that decisions depend on beside the state. Owns: how the past of
//! a workload that an earlier version wrote follows from its pods.

use std::collections::BTreeMap;

use records::PodRow;
use spec::WorkloadPast;
use units::Instant;
use uuid::Uuid;

/// The query for those that were kept.
pub(crate) const KEPT: &str = "SELECT id, name, past FROM workloads
    WHERE archived = 0 AND deleted_at IS NULL AND past IS NOT NULL ORDER BY seq";

/// The pasts of the workloads in memory, by their ids, from those that were kept and the pods.
pub(crate) fn of_all(
    kept: Vec<(Uuid, WorkloadPast)>,
    pods: &[PodRow],
) -> BTreeMap<Uuid, WorkloadPast> {
    // An earlier version did not store a past; it follows from the pods that are placed.
    let mut all = BTreeMap::<Uuid, WorkloadPast>::new();
    for pod in pods.iter().filter(|pod| pod.body.current.is_some()) {
        let past = all.entry(pod.workload_id).or_default();
        past.last_start = past.last_start.max(pod.body.placed_at_ms.map(Instant));
        past.last_resize = past.last_resize.max(pod.body.resized_at_ms.map(Instant));
        past.restarts = past.restarts.max(pod.generation.saturating_sub(1));
    }
    all.extend(kept);
    all
}
