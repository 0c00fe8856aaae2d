//! Clusters that exist only in memory, for measuring and for asking *what if*.
//!
//! Owns: generated states. Refuses to know: processes, storage, the network. The decisions are
//! made by the same `model` and `sched` as in the product.

pub mod states;
