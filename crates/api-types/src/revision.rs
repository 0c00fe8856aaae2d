//! Revisions of inferences: the specification, the status and the pods of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    AllocatedResources, Pod, RequestResources, RequestedPods, Time, WorkloadCondition,
    WorkloadExtras, WorkloadSpec,
};

/// Body of `PATCH /api/v1/workloads/inferences/{workloadId}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InferenceUpdateRequest {
    /// The values to change; what is left out stays.
    pub spec: WorkloadSpec,
    /// True if the only replica of an inference is stopped first if there is no room for another
    /// beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreate: Option<bool>,
    /// Number of the revision whose values are the base of the change; those of the newest if it is
    /// left out. Without other values the inference goes back to that revision.
    #[serde(default, rename = "fromRevision", skip_serializing_if = "Option::is_none")]
    pub from_revision: Option<u32>,
}

/// A revision of an inference: one version of its specification, and its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// `runai-revision`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name: that of the inference and the number of the revision.
    pub name: String,
    /// Id.
    pub id: String,
    /// The inference.
    pub workload_id: String,
    /// Tenant.
    pub tenant_id: u64,
    /// Cluster.
    pub cluster_id: String,
    /// Project, by id.
    pub project_id: String,
    /// Department, by id.
    pub department_id: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Asked for, all replicas together.
    pub revision_requested_resources: RequestResources,
    /// Asked for by each replica.
    pub pods_requested_resources: RequestResources,
    /// Replicas asked for.
    pub requested_pods: RequestedPods,
    /// Pools asked for.
    pub requested_node_pools: Vec<String>,
    /// Held now.
    pub allocated_resources: AllocatedResources,
    /// Pools it is in.
    pub current_node_pools: Vec<String>,
    /// Replicas that run.
    pub running_pods: u64,
    /// Images.
    pub images: Vec<String>,
    /// Environment.
    pub environment_variables: BTreeMap<String, String>,
    /// Command.
    pub command: String,
    /// Arguments.
    pub arguments: String,
    /// Nothing lies below a revision but its pods.
    pub children_ids: Vec<Value>,
    /// Conditions.
    pub conditions: Vec<WorkloadCondition>,
    /// Phase.
    pub phase: String,
    /// Reason for the phase, in words.
    pub phase_message: String,
    /// Time at which it entered the phase.
    pub phase_updated_at: Time,
    /// Our own additions.
    pub additional_fields: WorkloadExtras,
}

/// The revisions of an inference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = GetInferenceWorkloadRevisions200Response)]
pub struct RevisionsPage {
    /// The oldest first.
    pub revisions: Vec<Revision>,
}

/// The pods of a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = GetRevisionPods200Response)]
pub struct RevisionPodsPage {
    /// Its pods.
    pub pods: Vec<Pod>,
}
