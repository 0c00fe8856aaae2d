//! Rules of Landlock (landlock(7)). Owns: what a run may reach where neither accounts nor
//! namespaces keep it apart, and the scope that keeps its signals to itself.
//!
//! Landlock can only allow. So everything beside the way to the state directory is allowed, as it
//! is when the run starts, and what lies in the folders on that way is allowed one by one. In
//! these folders themselves (`/`, the home of the server's user, ...) a run can list and create
//! nothing: a rule for a folder holds for all below it.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::sys::{self, LandlockAccess};

/// Rules, ready to be taken on.
#[derive(Debug)]
pub(crate) struct Ruleset(OwnedFd);

impl Ruleset {
    /// Signals and abstract sockets only to processes under the same rules.
    pub(crate) fn of_scope() -> io::Result<Self> {
        sys::landlock_ruleset(LandlockAccess::None, true).map(Self)
    }

    /// No file of `private` but what is in `visible` and, to read, in `fixed`; and none of
    /// `others`.
    pub(crate) fn without(
        private: &Path,
        visible: &[PathBuf],
        fixed: &[PathBuf],
        others: &[PathBuf],
    ) -> io::Result<Self> {
        let scoped = sys::landlock_abi()? >= sys::LANDLOCK_ABI_SCOPES;
        let rules = Self(sys::landlock_ruleset(LandlockAccess::Files, scoped)?);
        let closed: Vec<&Path> = others.iter().map(PathBuf::as_path).chain([private]).collect();
        rules.allow_beside(Path::new("/"), &closed)?;
        visible.iter().filter(|path| path.exists()).try_for_each(|path| rules.allow(path))?;
        fixed.iter().try_for_each(|path| rules.add(path, |_| LandlockAccess::Reading))?;
        Ok(rules)
    }

    fn allow_beside(&self, folder: &Path, closed: &[&Path]) -> io::Result<()> {
        if closed.contains(&folder) {
            return Ok(());
        }
        if !closed.iter().any(|path| path.starts_with(folder)) {
            return self.allow(folder);
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // Not to be listed by this user; then it is not for its runs either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            Err(error) => return Err(error),
        };
        entries.into_iter().try_for_each(|entry| self.allow_beside(&entry?.path(), closed))
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
                // Gone, or not for this user.
                Err(Errno::NOENT | Errno::ACCESS) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
        // What cannot be looked at, as a mount whose server is gone, is not for its runs either.
        let Ok(meta) = handle.metadata() else { return Ok(()) };
        if meta.is_symlink() {
            // What it leads to is allowed where that is.
            return Ok(());
        }
        sys::landlock_allow(&self.0, handle.as_fd(), access(&meta))
    }

    /// To be called between fork and exec, by a process that may gain no more rights or may do as
    /// it likes in its namespace.
    pub(crate) fn restrict(&self) -> Result<(), Errno> {
        sys::landlock_restrict(&self.0)
    }
}
