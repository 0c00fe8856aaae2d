//! Rows of grids on the wire. Owns: the values of a workload that are short enough for a row.

use api_types::{Millis, Reason, RowWhy, SharedReason, SharedWhy, WorkloadGridRow};
use spec::WorkloadSpec;
use view::{EvictionView, PendingReason, Phase, PodState, ReasonView, WorkloadView};

use crate::made_of::{self, COMPUTE_ASSET, ENVIRONMENT_ASSET, TEMPLATE, data_sources};
use crate::urls::connection_names;
use crate::workload::{
    failure, gpu_memory, images, kind_name, nodes, phase_name, reason, requested_gpu_memory,
    requested_pods,
};

/// Maximum number of characters of a sentence in a row.
const MESSAGE_CHARS_MAX: usize = 120;
/// Sentences and names are cut further for a row of at most this many bytes, but to no less than so
/// many.
const ROW_BYTES_MAX: usize = 700;
const MESSAGE_BYTES_MIN: usize = 28;
const NAME_BYTES_MIN: usize = 12;
/// Maximum number of data sources and of connections named in a row.
const NAMES_MAX: usize = 3;
/// Maximum number of nodes named in a row.
const NODES_MAX: usize = 3;

/// Converts a workload to a row of a grid.
#[must_use]
pub fn grid_row(view: &WorkloadView) -> WorkloadGridRow {
    let spec = &*view.spec;
    let nodes = nodes(view);
    let running = view.pods.iter().filter(|pod| pod.state == PodState::Running).count();
    fitted(WorkloadGridRow {
        id: view.id.to_string(),
        name: spec.name.clone(),
        kind: kind_name(spec.kind).to_owned(),
        phase: phase_name(view.phase).to_owned(),
        phase_updated_at: Some(view.phase_since)
            .filter(|since| *since != view.created_at)
            .map(Into::into),
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
        gpu_memory_requested: requested_gpu_memory(spec),
        gpu_memory_allocated: gpu_memory(&view.pods),
        idle_since: view.idle_since.map(Into::into),
        cpu_requested: Millis(view.requested.cpu_millis),
        cpu_allocated: Millis(view.allocated.cpu_millis),
        memory_requested: view.requested.memory_bytes,
        memory_allocated: view.allocated.memory_bytes,
        image: images(spec).into_iter().next().unwrap_or_default(),
        environment: name_of(spec, ENVIRONMENT_ASSET),
        compute_resource: name_of(spec, COMPUTE_ASSET),
        template: name_of(spec, TEMPLATE),
        data_sources: data_sources(spec).into_iter().map(|of| of.name).take(NAMES_MAX).collect(),
        connections: connection_names(spec).take(NAMES_MAX).collect(),
        pods_requested: requested_pods(view).number,
        pods_running: running as u64,
        over_quota: view.over_quota,
        node_pools: view.pool.iter().cloned().collect(),
        nodes_count: nodes.len() as u64,
        nodes: nodes.into_iter().take(NODES_MAX).collect(),
        why: why(view),
        last_eviction: view.last_eviction.as_ref().map(last_eviction),
    })
}

/// The name of the object of a kind that a workload was made of.
fn name_of(spec: &WorkloadSpec, kind: &str) -> Option<String> {
    made_of::one(spec, kind).map(|of| of.name)
}

/// The row with texts that fit into it, the longest cut first. Without room for all of them it has
/// none of what it was made of: the details of a workload have that.
fn fitted(mut row: WorkloadGridRow) -> WorkloadGridRow {
    for _ in 0..texts(&mut row).len() {
        let bytes = bytes_of(&row);
        let all = texts(&mut row).into_iter();
        let longest = all.max_by_key(|(text, least)| text.len().saturating_sub(*least));
        if let Some((text, least)) = longest.filter(|_| bytes > ROW_BYTES_MAX) {
            let less = bytes - ROW_BYTES_MAX + '…'.len_utf8();
            let most = text.len().saturating_sub(less).max(least);
            shorten(text, text.floor_char_boundary(most));
        }
    }
    let leave_out: [fn(&mut WorkloadGridRow); 4] = [
        |row| row.connections.clear(),
        |row| row.data_sources.clear(),
        |row| (row.environment, row.compute_resource, row.template) = (None, None, None),
        |row| row.image.clear(),
    ];
    for leave_out in leave_out {
        if bytes_of(&row) > ROW_BYTES_MAX {
            leave_out(&mut row);
        }
    }
    row
}

