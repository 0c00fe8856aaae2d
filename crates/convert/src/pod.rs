//! Conversion of pods to the wire.

use std::sync::Arc;

use api_types::{Pod, PodContainer, TENANT_ID};
use http_kit::{Row, Scalar, Type};
use spec::{Priority, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;
use view::{PodState, PodView, View, WorkloadView};

use super::Context;
use super::workload::{allocated, requested_by, requested_of};

/// A pod with its workload.
#[derive(Debug, Clone)]
pub struct PodRow {
    /// Its workload.
    pub workload: Arc<WorkloadView>,
    /// Index among the pods of the workload.
    pub index: usize,
}

impl PodRow {
    /// The pods of a workload, without those that wait for others of the workload to run first.
    pub fn of(workload: &Arc<WorkloadView>) -> impl Iterator<Item = Self> + use<'_> {
        let pods = workload.pods.iter().enumerate();
        let there = pods.filter(|(_, pod)| pod.state != PodState::Later);
        there.map(|(index, _)| Self { workload: Arc::clone(workload), index })
    }

    /// True if the pod exists or should exist; false for a replica that is neither.
    pub fn is_shown(&self) -> bool {
        self.pod().wanted || self.pod().node_name.is_some()
    }

    /// Sort key among the pods of all workloads.
    #[must_use]
    pub fn place(&self) -> (u64, usize) {
        (self.workload.seq, self.index)
    }

    /// The id of the pod.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.pod().id
    }

    fn pod(&self) -> &PodView {
        &self.workload.pods[self.index]
    }
}

const fn state_name(state: PodState) -> &'static str {
    match state {
        PodState::PullFails => "ImagePullBackOff",
        PodState::BackingOff | PodState::Paused => "CrashLoopBackOff",
        PodState::Pending | PodState::Later | PodState::PlacesKept => "Pending",
        PodState::Reserved => "Reserved",
        PodState::Starting => "Starting",
        PodState::Running => "Running",
        PodState::Terminating => "Terminating",
        PodState::Succeeded => "Succeeded",
        PodState::Failed => "Failed",
        PodState::Suspended => "Suspended",
        PodState::Gone => "Gone",
    }
}

const fn kubernetes_phase(state: PodState) -> &'static str {
    match state {
        PodState::Pending
        | PodState::BackingOff
        | PodState::Later
        | PodState::Reserved
        | PodState::Starting
        | PodState::PullFails
        | PodState::Paused
        | PodState::PlacesKept
        | PodState::Suspended => "Pending",
        PodState::Running => "Running",
        PodState::Terminating | PodState::Gone => "Terminating",
        PodState::Succeeded => "Succeeded",
        PodState::Failed => "Failed",
    }
}

/// The priority of a pod: the spare one if the workload's minimum number of pods of its role with
/// lower indices have places.
fn priority<'a>(row: &PodRow, spec: &'a WorkloadSpec) -> &'a Priority {
    let Some(spare) = spec.spare_priority.as_ref().filter(|one| one.value < spec.priority.value)
    else {
        return &spec.priority;
    };
    let (set, _) = spec.set_of(row.index);
    let pods = row.workload.pods.iter().take(row.index).enumerate();
    let before =
        pods.filter(|(at, pod)| pod.state.holds_place() && spec.set_of(*at).0.role == set.role);
    if before.count() >= set.pods_min as usize { spare } else { &spec.priority }
}

/// Converts a pod to the wire.
pub fn pod(row: &PodRow, all: &View, context: &Context) -> Pod {
    let (workload, pod) = (&row.workload, row.pod());
    let revision = pod.revision.and_then(|id| all.revisions.get(&id));
    let spec = revision.map_or(&workload.spec, |revision| &revision.spec);
    // Resources of one pod: its actual GPUs, and the requests of its pod set otherwise.
    let gpu_millis = pod.gpus.iter().map(|(_, millis)| millis).sum();
    let (set, _) = spec.set_of(row.index);
    let asked = requested_of(workload, set);
    let held =
        if pod.state.holds_place() { Resources { gpu_millis, ..asked } } else { Resources::ZERO };
    let changed = pod.started_at.or(pod.placed_at).unwrap_or(pod.created_at);
    Pod {
        id: pod.id.to_string(),
        name: pod.name.clone(),
        workload_id: workload.id.to_string(),
        workload_name: workload.spec.name.clone(),
        revision_id: pod.revision.map(|id| id.to_string()),
        project_id: workload.project_id.to_string(),
        project_name: workload.project_name.clone(),
        cluster_id: context.cluster_id.clone(),
        tenant_id: TENANT_ID,
        priority_class_name: priority(row, spec).class.clone(),
        node_name: pod.node_name.clone(),
        current_node_pool: workload.pool.clone().filter(|_| pod.node_name.is_some()),
        created_at: pod.created_at.into(),
        updated_at: changed.max(workload.phase_since).into(),
        completed_at: workload.completed_at.map(Into::into),
        k8s_phase: kubernetes_phase(pod.state).to_owned(),
        k8s_phase_updated_at: changed.into(),
        containers: vec![PodContainer {
            name: spec.name.clone(),
            image: set.pod.image.clone(),
            started_at: pod.started_at.map(Into::into),
        }],
        requested_resources: requested_by(&set.pod, asked),
        allocated_resources: allocated(held, pod.gpu_memory_bytes),
        generation: pod.generation,
        restarts: pod.restarts,
        role: set.role.clone(),
        gpus: pod.gpus.clone(),
        state: state_name(pod.state).to_owned(),
        last_exit: pod.last_exit.clone(),
        training: None,
    }
}

impl Row for PodRow {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("name", Type::Text),
        ("workloadId", Type::Text),
        ("workloadName", Type::Text),
        ("projectId", Type::Text),
        ("projectName", Type::Text),
        ("nodeName", Type::Text),
        ("k8sPhase", Type::Text),
        ("createdAt", Type::Time),
    ];
    const SEARCHED: &'static [&'static str] = &["name", "workloadName", "projectName", "nodeName"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        let (workload, pod) = (&self.workload, self.pod());
        match name {
            "id" => Scalar::text(pod.id.to_string()),
            "name" => Scalar::text(pod.name.as_str()),
            "workloadId" => Scalar::text(workload.id.to_string()),
            "workloadName" => Scalar::text(workload.spec.name.as_str()),
            "projectId" => Scalar::text(workload.project_id.to_string()),
            "projectName" => Scalar::text(workload.project_name.as_str()),
            "nodeName" => pod.node_name.as_deref().map_or(Scalar::Absent, Scalar::text),
            "k8sPhase" => Scalar::text(kubernetes_phase(pod.state)),
            "createdAt" => Scalar::time(pod.created_at),
            _ => Scalar::Absent,
        }
    }
}
