//! Errors of requests. Owns: the one text that API and command line both show.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Classify, Failure};

use crate::AtLimit;
use crate::words::{Word, word};

/// Error of a request, none of which was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum RequestError {
    /// A value is not allowed; the message says what is.
    #[error("{message}")]
    Invalid {
        /// Name of the field.
        #[serde(deserialize_with = "word")]
        field: Word,
        /// The invalid value, and the values that are allowed.
        message: String,
    },
    /// The named object does not exist.
    #[error("no {what} `{name}`; {hint}")]
    NotFound {
        /// Noun of the object: `project`, `workload`, `pod`.
        #[serde(deserialize_with = "word")]
        what: Word,
        /// Name in the request.
        name: String,
        /// Where to see the existing objects.
        hint: String,
    },
    /// The request conflicts with the current state.
    #[error("{message}")]
    Conflict {
        /// The conflict, and the remedy.
        message: String,
    },
    /// The request cannot be served now.
    #[error("{message}")]
    Unavailable {
        /// The cause, and the remedy.
        message: String,
    },
    /// A fault of this program or of its environment.
    #[error("{message}")]
    Internal {
        /// The failed action.
        message: String,
    },
}

impl Classify for RequestError {
    fn failure(&self) -> Failure<'_> {
        match self {
            Self::Invalid { field, .. } => Failure::Invalid { field },
            Self::NotFound { what, name, .. } => Failure::NotFound { what, name },
            Self::Conflict { .. } => Failure::Conflict,
            Self::Unavailable { .. } => Failure::Unavailable,
            Self::Internal { .. } => Failure::Internal,
        }
    }
}

impl RequestError {
    /// Error of a value that is not allowed.
    #[must_use]
    pub fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid { field, message: message.into() }
    }

    /// Error of a conflict with the current state.
    #[must_use]
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { message: message.into() }
    }

    /// Error of a node name that does not exist.
    #[must_use]
    pub fn no_node(name: &str) -> Self {
        let hint = "see GET /api/v1/nodes".to_owned();
        Self::NotFound { what: "node", name: name.to_owned(), hint }
    }

    /// Error of a department id that does not exist.
    #[must_use]
    pub fn no_department(id: u64) -> Self {
        let hint = "see GET /api/v1/org-unit/departments".to_owned();
        Self::NotFound { what: "department", name: id.to_string(), hint }
    }

    /// Error of a project id that does not exist.
    #[must_use]
    pub fn no_project(id: u64) -> Self {
        let hint = "see `runai project list`".to_owned();
        Self::NotFound { what: "project", name: id.to_string(), hint }
    }

    /// Error of a workload id that does not exist.
    #[must_use]
    pub fn no_workload(id: uuid::Uuid) -> Self {
        let hint = "see `runai list`".to_owned();
        Self::NotFound { what: "workload", name: id.to_string(), hint }
    }

    /// Error while the server is being stopped.
    #[must_use]
    pub fn stopping() -> Self {
        let message = "the server is being stopped; start it again with `elastane up`".to_owned();
        Self::Unavailable { message }
    }
}

impl From<crate::Invalid> for RequestError {
    fn from(crate::Invalid { field, message }: crate::Invalid) -> Self {
        Self::Invalid { field, message }
    }
}

impl From<crate::OverLimit> for RequestError {
    fn from(over: crate::OverLimit) -> Self {
        match over.limit.at_limit() {
            AtLimit::RefusesField(field) => Self::invalid(field, format!("{field}: {over}")),
            _ => Self::conflict(over.to_string()),
        }
    }
}
