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
        "database {database} has schema version {found}, this program knows versions up to {known}; \
         start the newer version of elastane that wrote it, or choose another --state-dir"
    )]
    Newer {
        /// Which.
        database: String,
        /// Version in the file.
        found: i64,
        /// Newest version this program knows.
        known: i64,
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
        cause: sqlx::Error,
    },
}

impl Error {
    /// Sorts a database error by what can be done about it.
    pub(crate) fn from_sqlx(database: &str, what: &'static str, cause: sqlx::Error) -> Self {
        const SQLITE_CORRUPT: u32 = 11;
        const SQLITE_FULL: u32 = 13;
        const SQLITE_CANTOPEN: u32 = 14;
        const SQLITE_NOTADB: u32 = 26;
        let refusal = cause.as_database_error();
        let code = refusal.and_then(|e| e.code()?.parse::<u32>().ok());
        let name = database.to_owned();
        // Extended codes carry the primary one in the low byte.
        match (code.map(|code| code & 0xff), refusal) {
            (Some(SQLITE_FULL), _) => Self::Full { database: name },
            (Some(SQLITE_CORRUPT | SQLITE_NOTADB), Some(e)) => {
                Self::Damaged { database: name, detail: e.message().to_owned() }
            }
            (Some(SQLITE_CANTOPEN), Some(e)) => Self::Access {
                what: "open database",
                path: name.into(),
                cause: std::io::Error::other(e.message().to_owned()),
            },
            _ => Self::Database { database: name, what, cause },
        }
    }
}
