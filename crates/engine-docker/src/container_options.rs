//! The container options of a run. Owns: mounts, ports, user, limits and capabilities, and
//! rejecting what containers cannot have. Pure.

use std::collections::BTreeMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, Mount as DockerMount, MountBindOptions,
    MountBindOptionsPropagationEnum as Shown, MountTmpfsOptions, MountType, MountVolumeOptions,
    MountVolumeOptionsDriverConfig, PortBinding,
};
use engine::{Container, Error, Mount, MountSource, Propagation, RunSpec, SecretPlace, TASKS_MAX};
use uuid::Uuid;

use crate::daemon::DaemonProperties;
use crate::gpu_fraction::PLATFORM_DIR;
use crate::names::{self, OWN_DIR, POD_ID_LABEL};
use crate::owner::Owner;

/// The least memory reservation that the daemon accepts.
pub(crate) const MEMORY_BYTES_MIN: u64 = 6 << 20;
/// Period of a limit of cores, in microseconds.
const CPU_PERIOD_US: i64 = 100_000;
/// A port without a host number is reached from this machine only.
const LOOPBACK: &str = "127.0.0.1";

/// The volume of this name of a server; servers do not share them.
pub(crate) fn volume(owner: &Owner, name: &str) -> String {
    format!("elastane-{}-{name}", owner.name().as_fields().0)
}

/// Rejects what containers cannot have.
///
/// # Errors
/// The field, why, and what to do.
pub(crate) fn check(spec: &RunSpec) -> Result<(), Error> {
    let Container { mounts, ports, user, limits, security, .. } = &spec.container;
    let limited = |mount: &&Mount| {
        matches!(mount.from, MountSource::Scratch { bytes_max: Some(_), in_memory: false })
    };
    let in_file = spec.secrets.iter().any(|secret| matches!(secret.to, SecretPlace::File { .. }));
    let own = mounts.iter().any(|mount| mount.to.starts_with(OWN_DIR));
    let platform = mounts.iter().any(|mount| mount.to.starts_with(PLATFORM_DIR));
    let fields = [
        ("storage", own, "/elastane is the pod's own in a container; mount it elsewhere"),
        ("storage", platform, "/run/elastane is the platform's in a container; mount it elsewhere"),
        (
            "storage.emptyDirVolume.sizeLimit",
            mounts.iter().any(|mount| limited(&mount)),
            "a folder on the disk of a container has no limit; leave it out, or ask for memory",
        ),
        (
            "security.runAsGid",
            user.gid.is_some() && user.uid.is_none(),
            "a container has a group only with a user; give runAsUid as well",
        ),
        (
            "security.runAsNonRoot",
            security.not_root && user.uid == Some(0),
            "it is to run as user 0, which is root; give another runAsUid",
        ),
        (
            "security.readOnlyRootFilesystem",
            security.read_only_root && in_file,
            "secret files are written to it; take secrets as variables",
        ),
        (
            "security.readOnlyRootFilesystem",
            security.read_only_root && engine::copy::copies(&spec.container).next().is_some(),
            "copies are put below it; copy in the command, into a volume",
        ),
        (
            "exposedUrls and ports",
            security.host_network
                && ports.iter().any(|port| port.host.is_some_and(|host| host != port.container)),
            "in the network of the machine a port has one number; leave the outer one out",
        ),
        (
            "compute.cpuMemoryLimit",
            limits.memory_bytes_max.is_some_and(|bytes| bytes < MEMORY_BYTES_MIN),
            "a container has at least 6 MiB",
        ),
    ];
    match fields.into_iter().find(|(_, asked, _)| *asked) {
        Some((field, _, why)) => Err(Error::NotHere { field, why: why.to_owned() }),
        None => Ok(()),
    }
}

/// Sets the host configuration of a run's container.
pub(crate) fn apply_host_config(
    body: &mut ContainerCreateBody,
    spec: &RunSpec,
    owner: &Owner,
    facts: &DaemonProperties,
) {
    let Container { mounts, ports, user, limits, shared_memory_large, security, pull: _ } =
        &spec.container;
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    body.user = user.uid.map(|uid| match user.gid {
        Some(gid) => format!("{uid}:{gid}"),
        None => uid.to_string(),
    });
    let host = body.host_config.get_or_insert_default();
    host.group_add = list(user.groups.iter().map(ToString::to_string));
    let made = mounts.iter().map(|mount| docker_mount(mount, spec, owner));
    host.mounts.get_or_insert_default().extend(made);
    // `nano_cpus` beyond the cores of the machine is refused, and simulated nodes may have more.
    let quota_us = |millis: u64| signed(millis).saturating_mul(CPU_PERIOD_US / 1000);
    host.cpu_period = limits.cpu_millis_max.map(|_| CPU_PERIOD_US);
    host.cpu_quota = limits.cpu_millis_max.map(quota_us);
    host.memory = limits.memory_bytes_max.map(signed);
    host.pids_limit = Some(signed(TASKS_MAX));
    // Memory and swap together have the same limit.
    host.memory_swap = host.memory;
    if *shared_memory_large {
        host.shm_size = host.memory.or(facts.memory_bytes.map(signed));
    }
    host.cap_add = list(security.capabilities.iter().cloned());
    // With this capability a run could take the address of another in its network.
    let keeps_raw = security.privileged || security.capabilities.iter().any(|one| one == "NET_RAW");
    host.cap_drop = (!keeps_raw).then(|| vec!["NET_RAW".to_owned()]);
    host.privileged = security.privileged.then_some(true);
    host.readonly_rootfs = security.read_only_root.then_some(true);
    host.ipc_mode = security.host_ipc.then(|| "host".to_owned());
    let no_more = security.privilege_escalation == Some(false);
    let unfiltered = security.seccomp == Some(engine::Seccomp::Unconfined);
    let options = [(no_more, "no-new-privileges"), (unfiltered, "seccomp=unconfined")];
    host.security_opt =
        list(options.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.to_owned()));
    if security.host_network {
        host.network_mode = Some("host".to_owned());
        body.networking_config = None;
        // The host name comes with its network.
        body.hostname = None;
        return;
    }
    body.exposed_ports = list(ports.iter().map(|port| format!("{}/tcp", port.container)));
    publish(host, spec);
}

