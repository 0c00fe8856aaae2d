//! Resources that a workload gets from the node and from its project beside its placement: folders
//! of the node, rights over it, volumes. Owns: rights to use the node, and the volumes of a
//! project. The volumes themselves are the engine's.

use std::collections::BTreeSet;
use std::iter;
use std::path::PathBuf;

use access::{Backend, Caller};
use api_types::{HostPathSpec, NfsAssetSpec, WorkloadSpec as Wire};
use axum::http::StatusCode;
use convert::{self, Submitter};
use http_kit::ApiError;
use orchestrator::{VOLUME, volume_name};
use spec::{Mount, MountSource, Seccomp, Security, UsedObject, WorkloadSpec};
use view::{Scope, WorkloadView};

use crate::{AssetSpec, Stored};

/// Capabilities that are no more than what containers have anyway (the *baseline* of the Pod
/// Security Standards of Kubernetes), and two that only concern the workload's own processes and
/// memory.
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

/// Completes a converted workload: names its volumes, and refuses mounts and rights that the
/// submitter may not have.
pub async fn resolve_mounts(
    state: &Backend,
    asker: &Submitter,
    project: u64,
    spec: &mut WorkloadSpec,
) -> Result<(), ApiError> {
    let name = spec.name.clone();
    let uses = spec.uses.clone();
    for set in spec.sets_mut() {
        let is_master = set.role == spec::MASTER || set.role == spec::LEADER;
        let of_set = |error| if is_master { convert::of_the_master(error) } else { error };
        if !asker.administrator && !state.control.node_access().privileged {
            unprivileged(&set.pod.container.security).map_err(of_set)?;
        }
        let mut unnamed = iter::once(name.clone()).chain((1..).map(|at| format!("{name}-{at}")));
        for mount in &mut set.pod.container.mounts {
            let settled = match &mut mount.from {
                MountSource::Volume { name: claim, ephemeral: false } => {
                    let own = claim.is_empty().then(|| unnamed.next()).flatten();
                    *claim = volume_name(project, own.as_ref().unwrap_or(claim));
                    Ok(())
                }
                MountSource::HostPath { .. } => may_see(state, asker, &uses, mount).await,
                MountSource::Nfs { .. } => may_have_export(state, asker, &uses, mount),
                _ => Ok(()),
            };
            settled.map_err(of_set)?;
        }
    }
    Ok(())
}

/// Refuses rights over the node.
fn unprivileged(security: &Security) -> Result<(), ApiError> {
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
    Err(ApiError::forbidden(format!(
        "spec.security.{field}: gives rights over the machine, which only an administrator may; leave \
         it out, or have the server started with --allow-privileged"
    )))
}

/// Refuses a folder of the node that the submitter may not mount, and replaces a link by the folder
/// it leads to. The error does not show if the folder exists.
async fn may_see(
    state: &Backend,
    asker: &Submitter,
    uses: &[UsedObject],
    mount: &mut Mount,
) -> Result<(), ApiError> {
    let MountSource::HostPath { path, .. } = &mut mount.from else { return Ok(()) };
    let asked = path.clone();
    let found = real(state, asked.clone()).await?.map(|real| *path = real);
    let open = found.is_ok() && state.control.node_access().is_open(path);
    if open || asker.administrator || asker.had(mount) || is_given(state, uses, mount) {
        return found.map_err(|why| ApiError::field("spec.storage.hostPath", why));
    }
    let asked = asked.display();
    let why = format!(
        "{asked} was not found or is not allowed; ask an administrator to make a data source of it, or \
         to start the server with --host-paths {asked}"
    );
    Err(forbidden("spec.storage.hostPath", &why))
}

/// The folder of the machine itself, or why it is refused. A file system may be long in answering;
/// other requests do not wait for it.
pub(crate) async fn real(
    state: &Backend,
    path: PathBuf,
) -> Result<Result<PathBuf, String>, ApiError> {
    let control = state.control.clone();
    let real = tokio::task::spawn_blocking(move || control.node_access().real(&path));
    real.await.map_err(ApiError::internal)
}

/// Refuses an NFS export that the submitter may not mount: the machine mounts it, and a file server
/// trusts the machine although the workload may be untrusted.
fn may_have_export(
    state: &Backend,
    asker: &Submitter,
    uses: &[UsedObject],
    mount: &Mount,
) -> Result<(), ApiError> {
    let given = asker.administrator || asker.had(mount) || is_given(state, uses, mount);
    if given || state.control.node_access().privileged {
        return Ok(());
    }
    let why = "an export is mounted with the rights of the machine; name a data source that an \
               administrator made of it, or have the server started with --allow-privileged";
    Err(forbidden("spec.storage.nfs", why))
}

