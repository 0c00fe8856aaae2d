//! Conversion of container and pod options from and to the wire. Owns: the errors for values of the
//! correct type without meaning. Checks against the state (credentials, volumes, folders of the
//! node) are made before or after.

use api_types::{
    Compute, EmptyDirInstance, GitInstance, HostPathInstance, ImagePullPolicy, NfsInstance, Port,
    PortServiceType, PvcInstance, S3Instance, Security, WorkloadSpec,
};
use http_kit::ApiError;
use spec::{
    Bucket, Container, HOME_FOLDER, Limits, Mount, MountSource, Propagation, PullPolicy,
    Repository, Seccomp, User,
};

/// Default S3 server (reference A.3).
pub(super) const S3_SERVER_DEFAULT: &str = "https://s3.amazonaws.com";

/// Converts the container options of a specification.
pub(super) fn container(spec: &WorkloadSpec) -> Result<Container, ApiError> {
    let security = spec.security.clone().unwrap_or_default();
    Ok(Container {
        mounts: mounts(spec)?,
        ports: ports(spec.ports.as_deref().unwrap_or_default())?,
        user: user(&security)?,
        limits: limits(spec.compute.as_ref())?,
        shared_memory_large: spec
            .compute
            .as_ref()
            .is_some_and(|compute| compute.large_shm_request == Some(true)),
        pull: match spec.image_pull_policy {
            Some(ImagePullPolicy::Always) => PullPolicy::Always,
            Some(ImagePullPolicy::Never) => PullPolicy::Never,
            Some(ImagePullPolicy::IfNotPresent) | None => PullPolicy::IfNotPresent,
        },
        security: rights(security)?,
    })
}

/// Converts CPU and memory limits; refuses invalid ones.
pub(super) fn limits(compute: Option<&Compute>) -> Result<Limits, ApiError> {
    let Some(compute) = compute else { return Ok(Limits::default()) };
    let cores = compute.cpu_core_limit.as_ref().map(|cores| {
        units::parse_cpu_millis(&super::decimal(cores))
            .map_err(|why| ApiError::field("spec.compute.cpuCoreLimit", why))
    });
    let memory = compute.cpu_memory_limit.as_ref().map(|size| {
        units::parse_bytes(size).map_err(|why| ApiError::field("spec.compute.cpuMemoryLimit", why))
    });
    Ok(Limits { cpu_millis_max: cores.transpose()?, memory_bytes_max: memory.transpose()? })
}

fn user(security: &Security) -> Result<User, ApiError> {
    let id = |field: &str, id: Option<i64>| {
        id.map(u32::try_from).transpose().map_err(|_| {
            let why = format!("must be a number from 0 to {}", u32::MAX);
            ApiError::field(&format!("spec.security.{field}"), why)
        })
    };
    let (uid, gid) = (id("runAsUid", security.run_as_uid)?, id("runAsGid", security.run_as_gid)?);
    let groups = groups(security.supplemental_groups.as_deref().unwrap_or_default())?;
    let user = User { uid, gid, groups };
    match security.uid_gid_source.as_deref() {
        None | Some("custom") => Ok(user),
        Some("fromTheImage") if user == User::default() => Ok(user),
        Some("fromTheImage") => {
            let why =
                "fromTheImage goes without runAsUid and the like; use custom, or leave it out";
            Err(ApiError::field("spec.security.uidGidSource", why))
        }
        Some("fromIdpToken") => {
            let why = "users have no numbers of a login provider here; give runAsUid and runAsGid \
                       with custom";
            Err(ApiError::field("spec.security.uidGidSource", why))
        }
        Some(other) => {
            let why = format!("`{}` is not allowed; fromTheImage or custom", units::shown(other));
            Err(ApiError::field("spec.security.uidGidSource", why))
        }
    }
}

fn groups(text: &str) -> Result<Vec<u32>, ApiError> {
    let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty());
    numbers.map(str::parse).collect::<Result<_, _>>().map_err(|_| {
        let why = format!("`{}` is not a list of numbers such as 10,20", units::shown(text));
        ApiError::field("spec.security.supplementalGroups", why)
    })
}

