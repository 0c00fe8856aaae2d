//! What decisions follow from beside the state of workloads. Owns: what it is of workloads that an
//! earlier version wrote, which kept less.

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
    // Of a version that did not keep it: what the pods in their places say.
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
