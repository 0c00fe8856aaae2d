//! Mounts of a workload, one row each. Owns: the displayed names of the kinds of storage.

use api_types::{EmptyDirInstance, GitInstance, PvcInstance, S3Instance, Storage};

use cli_kit::table::Table;

/// Access to a mount that can be written.
const WRITABLE: &str = "read-write";
/// Access to a mount that can only be read.
const READ_ONLY: &str = "read-only";
/// Access to a copy: changes stay in the pod.
const COPY: &str = "copy";

/// Kind, mount path in the workload, access and source.
type Mount = [String; 4];

/// The mounts; `None` if there are none.
pub(super) fn table(storage: &Storage) -> Option<Table> {
    let mounts = mounts(storage);
    let mut table = Table::new(&["Type", "Path", "Access", "Source"]);
    let any = !mounts.is_empty();
    mounts.into_iter().for_each(|mount| table.row(mount));
    any.then_some(table)
}

fn mounts(storage: &Storage) -> Vec<Mount> {
    let mut all = Vec::new();
    for one in storage.host_path.iter().flatten() {
        // Writable only if `readOnly` is false.
        let access = access(one.read_only != Some(false));
        all.push(mount("Host Path", text(&one.path), &one.mount_path, access));
    }
    for one in storage.nfs.iter().flatten() {
        let from = format!("{}:{}", text(&one.server), text(&one.path));
        all.push(mount("NFS", from, &one.mount_path, access(one.read_only != Some(false))));
    }
    all.extend(storage.pvc.iter().flatten().map(pvc));
    all.extend(storage.git.iter().flatten().map(git));
    all.extend(storage.s3.iter().flatten().map(s3));
    all.extend(storage.empty_dir_volume.iter().flatten().map(empty_dir));
    for one in storage.config_map_volume.iter().flatten() {
        all.push(mount("Config Map", text(&one.config_map), &one.mount_path, READ_ONLY));
    }
    for one in storage.secret_volume.iter().flatten() {
        all.push(mount("Secret", text(&one.secret), &one.mount_path, READ_ONLY));
    }
    all
}

fn pvc(one: &PvcInstance) -> Mount {
    let from = match &one.claim_name {
        Some(name) => name.clone(),
        None => "ephemeral".to_owned(),
    };
    mount("PVC", from, &one.path, access(one.read_only == Some(true)))
}

fn git(one: &GitInstance) -> Mount {
    let at = one.revision.as_ref().or(one.branch.as_ref());
    let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
    mount("Git", format!("{}{at}", text(&one.repository)), &one.path, COPY)
}

fn s3(one: &S3Instance) -> Mount {
    let server = one.url.as_ref().map(|url| format!(" of {url}")).unwrap_or_default();
    mount("S3", format!("{}{server}", text(&one.bucket)), &one.path, COPY)
}

fn empty_dir(one: &EmptyDirInstance) -> Mount {
    let size = one.size_limit.as_ref().map(|size| format!("at most {size}"));
    let from = [one.medium.clone(), size].into_iter().flatten().collect::<Vec<_>>().join(", ");
    mount("Empty Dir", from, &one.path, WRITABLE)
}

fn mount(kind: &str, from: String, to: &Option<String>, access: &str) -> Mount {
    [kind.to_owned(), text(to), access.to_owned(), from]
}

const fn access(read_only: bool) -> &'static str {
    if read_only { READ_ONLY } else { WRITABLE }
}

fn text(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}
