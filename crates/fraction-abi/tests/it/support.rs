//! Pages on disk, owners that were made up, and children.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fraction_abi::claim::{self, Claim};
use fraction_abi::owner::{Life, Owner};
use tempfile::TempDir;

pub(crate) const MIB: u64 = 1 << 20;

/// A claim page in a folder of its own.
pub(crate) struct Page {
    folder: TempDir,
}

impl Page {
    pub(crate) fn new() -> Self {
        let page = Self { folder: tempfile::tempdir().unwrap() };
        let mut bytes = claim::header().to_vec();
        bytes.resize(claim::BYTES, 0);
        std::fs::write(page.path(), bytes).unwrap();
        page
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("claim")
    }

    pub(crate) fn map(&self) -> &'static Claim {
        Claim::map(&c_path(&self.path())).unwrap()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }
}

pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

pub(crate) fn owner(pid: u32) -> Owner {
    Owner { pid, start: 1, namespace: 1, image: 1 }
}

/// Owners with an odd id have ended.
pub(crate) fn odd_is_dead(owner: &Owner) -> Life {
    if owner.pid % 2 == 1 { Life::Dead } else { Life::Alive }
}

/// Forks a child that does only this, and neither allocates nor panics.
pub(crate) fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child makes only system calls and uses mapped pages, until it ends.
    let id = unsafe { libc::fork() };
    if id == 0 {
        child();
        // SAFETY: ends the child without running anything of this program.
        unsafe { libc::_exit(0) };
    }
    assert!(id > 0, "fork failed");
    id
}

/// Waits for a child; the signal that ended it.
pub(crate) fn wait(id: libc::pid_t) -> Option<i32> {
    let mut status = 0;
    // SAFETY: writes one number.
    assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

pub(crate) fn kill_this_process() {
    // SAFETY: ends this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}
