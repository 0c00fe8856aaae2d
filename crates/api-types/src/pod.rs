//! Pods, events and history of workloads.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;
use crate::training::PodTraining;
use crate::workload::{AllocatedResources, RequestResources};

/// A pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Pod1)]
pub struct Pod {
    /// Id; the same for all runs of the pod.
    pub id: String,
    /// Name.
    pub name: String,
    /// Workload, by id.
    pub workload_id: String,
    /// Workload, by name.
    pub workload_name: String,
    /// The revision it belongs to, if it is a replica of an inference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_id: Option<String>,
    /// Project, by id.
    pub project_id: String,
    /// Project, by name.
    pub project_name: String,
    /// Cluster.
    pub cluster_id: String,
    /// Tenant.
    pub tenant_id: u64,
    /// Priority class.
    pub priority_class_name: String,
    /// Node it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Pool it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_node_pool: Option<String>,
    /// Time of its creation.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// `Pending`, `Running`, `Succeeded`, `Failed`, `Terminating`.
    pub k8s_phase: String,
    /// Time at which it entered this phase.
    pub k8s_phase_updated_at: Time,
    /// Its one container.
    pub containers: Vec<PodContainer>,
    /// Asked for.
    pub requested_resources: RequestResources,
    /// Held now.
    pub allocated_resources: AllocatedResources,
    /// Our own: number of the run, 0 before the first.
    #[serde(default)]
    pub generation: u32,
    /// Our own: number of restarts.
    #[serde(default)]
    pub restarts: u32,
    /// Our own: role among the pods of its workload, such as `master` or `worker`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Our own: GPU index on the node and thousandths of it.
    #[serde(default)]
    pub gpus: Vec<(u32, u64)>,
    /// Our own: `Pending`, `Reserved`, `Starting`, `ImagePullBackOff`, `CrashLoopBackOff`,
    /// `Running`, `Terminating`, `Succeeded`, `Failed`, `Suspended`.
    #[serde(default)]
    pub state: String,
    /// Our own: exit of its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<String>,
    /// Our own: its progress as a worker of an elastic training, as of the last second. The stream
    /// of changes does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<PodTraining>,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Container1)]
pub struct PodContainer {
    /// Name.
    pub name: String,
    /// Image.
    pub image: String,
    /// Time of its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
}

/// A page of pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PodsPage {
    /// The pods.
    pub pods: Vec<Pod>,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event2)]
pub struct KubernetesEvent {
    /// Its number in the log, as a string.
    pub id: String,
    /// Time of the event.
    pub created_at: Time,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Cluster.
    pub cluster_id: String,
    /// One sentence.
    pub message: String,
    /// Reason code, or what happened in one word.
    pub reason: String,
    /// Component that reports it.
    pub source: String,
    /// Object of the event.
    pub involved_object: InvolvedObject,
    /// The workload for which it was stopped, moved or resized, with the names that it had then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneficiary: Option<crate::WorkloadName>,
}

/// Object of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvolvedObject {
    /// Id.
    pub uid: String,
    /// `Pod`, `Workload` or `Project`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventsPage {
    /// The events.
    pub events: Vec<KubernetesEvent>,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One line of a workload's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = HistoryRecord1)]
pub struct HistoryRecord {
    /// Time and kind of the record.
    pub meta: HistoryMeta,
    /// The event or the change of phase.
    pub spec: HistorySpec,
}

/// Time and kind of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryMeta {
    /// Time of the record.
    pub creation_timestamp: Time,
    /// `Event` or `PhaseUpdate`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The event or the change of phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistorySpec {
    /// An event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<KubernetesEvent>,
    /// A change of phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_update: Option<PhaseUpdate>,
}

/// A change of phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseUpdate {
    /// The new phase.
    pub phase: String,
    /// Reason for the phase, in words.
    pub phase_message: String,
}

/// A page of history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryPage {
    /// The records, newest last.
    pub records: Vec<HistoryRecord>,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
