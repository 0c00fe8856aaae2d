//! System calls of Linux on x86-64 without a C library. Owns: the calls that the libraries need,
//! with their numbers. Does not know about: `errno`, which stays as the program left it.
//!
//! A library that imports nothing loads beside any C library, old or new.

use core::arch::asm;
use core::ffi::CStr;
use core::ptr::NonNull;

/// The error number of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

/// A call was interrupted by a signal.
pub const EINTR: Errno = Errno(4);
/// Permission was denied; for `kill`: the process exists.
pub const EPERM: Errno = Errno(1);
/// No such file.
pub const ENOENT: Errno = Errno(2);

const READ: usize = 0;
const OPEN: usize = 2;
const CLOSE: usize = 3;
const FSTAT: usize = 5;
const STAT: usize = 4;
const MMAP: usize = 9;
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
const SCHED_YIELD: usize = 24;
const MADVISE: usize = 28;
const NANOSLEEP: usize = 35;
const GETPID: usize = 39;
const SOCKET: usize = 41;
const CONNECT: usize = 42;
const SENDTO: usize = 44;
const RECVFROM: usize = 45;
const KILL: usize = 62;
const FUTEX: usize = 202;
const CLOCK_GETTIME: usize = 228;

/// # Safety
/// As the call itself demands of its arguments.
#[inline(always)]
unsafe fn call(number: usize, a: [usize; 6]) -> Result<usize, Errno> {
    let result: isize;
    // SAFETY: the instruction changes only the registers that are named; what the kernel does with
    // the arguments is the caller's responsibility.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number.cast_signed() => result,
            in("rdi") a[0],
            in("rsi") a[1],
            in("rdx") a[2],
            in("r10") a[3],
            in("r8") a[4],
            in("r9") a[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    if (-4095..0).contains(&result) {
        #[expect(clippy::cast_possible_truncation, reason = "below 4096")]
        return Err(Errno(-result as i32));
    }
    Ok(result.cast_unsigned())
}

/// How a file is opened; never created, always closed on exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading.
    Read,
    /// For reading and writing.
    ReadWrite,
}

/// An open file or socket, closed at the end of its life.
#[derive(Debug)]
pub struct Descriptor(usize);

