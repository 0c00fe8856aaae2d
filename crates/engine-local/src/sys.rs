//! The system calls that need care. Owns: this crate's only unsafe code.
//!
//! Justification: leaving the supervisor's session, taking on the account and the view of a run,
//! and asking to die with the supervisor must happen in the child before it becomes the user's
//! program; the standard library offers only the unsafe `pre_exec` for that. The calls of Landlock,
//! of the kernel's keys and of attributes of mounts have no safe wrapper but a crate with four
//! dependencies, which allocates where a child may not. Advice about memory has no safe wrapper, as
//! other advice would change what memory holds. Marking inherited descriptors has no safe wrapper
//! at all, and tokio's for waiting on a descriptor is deprecated in favour of an unsafe one.
#![expect(unsafe_code, reason = "Linux process code, see above")]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::process::{
    Resource, Rlimit, Signal, getpid, getppid, ioctl_tiocsctty, set_parent_process_death_signal,
    setrlimit, setsid,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The last thing a child does before its program: it enters what isolates it. Runs between fork
/// and exec, so it does not allocate, lock or panic.
pub(crate) type Enter = Box<dyn Fn() -> Result<(), Errno> + Send + Sync>;

/// How a command starts as a process of a run.
pub(crate) struct Start {
    /// A limit on file locks, which Linux has not enforced since 2.4.25 but still hands down from
    /// process to process and shows in `/proc/<pid>/limits`.
    pub(crate) mark: u64,
    /// Limit of processes and threads of its account.
    pub(crate) tasks: Rlimit,
    /// True if its input is a terminal, which becomes its controlling terminal.
    pub(crate) terminal: bool,
    /// Files into which a process writes `0` to join a control group.
    pub(crate) groups: Vec<File>,
    /// Isolation; `None` for none.
    pub(crate) enter: Option<Enter>,
}

/// Makes the command lead a session, carry a mark, join its control groups and enter its boundary,
/// and be killed if this thread ends: the kernel binds the death signal to the thread that forks,
/// so this is for single-threaded programs.
pub(crate) fn in_own_session(command: &mut Command, start: Start) {
    let Start { mark, tasks, terminal, groups, enter } = start;
    let parent = getpid();
    let mark = Rlimit { current: Some(mark), maximum: Some(mark) };
    let prepare = move || {
        setsid()?;
        if terminal {
            // SAFETY: the standard library has put the command's input at 0 before this is called.
            ioctl_tiocsctty(unsafe { BorrowedFd::borrow_raw(0) })?;
        }
        // Fails where an ancestor has set a lower limit; then only the environment marks the
        // process.
        let _refused = setrlimit(Resource::Locks, mark);
        // A failure here is not the command's.
        groups.iter().try_for_each(|group| write(group, b"0").map(drop).map_err(|_| Errno::IO))?;
        // First: the kernel keeps it as the maximum of a user namespace that is made afterwards.
        setrlimit(Resource::Nproc, tasks)?;
        enter.as_ref().map_or(Ok(()), |enter| enter())?;
        // Last: a change of the account resets it.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the call.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: the closure makes system calls with what was prepared for them, on descriptors that
    // it owns, and does not allocate, lock or panic, so it is sound between fork and exec.
    unsafe { command.pre_exec(prepare) };
}

/// Starts a command inside a boundary, and no more. A failure is the error of the start.
pub(crate) fn behind(command: &mut Command, enter: Enter) {
    // SAFETY: as in `in_own_session`.
    unsafe { command.pre_exec(move || Ok(enter()?)) };
}

/// The error of a child that may not enter its working directory. No other step of a start returns
/// it.
pub(crate) const NO_WORKING_DIR: Errno = Errno::BADFD;

/// Moves this process to namespaces of its own.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: no file descriptors are unshared, the one thing that could break what others hold.
    unsafe { unshare_unsafe(flags) }
}

/// Writes a kernel file.
pub(crate) fn write_to(path: &CStr, text: &CStr) -> Result<(), Errno> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(file, text.to_bytes()).map(drop)
}

/// Makes a mount read-only, and keeps its other attributes. Does not change mounts below it.
pub(crate) fn make_read_only(mount: &CStr) -> Result<(), Errno> {
    const READ_ONLY: u64 = 1;
    // struct mount_attr: what is set, cleared, the propagation, a user namespace.
    let attributes = [READ_ONLY, 0, 0, 0_u64];
    // SAFETY: the kernel reads the path and the array, whose size is passed with it.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            mount.as_ptr(),
            0,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    last_error(rc).map(drop)
}

/// Replaces the session keyring that the server inherited by an empty one of this process's user.
/// Does nothing in a kernel without keyrings, or where a filter forbids the call, as in
/// containers, because processes started from here cannot use keyrings either.
pub(crate) fn leave_keyring() -> Result<(), Errno> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: the name is none, so no memory is read.
    let rc = unsafe {
        libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, ptr::null::<libc::c_char>())
    };
    match last_error(rc) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(()),
        other => other.map(drop),
    }
}

