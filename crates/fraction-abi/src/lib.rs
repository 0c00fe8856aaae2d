//! Interface between the libraries inside a workload and the agent outside of it.
//!
//! Owns: the layout of the control page (limits, written by the agent, read-only for the workload)
//! and of the claim page (what each process of a run holds, written by the run's account alone),
//! the operations on the claim page, the messages of the simulated driver, and the few system
//! calls that all of this needs. Does not know about: CUDA, the server, who decides a limit.
//!
//! Nothing here allocates, panics, logs or uses the C library, because it runs inside the
//! programs of others.
#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
// Maps pages that other processes write, and makes system calls without a C library. Each block
// says why it is sound.
#![expect(unsafe_code, reason = "shared memory and system calls, see above")]

#[cfg(elastane_library)]
mod bytes;
pub mod claim;
pub mod control;
pub mod lease;
pub mod ledger;
pub mod lock;
pub mod owner;
pub mod sys;
pub mod wire;

/// GPUs that one run may have.
pub const DEVICES_MAX: usize = 16;

/// Processes of one run that may hold GPU memory at a time.
pub const SLOTS_MAX: usize = 512;

/// The version of both pages. A library refuses pages of another version.
pub const VERSION: u32 = 2;

/// Where the pages of a run are, inside its container or mount namespace. Elsewhere they are beside
/// the library itself, or where [`DIRECTORY_VARIABLE`] says.
pub const DIRECTORY: &str = "/run/elastane/fraction";

/// The environment variable that names the directory of the pages where they are neither in
/// `DIRECTORY` nor beside the library. A library that finds none refuses, as there was a limit.
pub const DIRECTORY_VARIABLE: &str = "ELASTANE_FRACTION";

/// The name of the control page in that directory.
pub const CONTROL_FILE: &str = "control";

/// The name of the claim page in that directory.
pub const CLAIM_FILE: &str = "claim";
