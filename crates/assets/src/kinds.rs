//! The kinds of assets: what each is called, and what of it can never be right.

use api_types::{
    AssetKind, Compute, ConfigMapAssetSpec, EnvironmentAssetSpec, GitAssetSpec, HostPathSpec,
    NfsAssetSpec, PvcAssetSpec, S3AssetSpec, SecretAssetSpec,
};

use auth::Resource;
use convert::{self, COMPUTE_ASSET, ENVIRONMENT_ASSET};
use http_kit::ApiError;

use super::checks::{absolute, mode, needs, one_of};
use super::{AssetSpec, connections};

impl AssetSpec for Compute {
    const KIND: AssetKind = AssetKind::Compute;
    const RESOURCE: Resource = Resource::ComputeResources;
    const STORED: &'static str = COMPUTE_ASSET;

    fn check(&self) -> Result<(), ApiError> {
        convert::check_compute(self)
    }
}

impl AssetSpec for EnvironmentAssetSpec {
    const KIND: AssetKind = AssetKind::Environment;
    const RESOURCE: Resource = Resource::Environments;
    const STORED: &'static str = ENVIRONMENT_ASSET;

    fn check(&self) -> Result<(), ApiError> {
        convert::words("spec.command", self.command.clone())?;
        convert::words("spec.args", self.args.clone())?;
        let sources = ["fromTheImage", "fromIdpToken", "custom"];
        one_of("uidGidSource", self.uid_gid_source.as_deref(), &sources)?;
        connections::check(self.connections.as_deref().unwrap_or_default())
    }
}

impl AssetSpec for NfsAssetSpec {
    const KIND: AssetKind = AssetKind::Nfs;
    const RESOURCE: Resource = Resource::NfsAssets;
    const STORED: &'static str = "nfs-asset";

    fn check(&self) -> Result<(), ApiError> {
        let there = [
            ("server", self.server.is_some()),
            ("path", self.path.is_some()),
            ("mountPath", self.mount_path.is_some()),
        ];
        needs(there)?;
        absolute("spec.path", self.path.as_deref())?;
        absolute("spec.mountPath", self.mount_path.as_deref())
    }
}

impl AssetSpec for PvcAssetSpec {
    const KIND: AssetKind = AssetKind::Pvc;
    const RESOURCE: Resource = Resource::PvcAssets;
    const STORED: &'static str = "pvc-asset";

    /// The published change of a claim is one of its path.
    fn after(self, before: &Self) -> Self {
        let only_path = Self { path: self.path.clone(), ..Self::default() } == self;
        if only_path { Self { path: self.path, ..before.clone() } } else { self }
    }

    fn check(&self) -> Result<(), ApiError> {
        needs([("path", self.path.is_some())])?;
        absolute("spec.path", self.path.as_deref())?;
        if self.existing_pvc == Some(true) {
            return needs([("claimName", self.claim_name.is_some())]);
        }
        let size = self.claim_info.as_ref().and_then(|claim| claim.size.as_deref());
        needs([("claimInfo.size", size.is_some())])?;
        let wrong = |why| ApiError::field("spec.claimInfo.size", why);
        size.map_or(Ok(()), |size| units::parse_bytes(size).map(|_| ()).map_err(wrong))
    }
}

impl AssetSpec for S3AssetSpec {
    const KIND: AssetKind = AssetKind::S3;
    const RESOURCE: Resource = Resource::S3Assets;
    const STORED: &'static str = "s3-asset";

    fn check(&self) -> Result<(), ApiError> {
        needs([("bucket", self.bucket.is_some()), ("path", self.path.is_some())])?;
        absolute("spec.path", self.path.as_deref())
    }
}

impl AssetSpec for GitAssetSpec {
    const KIND: AssetKind = AssetKind::Git;
    const RESOURCE: Resource = Resource::GitAssets;
    const STORED: &'static str = "git-asset";

    fn check(&self) -> Result<(), ApiError> {
        needs([("repository", self.repository.is_some()), ("path", self.path.is_some())])?;
        absolute("spec.path", self.path.as_deref())
    }
}

impl AssetSpec for HostPathSpec {
    const KIND: AssetKind = AssetKind::HostPath;
    const RESOURCE: Resource = Resource::HostPathAssets;
    const STORED: &'static str = "host-path-asset";

    fn path_on_machine(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn check(&self) -> Result<(), ApiError> {
        needs([("path", self.path.is_some()), ("mountPath", self.mount_path.is_some())])?;
        absolute("spec.path", self.path.as_deref())?;
        absolute("spec.mountPath", self.mount_path.as_deref())?;
        let choices = ["None", "HostToContainer", "Bidirectional"];
        one_of("mountPropagation", self.mount_propagation.as_deref(), &choices)
    }
}

impl AssetSpec for ConfigMapAssetSpec {
    const KIND: AssetKind = AssetKind::ConfigMap;
    const RESOURCE: Resource = Resource::ConfigMapAssets;
    const STORED: &'static str = "config-map-asset";

    fn check(&self) -> Result<(), ApiError> {
        needs([
            ("configMap", self.config_map.is_some()),
            ("mountPath", self.mount_path.is_some()),
        ])?;
        absolute("spec.mountPath", self.mount_path.as_deref())?;
        mode("spec.defaultMode", self.default_mode.as_deref())
    }
}

impl AssetSpec for SecretAssetSpec {
    const KIND: AssetKind = AssetKind::SecretVolume;
    const RESOURCE: Resource = Resource::SecretAssets;
    const STORED: &'static str = "secret-asset";

    fn check(&self) -> Result<(), ApiError> {
        let credential = self.credential_asset_id.is_some();
        needs([("credentialAssetId", credential), ("mountPath", self.mount_path.is_some())])?;
        absolute("spec.mountPath", self.mount_path.as_deref())?;
        mode("spec.defaultMode", self.default_mode.as_deref())
    }
}
