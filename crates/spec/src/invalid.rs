//! The error of a value that is not allowed.

use thiserror::Error;

/// A value that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Invalid {
    /// Name of the field.
    pub field: &'static str,
    /// The invalid value, and the values that are allowed.
    pub message: String,
}

impl Invalid {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}
