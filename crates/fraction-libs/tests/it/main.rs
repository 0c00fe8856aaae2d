//! The libraries as they are shipped, in programs as people write them: a C program on a simulated
//! driver, with and without a limit.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

mod artifact;
mod beside;
mod chosen;
mod classes;
mod cudart;
mod driver;
mod lookup;
mod old;

mod random;
mod runs;
mod support;
mod turns;
