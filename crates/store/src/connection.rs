//! One connection, of whichever database. Owns: how a statement is bound and run, and how a row
//! gives its values back. The `Any` driver of sqlx is not used: it loses types.

use std::borrow::Cow;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, PgConnection, Row as _, SqliteConnection};

use crate::fault::{Fault, Result};
use crate::statement::{Statement, Value};

/// A connection for a while.
pub(crate) enum Connection<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

/// A connection of the pool that reads.
pub(crate) enum Reader {
    Sqlite(PoolConnection<sqlx::Sqlite>),
    Postgres(PoolConnection<sqlx::Postgres>),
}

impl Reader {
    pub(crate) fn connection(&mut self) -> Connection<'_> {
        match self {
            Self::Sqlite(db) => Connection::Sqlite(db),
            Self::Postgres(db) => Connection::Postgres(db),
        }
    }
}

/// A row as it was read.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// The query of a statement, with its values bound.
macro_rules! query {
    ($statement:expr) => {{
        let mut query = match $statement.sql {
            Cow::Borrowed(sql) => sqlx::query(sql),
            Cow::Owned(sql) => sqlx::query(AssertSqlSafe(sql)),
        };
        for value in $statement.values {
            query = match value {
                Value::Int(value) => query.bind(value),
                Value::Text(value) => query.bind(value.map(Cow::into_owned)),
            };
        }
        query
    }};
}

impl Connection<'_> {
    /// Runs a statement that writes.
    pub(crate) async fn write(&mut self, statement: Statement<'_>) -> Result<()> {
        let Statement { what, must_hit, .. } = statement;
        let changed = match self {
            Self::Sqlite(db) => {
                query!(statement).execute(&mut **db).await.map(|done| done.rows_affected())
            }
            Self::Postgres(db) => {
                query!(statement).execute(&mut **db).await.map(|done| done.rows_affected())
            }
        };
        match changed.map_err(Fault::during(what))? {
            0 if must_hit => Err(Fault::Sql(what, sqlx::Error::RowNotFound)),
            _ => Ok(()),
        }
    }

    /// Runs a statement that reads.
    pub(crate) async fn read(&mut self, statement: Statement<'_>) -> Result<Vec<Row>> {
        let what = statement.what;
        let rows = match self {
            Self::Sqlite(db) => query!(statement)
                .fetch_all(&mut **db)
                .await
                .map(|rows| rows.into_iter().map(Row::Sqlite).collect()),
            Self::Postgres(db) => query!(statement)
                .fetch_all(&mut **db)
                .await
                .map(|rows| rows.into_iter().map(Row::Postgres).collect()),
        };
        rows.map_err(Fault::during(what))
    }
}

impl Row {
    pub(crate) fn int(&self, column: &str) -> Result<Option<i64>> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }?)
    }

    pub(crate) fn text(&self, column: &str) -> Result<Option<String>> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }?)
    }
}
