//! Fractions of GPUs, for every engine of this machine. Owns: which run gets what, the programs
//! that the server's own program becomes for it, and the choices of an administrator. Does not know
//! about: what processes and containers are made of.

#[cfg(target_arch = "x86_64")]
mod attempt;
#[cfg(target_arch = "x86_64")]
mod burst;
#[cfg(target_arch = "x86_64")]
mod cdi;
#[cfg(target_arch = "x86_64")]
mod checked;
#[cfg(target_arch = "x86_64")]
mod contexts;
#[cfg(target_arch = "x86_64")]
mod dmem;
mod fraction;
#[cfg(target_arch = "x86_64")]
mod fractions;
#[cfg(target_arch = "x86_64")]
mod keeper;
#[cfg(target_arch = "x86_64")]
mod mig;
#[cfg(target_arch = "x86_64")]
mod mps;
mod newest;
mod policy;
mod refusal_parser;
#[cfg(target_arch = "x86_64")]
mod run;
#[cfg(not(target_arch = "x86_64"))]
mod unsupported;
#[cfg(target_arch = "x86_64")]
mod way;

#[cfg(target_arch = "x86_64")]
pub use cdi::{Specification, cdi};
#[cfg(target_arch = "x86_64")]
pub use checked::{gpu_check, note_unlimited, simulated_driver, start_checked};
pub use fraction::{Fraction, Instance, Limit, SimulatedGpu, UNLIMITED};
#[cfg(target_arch = "x86_64")]
pub use fractions::{Added, Fractions, Held, hold};
pub use newest::end_newest;
pub use policy::{
    DeviceGroups, FractionOptions, FractionPolicy, MemoryOver, MpsPlace, Place, Runs,
};
pub use refusal_parser::{Refusal, RefusalKind};
#[cfg(target_arch = "x86_64")]
pub use run::Over;
#[cfg(not(target_arch = "x86_64"))]
pub use unsupported::{
    Added, Delivery, Fractions, Held, Over, Specification, cdi, gpu_check, hold, note_unlimited,
    simulated_driver, start_checked,
};