fn rights(security: Security) -> Result<spec::Security, ApiError> {
    let yes = |flag: Option<bool>| flag == Some(true);
    Ok(spec::Security {
        privileged: yes(security.privileged),
        privilege_escalation: security.allow_privilege_escalation,
        not_root: yes(security.run_as_non_root),
        read_only_root: yes(security.read_only_root_filesystem),
        host_network: yes(security.host_network),
        host_ipc: yes(security.host_ipc),
        seccomp: match security.seccomp_profile_type.as_deref() {
            None => None,
            Some("RuntimeDefault") => Some(Seccomp::RuntimeDefault),
            Some("Unconfined") => Some(Seccomp::Unconfined),
            Some(other) => {
                let other = units::shown(other);
                let why = format!("`{other}` is not allowed; RuntimeDefault or Unconfined");
                return Err(ApiError::field("spec.security.seccompProfileType", why));
            }
        },
        capabilities: security.capabilities.unwrap_or_default(),
    })
}

fn ports(ports: &[Port]) -> Result<Vec<spec::Port>, ApiError> {
    let kept = ports.iter().enumerate().filter(|(_, port)| port.exclude != Some(true));
    let one = |(at, port): (usize, &Port)| {
        let number = |name: &str, number| self::port(&format!("spec.ports[{at}].{name}"), number);
        let container = number("container", port.container)?.ok_or_else(|| {
            ApiError::field(&format!("spec.ports[{at}].container"), "must be set")
        })?;
        Ok(spec::Port { container, host: number("external", port.external)? })
    };
    kept.map(one).collect()
}

/// The number of a port.
pub(super) fn port(field: &str, number: Option<u32>) -> Result<Option<u16>, ApiError> {
    let valid = |number| u16::try_from(number).ok().filter(|number| *number > 0);
    number.map(|number| valid(number).ok_or(number)).transpose().map_err(|number| {
        let why = format!("`{number}` is not a port; write 1 to 65535");
        ApiError::field(field, why)
    })
}

fn mounts(spec: &WorkloadSpec) -> Result<Vec<Mount>, ApiError> {
    let storage = spec.storage.clone().unwrap_or_default();
    let mut mounts = Vec::new();
    macro_rules! add {
        ($($field:ident $name:literal $convert:ident)+) => {$(
            for (at, one) in storage.$field.iter().flatten().enumerate() {
                if one.exclude != Some(true) {
                    mounts.push($convert(&At { list: $name, at }, one)?);
                }
            }
        )+};
    }
    add! {
        host_path "hostPath" host_path
        pvc "pvc" pvc
        nfs "nfs" nfs
        git "git" git
        s3 "s3" bucket
        empty_dir_volume "emptyDirVolume" scratch
    }
    if spec.create_home_dir == Some(true) {
        let from = MountSource::Scratch { bytes_max: None, in_memory: false };
        mounts.push(Mount { to: HOME_FOLDER.into(), from, read_only: false });
    }
    Ok(mounts)
}

/// Field of a specification, for errors.
struct At {
    list: &'static str,
    at: usize,
}

impl At {
    fn field(&self, name: &str) -> String {
        format!("spec.storage.{}[{}].{name}", self.list, self.at)
    }

    fn needed(&self, name: &str, text: Option<&String>) -> Result<String, ApiError> {
        let text = text.filter(|text| !text.is_empty()).cloned();
        text.ok_or_else(|| ApiError::field(&self.field(name), "must be set"))
    }
}

fn host_path(at: &At, one: &HostPathInstance) -> Result<Mount, ApiError> {
    let propagation = match one.mount_propagation.as_deref() {
        None | Some("None") => Propagation::None,
        Some("HostToContainer") => Propagation::HostToContainer,
        Some("Bidirectional") => Propagation::Bidirectional,
        Some(other) => {
            let other = units::shown(other);
            let why = format!("`{other}` is not allowed; None, HostToContainer or Bidirectional");
            return Err(ApiError::field(&at.field("mountPropagation"), why));
        }
    };
    let path = at.needed("path", one.path.as_ref())?.into();
    Ok(Mount {
        to: at.needed("mountPath", one.mount_path.as_ref())?.into(),
        from: MountSource::HostPath { path, propagation },
        read_only: one.read_only != Some(false),
    })
}

