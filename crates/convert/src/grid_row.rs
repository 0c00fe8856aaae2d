//! Rows of grids on the wire. Owns: the values of a workload that are short enough for a row.

use api_types::{Millis, Reason, RowWhy, SharedReason, SharedWhy, WorkloadGridRow};
use view::{EvictionView, PendingReason, Phase, PodState, ReasonView, WorkloadView};

use crate::workload::{failure, kind_name, nodes, phase_name, reason, requested_pods};

/// Maximum number of characters of a sentence in a row.
const MESSAGE_CHARS_MAX: usize = 120;
/// Maximum number of nodes named in a row.
const NODES_MAX: usize = 3;

/// Converts a workload to a row of a grid.
#[must_use]
pub fn grid_row(view: &WorkloadView) -> WorkloadGridRow {
    let spec = &*view.spec;
    let nodes = nodes(view);
    let running = view.pods.iter().filter(|pod| pod.state == PodState::Running).count();
    WorkloadGridRow {
        id: view.id.to_string(),
        name: spec.name.clone(),
        kind: kind_name(spec.kind).to_owned(),
        phase: phase_name(view.phase).to_owned(),
        phase_updated_at: view.phase_since.into(),
        project_id: view.project_id.to_string(),
        project_name: view.project_name.clone(),
        department_id: view.department_id.to_string(),
        submitted_by: spec.submitted_by.clone(),
        created_at: view.created_at.into(),
        completed_at: view.completed_at.map(Into::into),
        priority_class_name: spec.priority.class.clone(),
        preemptible: spec.preemptible,
        gpus_requested: Millis(view.requested.gpu_millis),
        gpus_allocated: Millis(view.allocated.gpu_millis),
        pods_requested: requested_pods(view).number,
        pods_running: running as u64,
        over_quota: view.over_quota,
        node_pools: view.pool.iter().cloned().collect(),
        nodes_count: nodes.len() as u64,
        nodes: nodes.into_iter().take(NODES_MAX).collect(),
        why: why(view),
        last_eviction: view.last_eviction.as_ref().map(last_eviction),
    }
}

/// The last eviction, without the workload for which it happened.
fn last_eviction(of: &EvictionView) -> Reason {
    let (code, message) = (of.code.to_string(), of.message.to_string());
    cut(Reason { code, message, at: of.at.into() })
}

/// Pending reason, or the reason of its failure.
fn why(view: &WorkloadView) -> Option<RowWhy> {
    match view.pending.first() {
        Some(PendingReason::Own(own)) => Some(RowWhy::Own(cut(reason(own)))),
        Some(PendingReason::OfClass(of)) => {
            let (reason, at) = (of.class.0.to_string(), of.since.into());
            Some(RowWhy::Shared(SharedWhy { reason, at }))
        }
        None => (view.phase == Phase::Failed).then(|| {
            let code = view::codes::of_failure(view.failure_kind).code.to_owned();
            let at = view.completed_at.unwrap_or(view.phase_since).into();
            RowWhy::Own(cut(Reason { code, message: failure(view), at }))
        }),
    }
}

/// Pending reasons of a class of workloads.
#[must_use]
pub fn shared_reason(class: u64, reasons: &[ReasonView]) -> SharedReason {
    SharedReason { id: class.to_string(), reasons: reasons.iter().map(reason).collect() }
}

/// A reason whose sentence fits into a row. Its end is cut, as the code and the first numbers are
/// the most important.
fn cut(mut reason: Reason) -> Reason {
    if let Some((at, _)) = reason.message.char_indices().nth(MESSAGE_CHARS_MAX) {
        reason.message.truncate(at);
        reason.message.push('…');
    }
    reason
}
