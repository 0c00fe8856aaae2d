//! The pages of a fraction, used as the processes of a run and the agent use them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(unsafe_code, reason = "children are forked, which only the C library can")]
#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

mod kills;
mod owners;
mod pages;
mod random;
mod support;
