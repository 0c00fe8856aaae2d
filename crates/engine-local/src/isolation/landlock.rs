//! Landlock rules (landlock(7)). Owns: what a run may access where neither accounts nor namespaces
//! isolate it, and the scope that limits its signals to itself.
//!
//! Landlock can only allow. So everything outside the path to the state directory is allowed as it
//! exists when the run starts, and the entries of the folders on that path are allowed one by one.
//! A run can list and create nothing in these folders (`/`, the home of the server's user, ...),
//! because a rule for a folder applies to everything below it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::record::log_line;
use crate::sys::{self, LandlockAccess};

/// Entries of one folder that get a rule. Others may fill a folder on the way to the state
/// directory, such as `/tmp`, and each rule costs a start time and memory of the kernel.
const ENTRIES_MAX: usize = 10_000;

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
        for folder in folders_above(closed) {
            let (entries, is_cut) = entries_beside(folder, closed, ENTRIES_MAX)?;
            if is_cut {
                log_line(&format!(
                    "{} has more than {ENTRIES_MAX} entries: the run can use only the first ones",
                    folder.display()
                ));
            }
            entries.iter().try_for_each(|path| self.allow(path))?;
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

/// The folders above what is closed, from the root on, without those that are closed themselves.
fn folders_above<'p>(closed: &[&'p Path]) -> BTreeSet<&'p Path> {
    let is_closed = |folder: &&Path| closed.iter().any(|one| folder.starts_with(one));
    let above = closed.iter().flat_map(|path| path.ancestors().skip(1));
    above.filter(|folder| !is_closed(folder)).collect()
}

/// Entries of a folder that lead to nothing that is closed, as many as may have a rule; true if
/// there are more.
fn entries_beside(
    folder: &Path,
    closed: &[&Path],
    most: usize,
) -> io::Result<(Vec<PathBuf>, bool)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // This user cannot list the folder; neither can its runs.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok((vec![], false));
        }
        // There is no such folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((vec![], false)),
        Err(error) => return Err(error),
    };
    let mut beside = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if closed.iter().any(|one| one.starts_with(&path)) {
            continue;
        }
        if beside.len() == most {
            return Ok((beside, true));
        }
        beside.push(path);
    }
    Ok((beside, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_filled_gets_so_many_rules_and_the_way_stays_closed() {
        let root = tempfile::tempdir().expect("a folder");
        let state = root.path().join("own/state");
        fs::create_dir_all(&state).expect("made");
        for number in 0..50 {
            fs::write(root.path().join(format!("file-{number}")), "").expect("written");
        }
        let closed = [&*state];
        let of = |folder: &Path, most| entries_beside(folder, &closed, most).expect("readable");
        let (all, is_cut) = of(root.path(), 50);
        assert_eq!((all.len(), is_cut), (50, false));
        assert!(!all.contains(&root.path().join("own")), "it leads to what is closed");
        let (some, is_cut) = of(root.path(), 10);
        assert_eq!((some.len(), is_cut), (10, true));
        assert_eq!(of(&root.path().join("own"), 10), (vec![], false));
        let key = state.join("key");
        for closed in [&[&*state][..], &[&*key, &*state], &[&*state, &*key]] {
            let above = folders_above(closed);
            assert!(above.contains(Path::new("/")) && above.contains(&*root.path().join("own")));
            assert!(!above.contains(&*state), "nothing in it is looked at: {closed:?}");
        }
    }
}
