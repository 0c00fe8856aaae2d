//! A failed statement, before the file it was about is named. Owns: what every statement has in
//! common when it fails.

use std::path::Path;

use crate::Error;

/// What went wrong, before the file's name is known.
pub(super) enum Fault {
    /// The database refused.
    Sql(&'static str, sqlx::Error),
    /// A value is not what its column should hold.
    Value { row: String, value: String },
}

impl Fault {
    pub(super) fn during(what: &'static str) -> impl Fn(sqlx::Error) -> Self {
        move |source| Self::Sql(what, source)
    }

    pub(super) fn named(self, path: &Path) -> Error {
        match self {
            Self::Sql(what, source) => Error::from_sqlx(path, what, source),
            Self::Value { row, value } => Error::Row { row, value },
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(source: sqlx::Error) -> Self {
        Self::Sql("read", source)
    }
}

pub(super) type Result<T> = std::result::Result<T, Fault>;
