//! Why a value is refused.

use thiserror::Error;

/// A value that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Invalid {
    /// Which field.
    pub field: &'static str,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Invalid {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}
