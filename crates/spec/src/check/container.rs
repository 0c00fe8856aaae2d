//! Checks of the container settings of a pod. Text that becomes an argument or an option of an
//! external program (a clone, a mount) must not be readable as anything else.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use crate::invalid::Invalid;
use crate::{Container, Limits, Mount, MountSource, PodSpec, SecretPlace};

/// Maximum number of mounts, ports, capabilities and supplementary groups of a pod.
const MOUNTS_MAX: usize = 64;
const PORTS_MAX: usize = 256;
const CAPABILITIES_MAX: usize = 64;
const GROUPS_MAX: usize = 64;
/// Largest id of a user or group that container runtimes accept.
const ID_MAX: u32 = i32::MAX as u32;
/// Maximum length of a path or an address, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// Smallest limits: no program starts in less memory, and the kernel accepts no smaller part of a
/// core.
const CPU_LIMIT_MILLIS_MIN: u64 = 10;
const MEMORY_LIMIT_BYTES_MIN: u64 = 4 << 20;

/// Checks the container settings of a pod.
pub(super) fn check(pod: &PodSpec) -> Result<(), Invalid> {
    let Container { mounts, ports, user, security, .. } = &pod.container;
    at_most("storage", mounts.len(), MOUNTS_MAX)?;
    at_most("ports", ports.len(), PORTS_MAX)?;
    at_most("security.capabilities", security.capabilities.len(), CAPABILITIES_MAX)?;
    at_most("security.supplementalGroups", user.groups.len(), GROUPS_MAX)?;
    ids("security.runAsUid", user.uid.as_slice())?;
    ids("security.runAsGid", user.gid.as_slice())?;
    ids("security.supplementalGroups", &user.groups)?;
    let mut places = BTreeSet::new();
    for mount in mounts {
        self::mount(mount)?;
        if !places.insert(&mount.to) {
            return bad("storage", format!("two things cannot both be {}", mount.to.display()));
        }
    }
    files(pod)?;
    let mut inner = BTreeSet::new();
    let mut outer = BTreeSet::new();
    for port in ports {
        if port.container == 0 || port.host == Some(0) {
            return bad("ports", "`0` is not a port; write 1 to 65535");
        }
        if !inner.insert(port.container) || port.host.is_some_and(|host| !outer.insert(host)) {
            let why = format!("port {} is there twice; give each once", port.container);
            return bad("ports", why);
        }
    }
    let name = |text: &String| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    if let Some(wrong) = security.capabilities.iter().find(|text| !name(text)) {
        let why =
            format!("`{}` is not a capability; write one such as SYS_PTRACE", units::shown(wrong));
        return bad("security.capabilities", why);
    }
    self::limits(pod)
}

/// Checks ids of users or groups.
fn ids(field: &'static str, ids: &[u32]) -> Result<(), Invalid> {
    match ids.iter().find(|id| **id > ID_MAX) {
        Some(id) => bad(field, format!("{id} is no id; 0 to {ID_MAX} are allowed")),
        None => Ok(()),
    }
}

/// Files of credentials and config maps belong to the pod alone: in a shared mount they would be
/// visible to others and would replace existing files.
fn files(pod: &PodSpec) -> Result<(), Invalid> {
    for secret in &pod.secrets {
        let Some(SecretPlace::File { path, .. }) = secret.to.place() else { continue };
        self::path("mountPath", path)?;
        let shared = pod.container.mounts.iter().find(|mount| {
            use MountSource::{HostPath, Nfs, Volume};
            matches!(mount.from, HostPath { .. } | Volume { .. } | Nfs { .. })
                && path.starts_with(&mount.to)
        });
        if let Some(mount) = shared {
            let why = format!(
                "{} lies in {}, which others may share; files of credentials and config maps need a \
                 folder outside of it",
                path.display(),
                mount.to.display()
            );
            return bad("mountPath", why);
        }
    }
    Ok(())
}

fn limits(pod: &PodSpec) -> Result<(), Invalid> {
    let Limits { cpu_millis_max, memory_bytes_max } = pod.container.limits;
    let (cpu, memory) = ("compute.cpuCoreLimit", "compute.cpuMemoryLimit");
    refuse(cpu_millis_max.is_some_and(|most| most < CPU_LIMIT_MILLIS_MIN), cpu, || {
        "too little for any program; at least 0.01 cores, or leave it out".to_owned()
    })?;
    if let Some(most) = memory_bytes_max.filter(|most| *most < MEMORY_LIMIT_BYTES_MIN) {
        let told = units::format_bytes(most);
        let why = format!("{told} is too little for any program; at least 4Mi, or leave it out");
        return bad(memory, why);
    }
    refuse(cpu_millis_max.is_some_and(|most| most < pod.cpu_millis), cpu, || {
        "the CPU limit is below the CPU request; raise it or ask for less".to_owned()
    })?;
    refuse(memory_bytes_max.is_some_and(|most| most < pod.memory_bytes), memory, || {
        "the memory limit is below the memory request; raise it or ask for less".to_owned()
    })
}

