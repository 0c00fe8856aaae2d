//! Views of workloads that only the database has: their last state, without places. They were
//! deleted, or ended and are archived.

use std::collections::BTreeMap;
use std::sync::Arc;

use records::{Archived, DepartmentRow, Past, ProjectRow};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::Error;
use crate::view_builder::{is_wanted, pod_without_place, state_without_place, without_places};
use crate::workloads::{
    Pod, Workload, by_workload, model_request, pod_from_row, workload_from_row,
};
use view::{NodeView, PodState, PodView, SharedMap, View, WorkloadView};

/// Views of deleted workloads, from their rows.
///
/// # Errors
/// A row holds a value that this version does not know.
pub fn deleted_views(
    past: Past,
    nodes: &[Arc<NodeView>],
) -> Result<SharedMap<Uuid, Arc<WorkloadView>>, Error> {
    let projects = past.projects.iter().map(|row| (row.id, row)).collect();
    let departments = past.departments.iter().map(|row| (row.id, row)).collect();
    let owners = Owners { projects, departments };
    let pods = by_workload(past.pods);
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

/// Views of archived workloads, from their rows, equal to those before they left memory.
///
/// # Errors
/// A row holds a value that this version does not know.
pub fn archived_views(found: Archived, view: &View) -> Result<Vec<Arc<WorkloadView>>, Error> {
    let mut pods = by_workload(found.pods);
    let mut views = Vec::with_capacity(found.workloads.len());
    for row in found.workloads {
        let mut workload = workload_from_row(row)?;
        for row in pods.remove(&workload.id).unwrap_or_default() {
            workload.pods.insert(pod_from_row(&row)?);
        }
        let project = view.projects.get(&workload.project_id);
        let department =
            project.map(|project| (project.department_id, project.department_name.clone()));
        let project_name = project.map(|project| project.unit.name.clone()).unwrap_or_default();
        let pods = workload.pods.iter().zip(workload.turns()).map(|(pod, turn)| PodView {
            port: pod.port,
            wanted: is_wanted(&workload, pod),
            restart_at: pod.life().restarts_at(),
            ..pod_without_place(&workload, pod, state_without_place(&workload, pod, turn))
        });
        views.push(Arc::new(WorkloadView {
            requested: requested(&workload, &view.nodes),
            pods: pods.collect(),
            ..without_places(&workload, project_name, department.unwrap_or_default())
        }));
    }
    Ok(views)
}

/// Sum of the requests of the pods of a workload.
fn requested(workload: &Workload, nodes: &[Arc<NodeView>]) -> Resources {
    let memories = || nodes.iter().flat_map(|node| node.gpu_memory_bytes.iter().copied());
    let each = workload.spec.sets().flat_map(|set| {
        let each = model_request(&set.pod).demand(memories());
        std::iter::repeat_n(each, set.wanted() as usize)
    });
    each.sum()
}

/// Projects and departments by id.
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
    let department =
        (department_id, department.map(|found| found.name.clone()).unwrap_or_default());
    let project_name = project.map(|project| project.name.clone()).unwrap_or_default();
    WorkloadView {
        deleted_at,
        requested: requested(workload, nodes),
        pods: workload.pods.iter().map(|pod| pod_shown(workload, pod)).collect(),
        ..without_places(workload, project_name, department)
    }
}

fn pod_shown(workload: &Workload, pod: &Pod) -> PodView {
    let state = match pod.life().shown_without_place(false, workload.phase) {
        ended @ (PodState::Succeeded | PodState::Failed) => ended,
        _ => PodState::Gone,
    };
    pod_without_place(workload, pod, state)
}
