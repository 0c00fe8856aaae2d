//! What a workload gets of the node and of its project besides its place: folders of the node, rights
//! over it, volumes. Owns: who may have what of the node, and which volumes a project has. The volumes
//! themselves are the engine's.

use std::path::Path;

use api_types::{HostPathSpec, NfsAssetSpec, WorkloadSpec as Wire};
use control::{Mount, MountSource, Scope, Seccomp, Security, VOLUME, WorkloadSpec, volume_name};

use crate::State;
use crate::assets::Stored;
use crate::convert::Asker;
use crate::edge::{Caller, Fault};
use crate::objects::Family as _;

/// Capabilities that are no more than what containers have anyway (the *baseline* of the Pod Security
/// Standards of Kubernetes), and two that only concern the workload's own processes and memory.
const HARMLESS: [&str; 15] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
    "SYS_PTRACE",
];

/// The claim behind a volume of a project.
pub(crate) fn claim_of(volume: &str) -> &str {
    volume.split_once('-').map_or(volume, |(_, claim)| claim)
}

/// Settles what a converted workload gets: names its volumes, and refuses what is not for who asks.
pub(crate) fn settle(
    state: &State,
    asker: &Asker,
    project: u64,
    spec: &mut WorkloadSpec,
) -> Result<(), Fault> {
    let name = spec.name.clone();
    let uses = spec.uses.clone();
    for set in spec.sets_mut() {
        if !asker.administrator && !state.control.node_access().privileged {
            unprivileged(&set.pod.container.security)?;
        }
        for (at, mount) in set.pod.container.mounts.iter_mut().enumerate() {
            match &mut mount.from {
                MountSource::Volume { name: claim, ephemeral: false } => {
                    if claim.is_empty() {
                        *claim = format!("{name}-{at}");
                    }
                    *claim = volume_name(project, claim);
                }
                MountSource::HostPath { path, .. } => {
                    let real = state.control.node_access().real(path);
                    let real = real.map_err(|why| Fault::field("spec.storage.hostPath", why))?;
                    let asked = std::mem::replace(path, real);
                    may_see(state, asker, &uses, mount, &asked)?;
                }
                MountSource::Nfs { .. } => may_have_export(state, asker, &uses, mount)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Refuses rights over the node.
fn unprivileged(security: &Security) -> Result<(), Fault> {
    let strong = |name: &&String| !HARMLESS.contains(&name.as_str());
    let field = if security.privileged {
        "privileged"
    } else if security.host_network {
        "hostNetwork"
    } else if security.host_ipc {
        "hostIpc"
    } else if security.seccomp == Some(Seccomp::Unconfined) {
        "seccompProfileType"
    } else if security.capabilities.iter().any(|name| strong(&name)) {
        "capabilities"
    } else {
        return Ok(());
    };
    Err(Fault::forbidden(format!(
        "spec.security.{field}: gives rights over the machine, which only an administrator may; leave \
         it out, or have the server started with --allow-privileged"
    )))
}

/// Refuses a folder of the node that is not for who asks.
fn may_see(
    state: &State,
    asker: &Asker,
    uses: &[String],
    mount: &Mount,
    asked: &Path,
) -> Result<(), Fault> {
    let MountSource::HostPath { path: real, .. } = &mount.from else { return Ok(()) };
    let before =
        asker.has.iter().any(|had| had.from == mount.from && had.read_only <= mount.read_only);
    let allowed = asker.administrator
        || before
        || state.control.node_access().is_open(real)
        || uses.iter().any(|key| gives(state, key, real, mount.read_only));
    if allowed {
        return Ok(());
    }
    Err(Fault::forbidden(format!(
        "spec.storage.hostPath: {} is a folder of the machine that is not open to everyone; name a \
         data source that an administrator made of it as it is now, or have the server started with --host-paths {}",
        asked.display(),
        asked.display(),
    )))
}

/// Refuses an NFS export that is not for who asks: the machine mounts it, and to the file server
/// whoever uses it may be anybody.
fn may_have_export(
    state: &State,
    asker: &Asker,
    uses: &[String],
    mount: &Mount,
) -> Result<(), Fault> {
    let before =
        asker.has.iter().any(|had| had.from == mount.from && had.read_only <= mount.read_only);
    let given = |key: &String| exports(state, key, mount);
    let allowed = asker.administrator || before || state.control.node_access().privileged;
    if allowed || uses.iter().any(given) {
        return Ok(());
    }
    Err(Fault::forbidden(
        "spec.storage.nfs: an export is mounted with the rights of the machine; name a data source that \
         an administrator made of it, or have the server started with --allow-privileged",
    ))
}

/// Whether an asset is a data source that an administrator made of this export.
fn exports(state: &State, key: &str, mount: &Mount) -> bool {
    let (Some((kind, id)), MountSource::Nfs { server, path }) = (key.split_once('/'), &mount.from)
    else {
        return false;
    };
    if kind != Stored::<NfsAssetSpec>::KIND {
        return false;
    }
    let Ok(item) = state.one::<Stored<NfsAssetSpec>>(id) else { return false };
    let spec = &item.body.spec;
    item.body.given.by_administrator
        && spec.server.as_ref() == Some(server)
        && spec.path.as_ref() == Some(path)
        && (mount.read_only || spec.read_only == Some(false))
}

/// Refuses who comes to a workload that has rights over the machine which it could not have asked for.
pub(crate) fn may_enter(state: &State, caller: &Caller, spec: &WorkloadSpec) -> Result<(), Fault> {
    let own = spec.submitted_by == caller.subject;
    if own || caller.administers() || state.control.node_access().privileged {
        return Ok(());
    }
    let strong = spec.sets().any(|set| unprivileged(&set.pod.container.security).is_err());
    if strong {
        let why = "the workload has rights over the machine; only an administrator and who submitted \
                   it come to its pods";
        return Err(Fault::forbidden(why));
    }
    Ok(())
}

/// Whether an asset is a data source that an administrator made of this folder.
fn gives(state: &State, key: &str, real: &Path, read_only: bool) -> bool {
    let Some((kind, id)) = key.split_once('/') else { return false };
    if kind != Stored::<HostPathSpec>::KIND {
        return false;
    }
    let Ok(item) = state.one::<Stored<HostPathSpec>>(id) else { return false };
    let writable = item.body.spec.read_only == Some(false);
    item.body.given.real_path.as_deref() == Some(real) && (read_only || writable)
}

/// Refuses a volume that is to be there and is not.
pub(crate) fn must_exist(state: &State, project: u64, request: &Wire) -> Result<(), Fault> {
    let claims = request.storage.iter().flat_map(|storage| &storage.pvc).flatten();
    let old =
        |one: &&api_types::PvcInstance| one.exclude != Some(true) && one.existing_pvc == Some(true);
    let view = state.control.view();
    for one in claims.filter(old) {
        // Without a name it is refused where it is read.
        let Some(claim) = one.claim_name.as_deref() else { continue };
        let mut all = view.objects.shelf(VOLUME).into_iter().flat_map(|shelf| shelf.values());
        if !all.any(|there| there.scope == Scope::Project(project) && there.name == claim) {
            let why = format!(
                "spec.storage.pvc: volume {} was not found in the project; see GET \
                 /elastane/v1/volumes, or leave existingPvc out to have it made",
                units::shown(claim)
            );
            return Err(Fault::new(axum::http::StatusCode::NOT_FOUND, why));
        }
    }
    Ok(())
}
