//! Shares of a GPU's time by leases: the runs on a device take turns.
//!
//! Owns: the choice of the next run (`schedule`, a pure function of time and of the demand of the
//! runs), and writing it to the pages of the runs (`turner`). Does not know about: who decides the
//! shares, and memory.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod schedule;
mod turner;

pub use schedule::{Demand, Policy, Schedule, Share};
pub use turner::{Run, Turner};
