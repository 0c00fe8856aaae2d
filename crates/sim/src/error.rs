//! Errors in the input of the simulator. Owns: the format of their texts.

use thiserror::Error;

/// Reason why an input of the simulator cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// Invalid scenario. Line 0 means that it did not come from a file.
    #[error("{}{message}", place(*.line, *.column))]
    Scenario {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// The error, and the allowed values.
        message: String,
    },
    /// Invalid line of a trace.
    #[error("{line}: {message}")]
    Trace {
        /// Line, from 1.
        line: usize,
        /// The error, and the allowed values.
        message: String,
    },
    /// A value cannot be written as JSON.
    #[error("failed to write JSON: {message}")]
    Write {
        /// The cause.
        message: String,
    },
}

fn place(line: u64, column: u64) -> String {
    if line == 0 { String::new() } else { format!("{line}:{column}: ") }
}

impl Error {
    /// The text without its position.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Scenario { message, .. }
            | Self::Trace { message, .. }
            | Self::Write { message } => message,
        }
    }
}
