//! State that survives a restart: departments, projects, workloads, pods, other objects, the event
//! log, credentials, audit.
//!
//! Owns: the state directory, the database in it, and its schema. Every [`Store::apply`] is one
//! transaction: all of it is on disk, or none. Does not know what the rows mean, and who may
//! write them.

mod archived;
mod backup;
mod connection;
mod error;
mod fault;
mod kept_deletions;
mod ledger;
mod lock;
mod log_groups;
mod pasts;
mod postgres;
mod read;
mod reading;
mod release;
mod schema;
mod sqlite;
mod statement;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;
mod write;

pub use backup::{BackupError, Contents, FILES, SavedFile, backup, restore};
pub use error::Error;
pub use lock::Lock;
pub use postgres::{BadUrl, PostgresUrl};
pub use store::{Database, Store};
