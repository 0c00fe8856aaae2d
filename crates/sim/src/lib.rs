//! Clusters that exist only in memory, for measuring and for asking *what if*.
//!
//! Owns: generated states, scenario files and their outcome, trace replay, seeded faults. Refuses
//! to know: processes, storage, files, the network. The decisions are made by the same `model`
//! and `sched` as in the product.

mod error;
mod near;
pub mod scenario;
pub mod states;

pub use error::Error;