/// Unmaps pages that equal their file. They come back from the page cache at their next use.
pub(crate) fn unmap_file_pages(pages: Range<usize>) -> Result<(), Errno> {
    let start = ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: these pages were never written, so what stands in their place at the next use is the
    // same; the kernel refuses what is no mapping.
    let rc = unsafe { libc::madvise(start, pages.len(), libc::MADV_DONTNEED) };
    last_error(rc.into()).map(drop)
}

/// Makes the allocator return free memory.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the locks of the allocator, as every allocation does.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The accesses that a ruleset handles, or a rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LandlockAccess {
    /// Nothing.
    None,
    /// All accesses that the kernel's version knows.
    Files,
    /// Accesses that apply to a file, not to a folder.
    OneFile,
    /// Reading, listing and executing.
    Reading,
}

/// The first version with scopes.
pub(crate) const LANDLOCK_ABI_SCOPES: u32 = 6;

impl LandlockAccess {
    /// The rights of linux/landlock.h: from executing to creating symbolic links, linking across
    /// folders, truncating.
    const fn bits(self, abi: u32) -> u64 {
        const REFER: u64 = 1 << 13;
        const TRUNCATE: u64 = 1 << 14;
        const EXECUTE_WRITE_READ: u64 = 0b111;
        const EXECUTE_READ_LIST: u64 = 0b1101;
        let refer = if abi >= 2 { REFER } else { 0 };
        let truncate = if abi >= 3 { TRUNCATE } else { 0 };
        match self {
            Self::None => 0,
            Self::Files => (REFER - 1) | refer | truncate,
            Self::OneFile => EXECUTE_WRITE_READ | truncate,
            Self::Reading => EXECUTE_READ_LIST,
        }
    }
}

/// The version of Landlock that the kernel has.
pub(crate) fn landlock_abi() -> Result<u32, Errno> {
    const VERSION: libc::c_int = 1;
    // SAFETY: asked for the version, the kernel reads no memory.
    let rc = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u64>(), 0_usize, VERSION)
    };
    last_error(rc)
        .map(i64::unsigned_abs)
        .and_then(|abi| u32::try_from(abi).map_err(|_| Errno::INVAL))
}

/// A ruleset that handles these accesses, and with `scoped` signals and abstract sockets.
pub(crate) fn landlock_ruleset(access: LandlockAccess, scoped: bool) -> io::Result<OwnedFd> {
    const SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS: u64 = 0b11;
    let abi = landlock_abi()?;
    let scopes = if scoped { SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS } else { 0 };
    // struct landlock_ruleset_attr: files, network, scopes. Older kernels know the first alone.
    let attributes = [access.bits(abi), 0, scopes];
    let size = if scoped { size_of_val(&attributes) } else { size_of::<u64>() };
    // SAFETY: the kernel reads `size` bytes of the array, which is as long at least.
    let rc =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attributes.as_ptr(), size, 0) };
    let fd = last_error(rc).and_then(|fd| i32::try_from(fd).map_err(|_| Errno::INVAL))?;
    // SAFETY: the kernel has just opened it for this call, close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Allows this access to a handle and everything below it.
pub(crate) fn landlock_allow(
    ruleset: &OwnedFd,
    place: BorrowedFd<'_>,
    access: LandlockAccess,
) -> io::Result<()> {
    /// `struct landlock_path_beneath_attr`
    #[repr(C, packed)]
    struct Rule {
        access: u64,
        place: libc::c_int,
    }
    const PATH_BENEATH: libc::c_int = 1;
    let rule = Rule { access: access.bits(landlock_abi()?), place: place.as_raw_fd() };
    // SAFETY: the kernel reads a rule of this kind, which has its layout.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            ptr::from_ref(&rule),
            0,
        )
    };
    Ok(last_error(rc).map(drop)?)
}

/// Applies the ruleset to this thread.
pub(crate) fn landlock_restrict(ruleset: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: no memory is passed.
    let rc = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    last_error(rc).map(drop)
}

fn last_error(rc: libc::c_long) -> Result<i64, Errno> {
    if rc >= 0 {
        return Ok(rc);
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// Keeps descriptors other than 0, 1 and 2 from being inherited by programs started from now on.
/// This server's own are close-on-exec already; this is for inherited ones. Kernels before 5.11
/// lack the call and keep them.
pub(crate) fn keep_descriptors() {
    // SAFETY: marks descriptors close-on-exec and closes none; no memory is passed.
    let rc =
        unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if rc != 0 {
        tracing::debug!("close_range: {}", io::Error::last_os_error());
    }
}

/// A process handle that can be awaited: it becomes readable when the process has ended.
pub(crate) fn await_death(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` always names the same open descriptor, which only its drop closes.
    unsafe { Ok(AsyncFd::register_with_interest(process, Interest::READABLE)?) }
}