fn bytes_of(row: &WorkloadGridRow) -> usize {
    serde_json::to_string(row).map_or(0, |text| text.len())
}

/// The texts of a row that may be cut, each with the number of bytes that stay.
fn texts(row: &mut WorkloadGridRow) -> Vec<(&mut String, usize)> {
    let own = match &mut row.why {
        Some(RowWhy::Own(own)) => Some(own),
        _ => None,
    };
    let sentences = own.into_iter().chain(&mut row.last_eviction);
    let sentences = sentences.map(|reason| (&mut reason.message, MESSAGE_BYTES_MIN));
    let names = [&mut row.environment, &mut row.compute_resource, &mut row.template];
    let names = names.into_iter().flatten().chain([&mut row.image]);
    let names = names.chain(&mut row.data_sources).chain(&mut row.connections);
    sentences.chain(names.map(|name| (name, NAME_BYTES_MIN))).collect()
}

/// Ends a sentence at this byte, if it is longer.
fn shorten(message: &mut String, at: usize) {
    if at < message.len() {
        message.truncate(at);
        message.push('…');
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
        shorten(&mut reason.message, at);
    }
    reason
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;

    fn reason(message: &str) -> Reason {
        Reason { code: "E101".to_owned(), message: message.to_owned(), at: Instant(0).into() }
    }

    #[test]
    fn sentences_are_cut_until_the_row_fits() {
        let words = ["nodes", "größer", "\"quoted\"", "a\nb", "…"];
        for (at, word) in words.into_iter().enumerate() {
            let long = cut(reason(&word.repeat(100)));
            for (own, evicted) in [(true, true), (true, false), (false, true)] {
                let name = || word.repeat(30);
                let row = WorkloadGridRow {
                    image: name(),
                    environment: Some(name()),
                    compute_resource: Some(name()),
                    data_sources: vec![name(), name()],
                    name: "n".repeat(40 + at),
                    submitted_by: "somebody@research.example.org".to_owned(),
                    node_pools: vec!["default".to_owned()],
                    why: own.then(|| RowWhy::Own(long.clone())),
                    last_eviction: evicted.then(|| long.clone()),
                    ..row()
                };
                let fit = fitted(row.clone());
                let bytes = bytes_of(&fit);
                assert!(bytes <= ROW_BYTES_MAX, "{bytes} bytes: {fit:?}");
                let message = |row: &WorkloadGridRow| row.last_eviction.clone().unwrap().message;
                assert!(!evicted || message(&fit).len() >= MESSAGE_BYTES_MIN - 4, "{fit:?}");
                assert!(!evicted || message(&fit).ends_with('…'));
            }
        }
        let short = WorkloadGridRow { last_eviction: Some(reason("short")), ..row() };
        assert_eq!(fitted(short.clone()), short);
    }

    /// A row without sentences.
    fn row() -> WorkloadGridRow {
        let at = || Instant(1_700_000_000_000_000).into();
        WorkloadGridRow {
            id: uuid::Uuid::nil().to_string(),
            name: "a1".to_owned(),
            kind: "Training".to_owned(),
            phase: "Pending".to_owned(),
            phase_updated_at: Some(at()),
            project_id: "4".to_owned(),
            project_name: "team-a".to_owned(),
            department_id: "1".to_owned(),
            submitted_by: "ann".to_owned(),
            created_at: at(),
            completed_at: None,
            priority_class_name: "train".to_owned(),
            preemptible: true,
            gpus_requested: Millis(1000),
            gpus_allocated: Millis(0),
            gpu_memory_requested: None,
            gpu_memory_allocated: 0,
            idle_since: None,
            cpu_requested: Millis(100),
            cpu_allocated: Millis(0),
            memory_requested: 100 << 20,
            memory_allocated: 0,
            image: String::new(),
            environment: None,
            compute_resource: None,
            template: None,
            data_sources: Vec::new(),
            connections: Vec::new(),
            pods_requested: 1,
            pods_running: 0,
            over_quota: false,
            node_pools: Vec::new(),
            nodes: Vec::new(),
            nodes_count: 0,
            why: None,
            last_eviction: None,
        }
    }
}
