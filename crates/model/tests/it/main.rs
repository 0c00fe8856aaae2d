//! The undo log and the usage ledger against exact arithmetic.

mod undo;
mod usage;
