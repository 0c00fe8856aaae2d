//! Workloads as manifests of Kubernetes. Owns: the fields around a manifest, as published. Does not
//! know about: the contents of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::scalar::Time;
use crate::{DesiredPhase, Preemptibility};

/// Body of `POST /api/v2/workloads`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadV2CreateRequest {
    /// Metadata of the workload, which are not in the manifest.
    pub metadata: WorkloadV2MetadataCreateParams,
    /// The manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// The manifest as JSON in base 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_base64_encoded: Option<String>,
}

/// Metadata of a submission, which are not in the manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadV2MetadataCreateParams {
    /// Name; that of the manifest if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `true` if the given name is a prefix, to which the server appends `-` and five characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_given_name_as_prefix: Option<bool>,
    /// Project, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Id of the cluster; there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// `Build` makes a workspace of a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Preemptibility: whether it may be stopped for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptibility: Option<Preemptibility>,
    /// Our own: true to refuse it if it could not start on the nodes as they are now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Body of `PUT /api/v2/workloads/{workloadId}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadV2UpdateRequest {
    /// Metadata, which are not in the manifest; they cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<WorkloadV2MetadataUpdateParams>,
    /// The manifest; what can be changed of it is `suspend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// The manifest as JSON in base 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_base64_encoded: Option<String>,
}

/// Metadata of a change, which are not in the manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadV2MetadataUpdateParams {
    /// Priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Category, which is its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
}

/// A workload and whether the cluster has it as it is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadV2GetResponse {
    /// The workload.
    pub workload: WorkloadV2,
    /// State of the synchronization with the cluster.
    pub sync_info: WorkloadV2SyncInfo,
}

/// A workload that was submitted as a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadV2 {
    /// Metadata of the workload, which are not in the manifest.
    pub metadata: WorkloadV2Metadata,
    /// Phase that the user wants.
    pub desired_phase: DesiredPhase,
    /// The manifest, with the name and namespace it has here.
    pub workload_manifest: Value,
    /// The manifest as it was sent.
    pub raw_manifest: Value,
    /// Our own, in the answer of a creation: reasons that it could not start on the nodes as they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Metadata of a workload, which are not in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadV2Metadata {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Project, by id.
    pub project_id: String,
    /// Project, by name.
    pub project_name: String,
    /// Department, by id.
    pub department_id: String,
    /// Department, by name.
    pub department_name: String,
    /// Cluster.
    pub cluster_id: String,
    /// Tenant.
    pub tenant_id: u64,
    /// Group, version and kind of the manifest.
    pub gvk: Gvk,
    /// Priority class.
    pub priority: String,
    /// Category, which is its purpose.
    pub category: String,
    /// Preemptibility: whether it may be stopped for others.
    pub preemptibility: Preemptibility,
    /// Its submitter.
    pub created_by: String,
    /// Time of its submission.
    pub created_at: Time,
    /// Its submitter, as in `createdBy`: nothing else of it can be changed.
    pub updated_by: String,
    /// Time at which its phase changed last.
    pub updated_at: Time,
}

/// Group, version and kind of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gvk {
    /// Group; empty for the core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// State of the synchronization of a workload with the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadV2SyncInfo {
    /// `Synced`, `Deleting`, `Deleted`.
    pub status: String,
}
