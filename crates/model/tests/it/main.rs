//! The undo log, the usage ledger against exact arithmetic, and what free GPUs are worth.

mod fragmentation;
mod undo;
mod usage;