impl Descriptor {
    /// The descriptor's number, which the program owns from now on.
    pub fn into_number(self) -> i32 {
        let number = i32::try_from(self.0).unwrap_or(-1);
        core::mem::forget(self);
        number
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the number is of a descriptor that only this value owns.
        let _closed = unsafe { call(CLOSE, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// Opens an existing file.
///
/// # Errors
/// The kernel's error.
pub fn open(path: &CStr, access: Access) -> Result<Descriptor, Errno> {
    const CLOSE_ON_EXEC: usize = 0o2_000_000;
    let mode = if access == Access::Read { 0 } else { 2 };
    // SAFETY: the path ends with a zero byte and outlives the call.
    let number = unsafe { call(OPEN, [path.as_ptr().addr(), mode | CLOSE_ON_EXEC, 0, 0, 0, 0]) }?;
    Ok(Descriptor(number))
}

/// Reads the rest of a file, up to the size of `into`; returns the number of bytes.
///
/// # Errors
/// The kernel's error.
pub fn read(file: &Descriptor, into: &mut [u8]) -> Result<usize, Errno> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the kernel writes at most `rest.len()` bytes into `rest`.
        let read = unsafe {
            call(READ, [file.0, rest.as_mut_ptr().expose_provenance(), rest.len(), 0, 0, 0])
        };
        match read {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

const STAT_WORDS: usize = 18;

/// How many bytes a file has.
///
/// # Errors
/// The kernel's error.
pub fn size(file: &Descriptor) -> Result<u64, Errno> {
    let mut answer = [0_u64; STAT_WORDS];
    // SAFETY: `struct stat` has 144 bytes, which is what `answer` has.
    unsafe { call(FSTAT, [file.0, answer.as_mut_ptr().expose_provenance(), 0, 0, 0, 0]) }?;
    Ok(answer[6])
}

/// The inode of the file that a path leads to.
///
/// # Errors
/// The kernel's error.
pub fn inode(path: &CStr) -> Result<u64, Errno> {
    let mut answer = [0_u64; STAT_WORDS];
    let at = answer.as_mut_ptr().expose_provenance();
    // SAFETY: `struct stat` has 144 bytes, which is what `answer` has; the path ends with zero.
    unsafe { call(STAT, [path.as_ptr().addr(), at, 0, 0, 0, 0]) }?;
    Ok(answer[1])
}

/// Maps a file, shared with all who map it.
///
/// # Errors
/// The kernel's error.
pub fn map_file(file: &Descriptor, bytes: usize, access: Access) -> Result<NonNull<u8>, Errno> {
    const SHARED: usize = 1;
    let protection = if access == Access::Read { 1 } else { 3 };
    // SAFETY: a new mapping at an address that the kernel chooses; no existing memory changes.
    let at = unsafe { call(MMAP, [0, bytes, protection, SHARED, file.0, 0]) }?;
    NonNull::new(core::ptr::with_exposed_provenance_mut(at)).ok_or(Errno(12))
}

/// Maps zeroed memory of this process alone, which takes no room until it is written.
///
/// # Errors
/// The kernel's error.
pub fn map_memory(bytes: usize, usable: bool) -> Result<NonNull<u8>, Errno> {
    const PRIVATE_ANONYMOUS_NORESERVE: usize = 0x2 | 0x20 | 0x4000;
    let protection = if usable { 3 } else { 0 };
    let no_file = usize::MAX;
    // SAFETY: as above.
    let at =
        unsafe { call(MMAP, [0, bytes, protection, PRIVATE_ANONYMOUS_NORESERVE, no_file, 0]) }?;
    NonNull::new(core::ptr::with_exposed_provenance_mut(at)).ok_or(Errno(12))
}

/// Unmaps.
///
/// # Safety
/// Nothing may use the memory any more, and it must be the whole of a mapping made here.
pub unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // SAFETY: promised by the caller.
    let _unmapped = unsafe { call(MUNMAP, [at.as_ptr().expose_provenance(), bytes, 0, 0, 0, 0]) };
}

/// Makes memory that was mapped unusable usable.
///
/// # Errors
/// The kernel's error.
pub fn make_usable(at: usize, bytes: usize) -> Result<(), Errno> {
    const PAGE: usize = 4096;
    let begin = at & !(PAGE - 1);
    // SAFETY: more rights to memory break no promise about it.
    unsafe { call(MPROTECT, [begin, bytes + (at - begin), 3, 0, 0, 0]) }.map(|_| ())
}

/// Makes the kernel zero this memory in the child of a fork. Returns `true` on success.
pub fn wipe_on_fork(at: NonNull<u8>, bytes: usize) -> bool {
    const WIPE_ON_FORK: usize = 18;
    // SAFETY: advice about a mapping of this process; nothing changes here.
    unsafe { call(MADVISE, [at.as_ptr().expose_provenance(), bytes, WIPE_ON_FORK, 0, 0, 0]) }
        .is_ok()
}

/// The id of this process, as its PID namespace counts.
pub fn process_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    let id = unsafe { call(GETPID, [0; 6]) }.unwrap_or(0);
    u32::try_from(id).unwrap_or(0)
}

/// True if a process (or its zombie) has this id.
pub fn process_exists(id: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let answer = unsafe { call(KILL, [id as usize, 0, 0, 0, 0, 0]) };
    matches!(answer, Ok(_) | Err(EPERM))
}

/// Lets another thread run.
pub fn yield_now() {
    // SAFETY: takes nothing.
    let _yielded = unsafe { call(SCHED_YIELD, [0; 6]) };
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic_ns() -> u64 {
    const MONOTONIC: usize = 1;
    let mut time = [0_u64; 2];
    // SAFETY: `struct timespec` has the 16 bytes of `time`.
    let _read = unsafe {
        call(CLOCK_GETTIME, [MONOTONIC, time.as_mut_ptr().expose_provenance(), 0, 0, 0, 0])
    };
    time[0].saturating_mul(1_000_000_000).saturating_add(time[1])
}

/// Waits, shorter if a signal arrives.
pub fn sleep_ns(ns: u64) {
    let time = [ns / 1_000_000_000, ns % 1_000_000_000];
    // SAFETY: `struct timespec` has the 16 bytes of `time`.
    let _slept = unsafe { call(NANOSLEEP, [time.as_ptr().addr(), 0, 0, 0, 0, 0]) };
}

/// Waits until `word` is woken, unless it is not `expected`.
pub fn futex_wait(word: &core::sync::atomic::AtomicU32, expected: u32) {
    const WAIT_PRIVATE: usize = 128;
    let at = core::ptr::from_ref(word).addr();
    // SAFETY: the word is valid for the call; the kernel only compares it.
    let _woken = unsafe { call(FUTEX, [at, WAIT_PRIVATE, expected as usize, 0, 0, 0]) };
}

/// Waits until `word` is woken by any process, unless it is not `expected`; for at most `ns`
/// nanoseconds.
pub fn futex_wait_shared(word: &core::sync::atomic::AtomicU32, expected: u32, ns: u64) {
    const WAIT: usize = 0;
    let at = core::ptr::from_ref(word).addr();
    let time = [ns / 1_000_000_000, ns % 1_000_000_000];
    // SAFETY: the word is valid for the call; `struct timespec` has the 16 bytes of `time`.
    let _woken = unsafe { call(FUTEX, [at, WAIT, expected as usize, time.as_ptr().addr(), 0, 0]) };
}

/// Wakes all of any process that wait for `word`.
pub fn futex_wake_shared(word: &core::sync::atomic::AtomicU32) {
    const WAKE: usize = 1;
    const ALL: usize = 0x7fff_ffff;
    let at = core::ptr::from_ref(word).addr();
    // SAFETY: the kernel uses only the address.
    let _woken = unsafe { call(FUTEX, [at, WAKE, ALL, 0, 0, 0]) };
}

/// Wakes one that waits for `word`.
pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    const WAKE_PRIVATE: usize = 129;
    let at = core::ptr::from_ref(word).addr();
    // SAFETY: the kernel uses only the address.
    let _woken = unsafe { call(FUTEX, [at, WAKE_PRIVATE, 1, 0, 0, 0]) };
}

/// Connects to a Unix socket that keeps messages apart (`SOCK_SEQPACKET`).
///
/// # Errors
/// The kernel's error, or a path that is too long.
pub fn connect(path: &[u8]) -> Result<Descriptor, Errno> {
    const UNIX: u16 = 1;
    const MESSAGES_CLOSE_ON_EXEC: usize = 5 | 0o2_000_000;
    let mut address = [0_u8; 110];
    address[..2].copy_from_slice(&UNIX.to_ne_bytes());
    let Some(room) = address.get_mut(2..2 + path.len()) else { return Err(Errno(36)) };
    room.copy_from_slice(path);
    // SAFETY: plain numbers.
    let number = unsafe { call(SOCKET, [usize::from(UNIX), MESSAGES_CLOSE_ON_EXEC, 0, 0, 0, 0]) }?;
    let socket = Descriptor(number);
    // SAFETY: the address is `address.len()` bytes, which is what `struct sockaddr_un` has.
    unsafe { call(CONNECT, [socket.0, address.as_ptr().addr(), address.len(), 0, 0, 0]) }?;
    Ok(socket)
}

/// Sends one message; a closed socket is an error, not a signal.
///
/// # Errors
/// The kernel's error.
pub fn send(socket: &Descriptor, message: &[u8]) -> Result<(), Errno> {
    const NO_SIGNAL: usize = 0x4000;
    loop {
        let a = [socket.0, message.as_ptr().addr(), message.len(), NO_SIGNAL, 0, 0];
        // SAFETY: the kernel reads `message.len()` bytes of `message`.
        match unsafe { call(SENDTO, a) } {
            Err(EINTR) => {}
            other => return other.map(|_| ()),
        }
    }
}

/// Receives one message; 0 bytes if the other side is gone.
///
/// # Errors
/// The kernel's error.
pub fn receive(socket: &Descriptor, into: &mut [u8]) -> Result<usize, Errno> {
    loop {
        let a = [socket.0, into.as_mut_ptr().expose_provenance(), into.len(), 0, 0, 0];
        // SAFETY: the kernel writes at most `into.len()` bytes into `into`.
        match unsafe { call(RECVFROM, a) } {
            Err(EINTR) => {}
            other => return other,
        }
    }
}
