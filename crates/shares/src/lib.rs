//! Fair shares of queues in GPUs, CPU and memory. Owns: their computation, and their update from
//! one decision to the next. Does not know about: the order of workloads, and preemption.

mod bounded;
mod division;
mod entitlements;
mod levels;

pub use division::{OverQuota, Rules};
pub use entitlements::{Common, Entitlements};
