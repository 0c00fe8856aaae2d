//! How workloads that were deleted are shown: as they were last, without places.

use std::collections::BTreeMap;
use std::sync::Arc;

use records::{DepartmentRow, Past, PodRow, ProjectRow};
use units::Instant;
use uuid::Uuid;

use crate::view::{NodeView, Phase, PodState, PodView, WorkloadView};
use crate::view_builder::{pod_without_place, without_places};
use crate::workloads::{Ended, Pod, Workload, model_request, pod_from_row, workload_from_row};
use crate::{Error, SharedMap};

/// Workloads that were deleted, from their rows.
///
/// # Errors
/// A row holds what this version does not know.
pub fn deleted_views(
    past: Past,
    nodes: &[Arc<NodeView>],
) -> Result<SharedMap<Uuid, Arc<WorkloadView>>, Error> {
    let projects = past.projects.iter().map(|row| (row.id, row)).collect();
    let departments = past.departments.iter().map(|row| (row.id, row)).collect();
    let owners = Owners { projects, departments };
    let mut pods: BTreeMap<Uuid, Vec<PodRow>> = BTreeMap::new();
    for row in past.pods {
        pods.entry(row.workload_id).or_default().push(row);
    }
    let mut found = SharedMap::default();
    for row in past.workloads {
        // Revisions are part of an inference.
        if row.spec.revision.is_some() {
            continue;
        }
        let deleted_at = row.state.deleted_at;
        let mut workload = workload_from_row(row)?;
        for row in pods.get(&workload.id).into_iter().flatten() {
            workload.pods.insert(pod_from_row(row)?);
        }
        let shown = shown(&workload, deleted_at, &owners, nodes);
        found.insert(workload.id, Arc::new(shown));
    }
    Ok(found)
}

/// Whose workloads were, by id.
struct Owners<'a> {
    projects: BTreeMap<u64, &'a ProjectRow>,
    departments: BTreeMap<u64, &'a DepartmentRow>,
}

fn shown(
    workload: &Workload,
    deleted_at: Option<Instant>,
    owners: &Owners<'_>,
    nodes: &[Arc<NodeView>],
) -> WorkloadView {
    let project = owners.projects.get(&workload.project_id);
    let department_id = project.map_or(0, |project| project.body.department_id);
    let department = owners.departments.get(&department_id);
    let memories = || nodes.iter().flat_map(|node| node.gpu_memory_bytes.iter().copied());
    let requested = workload.spec.sets().flat_map(|set| {
        let each = model_request(&set.pod).demand(memories());
        std::iter::repeat_n(each, set.wanted() as usize)
    });
    let department =
        (department_id, department.map(|found| found.name.clone()).unwrap_or_default());
    let project_name = project.map(|project| project.name.clone()).unwrap_or_default();
    WorkloadView {
        deleted_at,
        requested: requested.sum(),
        pods: workload.pods.iter().map(|pod| pod_shown(workload, pod)).collect(),
        ..without_places(workload, project_name, department)
    }
}

fn pod_shown(workload: &Workload, pod: &Pod) -> PodView {
    let state = match (pod.ended, workload.phase) {
        (Some(Ended::Succeeded), _) | (None, Phase::Completed) => PodState::Succeeded,
        (Some(Ended::Failed), _) | (None, Phase::Failed) => PodState::Failed,
        (None, _) => PodState::Gone,
    };
    pod_without_place(workload, pod, state)
}
