//! Landlock rules (landlock(7)). Owns: what a run may access where neither accounts nor namespaces
//! isolate it, and the scope that limits its signals to itself.
//!
//! Landlock can only allow. So everything outside the path to the state directory is allowed as it
//! exists when the run starts, and the entries of the folders on that path are allowed one by one.
//! A run can list and create nothing in these folders (`/`, the home of the server's user, ...),
//! because a rule for a folder applies to everything below it.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::sys::{self, LandlockAccess};

/// A prepared ruleset.
#[derive(Debug)]
pub(crate) struct Ruleset(OwnedFd);

impl Ruleset {
    /// Signals and abstract sockets only to processes in the same domain.
    pub(crate) fn of_scope() -> io::Result<Self> {
        sys::landlock_ruleset(LandlockAccess::None, true).map(Self)
    }

    /// No file of `private` except `visible` and, read-only, `fixed`; and none of `others`.
    pub(crate) fn without(
        private: &Path,
        visible: &[PathBuf],
        fixed: &[PathBuf],
        others: &[PathBuf],
    ) -> io::Result<Self> {
        let scoped = sys::landlock_abi()? >= sys::LANDLOCK_ABI_SCOPES;
        let rules = Self(sys::landlock_ruleset(LandlockAccess::Files, scoped)?);
        let closed: Vec<&Path> = others.iter().map(PathBuf::as_path).chain([private]).collect();
        rules.allow_beside(&closed)?;
        visible.iter().filter(|path| path.exists()).try_for_each(|path| rules.allow(path))?;
        fixed.iter().try_for_each(|path| rules.add(path, |_| LandlockAccess::Reading))?;
        Ok(rules)
    }

    /// Allows everything but what is `closed`, from the root on: there are as many folders to look
    /// into as there are on the way to it.
    fn allow_beside(&self, closed: &[&Path]) -> io::Result<()> {
        let mut ahead = vec![PathBuf::from("/")];
        while let Some(folder) = ahead.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                // This user cannot list the folder; neither can its runs.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                Err(error) => return Err(error),
            };
            for entry in entries {
                let path = entry?.path();
                if closed.contains(&&*path) {
                    continue;
                }
                match closed.iter().any(|one| one.starts_with(&path)) {
                    true => ahead.push(path),
                    false => self.allow(&path)?,
                }
            }
        }
        Ok(())
    }

    fn allow(&self, path: &Path) -> io::Result<()> {
        self.add(
            path,
            |meta| {
                if meta.is_dir() { LandlockAccess::Files } else { LandlockAccess::OneFile }
            },
        )
    }

    fn add(&self, path: &Path, access: impl Fn(&fs::Metadata) -> LandlockAccess) -> io::Result<()> {
        let handle =
            match open(path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(handle) => fs::File::from(handle),
                // Deleted, or not readable by this user.
                Err(Errno::NOENT | Errno::ACCESS) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
        // An entry that cannot be read, such as a mount whose server is gone, is not for runs
        // either.
        let Ok(meta) = handle.metadata() else { return Ok(()) };
        if meta.is_symlink() {
            // The target of a link is allowed where the target is.
            return Ok(());
        }
        sys::landlock_allow(&self.0, handle.as_fd(), access(&meta))
    }

    /// Call it between fork and exec, in a process that has no_new_privs or is privileged in its
    /// namespace.
    pub(crate) fn restrict(&self) -> Result<(), Errno> {
        sys::landlock_restrict(&self.0)
    }
}
