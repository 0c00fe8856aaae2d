//! The part of the file system that a run sees. Owns: the mounts of its namespace, prepared before
//! the fork and made after it. Does not know about accounts, except who may enter a folder.
//!
//! The state directory is covered by an empty folder. If the account of the run cannot reach it,
//! the first folder it may not enter is covered instead; this hides nothing that the account could
//! read. The run's own files are mounted over the cover at their usual paths, so a path means the
//! same inside and outside.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdir, open};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, mount_remount, move_mount, open_tree,
};
use rustix::process::umask;

use super::accounts::Account;
use crate::sys;

/// Most folders and files that are shown: the capacity of [`View::enter`].
const SHOWN_MAX: usize = 12;
/// Most mounts over other files and folders.
const MOUNTS_MAX: usize = 8;
/// Size and number of entries of a cover, which holds mount points only.
const COVER_OPTIONS: &std::ffi::CStr = c"mode=0755,size=64k,nr_inodes=64";
/// Extended attribute of folders with an access list, which may grant more than the mode.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// The mounts to make.
#[derive(Debug)]
pub(crate) struct View {
    covers: Vec<CString>,
    /// Mount points to create on the covers, parents first; whether each is a folder.
    points: Vec<(CString, bool)>,
    shown: Vec<CString>,
    /// Shown paths that the run may not change, even with the server's account.
    fixed: Vec<CString>,
    /// Files and folders, with the paths they are mounted over, both as outside of the view.
    mounts: Vec<(CString, CString)>,
    /// Files of the server in other places.
    hidden: Vec<CString>,
    hides_processes: bool,
}

impl View {
    /// The view in which `account` (none: that of this process) sees `visible`, `fixed` and
    /// `program`, but nothing else of `private`.
    pub(crate) fn new(
        account: Option<&Account>,
        private: &[&Path],
        visible: &[PathBuf],
        fixed: &[PathBuf],
        program: &Path,
    ) -> io::Result<Self> {
        let covered = |path: &Path| match account {
            Some(account) => first_closed(path, account),
            None => None,
        };
        let closed = |path: &&Path| covered(path).unwrap_or_else(|| (*path).to_owned());
        let mut covers: Vec<PathBuf> = private.iter().map(closed).collect();
        covers.extend(program.parent().and_then(covered));
        covers.sort();
        // A cover hides the covers below it.
        covers.dedup_by(|below, above| below.starts_with(above));
        let all = visible.iter().chain(fixed).map(PathBuf::as_path).chain([program]);
        let on_cover = |path: &&Path| covers.iter().any(|cover| path.starts_with(cover));
        let shown: Vec<&Path> = all.filter(on_cover).filter(|path| path.exists()).collect();
        if shown.len() > SHOWN_MAX {
            return Err(io::ErrorKind::ArgumentListTooLong.into());
        }
        let mut points: Vec<(CString, bool)> = Vec::new();
        for path in &shown {
            let above: Vec<&Path> = path.ancestors().skip(1).filter(on_cover).collect();
            let folders = above.into_iter().rev().filter(|path| !covers.iter().any(|c| c == path));
            for folder in folders.map(text).collect::<io::Result<Vec<_>>>()? {
                if !points.iter().any(|(known, _)| *known == folder) {
                    points.push((folder, true));
                }
            }
            points.push((text(path)?, path.is_dir()));
        }
        Ok(Self {
            covers: covers.iter().map(|path| text(path)).collect::<io::Result<_>>()?,
            points,
            shown: shown.into_iter().map(text).collect::<io::Result<_>>()?,
            fixed: fixed.iter().map(|path| text(path)).collect::<io::Result<_>>()?,
            mounts: Vec::new(),
            hidden: Vec::new(),
            hides_processes: false,
        })
    }

    /// This view with further covers.
    pub(crate) fn covering(mut self, folders: &[PathBuf]) -> io::Result<Self> {
        for folder in folders {
            self.covers.push(text(folder)?);
        }
        Ok(self)
    }

    /// This view with these mounts.
    pub(crate) fn mounting(mut self, mounts: &[(PathBuf, PathBuf)]) -> io::Result<Self> {
        if mounts.len() > MOUNTS_MAX {
            return Err(io::ErrorKind::ArgumentListTooLong.into());
        }
        let one = |(from, to): &(PathBuf, PathBuf)| Ok((text(from)?, text(to)?));
        self.mounts = mounts.iter().map(one).collect::<io::Result<_>>()?;
        Ok(self)
    }

    /// This view without the processes of other accounts, if `hides`.
    pub(crate) const fn hiding_processes(mut self, hides: bool) -> Self {
        self.hides_processes = hides;
        self
    }

    /// This view without these files.
    pub(crate) fn hiding(mut self, files: &[PathBuf]) -> io::Result<Self> {
        let found = files.iter().filter(|file| file.is_file());
        self.hidden = found.map(|file| text(file)).collect::<io::Result<_>>()?;
        Ok(self)
    }

