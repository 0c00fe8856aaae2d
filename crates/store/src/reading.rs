//! One row, column by column. Owns: the message about a value that makes no sense.

use serde::de::DeserializeOwned;
use spec::document::{self, Document, Unreadable};
use uuid::Uuid;

use crate::connection::{Connection, Row};
use crate::fault::{Fault, Result};
use crate::release;
use crate::statement::Statement;

/// One row being read; its name makes the message about a value that makes no sense.
pub(crate) struct Reading<'r> {
    pub(crate) row: &'r Row,
    pub(crate) table: &'static str,
}

impl Reading<'_> {
    pub(crate) fn bad(&self, column: &str, value: impl ToString) -> Fault {
        Fault::Value { row: format!("{}.{column}", self.table), value: value.to_string() }
    }

    pub(crate) fn text(&self, column: &str) -> Result<String> {
        self.maybe_text(column)?.ok_or_else(|| self.bad(column, "nothing"))
    }

    pub(crate) fn maybe_text(&self, column: &str) -> Result<Option<String>> {
        self.row.text(column)
    }

    pub(crate) fn number(&self, column: &str) -> Result<u64> {
        self.maybe_number(column)?.ok_or_else(|| self.bad(column, "nothing"))
    }

    pub(crate) fn signed(&self, column: &str) -> Result<i64> {
        self.row.int(column)?.ok_or_else(|| self.bad(column, "nothing"))
    }

    pub(crate) fn maybe_number(&self, column: &str) -> Result<Option<u64>> {
        let value = self.row.int(column)?;
        value.map(|v| u64::try_from(v).map_err(|_| self.bad(column, v))).transpose()
    }

    pub(crate) fn small(&self, column: &str) -> Result<u32> {
        let value = self.number(column)?;
        u32::try_from(value).map_err(|_| self.bad(column, value))
    }

    pub(crate) fn uuid(&self, column: &str) -> Result<Uuid> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.bad(column, text))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        let text = self.text(column)?;
        serde_json::from_str(&text).map_err(|error| self.bad(column, format!("{text}: {error}")))
    }

    pub(crate) fn document<D: Document>(&self, column: &str) -> Result<D> {
        self.maybe_document(column)?.ok_or_else(|| self.bad(column, "nothing"))
    }

    pub(crate) fn maybe_document<D: Document>(&self, column: &str) -> Result<Option<D>> {
        let Some(text) = self.maybe_text(column)? else { return Ok(None) };
        document::read(&text).map(Some).map_err(|error| self.unreadable(column, &text, error))
    }

    /// A document of a kind that only its owner knows. Errors do not show it: it may hold hashes of
    /// secrets.
    pub(crate) fn object(&self, column: &str) -> Result<serde_json::Value> {
        let read = document::read_value(&self.text(column)?, "object");
        read.map_err(|error| self.unreadable(column, "an object", error))
    }

    pub(crate) fn unreadable(&self, column: &str, text: &str, error: Unreadable) -> Fault {
        match error {
            Unreadable::Wrong(error) => self.bad(column, format!("{text}: {error}")),
            Unreadable::Newer { what, found, known } => {
                let named = ["name", "id", "seq"].into_iter().find_map(|key| {
                    let text = self.row.text(key).ok().flatten();
                    text.or_else(|| self.row.int(key).ok().flatten().map(|n| n.to_string()))
                });
                let what = format!("{what} `{}`", named.unwrap_or_default());
                Fault::Newer { what, found, known, program: release::name(None) }
            }
        }
    }
}

pub(crate) async fn read<T>(
    db: &mut Connection<'_>,
    table: &'static str,
    sql: &'static str,
    convert: impl Fn(&Reading<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    read_with(db, table, Statement::new("read", sql), convert).await
}

pub(crate) async fn read_with<T>(
    db: &mut Connection<'_>,
    table: &'static str,
    statement: Statement<'_>,
    convert: impl Fn(&Reading<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let rows = db.read(statement).await?;
    rows.iter().map(|row| convert(&Reading { row, table })).collect()
}
