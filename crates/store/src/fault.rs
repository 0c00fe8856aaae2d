//! A failed statement, before the database it was about is named. Owns: what every statement has in
//! common when it fails, and which failures pass by themselves.

use crate::Error;

/// What went wrong, before the name of the database is known.
pub(crate) enum Fault {
    /// The database refused.
    Sql(&'static str, sqlx::Error),
    /// The writer of SQLite refused.
    Refused(&'static str, Refusal),
    /// A value is not what its column should hold.
    Value { row: String, value: String },
    /// A document is of a version that this program does not know.
    Newer { what: String, found: u32, known: u32, program: String },
    /// Another server has the database.
    InUse { holder: String },
    /// Another server has written since the state was read.
    Overtaken,
}

/// What SQLite says of a failure.
pub(crate) struct Refusal {
    /// Its primary code, <https://sqlite.org/rescode.html>; 0 if it is not SQLite's.
    pub(crate) code: u32,
    pub(crate) detail: String,
}

impl Fault {
    pub(crate) fn refused(what: &'static str) -> impl Fn(rusqlite::Error) -> Self {
        move |source| {
            // Extended codes carry the primary one in the low byte.
            let code = source.sqlite_error().map_or(0, |error| error.extended_code & 0xff);
            let detail = source.to_string();
            Self::Refused(what, Refusal { code: code.unsigned_abs(), detail })
        }
    }

    pub(crate) fn during(what: &'static str) -> impl Fn(sqlx::Error) -> Self {
        move |source| Self::Sql(what, source)
    }

    pub(crate) fn named(self, database: &str) -> Error {
        let database = database.to_owned();
        match self {
            Self::Sql(what, source) => Error::from_sqlx(&database, what, source),
            Self::Refused(what, refusal) => Error::from_sqlite(&database, what, refusal),
            Self::Value { row, value } => Error::Row { row, value },
            Self::Newer { what, found, known, program } => {
                Error::NewerDocument { database, what, found, known, program }
            }
            Self::InUse { holder } => Error::InUse { database, holder },
            Self::Overtaken => Error::Overtaken { database },
        }
    }

    /// Whether the session broke or could not be opened: another one may work. A session whose server
    /// has not yet noticed that it broke still has the lock for a moment.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Sql(_, cause) => is_broken(cause),
            Self::InUse { .. } => true,
            Self::Refused(..) | Self::Value { .. } | Self::Newer { .. } | Self::Overtaken => false,
        }
    }

    /// Names a fault that may have come after the commit.
    pub(crate) fn in_doubt(self, database: &str) -> Error {
        match self {
            Self::Sql(_, cause) => {
                Error::InDoubt { database: database.to_owned(), cause: cause.to_string() }
            }
            other => other.named(database),
        }
    }
}

/// Whether the way to the database is broken, not what was asked of it.
pub(crate) fn is_broken(cause: &sqlx::Error) -> bool {
    match cause {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Connection lost or refused; too many of them; being shut down, crashed, starting up.
        sqlx::Error::Database(refusal) => refusal.code().is_some_and(|code| {
            code.starts_with("08") || matches!(&*code, "53300" | "57P01" | "57P02" | "57P03")
        }),
        _ => false,
    }
}

impl From<sqlx::Error> for Fault {
    fn from(source: sqlx::Error) -> Self {
        Self::Sql("read", source)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;