    /// Makes the mounts, in a mount namespace of this process. Does not allocate, so it may run
    /// between fork and exec.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        // The run must pass through mount points, whatever the umask.
        let before = umask(Mode::empty());
        let made = self.mount();
        umask(before);
        made
    }

    fn mount(&self) -> Result<(), Errno> {
        // Later mounts of the machine are visible here; these mounts are not visible outside.
        mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        let mut trees: [Option<OwnedFd>; SHOWN_MAX] = [const { None }; SHOWN_MAX];
        let mut mounted: [Option<OwnedFd>; MOUNTS_MAX] = [const { None }; MOUNTS_MAX];
        let sources = self.shown.iter().chain(self.mounts.iter().map(|(from, _)| from));
        let shown = self.shown.len();
        for (tree, path) in trees.iter_mut().take(shown).chain(&mut mounted).zip(sources) {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE;
            *tree = Some(open_tree(CWD, path.as_c_str(), flags)?);
        }
        let plain = MountFlags::NOSUID | MountFlags::NODEV;
        for cover in &self.covers {
            mount(c"tmpfs", cover.as_c_str(), c"tmpfs", plain, COVER_OPTIONS)?;
        }
        for (point, is_folder) in &self.points {
            make_point(point, *is_folder)?;
        }
        for (tree, path) in trees.iter().flatten().zip(&self.shown) {
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            move_mount(tree, c"", CWD, path.as_c_str(), flags)?;
        }
        for (tree, (_, to)) in mounted.iter().flatten().zip(&self.mounts) {
            move_mount(tree, c"", CWD, to.as_c_str(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        }
        for path in self.shown.iter().filter(|path| self.fixed.contains(path)) {
            match sys::make_read_only(path) {
                // Linux before 5.12: state all attributes of the mount again.
                Err(Errno::NOSYS) => {
                    let flags = MountFlags::BIND | MountFlags::RDONLY | plain;
                    mount_remount(path.as_c_str(), flags, c"")?;
                }
                made => made?,
            }
        }
        for cover in &self.covers {
            let flags = MountFlags::BIND | MountFlags::RDONLY | plain;
            mount_remount(cover.as_c_str(), flags, c"")?;
        }
        for file in &self.hidden {
            mount_bind(c"/dev/null", file.as_c_str())?;
        }
        if self.hides_processes {
            // Use the word, not the number: kernels before 5.8 reject the word, but apply the
            // number to the whole machine.
            mount(c"proc", c"/proc", c"proc", plain | MountFlags::NOEXEC, c"hidepid=invisible")?;
        }
        Ok(())
    }
}

fn make_point(path: &CString, is_folder: bool) -> Result<(), Errno> {
    if is_folder {
        return mkdir(path.as_c_str(), Mode::from_raw_mode(0o755));
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    open(path.as_c_str(), flags, Mode::from_raw_mode(0o644)).map(drop)
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

/// The first folder on the way to a path, itself included, that an account may not enter.
pub(crate) fn first_closed(path: &Path, account: &Account) -> Option<PathBuf> {
    let way: Vec<&Path> = path.ancestors().collect();
    let closed =
        |folder: &&Path| fs::metadata(folder).is_ok_and(|meta| !lets_in(folder, &meta, account));
    way.into_iter().rev().find(closed).map(Path::to_owned)
}

fn lets_in(folder: &Path, meta: &fs::Metadata, account: &Account) -> bool {
    const SEARCH: u32 = 0o1;
    permits(folder, meta, account, SEARCH)
}

/// True if an account has a permission, one bit of a mode, by the mode or the access list of a
/// file.
pub(crate) fn permits(
    path: &Path,
    meta: &fs::Metadata,
    account: &Account,
    permission: u32,
) -> bool {
    if account.uid == 0 {
        return true;
    }
    let class = match (meta.uid() == account.uid, account.in_group(meta.gid())) {
        (true, _) => 6,
        (_, true) => 3,
        _ => 0,
    };
    // An access list may grant entry; a cover could then hide readable files.
    let has_list = || rustix::fs::getxattr(path, ACCESS_LIST, &mut [0_u8; 0]).is_ok();
    (meta.mode() >> class) & permission != 0 || (class != 6 && has_list())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folders(modes: &[(&str, u32)]) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, mode) in modes {
            let path = top.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        top
    }

    #[test]
    fn the_first_closed_folder_is_covered_and_the_state_directory_at_the_latest() {
        let ann = Account::private(1_900_000_000);
        let covers = |modes: &[(&str, u32)]| {
            let top = folders(modes);
            let state = top.path().join("home/state");
            let own = state.join("pods/7");
            fs::create_dir_all(&own).unwrap();
            let view = View::new(Some(&ann), &[&state], &[own], &[], Path::new("/bin/sh")).unwrap();
            let top = top.path().display().to_string();
            let names = |of: &CString| of.to_str().unwrap().replace(&top, "");
            (view.covers.iter().map(names).collect::<Vec<_>>(), view.points.len())
        };
        assert_eq!(
            covers(&[("home", 0o755), ("home/state", 0o700)]),
            (vec!["/home/state".into()], 2)
        );
        assert_eq!(
            covers(&[("home", 0o755), ("home/state", 0o755)]),
            (vec!["/home/state".into()], 2)
        );
        assert_eq!(covers(&[("home", 0o700), ("home/state", 0o700)]), (vec!["/home".into()], 3));
    }

    #[test]
    fn a_program_in_a_closed_folder_is_shown() {
        let top = folders(&[("state", 0o700), ("bin", 0o700)]);
        let (state, program) = (top.path().join("state"), top.path().join("bin/tool"));
        fs::write(&program, "").unwrap();
        let ann = Account::private(1_900_000_000);
        let view = View::new(Some(&ann), &[&state], &[], &[], &program).unwrap();
        assert_eq!((view.covers.len(), view.shown.len()), (2, 1));
        let own = View::new(None, &[&state], &[], &[], &program).unwrap();
        assert_eq!((own.covers.len(), own.shown.len()), (1, 0), "the server's own account sees it");
    }
}
