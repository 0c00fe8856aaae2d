//! The devices of the simulated driver. Processes of different accounts share them, so one place
//! outside of all of them counts.
//!
//! Owns: memory of each device to the byte, the processes that hold it, when a device is busy, and
//! the socket through which the simulated driver asks. Memory of a process is released when its
//! connection ends, however it ended. Does not know about: limits of fractions, which are narrower,
//! and CUDA.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod devices;
mod serve;

pub use devices::{Client, Device, Devices, Driver};
pub use serve::{Broker, Error};
