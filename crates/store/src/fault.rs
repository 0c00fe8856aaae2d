//! A failed statement, before its database is named, and what it means. Owns: which error a refusal
//! of either database becomes, and which failures are transient.

use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

use crate::Error;

/// Failure of a statement, before the name of the database is known.
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

/// Error that SQLite reports.
pub(crate) struct Refusal {
    /// Primary code, <https://sqlite.org/rescode.html>; 0 if it is not SQLite's.
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

    /// True if the session broke or could not be opened: another one may work. A session whose
    /// server has not yet noticed that it broke still has the lock for a moment.
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

/// True if the connection to the database failed, false if the database refused the statement.
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

impl Error {
    /// Sorts a database error by what can be done about it.
    pub(crate) fn from_sqlx(database: &str, what: &'static str, cause: sqlx::Error) -> Self {
        let database = database.to_owned();
        if is_broken(&cause) {
            return Self::Unreachable { database, cause: cause.to_string() };
        }
        let Some(refusal) = cause.as_database_error() else {
            return Self::Database { database, what, cause: cause.to_string() };
        };
        Self::from_kind(Kind::of(refusal), database, what, refusal.message().to_owned())
    }

    /// Sorts errors of the SQLite writer by their remedy.
    pub(crate) fn from_sqlite(database: &str, what: &'static str, refusal: Refusal) -> Self {
        let Refusal { code, detail } = refusal;
        Self::from_kind(Kind::of_sqlite(code), database.to_owned(), what, detail)
    }

    fn from_kind(kind: Kind, database: String, what: &'static str, detail: String) -> Self {
        match kind {
            Kind::Full => Self::Full { database },
            Kind::Damaged => Self::Damaged { database, detail },
            Kind::ReadOnly => Self::ReadOnly { database, detail },
            Kind::CannotOpen => Self::Access {
                what: "open database",
                path: database.into(),
                cause: std::io::Error::other(detail),
            },
            Kind::Other => Self::Database { database, what, cause: detail },
        }
    }
}

/// Category of a refusal: the [`Error`] that it becomes.
enum Kind {
    Full,
    Damaged,
    ReadOnly,
    CannotOpen,
    Other,
}

impl Kind {
    fn of(refusal: &dyn DatabaseError) -> Self {
        let code = refusal.code().unwrap_or_default();
        if refusal.try_downcast_ref::<PgDatabaseError>().is_some() {
            return match &*code {
                "53100" => Self::Full,
                "XX001" | "XX002" => Self::Damaged,
                "25006" => Self::ReadOnly,
                _ => Self::Other,
            };
        }
        // Extended codes carry the primary one in the low byte.
        Self::of_sqlite(code.parse::<u32>().map_or(0, |code| code & 0xff))
    }

    const fn of_sqlite(code: u32) -> Self {
        match code {
            8 => Self::ReadOnly,
            11 | 26 => Self::Damaged,
            13 => Self::Full,
            14 => Self::CannotOpen,
            _ => Self::Other,
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(source: sqlx::Error) -> Self {
        Self::Sql("read", source)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;
