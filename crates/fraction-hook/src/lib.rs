//! Keeps the programs of a workload within their part of a GPU, from inside.
//!
//! Owns: the functions of the CUDA driver and of NVML that take, give back or show memory. Each
//! asks the claim page of the run first and the driver then. Does not know about: who decides the
//! limits, and how it got into the program.
//!
//! The driver itself answers every search for a function; only an address of a function that is
//! kept here is replaced, so versions, kinds of streams and missing functions are always right.
//!
//! `fraction-libs` builds libraries from this crate with `--cfg elastane_library`: one that is
//! preloaded and stands before `dlsym`, and two that stand in the place of `libcuda.so.1` and
//! `libnvidia-ml.so.1` and need the real ones, from which a program gets all other functions. They
//! import nothing, allocate nothing, print nothing, install no handlers and leave `errno` alone.
//! A library that finds no pages of a run lets the program take nothing; in a program whose rights
//! differ from those of the user who started it, it passes everything on.
#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
// Every function takes pointers from C, and the driver is called through addresses.
#![expect(unsafe_code, reason = "the interfaces are those of C libraries")]
#![expect(non_snake_case, clippy::missing_safety_doc, missing_docs, reason = "names of others")]

mod arrays;
mod call;
mod called;
mod captures;
mod contexts;
mod elf;
pub mod entry;
mod gate;
mod graphs;
pub mod hooked;
pub mod kept;
mod linear;
mod location;
mod nvml;
mod pages;
mod pools;
mod process;
mod streams;
mod table;
mod turns;
mod virtual_memory;

/// The functions that are kept here.
fn table_of_kept() -> hooked::Kept {
    kept::table()
}

/// The functions that are only called from here.
fn table_of_called() -> hooked::Called {
    called::table()
}

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
