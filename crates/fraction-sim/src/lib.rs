//! A driver for GPUs that do not exist: `libcuda.so.1` and `libnvidia-ml.so.1`, for laptops and
//! tests.
//!
//! Owns: contexts, memory counted to the byte, streams, virtual kernels that take time and compute
//! nothing, chosen versions and faults, and the answers of NVML about them. The devices themselves
//! are in the broker, outside of the process. Does not know about: limits of fractions, and real
//! GPUs.
//!
//! `fraction-libs` builds both libraries from this crate with `--cfg elastane_library`; as a crate
//! of the workspace it is only checked.
#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
// Every function of the driver takes pointers from C; each says what it demands of them.
#![expect(unsafe_code, reason = "the interface is that of a C library")]
// The published interface names the functions, and the pointers are the caller's responsibility
// exactly as NVIDIA documents it.
#![expect(non_snake_case, clippy::missing_safety_doc, missing_docs, reason = "names of others")]

extern crate alloc;

mod chosen;
mod client;
mod heap;

#[cfg(any(not(elastane_library), elastane_library = "cuda"))]
pub mod cuda;
#[cfg(any(not(elastane_library), elastane_library = "nvml"))]
pub mod nvml;

#[cfg(elastane_library)]
#[panic_handler]
fn end(_: &core::panic::PanicInfo<'_>) -> ! {
    // By this text a test knows whether anything can come here.
    core::hint::black_box("the library panics here");
    loop {
        // SAFETY: an instruction that no program may execute, which ends this one with SIGILL.
        unsafe { core::arch::asm!("ud2") };
    }
}

/// Writes an answer through a pointer of the caller.
///
/// # Safety
/// The pointer is null or may be written.
unsafe fn put<T>(at: *mut T, value: T) -> bool {
    if at.is_null() {
        return false;
    }
    // SAFETY: promised by the caller; the interface does not demand alignment.
    unsafe { at.write_unaligned(value) };
    true
}

/// Copies a text into a buffer of the caller, cut to fit, ended with a zero byte.
///
/// # Safety
/// The buffer is null or has that many bytes.
unsafe fn put_text(into: *mut u8, room: usize, text: &str) -> bool {
    let Some(last) = room.checked_sub(1).filter(|_| !into.is_null()) else { return false };
    let length = text.len().min(last);
    // SAFETY: at most `room` bytes are written; a text does not overlap a buffer of the caller.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), into, length);
        into.add(length).write(0);
    }
    true
}
