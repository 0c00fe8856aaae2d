//! Conversion of the volumes of a pod and their mounts to storage of a workload.

use api_types::{
    ConfigMapInstance, EmptyDirInstance, HostPathInstance, NfsInstance, PvcInstance, SecretVolume,
    Storage,
};
use http_kit::ApiError;

use super::kinds::{Volume, VolumeMount};

/// Path of shared memory: a folder in memory there is the usual way to request more of it.
const SHARED_MEMORY: &str = "/dev/shm";

/// The storage of a container, and true if it requests shared memory as large as its memory.
pub(super) fn storage(
    at: &str,
    volumes: &[Volume],
    mounts: Vec<VolumeMount>,
) -> Result<(Storage, bool), ApiError> {
    let (mut storage, mut large) = (Storage::default(), false);
    for (number, mount) in mounts.into_iter().enumerate() {
        let at = format!("{at}.volumeMounts[{number}]");
        let named = volumes.iter().find(|volume| volume.name == mount.name).ok_or_else(|| {
            let why = format!("no volume of the pod is called `{}`", units::shown(&mount.name));
            ApiError::field(&format!("{at}.name"), why)
        })?;
        let is_memory = |dir: &super::kinds::EmptyDir| dir.medium.as_deref() == Some("Memory");
        if mount.mount_path.trim_end_matches('/') == SHARED_MEMORY
            && named.empty_dir.as_ref().is_some_and(is_memory)
        {
            large = true;
        } else {
            add(&at, named, mount, &mut storage)?;
        }
    }
    Ok((storage, large))
}

fn add(at: &str, of: &Volume, mount: VolumeMount, to: &mut Storage) -> Result<(), ApiError> {
    let (name, path) = (Some(mount.name), Some(mount.mount_path));
    let whole = |what: &str| match &mount.sub_path {
        Some(_) => {
            let why = format!("is refused: {what} is mounted as a whole; leave it out");
            Err(ApiError::field(&format!("{at}.subPath"), why))
        }
        None => Ok(()),
    };
    let below = |folder: &str| match &mount.sub_path {
        Some(below) => format!("{}/{below}", folder.trim_end_matches('/')),
        None => folder.to_owned(),
    };
    if let Some(dir) = &of.empty_dir {
        whole("an empty folder")?;
        to.empty_dir_volume.get_or_insert_default().push(EmptyDirInstance {
            name,
            path,
            medium: dir.medium.clone().filter(|medium| !medium.is_empty()),
            size_limit: dir.size_limit.as_ref().map(super::kinds::Amount::text),
            ..EmptyDirInstance::default()
        });
    } else if let Some(folder) = &of.host_path {
        to.host_path.get_or_insert_default().push(HostPathInstance {
            name,
            path: Some(below(&folder.path)),
            mount_path: path,
            read_only: Some(mount.read_only),
            mount_propagation: mount.mount_propagation,
            ..HostPathInstance::default()
        });
    } else if let Some(folder) = &of.nfs {
        to.nfs.get_or_insert_default().push(NfsInstance {
            name,
            server: Some(folder.server.clone()),
            path: Some(below(&folder.path)),
            mount_path: path,
            read_only: Some(mount.read_only || folder.read_only),
            ..NfsInstance::default()
        });
    } else if let Some(claim) = &of.persistent_volume_claim {
        whole("a volume")?;
        to.pvc.get_or_insert_default().push(PvcInstance {
            name,
            claim_name: Some(claim.claim_name.clone()),
            path,
            existing_pvc: Some(true),
            read_only: Some(mount.read_only || claim.read_only),
            ..PvcInstance::default()
        });
    } else if let Some(map) = &of.config_map {
        to.config_map_volume.get_or_insert_default().push(ConfigMapInstance {
            name,
            config_map: Some(map.name.clone()),
            mount_path: path,
            sub_path: mount.sub_path,
            ..ConfigMapInstance::default()
        });
    } else if let Some(secret) = &of.secret {
        whole("a secret")?;
        let secret = Some(secret.secret_name.clone());
        let one = SecretVolume { name, mount_path: path, secret, ..SecretVolume::default() };
        to.secret_volume.get_or_insert_default().push(one);
    } else {
        let named = units::shown(&of.name);
        let why = format!("`{named}` does not say what it is, such as `emptyDir: {{}}`");
        return Err(ApiError::field(&format!("{at}.name"), why));
    }
    Ok(())
}
