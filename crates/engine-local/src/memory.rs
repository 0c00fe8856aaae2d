//! Memory for copies of checkpoints. Owns: a folder for each pod in a file system of the machine's
//! memory, and writing the copies of an ended run to the disk. Files of such a folder are charged
//! to the control group of its run; they are there for the next run of the pod on this machine.
//! Does not know the content of a folder.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, flock};
use rustix::process::getuid;
use serde::{Deserialize, Serialize};
use trees::Trash;
use uuid::Uuid;

use crate::isolation::{Account, Boundary};
use crate::ownership;
use crate::process::{limit_mark, supervised};
use crate::sys;

/// The memory of the machine as a file system.
const MACHINE: &str = "/dev/shm";
const TMPFS: i64 = 0x0102_1994;
/// Prefix of the folders of state directories, and name of the link in each to its state directory.
const PREFIX: &str = "elastane-";
const OF: &str = "of";
/// Folder in each for files to delete.
const TRASH: &str = "trash";
/// How long the end of a run waits for its memory to be free. Memory in use after that is freed
/// with its pod.
const FREE_TIME: Duration = Duration::from_secs(1);

/// Where the copies of a run are, and the program that writes them where they belong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) folder: PathBuf,
    program: PathBuf,
}

/// The folders of all pods of a state directory.
#[derive(Debug)]
pub(crate) struct Pods {
    root: PathBuf,
    program: PathBuf,
}

impl Pods {
    /// Opens the memory of this machine; `None` if it has no such memory. Discards folders of pods
    /// that are gone, and of state directories that are gone.
    pub(crate) fn open(
        state_dir: &Path,
        program: &Path,
        pods: &Path,
        trash: &Trash,
    ) -> Option<Self> {
        let name = format!("{PREFIX}{:x}", limit_mark(&state_dir.display().to_string()));
        let root = Path::new(MACHINE).join(name);
        let made = make_root(&root).and_then(|()| note(&root, state_dir));
        if let Err(error) = made.and_then(|()| trash.add(&root.join(TRASH))) {
            tracing::info!("runs have no memory for checkpoints: {}: {error}", root.display());
            return None;
        }
        forget_deleted(&root, trash);
        let all = Self { root, program: program.to_owned() };
        for entry in fs::read_dir(&all.root).into_iter().flatten().flatten() {
            let pod = entry.file_name().to_str().and_then(|name| name.parse::<Uuid>().ok());
            if let Some(pod) = pod.filter(|pod| !pods.join(pod.to_string()).exists()) {
                all.forget(pod, trash);
            }
        }
        Some(all)
    }

    /// Keeps other servers from throwing the root away, as long as the handle is open. None: it is
    /// kept already.
    pub(crate) fn keep(&self) -> Option<OwnedFd> {
        locked(&self.root).ok()
    }

    /// The folder that the isolation of runs hides.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn of(&self, pod: Uuid) -> Memory {
        Memory { folder: self.root.join(pod.to_string()), program: self.program.clone() }
    }

    pub(crate) fn forget(&self, pod: Uuid, trash: &Trash) {
        let folder = self.root.join(pod.to_string());
        if let Err(error) = trash.discard(&folder) {
            tracing::warn!("cannot delete {}: {error}", folder.display());
        }
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        // The folder stays while it has entries.
        let _in_use = fs::remove_dir(self.root.join(TRASH));
        let is_note = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|at| at.file_name() == OF);
        let is_unused = fs::read_dir(&self.root).is_ok_and(|mut all| all.all(is_note));
        if is_unused {
            // A run of another server may begin meanwhile, which makes the folder again.
            let _gone = fs::remove_file(self.root.join(OF));
            let _in_use = fs::remove_dir(&self.root);
        }
    }
}

/// Records the state directory that a folder belongs to, after the number of the device that it is
/// on: `64769/var/lib/elastane`.
fn note(root: &Path, state_dir: &Path) -> io::Result<()> {
    let link = root.join(OF);
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let path = fs::canonicalize(state_dir)?;
    let parent = path.parent().unwrap_or(&path);
    let mut of = OsString::from(fs::metadata(parent)?.dev().to_string());
    of.push(path.as_os_str());
    symlink(of, link)
}