/// The name of the volume is that of its claim; its project is added later.
fn pvc(at: &At, one: &PvcInstance) -> Result<Mount, ApiError> {
    let ephemeral = one.ephemeral == Some(true);
    let existing = one.existing_pvc == Some(true);
    if ephemeral && existing {
        let why = "goes with a new volume only; leave it or existingPvc out";
        return Err(ApiError::field(&at.field("ephemeral"), why));
    }
    if existing {
        at.needed("claimName", one.claim_name.as_ref())?;
    }
    let claim = one.claim_info.clone().unwrap_or_default();
    if let Some(size) = &claim.size {
        units::parse_bytes(size)
            .map_err(|why| ApiError::field(&at.field("claimInfo.size"), why))?;
    }
    if claim.volume_mode.as_deref().is_some_and(|mode| mode != "Filesystem") {
        let why = "only Filesystem is allowed: volumes are folders here";
        return Err(ApiError::field(&at.field("claimInfo.volumeMode"), why));
    }
    let claim = one.claim_name.clone().filter(|claim| !claim.is_empty());
    let name = claim.or_else(|| one.name.clone()).unwrap_or_default();
    let name = if ephemeral { format!("own-{}", at.at) } else { name };
    Ok(Mount {
        to: at.needed("path", one.path.as_ref())?.into(),
        from: MountSource::Volume { name, ephemeral },
        read_only: one.read_only == Some(true),
    })
}

fn nfs(at: &At, one: &NfsInstance) -> Result<Mount, ApiError> {
    let server = at.needed("server", one.server.as_ref())?;
    let path = at.needed("path", one.path.as_ref())?;
    Ok(Mount {
        to: at.needed("mountPath", one.mount_path.as_ref())?.into(),
        from: MountSource::Nfs { server, path },
        read_only: one.read_only != Some(false),
    })
}

fn git(at: &At, one: &GitInstance) -> Result<Mount, ApiError> {
    Ok(Mount {
        to: at.needed("path", one.path.as_ref())?.into(),
        from: MountSource::Git(Repository {
            address: at.needed("repository", one.repository.as_ref())?,
            branch: one.branch.clone(),
            revision: one.revision.clone(),
            login: None,
        }),
        read_only: false,
    })
}

fn bucket(at: &At, one: &S3Instance) -> Result<Mount, ApiError> {
    let address = one.url.clone().unwrap_or_else(|| S3_SERVER_DEFAULT.to_owned());
    Ok(Mount {
        to: at.needed("path", one.path.as_ref())?.into(),
        from: MountSource::S3(Bucket {
            name: at.needed("bucket", one.bucket.as_ref())?,
            address,
            login: None,
        }),
        read_only: false,
    })
}

fn scratch(at: &At, one: &EmptyDirInstance) -> Result<Mount, ApiError> {
    let size = one.size_limit.as_deref().map(units::parse_bytes).transpose();
    let in_memory = match one.medium.as_deref() {
        // Kubernetes name of the node's default medium.
        None | Some("") => false,
        Some("Memory") => true,
        Some(other) => {
            let why = format!("`{}` is not allowed; Memory, or left out", units::shown(other));
            return Err(ApiError::field(&at.field("medium"), why));
        }
    };
    Ok(Mount {
        to: at.needed("path", one.path.as_ref())?.into(),
        from: MountSource::Scratch {
            bytes_max: size.map_err(|why| ApiError::field(&at.field("sizeLimit"), why))?,
            in_memory,
        },
        read_only: false,
    })
}

/// Converts ports to the wire, in the form of a request.
pub(super) fn ports_to_wire(ports: &[spec::Port]) -> Vec<Port> {
    let one = |port: &spec::Port| Port {
        container: Some(port.container.into()),
        external: port.host.map(Into::into),
        service_type: Some(PortServiceType::NodePort),
        ..Port::default()
    };
    ports.iter().map(one).collect()
}
