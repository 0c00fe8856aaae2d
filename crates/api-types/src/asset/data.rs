//! Data sources.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::optional::optional;

optional! {
    /// A folder of an NFS server.
    pub struct NfsAssetSpec {
        /// Server.
        pub server: String,
        /// Folder there.
        pub path: String,
        /// Folder in the workload.
        pub mount_path: String,
        /// True if it can only be read.
        pub read_only: bool,
    }
}

optional! {
    /// A volume claim.
    pub struct PvcAssetSpec {
        /// Folder in the workload.
        pub path: String,
        /// True if the claim is there already.
        pub existing_pvc: bool,
        /// Its name.
        pub claim_name: String,
        /// True if it can only be read.
        pub read_only: bool,
        /// True if it ends with the workload.
        pub ephemeral: bool,
        /// Request for a new claim.
        pub claim_info: ClaimInfo,
        /// True if others see it.
        pub data_sharing: bool,
    }
}

optional! {
    /// Request for a volume claim.
    pub struct ClaimInfo {
        /// Size, such as `10Gi`.
        pub size: String,
        /// Storage class.
        pub storage_class: String,
        /// Access modes.
        pub access_modes: PvcAccessModes,
        /// `Filesystem` or `Block`.
        pub volume_mode: String,
        /// Further attributes.
        pub added_attr_values: Value,
    }
}

optional! {
    /// Access modes of a volume: nodes that may mount it.
    pub struct PvcAccessModes {
        /// One node, writing.
        pub read_write_once: bool,
        /// Many nodes, reading.
        pub read_only_many: bool,
        /// Many nodes, writing.
        pub read_write_many: bool,
    }
}

optional! {
    /// An S3 bucket.
    pub struct S3AssetSpec {
        /// Bucket.
        pub bucket: String,
        /// Folder in the workload.
        pub path: String,
        /// Server.
        pub url: String,
        /// Id of a credential of kind `accessKey`.
        pub access_key_asset_id: String,
    }
}

optional! {
    /// A Git repository.
    pub struct GitAssetSpec {
        /// Address.
        pub repository: String,
        /// Branch.
        pub branch: String,
        /// Commit or tag.
        pub revision: String,
        /// Folder in the workload.
        pub path: String,
        /// Id of a credential of kind `password`.
        pub password_asset_id: String,
        /// Id of a credential.
        pub credential_id: String,
    }
}

optional! {
    /// A folder of the node.
    pub struct HostPathSpec {
        /// Folder there.
        pub path: String,
        /// Folder in the workload.
        pub mount_path: String,
        /// True if it can only be read.
        pub read_only: bool,
        /// Propagation of mounts below the folder.
        pub mount_propagation: String,
    }
}

optional! {
    /// A config map as files.
    pub struct ConfigMapAssetSpec {
        /// Its name.
        pub config_map: String,
        /// Folder in the workload.
        pub mount_path: String,
        /// The one key that is wanted, as the file `mountPath`.
        pub sub_path: String,
        /// Permissions, such as `0644`.
        pub default_mode: String,
    }
}

optional! {
    /// A credential as files.
    pub struct SecretAssetSpec {
        /// Id of a credential.
        pub credential_asset_id: String,
        /// Folder in the workload.
        pub mount_path: String,
        /// Permissions, such as `0400`.
        pub default_mode: String,
    }
}
