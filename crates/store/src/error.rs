//! Errors of the store: one kind per remedy that a person has.

use std::path::PathBuf;

use thiserror::Error;

/// Error of the store.
#[derive(Debug, Error)]
pub enum Error {
    /// Another server owns the state directory.
    #[error(
        "state directory {dir} is in use by the server with process id {pid}; stop that server, \
         or choose another directory with --state-dir"
    )]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The owner's process id, `unknown` if it has not written it yet.
        pid: String,
    },
    /// Another server has the database.
    #[error(
        "database {database} is in use by another server ({holder}); stop that server, or give this \
         one a database of its own"
    )]
    InUse {
        /// Name of the database.
        database: String,
        /// Name that the other server gives itself.
        holder: String,
    },
    /// Another server has written since the state was read.
    #[error(
        "another server has changed database {database} meanwhile; nothing was changed, the state \
         is read again"
    )]
    Overtaken {
        /// Name of the database.
        database: String,
    },
    /// The database holds something else.
    #[error(
        "database {database} is not one of elastane and was left as it is ({detail}); name an empty \
         one, made with `CREATE DATABASE elastane TEMPLATE template0 ENCODING 'UTF8'`"
    )]
    Foreign {
        /// Name of the database.
        database: String,
        /// Description of the foreign content.
        detail: String,
    },
    /// The way to the database is broken.
    #[error(
        "database {database} cannot be reached ({cause}); nothing was changed. If it runs and is not \
         only slow, its URL is wrong"
    )]
    Unreachable {
        /// Name of the database.
        database: String,
        /// Cause, as the connection reports it.
        cause: String,
    },
    /// The way to the database broke while it was writing.
    #[error(
        "database {database} cannot be reached ({cause}); whether this was written shows when it is \
         back, so check before you repeat the request"
    )]
    InDoubt {
        /// Name of the database.
        database: String,
        /// Cause, as the connection reports it.
        cause: String,
    },
    /// The database can only be read.
    #[error(
        "database {database} can only be read ({detail}); nothing was changed, make it writable and \
         retry"
    )]
    ReadOnly {
        /// Name of the database.
        database: String,
        /// Message of the database.
        detail: String,
    },
    /// The directory or a file in it cannot be used.
    #[error("cannot {what} {path}: {cause}; check that you own it and may write it")]
    Access {
        /// Failed operation.
        what: &'static str,
        /// Path that it failed on.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// The file is not a whole database.
    #[error(
        "database {database} is damaged ({detail}) and was left as it is; restore it from a backup, \
         or move it away (with its -wal and -shm files) to start empty"
    )]
    Damaged {
        /// Name of the database.
        database: String,
        /// Damage that the check found.
        detail: String,
    },
    /// A newer program wrote the database.
    #[error(
        "database {database} has schema version {found}, this program knows versions up to {known}; it \
         was left as it is. Start {program}, or choose another --state-dir"
    )]
    Newer {
        /// Name of the database.
        database: String,
        /// Version in the file.
        found: i64,
        /// Newest version this program knows.
        known: i64,
        /// Program that knows this version.
        program: String,
    },
    /// A newer program wrote something in the database.
    #[error(
        "database {database}: the {what} has document version {found}, this program knows versions up \
         to {known}; the database was left as it is. Start {program}, or choose another --state-dir"
    )]
    NewerDocument {
        /// Name of the database.
        database: String,
        /// Document that is newer.
        what: String,
        /// Version of the document.
        found: u32,
        /// Newest version this program knows.
        known: u32,
        /// Program that knows this version.
        program: String,
    },
    /// No space for the transaction; nothing of it was written.
    #[error(
        "the disk that holds {database} is full; nothing was changed, free some space and retry"
    )]
    Full {
        /// Name of the database.
        database: String,
    },
    /// A value that does not fit its column.
    #[error("row {row} holds `{value}`, which this program does not understand")]
    Row {
        /// Table and key.
        row: String,
        /// Value of the column.
        value: String,
    },
    /// The database refused for another reason.
    #[error("database {database}: could not {what}: {cause}")]
    Database {
        /// Name of the database.
        database: String,
        /// Failed operation.
        what: &'static str,
        /// Message of the database.
        cause: String,
    },
}

impl Error {
    /// True if nothing at all can be written now.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        !matches!(self, Self::Row { .. } | Self::Database { .. })
    }
}