fn list(all: impl Iterator<Item = String>) -> Option<Vec<String>> {
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then_some(all)
}

fn publish(host: &mut HostConfig, spec: &RunSpec) {
    let mut bindings: BTreeMap<String, Option<Vec<PortBinding>>> = BTreeMap::new();
    for port in &spec.container.ports {
        let binding = PortBinding {
            host_ip: port.host.is_none().then(|| LOOPBACK.to_owned()),
            host_port: port.host.map(|host| host.to_string()),
        };
        let of_port = bindings.entry(format!("{}/tcp", port.container)).or_default();
        of_port.get_or_insert_default().push(binding);
    }
    host.port_bindings = (!bindings.is_empty()).then(|| bindings.into_iter().collect());
}

fn nfs(server: &str, path: &str, read_only: bool) -> MountVolumeOptionsDriverConfig {
    let access = if read_only { "ro" } else { "rw" };
    let options = [
        ("type".to_owned(), "nfs".to_owned()),
        ("o".to_owned(), format!("addr={server},{access}")),
        ("device".to_owned(), format!(":{path}")),
    ];
    MountVolumeOptionsDriverConfig { name: Some("local".to_owned()), options: Some(options.into()) }
}

fn docker_mount(mount: &Mount, spec: &RunSpec, owner: &Owner) -> DockerMount {
    let target = Some(mount.to.display().to_string());
    let labels = |pod: Option<Uuid>| {
        let pod = pod.map(|pod| (POD_ID_LABEL.to_owned(), pod.to_string()));
        Some(owner.labels().into_iter().chain(pod).collect())
    };
    let of_volume = |source, options| DockerMount {
        typ: Some(MountType::VOLUME),
        target: target.clone(),
        source,
        read_only: Some(mount.read_only),
        volume_options: Some(options),
        ..DockerMount::default()
    };
    let plain = |pod| MountVolumeOptions { labels: labels(pod), ..MountVolumeOptions::default() };
    match &mount.from {
        MountSource::HostPath { path, propagation } => DockerMount {
            typ: Some(MountType::BIND),
            target,
            source: Some(path.display().to_string()),
            read_only: Some(mount.read_only),
            bind_options: Some(MountBindOptions {
                propagation: Some(match propagation {
                    Propagation::None => Shown::RPRIVATE,
                    Propagation::HostToContainer => Shown::RSLAVE,
                    Propagation::Bidirectional => Shown::RSHARED,
                }),
                ..MountBindOptions::default()
            }),
            ..DockerMount::default()
        },
        MountSource::Volume { name, ephemeral } => {
            let pod = ephemeral.then_some(spec.key.pod);
            // The name of a volume that ends with the pod contains the pod.
            let name = match pod {
                Some(pod) => format!("{}-{name}", names::volume(pod)),
                None => volume(owner, name),
            };
            of_volume(Some(name), plain(pod))
        }
        MountSource::Nfs { server, path } => {
            let driver_config = Some(nfs(server, path, mount.read_only));
            // In Podman it may outlive the container, and ends with the pod then.
            let of_pod = plain(Some(spec.key.pod));
            of_volume(None, MountVolumeOptions { driver_config, ..of_pod })
        }
        MountSource::Scratch { bytes_max, in_memory: true } => DockerMount {
            typ: Some(MountType::TMPFS),
            target,
            tmpfs_options: Some(MountTmpfsOptions {
                size_bytes: bytes_max.and_then(|bytes| i64::try_from(bytes).ok()),
                mode: Some(0o1777),
                ..MountTmpfsOptions::default()
            }),
            ..DockerMount::default()
        },
        // A volume without a name is deleted with the container. Copies are unpacked before the
        // start.
        MountSource::Scratch { .. } | MountSource::Git(_) | MountSource::S3(_) => {
            DockerMount { read_only: None, ..of_volume(None, plain(None)) }
        }
    }
}
