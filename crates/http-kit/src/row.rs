//! Rows of lists. Owns: the values of their fields for sorting, filtering and searching.

use std::borrow::Cow;
use std::sync::Arc;

use units::Instant;

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// A number.
    Number,
    /// A moment.
    Time,
    /// True or false.
    Flag,
}

/// The value of a field. Numbers are in thousandths, times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scalar<'a> {
    /// No value.
    Absent,
    /// A text.
    Text(Cow<'a, str>),
    /// A number, in thousandths.
    Number(u64),
    /// A moment, in milliseconds.
    Time(u64),
    /// True or false.
    Flag(bool),
    /// Several texts. A condition holds if it holds for one of them, or with `!` for all.
    Texts(Vec<Cow<'a, str>>),
}

impl<'a> Scalar<'a> {
    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A whole number.
    pub const fn count(count: u64) -> Self {
        Self::Number(count.saturating_mul(1000))
    }

    /// A moment.
    pub const fn time(at: Instant) -> Self {
        Self::Time(at.0)
    }
}

/// A type that can be listed. `L` is a type of the crate that defines how, if that is not the crate
/// of the type itself.
pub trait Row<L = ()> {
    /// Fields that can be sorted and filtered by.
    const FIELDS: &'static [(&'static str, Type)];
    /// Fields among them that a free search covers.
    const SEARCHED: &'static [&'static str];

    /// The value of one of them.
    fn field(&self, name: &str, now: Instant) -> Scalar<'_>;
}

impl<L, T: Row<L>> Row<L> for Arc<T> {
    const FIELDS: &'static [(&'static str, Type)] = T::FIELDS;
    const SEARCHED: &'static [&'static str] = T::SEARCHED;

    fn field(&self, name: &str, now: Instant) -> Scalar<'_> {
        T::field(self, name, now)
    }
}
