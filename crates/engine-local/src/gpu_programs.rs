//! The programs of GPU fractions, as the server's program starts them. Owns: their form on every
//! processor. Does not know about: what they do.

use std::process::ExitCode;

use engine::Error;

/// What `gpu-check` prints: the GPUs that a program here sees, and what it is refused.
///
/// # Errors
/// An argument it does not know, no driver, or more memory than `--most` says.
#[cfg(target_arch = "x86_64")]
pub fn gpu_check(args: &[String]) -> Result<String, Error> {
    fraction_agent::gpu_check(args).map_err(Error::Invalid)
}

/// The process of a simulated GPU. Call it first in a process of its own.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn simulated_driver(args: &[String]) -> ExitCode {
    fraction_agent::drive(args)
}

/// What `gpu-check` prints.
///
/// # Errors
/// Always: it exists for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
pub fn gpu_check(_args: &[String]) -> Result<String, Error> {
    Err(Error::Invalid("gpu-check exists for x86-64 only".to_owned()))
}

/// The process of a simulated GPU, which exists for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
#[must_use]
pub fn simulated_driver(_args: &[String]) -> ExitCode {
    ExitCode::FAILURE
}
