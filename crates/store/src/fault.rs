//! A failed statement, before the database it was about is named. Owns: what every statement has in
//! common when it fails.

use crate::Error;

/// What went wrong, before the name of the database is known.
pub(crate) enum Fault {
    /// The database refused.
    Sql(&'static str, sqlx::Error),
    /// A value is not what its column should hold.
    Value { row: String, value: String },
}

impl Fault {
    pub(crate) fn during(what: &'static str) -> impl Fn(sqlx::Error) -> Self {
        move |source| Self::Sql(what, source)
    }

    pub(crate) fn named(self, database: &str) -> Error {
        match self {
            Self::Sql(what, source) => Error::from_sqlx(database, what, source),
            Self::Value { row, value } => Error::Row { row, value },
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(source: sqlx::Error) -> Self {
        Self::Sql("read", source)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;
