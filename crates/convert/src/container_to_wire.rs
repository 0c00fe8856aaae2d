//! Conversion of container options to the wire, in the fields of a request.

use api_types::{
    EmptyDirInstance, GitInstance, HostPathInstance, ImagePullPolicy, ImagePullSecret, NfsInstance,
    PvcInstance, S3Instance, Security, Storage, WorkloadSpec, number_from_millis,
};
use spec::{
    Container, HOME_FOLDER, Mount, MountSource, PodSpec, Propagation, PullPolicy, Seccomp,
    SecretTo, SecretUse,
};

use super::quantity;

/// Adds the container options to a specification.
pub(super) fn to_wire(pod: &PodSpec, told: &mut WorkloadSpec) {
    let container = &pod.container;
    let compute = told.compute.get_or_insert_default();
    compute.cpu_core_limit = container.limits.cpu_millis_max.map(number_from_millis);
    compute.cpu_memory_limit = container.limits.memory_bytes_max.map(quantity);
    compute.large_shm_request = container.shared_memory_large.then_some(true);
    let is_home = |mount: &&Mount| mount.to.as_os_str() == HOME_FOLDER;
    told.create_home_dir = container.mounts.iter().any(|mount| is_home(&mount)).then_some(true);
    let mut storage = told.storage.take().unwrap_or_default();
    for mount in container.mounts.iter().filter(|mount| !is_home(mount)) {
        put(&mut storage, mount, &pod.secrets);
    }
    told.storage = Some(storage).filter(|storage| *storage != Storage::default());
    told.ports = some(super::container::ports_to_wire(&container.ports));
    told.image_pull_policy = match container.pull {
        PullPolicy::Always => Some(ImagePullPolicy::Always),
        PullPolicy::Never => Some(ImagePullPolicy::Never),
        PullPolicy::IfNotPresent => None,
    };
    // Credentials that were found automatically are left out, as they will be found again.
    let logins = pod.secrets.iter().filter(|secret| !secret.named.is_empty());
    let logins = logins.filter(|secret| matches!(secret.to, SecretTo::Registry(_)));
    let logins = logins.map(|secret| ImagePullSecret {
        name: Some(secret.named.clone()),
        ..ImagePullSecret::default()
    });
    told.image_pull_secrets = some(logins.collect());
    told.security = Some(security(container)).filter(|all| *all != Security::default());
}

fn some<T>(all: Vec<T>) -> Option<Vec<T>> {
    Some(all).filter(|all| !all.is_empty())
}

fn security(container: &Container) -> Security {
    let Container { user, security, .. } = container;
    let groups: Vec<String> = user.groups.iter().map(ToString::to_string).collect();
    let yes = |flag: bool| flag.then_some(true);
    Security {
        allow_privilege_escalation: security.privilege_escalation,
        capabilities: some(security.capabilities.clone()),
        host_ipc: yes(security.host_ipc),
        host_network: yes(security.host_network),
        privileged: yes(security.privileged),
        read_only_root_filesystem: yes(security.read_only_root),
        run_as_gid: user.gid.map(Into::into),
        run_as_non_root: yes(security.not_root),
        run_as_uid: user.uid.map(Into::into),
        seccomp_profile_type: security.seccomp.map(|filter| match filter {
            Seccomp::RuntimeDefault => "RuntimeDefault".to_owned(),
            Seccomp::Unconfined => "Unconfined".to_owned(),
        }),
        supplemental_groups: Some(groups.join(",")).filter(|text| !text.is_empty()),
        uid_gid_source: None,
    }
}

/// Adds a mount to the list of its type.
fn put(storage: &mut Storage, mount: &Mount, secrets: &[SecretUse]) {
    let to = Some(mount.to.display().to_string());
    match &mount.from {
        MountSource::HostPath { path, propagation } => {
            storage.host_path.get_or_insert_default().push(HostPathInstance {
                path: Some(path.display().to_string()),
                read_only: Some(mount.read_only),
                mount_path: to,
                mount_propagation: match propagation {
                    Propagation::None => None,
                    Propagation::HostToContainer => Some("HostToContainer".to_owned()),
                    Propagation::Bidirectional => Some("Bidirectional".to_owned()),
                },
                ..HostPathInstance::default()
            });
        }
        MountSource::Volume { name, ephemeral } => {
            let claim = claim_of(name).to_owned();
            storage.pvc.get_or_insert_default().push(PvcInstance {
                path: to,
                claim_name: (!ephemeral).then_some(claim),
                read_only: Some(mount.read_only),
                ephemeral: ephemeral.then_some(true),
                ..PvcInstance::default()
            });
        }
        MountSource::Nfs { server, path } => {
            storage.nfs.get_or_insert_default().push(NfsInstance {
                path: Some(path.clone()),
                read_only: Some(mount.read_only),
                server: Some(server.clone()),
                mount_path: to,
                ..NfsInstance::default()
            });
        }
        MountSource::Scratch { bytes_max, in_memory } => {
            storage.empty_dir_volume.get_or_insert_default().push(EmptyDirInstance {
                path: to,
                medium: in_memory.then(|| "Memory".to_owned()),
                size_limit: bytes_max.map(quantity),
                ..EmptyDirInstance::default()
            });
        }
        MountSource::Git(repository) => {
            let (secret, user, password) = login(mount, secrets);
            storage.git.get_or_insert_default().push(GitInstance {
                repository: Some(repository.address.clone()),
                branch: repository.branch.clone(),
                revision: repository.revision.clone(),
                path: to,
                password_secret: secret,
                secret_key_of_user: user,
                secret_key_of_password: password,
                ..GitInstance::default()
            });
        }
        MountSource::S3(bucket) => {
            let (secret, id, key) = login(mount, secrets);
            storage.s3.get_or_insert_default().push(S3Instance {
                bucket: Some(bucket.name.clone()),
                path: to,
                url: Some(bucket.address.clone()),
                access_key_secret: secret,
                secret_key_of_access_key_id: id,
                secret_key_of_secret_key: key,
                ..S3Instance::default()
            });
        }
    }
}

/// The credential for a mounted source, and the keys of its login.
fn login(mount: &Mount, secrets: &[SecretUse]) -> (Option<String>, Option<String>, Option<String>) {
    let login = secrets.iter().find_map(|secret| match &secret.to {
        SecretTo::Copy { mount: at, user_key, password_key } if *at == mount.to => {
            Some((secret.named.clone(), user_key.clone(), password_key.clone()))
        }
        _ => None,
    });
    match login {
        Some((secret, user, password)) => (Some(secret), Some(user), Some(password)),
        None => (None, None, None),
    }
}

/// The claim of a project's volume.
fn claim_of(volume: &str) -> &str {
    volume.split_once('-').map_or(volume, |(_, claim)| claim)
}
