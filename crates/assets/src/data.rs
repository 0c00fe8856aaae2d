//! Data sources as what a workload finds in its file system.

use api_types::{
    ConfigMapAssetSpec, ConfigMapInstance, GitAssetSpec, GitInstance, HostPathInstance,
    HostPathSpec, NfsAssetSpec, NfsInstance, PvcAssetSpec, PvcInstance, S3AssetSpec, S3Instance,
    SecretAssetSpec, SecretVolume, Storage,
};

use super::AssetSpec;

/// Hands the types of all kinds of data sources to a macro: the one list of them.
macro_rules! each_data_source {
    ($call:ident) => {
        $call! {
            NfsAssetSpec PvcAssetSpec S3AssetSpec GitAssetSpec HostPathSpec ConfigMapAssetSpec
            SecretAssetSpec
        }
    };
}
pub(crate) use each_data_source;

/// A kind of data source.
pub(super) trait DataSource: AssetSpec {
    /// Adds what a workload gets that names it.
    fn put(self, name: String, storage: &mut Storage);
}

macro_rules! puts {
    ($($spec:ident: $list:ident += |$own:ident| $instance:ident { $($value:tt)+ };)+) => {$(
        impl DataSource for $spec {
            fn put(self, name: String, storage: &mut Storage) {
                let $own = self;
                let one = $instance { name: Some(name), $($value)+, ..$instance::default() };
                storage.$list.get_or_insert_default().push(one);
            }
        }
    )+};
}

puts! {
    NfsAssetSpec: nfs += |own| NfsInstance {
        path: own.path, read_only: own.read_only, server: own.server, mount_path: own.mount_path
    };
    PvcAssetSpec: pvc += |own| PvcInstance {
        path: own.path, existing_pvc: own.existing_pvc, claim_name: own.claim_name,
        read_only: own.read_only, ephemeral: own.ephemeral, claim_info: own.claim_info,
        data_sharing: own.data_sharing
    };
    GitAssetSpec: git += |own| GitInstance {
        repository: own.repository, branch: own.branch, revision: own.revision, path: own.path,
        password_secret: own.password_asset_id.or(own.credential_id)
    };
    HostPathSpec: host_path += |own| HostPathInstance {
        path: own.path, read_only: own.read_only, mount_path: own.mount_path,
        mount_propagation: own.mount_propagation
    };
    SecretAssetSpec: secret_volume += |own| SecretVolume {
        mount_path: own.mount_path, default_mode: own.default_mode, secret: own.credential_asset_id
    };
    S3AssetSpec: s3 += |own| S3Instance {
        bucket: own.bucket, path: own.path, url: own.url, access_key_secret: own.access_key_asset_id
    };
    ConfigMapAssetSpec: config_map_volume += |own| ConfigMapInstance {
        config_map: own.config_map, mount_path: own.mount_path, sub_path: own.sub_path,
        default_mode: own.default_mode
    };
}
