//! What kind of failure an error is, for the interfaces that answer with it. Owns: the kinds.
//! Does not know about: which status an interface gives to each.

use std::fmt::Display;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<'a> {
    /// A value is not allowed.
    Invalid {
        /// Which field.
        field: &'a str,
    },
    /// There is no such thing.
    NotFound {
        /// `project`, `workload`, `pod`.
        what: &'a str,
        /// As asked for.
        name: &'a str,
    },
    /// It does not go together with what is there.
    Conflict,
    /// Not now.
    Unavailable,
    /// A fault of this program or of its surroundings.
    Internal,
}

/// An error whose kind is known. Its text says what is wrong and what to do.
pub trait Classify: Display {
    /// Its kind.
    fn failure(&self) -> Failure<'_>;
}
