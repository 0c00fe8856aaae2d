//! One connection, of whichever database. Owns: how a statement is bound and run, and how a row
//! gives its values back. The `Any` driver of sqlx is not used: it loses types.

use std::borrow::Cow;

use futures_util::TryStreamExt as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Column as _, PgConnection, Row as _, SqliteConnection, TypeInfo as _};

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
        let mut query = match $statement.whole_sql() {
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

/// Passes row after row to `take` until it wants no more.
macro_rules! each {
    ($rows:expr, $what:expr, $kind:expr, $take:expr) => {{
        let mut rows = $rows;
        while let Some(row) = rows.try_next().await.map_err(Fault::during($what))? {
            if !$take($kind(row))? {
                break;
            }
        }
        Ok(())
    }};
}

/// Name and value of every column of a row.
macro_rules! values {
    ($row:expr) => {
        $row.columns()
            .iter()
            .map(|column| {
                let number = matches!(column.type_info().name(), "INTEGER" | "INT8");
                let value = match number {
                    true => Value::Int($row.try_get(column.ordinal())?),
                    false => {
                        let text: Option<String> = $row.try_get(column.ordinal())?;
                        Value::Text(text.map(Cow::Owned))
                    }
                };
                Ok((column.name().to_owned(), value))
            })
            .collect()
    };
}

impl Connection<'_> {
    /// Runs a statement that writes.
    pub(crate) async fn write(&mut self, statement: Statement<'_>) -> Result<()> {
        let (what, must_hit, count) = (statement.what, statement.must_hit, statement.count());
        let changed = match self {
            Self::Sqlite(db) => {
                query!(statement).execute(&mut **db).await.map(|done| done.rows_affected())
            }
            Self::Postgres(db) => {
                query!(statement).execute(&mut **db).await.map(|done| done.rows_affected())
            }
        };
        match changed.map_err(Fault::during(what))? {
            changed if must_hit && changed < count => {
                Err(Fault::Sql(what, sqlx::Error::RowNotFound))
            }
            _ => Ok(()),
        }
    }

    /// Runs a statement that reads more than memory may hold; `take` returns `true` while it wants
    /// more.
    pub(crate) async fn each(
        &mut self,
        statement: Statement<'_>,
        mut take: impl FnMut(Row) -> Result<bool>,
    ) -> Result<()> {
        let what = statement.what;
        match self {
            Self::Sqlite(db) => {
                each!(query!(statement).fetch(&mut **db), what, Row::Sqlite, take)
            }
            Self::Postgres(db) => {
                each!(query!(statement).fetch(&mut **db), what, Row::Postgres, take)
            }
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
    /// All columns with their values.
    pub(crate) fn values(&self) -> Result<Vec<(String, Value<'static>)>> {
        match self {
            Self::Sqlite(row) => values!(row),
            Self::Postgres(row) => values!(row),
        }
    }

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