/// True if the state directory of a folder was deleted. One on a device that is not mounted now was
/// not.
fn is_deleted(root: &Path) -> bool {
    let Ok(of) = fs::read_link(root.join(OF)) else { return false };
    let Some((device, path)) = of.to_str().and_then(|of| of.split_once('/')) else { return false };
    let path = Path::new("/").join(path);
    let parent = path.parent().unwrap_or(&path);
    let is_there = fs::metadata(parent).is_ok_and(|found| found.dev().to_string() == device);
    let gone = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    is_there && fs::symlink_metadata(&path).is_err_and(gone)
}

fn locked(root: &Path) -> io::Result<OwnedFd> {
    let root = trees::open(CWD, root)?;
    flock(&root, FlockOperation::NonBlockingLockExclusive)?;
    Ok(root)
}

/// Throws away what state directories have left that were deleted, unless a server or a run of
/// theirs goes on.
fn forget_deleted(own: &Path, trash: &Trash) {
    let is_left = |root: &PathBuf| {
        let is_ours = fs::symlink_metadata(root)
            .is_ok_and(|found| found.is_dir() && found.uid() == getuid().as_raw());
        root != own && is_ours && is_deleted(root)
    };
    let all = fs::read_dir(MACHINE).into_iter().flatten().flatten();
    let named =
        all.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    // A server that lives has locked its own: it may see its state directory in other mounts.
    let lock = |root: PathBuf| Some((locked(&root).ok()?, root));
    let left: Vec<_> = named.map(|entry| entry.path()).filter(is_left).filter_map(lock).collect();
    // Read after that: what runs then has begun before its state directory was deleted.
    let Some(runs) = supervised().filter(|_| !left.is_empty()) else { return };
    let pods: BTreeSet<_> = runs.iter().map(|run| run.pod.to_string()).collect();
    for (_, root) in left.iter().filter(|(_, root)| !pods.iter().any(|pod| root.join(pod).exists()))
    {
        match trash.discard(root) {
            Ok(()) => tracing::info!("{} is deleted, as its state directory was", root.display()),
            Err(error) => tracing::warn!("cannot delete {}: {error}", root.display()),
        }
    }
}

/// Everyone may create folders there: one of another user is not used.
fn make_root(root: &Path) -> io::Result<()> {
    if rustix::fs::statfs(MACHINE)?.f_type != TMPFS {
        return Err(io::Error::other("it is not in memory"));
    }
    DirBuilder::new().recursive(true).mode(0o711).create(root)?;
    let found = fs::symlink_metadata(root)?;
    if !found.is_dir() || found.uid() != getuid().as_raw() {
        return Err(io::Error::other("another user has a file of this name"));
    }
    // Whatever the umask.
    fs::set_permissions(root, Permissions::from_mode(0o711))
}

impl Memory {
    /// Makes the folder, for the account of the run.
    pub(crate) fn prepare(&self, account: Option<&Account>) -> io::Result<()> {
        make_root(self.folder.parent().unwrap_or(Path::new(MACHINE)))?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        account.map_or(Ok(()), |account| ownership::give(&self.folder, account))
    }

    /// Writes the remaining copies of a run to the disk, or removes the folder. The caller does so
    /// when the processes of the run are gone and its end is not known yet.
    pub(crate) fn end(&self, boundary: Option<&Boundary>) -> io::Result<()> {
        if engine_channel::has_copies(&self.folder) {
            return self.finish(boundary);
        }
        trees::remove(&self.folder, &trees::within(FREE_TIME)).map(drop)
    }

    /// Starts a process that has the rights of the run and outlives its supervisor.
    fn finish(&self, boundary: Option<&Boundary>) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["checkpoint", "--finish"]).arg(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // The process is outside the run: a variable of the run may name code that a linker loads,
        // which no limit of the run would hold then.
        command.env_clear().process_group(0);
        let root = Path::new("/");
        match boundary.map(|boundary| boundary.entry(root)).transpose()? {
            Some(entry) => sys::behind(&mut command, entry.of_run()),
            None => drop(command.current_dir(root)),
        }
        let mut child = command.spawn()?;
        let folder = self.folder.clone();
        // A supervisor ends before that, a server does not.
        thread::spawn(move || match child.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => tracing::warn!("writing what is in {}: {status}", folder.display()),
            Err(error) => tracing::warn!("writing what is in {}: {error}", folder.display()),
        });
        Ok(())
    }
}