fn at_most(field: &'static str, count: usize, most: usize) -> Result<(), Invalid> {
    refuse(count > most, field, || format!("{count} are too many; at most {most} are allowed"))
}

fn refuse(wrong: bool, field: &'static str, why: impl FnOnce() -> String) -> Result<(), Invalid> {
    if wrong { bad(field, why()) } else { Ok(()) }
}

fn bad(field: &'static str, why: impl std::fmt::Display) -> Result<(), Invalid> {
    Err(Invalid::new(field, format!("{field}: {why}")))
}

fn mount(mount: &Mount) -> Result<(), Invalid> {
    let field = match &mount.from {
        MountSource::HostPath { .. } => "storage.hostPath",
        MountSource::Volume { .. } => "storage.pvc",
        MountSource::Nfs { .. } => "storage.nfs",
        MountSource::Scratch { .. } => "storage.emptyDirVolume",
        MountSource::Git(_) => "storage.git",
        MountSource::S3(_) => "storage.s3",
    };
    path(field, &mount.to)?;
    match &mount.from {
        MountSource::HostPath { path: from, .. } => path(field, from),
        MountSource::Volume { name, .. } => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            let good = name.chars().all(allowed) && (1..=128).contains(&name.len());
            refuse(!good, field, || {
                let name = units::shown(name);
                format!(
                    "`{name}` is not a valid name of a volume; letters, digits, `-`, `.` and `_`"
                )
            })
        }
        MountSource::Nfs { server, path: from } => {
            let host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
            let good = !server.is_empty() && server.len() <= 253 && server.chars().all(host);
            refuse(!good, field, || {
                format!("`{}` is not a valid name of a server", units::shown(server))
            })?;
            path(field, Path::new(from))?;
            refuse(from.contains(','), field, || "its path may not have a comma".to_owned())
        }
        MountSource::Scratch { bytes_max, .. } => refuse(*bytes_max == Some(0), field, || {
            "a size of 0 holds nothing; leave it out".to_owned()
        }),
        MountSource::Git(repository) => {
            let schemes = ["https://", "http://", "git://"];
            address(field, &repository.address, &schemes, "password")?;
            repository.branch.iter().chain(&repository.revision).try_for_each(|name| {
                let bad = |c: char| c.is_whitespace() || c.is_control() || ":?*[\\^~".contains(c);
                let wrong = name.is_empty() || name.starts_with('-') || name.contains(bad);
                let wrong = wrong || name.contains("..") || name.len() > TEXT_BYTES_MAX;
                refuse(wrong, field, || {
                    format!(
                        "`{}` is not a valid name of a branch, tag or commit",
                        units::shown(name)
                    )
                })
            })
        }
        MountSource::S3(bucket) => {
            address(field, &bucket.address, &["https://", "http://"], "access-key")?;
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            let name = &bucket.name;
            let good = name.chars().all(allowed) && (1..=255).contains(&name.len());
            let good = good && !name.starts_with('.');
            refuse(!good, field, || {
                let name = units::shown(name);
                format!(
                    "`{name}` is not a valid name of a bucket; letters, digits, `-`, `.` and `_`"
                )
            })
        }
    }
}

/// Checks an absolute path other than the root, without `.` and `..`.
fn path(field: &'static str, path: &Path) -> Result<(), Invalid> {
    let detour = |part| !matches!(part, Component::RootDir | Component::Normal(_));
    let text = path.to_string_lossy();
    let wrong = !path.has_root()
        || path.components().any(detour)
        || path.components().count() < 2
        || text.contains(char::is_control)
        || text.len() > TEXT_BYTES_MAX;
    refuse(wrong, field, || {
        let shown = units::shown(&text);
        format!("`{shown}` is not allowed: an absolute path below `/`, without `..`")
    })
}

/// Checks an address that is fetched over the network without credentials of the server: a local
/// path or an SSH address would be read with the server's rights.
fn address(
    field: &'static str,
    address: &str,
    schemes: &[&str],
    credential: &str,
) -> Result<(), Invalid> {
    let rest = schemes.iter().find_map(|scheme| address.strip_prefix(scheme));
    let bad = |c: char| c.is_whitespace() || c.is_control();
    let host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['-', '/']));
    refuse(!host || address.contains(bad) || address.len() > TEXT_BYTES_MAX, field, || {
        let shown = units::shown(address);
        let schemes = schemes.join(" or ");
        format!("`{shown}` is not allowed; an address that begins with {schemes}")
    })?;
    let login = rest.and_then(|rest| rest.split('/').next()).is_some_and(|host| host.contains('@'));
    refuse(login, field, || {
        format!(
            "the address holds a login, which everybody would see; make a credential of type \
             {credential} and name it"
        )
    })
}
