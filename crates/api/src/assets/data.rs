//! Data sources as what a workload finds in its file system.

use api_types::{
    ConfigMapAssetSpec, ConfigMapInstance, GitAssetSpec, GitInstance, HostPathInstance,
    HostPathSpec, NfsAssetSpec, NfsInstance, PvcAssetSpec, PvcInstance, S3AssetSpec,
    SecretAssetSpec, SecretVolume, Storage,
};

use super::AssetSpec;
use crate::convert;
use crate::edge::Fault;

/// A kind of data source.
pub(super) trait DataSource: AssetSpec {
    /// What a workload gets that names it, or why it gets nothing.
    fn put(self, name: String, field: &str, storage: &mut Storage) -> Result<(), Fault>;
}

macro_rules! puts {
    ($($spec:ident: $list:ident += |$own:ident| $instance:ident { $($value:tt)+ };)+) => {$(
        impl DataSource for $spec {
            fn put(self, name: String, _: &str, storage: &mut Storage) -> Result<(), Fault> {
                let $own = self;
                let one = $instance { name: Some(name), $($value)+, ..$instance::default() };
                storage.$list.get_or_insert_default().push(one);
                Ok(())
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
    ConfigMapAssetSpec: config_map_volume += |own| ConfigMapInstance {
        config_map: own.config_map, mount_path: own.mount_path, sub_path: own.sub_path,
        default_mode: own.default_mode
    };
}

macro_rules! refuses {
    ($($spec:ident $what:literal)+) => {$(
        impl DataSource for $spec {
            fn put(self, _: String, field: &str, _: &mut Storage) -> Result<(), Fault> {
                Err(convert::not_here(field, $what))
            }
        }
    )+};
}

refuses! { S3AssetSpec "s3" }
