//! Turns on a virtual clock, and the thread that writes them into pages.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

mod pages;
mod shares;
