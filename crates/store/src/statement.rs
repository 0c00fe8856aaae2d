//! A statement and what it is bound to, before any database sees it. Owns: the two kinds of value
//! that columns hold, and what a text may not hold. Every statement is written once, with `$1`, for
//! SQLite and PostgreSQL.

use std::borrow::Cow;

use serde::Serialize;
use units::Instant;

use crate::fault::{Fault, Result};

/// What a column holds: a whole number or a text, or nothing of that kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Int(Option<i64>),
    Text(Option<Cow<'a, str>>),
}

/// SQL with its values.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// What it does, for the message when it fails.
    pub(crate) what: &'static str,
    /// Only fixed pieces; every value is bound.
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<Value<'a>>,
    /// Whether it is a fault if no row is changed.
    pub(crate) must_hit: bool,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(what: &'static str, sql: impl Into<Cow<'static, str>>) -> Self {
        Self { what, sql: sql.into(), values: Vec::new(), must_hit: false }
    }

    pub(crate) fn must_hit(mut self) -> Self {
        self.must_hit = true;
        self
    }

    /// Integers are signed 64 bit in both databases; what is larger is as good as endless.
    pub(crate) fn int(self, value: u64) -> Self {
        self.maybe_int(Some(value))
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
        Ok(self.text(json(value)?))
    }

    pub(crate) fn maybe_json(self, value: Option<&impl Serialize>) -> Result<Self> {
        Ok(self.maybe_text(value.map(json).transpose()?))
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Fault::Value { row: "new row".to_owned(), value: error.to_string() })
}
