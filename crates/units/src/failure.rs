//! Classes of errors, for the interfaces that return them. Owns: the kinds. Does not know about:
//! the status that an interface gives to each.

use std::fmt::Display;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<'a> {
    /// A value is not allowed.
    Invalid {
        /// Name of the field.
        field: &'a str,
    },
    /// The named object does not exist.
    NotFound {
        /// Noun of the object: `project`, `workload`, `pod`.
        what: &'a str,
        /// Name in the request.
        name: &'a str,
    },
    /// The request conflicts with the current state.
    Conflict,
    /// The request cannot be served now.
    Unavailable,
    /// A fault of this program or of its environment.
    Internal,
}

/// An error with a kind. Its text names the fault and the remedy.
pub trait Classify: Display {
    /// Its kind.
    fn failure(&self) -> Failure<'_>;
}