fn forbidden(field: &str, why: &str) -> ApiError {
    ApiError { status: StatusCode::FORBIDDEN, ..ApiError::field(field, why) }
}

/// True if one of these assets is a data source that an administrator made of what is mounted.
fn is_given(state: &Backend, uses: &[UsedObject], mount: &Mount) -> bool {
    let read_only = |UsedObject { key, .. }: &UsedObject| match &mount.from {
        MountSource::HostPath { path, .. } => of_kind::<HostPathSpec>(state, key)
            .filter(|asset| asset.given.real_path.as_ref() == Some(path))
            .map(|asset| asset.spec.read_only),
        MountSource::Nfs { server, path } => of_kind::<NfsAssetSpec>(state, key)
            .filter(|asset| asset.given.by_administrator)
            .map(|asset| asset.spec)
            .filter(|spec| spec.server.as_ref() == Some(server) && spec.path.as_ref() == Some(path))
            .map(|spec| spec.read_only),
        _ => None,
    };
    let mut given = uses.iter().filter_map(read_only);
    given.any(|read_only| mount.read_only || read_only == Some(false))
}

/// An asset, if it is of this kind.
fn of_kind<S: AssetSpec>(state: &Backend, key: &str) -> Option<Stored<S>> {
    let (_, id) = key.split_once('/').filter(|(kind, _)| *kind == S::STORED)?;
    Some(state.one(id).ok()?.body)
}

/// Refuses a session in a workload, or a change that keeps its rights, if it has more rights on the
/// machine than all members of its project could get: only its submitter may, and an administrator.
pub fn may_enter(
    state: &Backend,
    caller: &Caller,
    workload: &WorkloadView,
) -> Result<(), ApiError> {
    let own = caller.made(&workload.spec.submitted_by, workload.created_at);
    if own || caller.administers() || !is_strong(state, workload) {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "the workload has rights over the machine, or folders of it; only an administrator and who \
         submitted it come to its pods",
    ))
}

/// True if a workload has more rights on the machine than all members of its project could get. For
/// an inference each revision with pods counts.
fn is_strong(state: &Backend, workload: &WorkloadView) -> bool {
    let (view, node) = (state.control.view(), state.control.node_access());
    let revisions: BTreeSet<_> = workload.pods.iter().filter_map(|pod| pod.revision).collect();
    let others = revisions.iter().filter_map(|id| view.revisions.get(id)).map(|one| &one.spec);
    let for_everyone = |spec: &WorkloadSpec, mount: &Mount| match &mount.from {
        MountSource::HostPath { path, .. } if node.is_open(path) => true,
        MountSource::Nfs { .. } if node.privileged => true,
        MountSource::HostPath { .. } | MountSource::Nfs { .. } => {
            is_given(state, &spec.uses, mount)
        }
        _ => true,
    };
    let mut sets = iter::once(&workload.spec)
        .chain(others)
        .flat_map(|spec| spec.sets().map(move |set| (spec, &set.pod.container)));
    sets.any(|(spec, container)| {
        let harmless = node.privileged || unprivileged(&container.security).is_ok();
        !harmless || !container.mounts.iter().all(|mount| for_everyone(spec, mount))
    })
}

/// Refuses a volume that is to be there and is not.
pub fn must_exist(state: &Backend, project: u64, request: &Wire) -> Result<(), ApiError> {
    let claims = request.storage.iter().flat_map(|storage| &storage.pvc).flatten();
    let old =
        |one: &&api_types::PvcInstance| one.exclude != Some(true) && one.existing_pvc == Some(true);
    let view = state.control.view();
    for one in claims.filter(old) {
        // A volume without a name is refused where it is read.
        let Some(claim) = one.claim_name.as_deref() else { continue };
        let all = view.objects.shelf(VOLUME).into_iter().flat_map(|shelf| shelf.values());
        let own = all.filter(|there| there.scope == Scope::Project(project));
        let names: Vec<&str> = own.map(|there| &*there.name).collect();
        if !names.contains(&claim) {
            let unknown = ApiError::unknown_name("spec.storage.pvc", "volume", claim, names);
            let why = format!("{} (`--new-pvc`, or no `existingPvc`, creates it)", unknown.why);
            return Err(ApiError { status: StatusCode::NOT_FOUND, why, ..unknown });
        }
    }
    Ok(())
}
