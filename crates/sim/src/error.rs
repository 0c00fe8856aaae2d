//! What can be wrong with what the simulator is given. Owns: the texts' frame.

use thiserror::Error;

/// Why something given to the simulator cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// A scenario that cannot be used. Line 0 means it did not come from a file.
    #[error("{}{message}", place(*.line, *.column))]
    Scenario {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A line of a trace that cannot be used.
    #[error("{line}: {message}")]
    Trace {
        /// Line, from 1.
        line: usize,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// Something cannot be written as JSON.
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
