//! Why the store could not do what it was asked: one kind per thing a person can do about it.

use std::path::PathBuf;

use thiserror::Error;

/// Why the store failed.
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
        /// Which.
        database: String,
        /// What the other server calls itself.
        holder: String,
    },
    /// Another server has written since the state was read.
    #[error(
        "another server has changed database {database} meanwhile; nothing was changed, the state \
         is read again"
    )]
    Overtaken {
        /// Which.
        database: String,
    },
    /// The database holds something else.
    #[error(
        "database {database} is not one of elastane and was left as it is ({detail}); name an empty \
         one, made with `CREATE DATABASE elastane TEMPLATE template0 ENCODING 'UTF8'`"
    )]
    Foreign {
        /// Which.
        database: String,
        /// What is there.
        detail: String,
    },
    /// The way to the database is broken.
    #[error(
        "database {database} cannot be reached ({cause}); nothing was changed. If it runs and is not \
         only slow, its URL is wrong"
    )]
    Unreachable {
        /// Which.
        database: String,
        /// What was noticed.
        cause: String,
    },
    /// The way to the database broke while it was writing.
    #[error(
        "database {database} cannot be reached ({cause}); whether this was written shows when it is \
         back, so check before you repeat the request"
    )]
    InDoubt {
        /// Which.
        database: String,
        /// What was noticed.
        cause: String,
    },
    /// It can be read only.
    #[error(
        "database {database} can only be read ({detail}); nothing was changed, make it writable and \
         retry"
    )]
    ReadOnly {
        /// Which.
        database: String,
        /// What it says.
        detail: String,
    },
    /// The directory or a file in it cannot be used.
    #[error("cannot {what} {path}: {cause}; check that you own it and may write it")]
    Access {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// The file is not a whole database.
    #[error(
        "database {database} is damaged ({detail}) and was left as it is; restore it from a backup, \
         or move it away (with its -wal and -shm files) to start empty"
    )]
    Damaged {
        /// Which.
        database: String,
        /// What the check found.
        detail: String,
    },
    /// A newer program wrote the database.
    #[error(
        "database {database} has schema version {found}, this program knows versions up to {known}; it \
         was left as it is. Start {program}, or choose another --state-dir"
    )]
    Newer {
        /// Which.
        database: String,
        /// Version in the file.
        found: i64,
        /// Newest version this program knows.
        known: i64,
        /// Which program knows it.
        program: String,
    },
    /// A newer program wrote something in the database.
    #[error(
        "database {database}: the {what} has document version {found}, this program knows versions up \
         to {known}; the database was left as it is. Start {program}, or choose another --state-dir"
    )]
    NewerDocument {
        /// Which.
        database: String,
        /// What is newer.
        what: String,
        /// Its version.
        found: u32,
        /// Newest version this program knows.
        known: u32,
        /// Which program knows it.
        program: String,
    },
    /// No space for the transaction; nothing of it was written.
    #[error(
        "the disk that holds {database} is full; nothing was changed, free some space and retry"
    )]
    Full {
        /// Which.
        database: String,
    },
    /// A row that does not say what its column should.
    #[error("row {row} holds `{value}`, which this program does not understand")]
    Row {
        /// Table and key.
        row: String,
        /// What it holds.
        value: String,
    },
    /// Anything else the database refused.
    #[error("database {database}: could not {what}: {cause}")]
    Database {
        /// Which.
        database: String,
        /// What was tried.
        what: &'static str,
        /// The cause.
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
