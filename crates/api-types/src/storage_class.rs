//! Storage classes. Owns: their shapes as published.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::PvcAccessModes;

/// The storage classes of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = StorageClassesV2)]
pub struct StorageClasses {
    /// All of them.
    pub items: Vec<StorageClass>,
}

/// A storage class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StorageClassV2)]
pub struct StorageClass {
    /// Cluster, by id.
    pub cluster_id: String,
    /// Name.
    pub storage_class_name: String,
    /// Provider of its volumes.
    pub spec: StorageClassSpec,
    /// Volumes that may be of it.
    pub permissions: StorageClassPermissions,
    /// Access and volume modes that a claim may name.
    pub customization: StorageClassCustomization,
}

/// Provider of the volumes of a storage class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageClassSpec {
    /// Name of the program that makes its volumes.
    pub provisioner: String,
    /// `true` if a volume can grow.
    pub allow_volume_expansion: bool,
    /// `true` if claims that name no class are of it.
    pub is_default: bool,
}

/// Volumes that may be of a storage class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageClassPermissions {
    /// `true` for volumes of PVC data sources.
    pub allowed_for_assets: bool,
    /// `true` for volumes that a submission makes.
    pub allowed_for_workloads: bool,
    /// `true` for volumes that end with their workload.
    pub allowed_for_ephemeral_volumes: bool,
    /// `true` for volumes that outlive their workload.
    pub allowed_for_persistent_volumes: bool,
    /// `true` for volumes that several projects share.
    pub allow_data_sharing: bool,
}

/// Access and volume modes that a claim may name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageClassCustomization {
    /// Access modes of a volume.
    pub access_mode: AccessModeCustomization,
    /// Volume modes: a folder or a block device.
    pub volume_mode: VolumeModeCustomization,
}

/// Access modes of a volume of a storage class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessModeCustomization {
    /// `true` if a claim has to say it.
    pub required: bool,
    /// The modes of a claim that names none.
    pub default: PvcAccessModes,
    /// The modes that a claim may name.
    pub supported_values: PvcAccessModes,
}

/// Volume modes of a storage class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeModeCustomization {
    /// `true` if a claim has to say it.
    pub required: bool,
    /// The mode of a claim that names none.
    pub default: String,
    /// The modes that a claim may name.
    pub supported_values: VolumeModes,
}

/// Volume modes that are supported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeModes {
    /// A folder.
    pub filesystem: bool,
    /// A block device.
    pub block: bool,
}

/// The names of the storage classes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = V1GetStorageClasses200Response)]
pub struct StorageClassNames {
    /// All of them.
    pub storage_classes: Vec<String>,
}
