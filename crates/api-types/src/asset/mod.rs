//! Workload assets: parts of a workload that are kept under a name and used by many. Owns: what all
//! kinds have in common; the specification of each kind is in a file of its group.

mod credential;
mod data;
mod environment;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::optional::optional;
use crate::scoped_meta::with_scope;
use crate::{ScopeType, Unsupported};

pub use credential::{
    AccessKeySpec, CredentialUpdate, DockerRegistrySpec, GenericSecretSpec, KeyValuePair,
    NgcApiKeySpec, PasswordSpec, SecretText,
};
pub use data::{
    ClaimInfo, ConfigMapAssetSpec, GitAssetSpec, HostPathSpec, NfsAssetSpec, PvcAccessModes,
    PvcAssetSpec, S3AssetSpec, SecretAssetSpec,
};
pub use environment::{
    Connection, EnvironmentAssetSpec, EnvironmentVariableCredential, EnvironmentVariableOfAsset,
    ExternalToolInfo, ExternalUrlInfo, InternalToolInfo, NodePortInfo, ServingPortInfo,
};

/// Kind of an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum AssetKind {
    /// GPUs, CPU and memory of a pod.
    Compute,
    /// Image, command and environment variables.
    Environment,
    /// Credential: an access key and its secret.
    AccessKey,
    /// Credential: user and password of an image registry.
    DockerRegistry,
    /// Credential: a key of the NVIDIA registry.
    NgcApiKey,
    /// Credential: user and password.
    Password,
    /// Credential: secret values by name.
    GenericSecret,
    /// Data: an S3 bucket.
    S3,
    /// Data: a Git repository.
    Git,
    /// Data: a folder of an NFS server.
    Nfs,
    /// Data: a volume claim.
    Pvc,
    /// Data: a folder of the node.
    HostPath,
    /// Data: a config map.
    #[serde(rename = "config-map")]
    ConfigMap,
    /// Data: a credential as files.
    #[serde(rename = "secret-volume")]
    SecretVolume,
}

/// Metadata of a new asset (`AssetCreationRequest`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssetCreationMeta {
    /// Name, unique among those of its kind and scope.
    pub name: String,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The scope it belongs to; projects within can use it.
    pub scope: ScopeType,
    /// The cluster, with scope `cluster`; there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The department, with scope `department`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub department_id: Option<String>,
    /// The project, with scope `project`: a number, unlike elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<u64>,
    /// Not acted on yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub auto_delete: Unsupported,
    /// Not acted on yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub private: Unsupported,
    /// Workloads that may use it; all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_supported_types: Option<WorkloadSupportedTypes>,
}

/// Workloads that may use an asset. If none is true, all may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadSupportedTypes {
    /// Inferences.
    #[serde(default)]
    pub inference: bool,
    /// Workspaces.
    #[serde(default)]
    pub workspace: bool,
    /// Trainings.
    #[serde(default)]
    pub training: bool,
    /// Distributed trainings.
    #[serde(default)]
    pub distributed: bool,
    /// Framework of distributed trainings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dist_framework: Option<DistFramework>,
}

/// Framework of a distributed training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum DistFramework {
    /// MPI.
    #[serde(rename = "MPI")]
    Mpi,
    /// PyTorch.
    PyTorch,
    /// TensorFlow.
    #[serde(rename = "TF")]
    Tf,
    /// XGBoost.
    #[serde(rename = "XGBoost")]
    XgBoost,
}

/// A new asset of some kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssetCreation<S> {
    /// Metadata, the same fields for all assets.
    pub meta: AssetCreationMeta,
    /// Specification. Null is an empty one, for kinds without required fields.
    #[serde(deserialize_with = "null_as_empty")]
    #[serde(bound(deserialize = "S: serde::de::DeserializeOwned"))]
    pub spec: S,
}

/// Reads null as `{}`, so that the error names a field that the kind requires.
fn null_as_empty<'de, D, S>(from: D) -> Result<S, D::Error>
where
    D: serde::Deserializer<'de>,
    S: serde::de::DeserializeOwned,
{
    let nothing = std::iter::empty::<(String, String)>();
    let empty = || S::deserialize(serde::de::value::MapDeserializer::new(nothing));
    Option::<S>::deserialize(from)?.map_or_else(empty, Ok)
}

optional! {
    /// Changes to the metadata of an asset. Its scope stays.
    pub struct AssetUpdateMeta {
        /// Name.
        pub name: String,
        /// Free text.
        pub description: String,
        /// Workloads that may use it.
        pub workload_supported_types: WorkloadSupportedTypes,
    }
}

/// A changed asset. A specification that is given replaces the one before as a whole; of a PVC data
/// source a `path` alone leaves the rest of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssetUpdate<S> {
    /// Changes to the metadata; a field that is left out keeps its value.
    #[serde(default)]
    pub meta: AssetUpdateMeta,
    /// Specification; if it is left out or null, it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<S>,
}

with_scope! {
    /// Metadata of an asset.
    pub struct AssetMeta {
        /// Free text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub description: Option<String>,
        /// Kind of the asset.
        pub kind: AssetKind,
        /// The tenant.
        pub tenant_id: u64,
        /// Kind of the scope it belongs to.
        pub scope: ScopeType,
        /// Name of the project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project_name: Option<String>,
        /// Workloads that may use it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub workload_supported_types: Option<WorkloadSupportedTypes>,
        /// Number of changes made to it.
        pub update_count: u64,
    }
}

/// An asset of some kind. Secret values are never in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Asset<S> {
    /// Metadata, the same fields for all assets.
    pub meta: AssetMeta,
    /// Specification.
    pub spec: S,
    /// Workloads and templates that use it, if the request asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<AssetUsageInfo>,
}

/// Assets of some kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssetList<S> {
    /// The assets.
    pub entries: Vec<Asset<S>>,
}

/// Assets of several kinds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MixedAssetList {
    /// The assets, each in the form of its kind.
    pub entries: Vec<Value>,
}

/// Users of an asset: the live workloads that name it, and templates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssetUsageInfo {
    /// Workspaces.
    pub workspaces: Vec<WorkloadRefAndStatus>,
    /// Trainings.
    pub trainings: Vec<WorkloadRefAndStatus>,
    /// Distributed trainings.
    pub distributed: Vec<WorkloadRefAndStatus>,
    /// Inferences.
    pub inferences: Vec<WorkloadRefAndStatus>,
    /// Templates.
    pub templates: Vec<AssetRef>,
}

/// A workload that uses an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadRefAndStatus {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Phase.
    pub status: String,
}

/// Something that uses an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetRef {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}
