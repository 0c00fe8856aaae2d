//! The undo log, the usage ledger against exact arithmetic, and the worth of free GPUs.

mod fragmentation;
mod undo;
mod usage;
