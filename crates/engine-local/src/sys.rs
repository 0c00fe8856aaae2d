//! The system calls that need care. Owns: this crate's only unsafe code.
//!
//! Justification: leaving the supervisor's session and asking to die with the supervisor must
//! happen in the child before it becomes the user's program; the standard library offers only
//! the unsafe `pre_exec` for that. Marking inherited descriptors has no safe wrapper at all, and
//! tokio's for waiting on a descriptor is deprecated in favour of an unsafe one.
#![expect(unsafe_code, reason = "Linux process code, see above")]

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, write};
use rustix::process::{
    Resource, Rlimit, Signal, getpid, getppid, ioctl_tiocsctty, set_parent_process_death_signal,
    setrlimit, setsid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes the command lead a session of its own, carry a mark, and be killed if this thread ends:
/// the kernel binds the death signal to the thread that forks, so this is for single-threaded
/// programs.
///
/// The mark is a limit on file locks, which Linux has not enforced since 2.4.25 but still hands
/// down from process to process and shows in `/proc/<pid>/limits`.
///
/// With a `terminal` as its input, that becomes the one it is controlled by.
pub(crate) fn in_own_session(command: &mut Command, mark: u64, terminal: bool) {
    let parent = getpid();
    let mark = Rlimit { current: Some(mark), maximum: Some(mark) };
    let prepare = move || {
        setsid()?;
        if terminal {
            // SAFETY: the standard library has put the command's input at 0 before this is called.
            ioctl_tiocsctty(unsafe { BorrowedFd::borrow_raw(0) })?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Refused where an ancestor has set a lower limit; then the environment alone marks.
        let _refused = setrlimit(Resource::Locks, mark);
        // The parent may have died before the signal was asked for.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: the closure makes at most five system calls, captures plain numbers and does not
    // allocate, lock or panic, so it is sound between fork and exec.
    unsafe { command.pre_exec(prepare) };
}

/// Lets the command begin behind these doors: each is a file into which a process writes `0` to come into
/// a control group.
pub(crate) fn through(command: &mut Command, doors: Vec<File>) {
    let prepare = move || {
        // Whatever refuses it is no fault of the command.
        doors.iter().try_for_each(|door| write(door, b"0").map(drop).map_err(|_| Errno::IO.into()))
    };
    // SAFETY: the closure makes system calls on descriptors that it owns, and does not allocate, lock
    // or panic, so it is sound between fork and exec.
    unsafe { command.pre_exec(prepare) };
}

/// Keeps every descriptor but 0, 1 and 2 from reaching programs started from now on. Ours are so
/// marked already; this is for those a careless ancestor handed down. Kernels before 5.11 do
/// not know the call, and keep what they were given.
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
