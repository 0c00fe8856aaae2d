//! A statement and what it is bound to, before any database sees it. Owns: the two kinds of value
//! that columns hold, and what a text may not hold. Every statement is written once, with `$1`, for
//! SQLite and PostgreSQL.

use std::borrow::Cow;

use serde::Serialize;
use spec::WorkloadSpec;
use spec::document::{self, Document};
use units::Instant;

use crate::fault::{Fault, Result};

/// Value of a column: a whole number or a text; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Int(Option<i64>),
    Text(Option<Cow<'a, str>>),
}

/// SQL with its values.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// Name of the operation, for the message when it fails.
    pub(crate) what: &'static str,
    /// Text made of fixed pieces only; every value is bound.
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<Value<'a>>,
    /// True if it is a fault if not every row is changed.
    pub(crate) must_hit: bool,
    rows: Option<Rows>,
}

/// Shape of a statement that writes several rows: `sql`, a list of values for each row, `tail`.
#[derive(Debug, Clone, Copy)]
struct Rows {
    count: usize,
    tail: &'static str,
    /// How many of the first values identify a row; 0 if no two rows can be equal.
    key: usize,
}

/// Most rows in one statement.
const ROWS_MAX: usize = 64;

impl<'a> Statement<'a> {
    pub(crate) fn new(what: &'static str, sql: impl Into<Cow<'static, str>>) -> Self {
        Self { what, sql: sql.into(), values: Vec::new(), must_hit: false, rows: None }
    }

    /// A statement that can write several rows at once: `head`, a list of values for each row,
    /// `tail`. The first `key` values identify a row; a database writes no row twice in a
    /// statement.
    pub(crate) fn rows(
        what: &'static str,
        head: &'static str,
        tail: &'static str,
        key: usize,
    ) -> Self {
        Self { rows: Some(Rows { count: 1, tail, key }), ..Self::new(what, head) }
    }

    /// Takes in the rows of one that does the same; gives it back if that cannot be.
    pub(crate) fn join(&mut self, other: Self) -> std::result::Result<(), Self> {
        let (Some(mine), Some(theirs)) = (self.rows, other.rows) else { return Err(other) };
        if self.what != other.what || mine.count + theirs.count > ROWS_MAX {
            return Err(other);
        }
        let (key, width) = (mine.key, other.values.len());
        let same = |row: &[Value<'_>]| key > 0 && row.get(..key) == other.values.get(..key);
        if self.values.chunks(width).any(same) {
            return Err(other);
        }
        self.values.extend(other.values);
        self.rows = Some(Rows { count: mine.count + theirs.count, ..mine });
        Ok(())
    }

    /// The statement as statements of 1, 2, 4, … rows, so that a database sees few different texts.
    pub(crate) fn pieces(mut self) -> Vec<Self> {
        let Some(rows) = self.rows else { return vec![self] };
        let width = self.values.len() / rows.count;
        let (mut left, mut pieces) = (rows.count, Vec::new());
        while left > 0 {
            let count = 1 << left.ilog2();
            left -= count;
            let values = self.values.split_off(left * width);
            let rows = Some(Rows { count, ..rows });
            pieces.push(Self { values, rows, sql: self.sql.clone(), ..self });
        }
        pieces
    }

    /// Number of rows that it writes.
    pub(crate) fn count(&self) -> u64 {
        self.rows.map_or(1, |rows| rows.count as u64)
    }

    /// The whole text.
    pub(crate) fn whole_sql(&self) -> Cow<'static, str> {
        let Some(rows) = self.rows else { return self.sql.clone() };
        let width = self.values.len() / rows.count;
        let row = |at: usize| {
            let names = (1..=width).map(|column| format!("${}", at * width + column));
            format!("({})", names.collect::<Vec<_>>().join(", "))
        };
        let all = (0..rows.count).map(row).collect::<Vec<_>>().join(", ");
        format!("{}{all}{}", self.sql, rows.tail).into()
    }

    pub(crate) fn must_hit(mut self) -> Self {
        self.must_hit = true;
        self
    }

    /// Integers are signed 64 bit in both databases; what is larger is as good as endless.
    pub(crate) fn int(self, value: u64) -> Self {
        self.maybe_int(Some(value))
    }

    pub(crate) fn signed(mut self, value: i64) -> Self {
        self.values.push(Value::Int(Some(value)));
        self
    }

    pub(crate) fn maybe_int(mut self, value: Option<u64>) -> Self {
        let value = value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        self.values.push(Value::Int(value));
        self
    }

    pub(crate) fn at(self, at: Instant) -> Self {
        self.int(at.0)
    }

    pub(crate) fn maybe_at(self, at: Option<Instant>) -> Self {
        self.maybe_int(at.map(|at| at.0))
    }

    pub(crate) fn text(self, value: impl Into<Cow<'a, str>>) -> Self {
        self.maybe_text(Some(value))
    }

    /// PostgreSQL keeps no NUL in a text; so that both keep the same, neither does.
    pub(crate) fn maybe_text(mut self, value: Option<impl Into<Cow<'a, str>>>) -> Self {
        let value = value.map(Into::into).map(|text| match text.contains('\0') {
            true => Cow::Owned(text.replace('\0', "\u{fffd}")),
            false => text,
        });
        self.values.push(Value::Text(value));
        self
    }

    pub(crate) fn json(self, value: &impl Serialize) -> Result<Self> {
        Ok(self.text(serde_json::to_string(value).map_err(no_json)?))
    }

    pub(crate) fn document(self, document: &impl Document) -> Result<Self> {
        self.maybe_document(Some(document))
    }

    pub(crate) fn maybe_document(self, document: Option<&impl Document>) -> Result<Self> {
        Ok(self.maybe_text(document.map(document::write).transpose().map_err(no_json)?))
    }

    /// A document that only its owner knows.
    pub(crate) fn object(self, body: &serde_json::Value) -> Result<Self> {
        Ok(self.text(document::write_value(body).map_err(no_json)?))
    }

    /// Adds the name and the specification of a workload.
    pub(crate) fn spec(self, spec: &'a WorkloadSpec) -> Result<Self> {
        self.text(&spec.name).document(spec)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn no_json(error: serde_json::Error) -> Fault {
    Fault::Value { row: "new row".to_owned(), value: error.to_string() }
}
