//! Rights of queues to GPUs, CPU and memory. Owns: fair shares, and keeping them from one decision to the next.
//! Does not know about: who is served first, and who gives way.

mod bounded;
mod division;
mod entitlements;
mod levels;

pub use division::{OverQuota, Rules};
pub use entitlements::{Common, Entitlements};
