//! Why a request was not carried out. Owns: the one text that API and command line both show.

use serde::{Deserialize, Serialize};
use spec::AtLimit;
use thiserror::Error;
use units::{Classify, Failure};

use crate::words::{Word, word};

/// Why a request was not carried out. Nothing of it was done.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Error {
    /// A value is not allowed; the message says what is.
    #[error("{message}")]
    Invalid {
        /// Which field.
        #[serde(deserialize_with = "word")]
        field: Word,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// There is no such thing.
    #[error("no {what} `{name}`; {hint}")]
    NotFound {
        /// `project`, `workload`, `pod`.
        #[serde(deserialize_with = "word")]
        what: Word,
        /// As asked for.
        name: String,
        /// How to see what there is.
        hint: String,
    },
    /// It does not go together with what is there.
    #[error("{message}")]
    Conflict {
        /// What is there, and what to do.
        message: String,
    },
    /// Not now.
    #[error("{message}")]
    Unavailable {
        /// Why, and what to do.
        message: String,
    },
    /// A fault of this program or of its surroundings.
    #[error("{message}")]
    Internal {
        /// What failed.
        message: String,
    },
}

impl Classify for Error {
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

impl Error {
    /// A value that is not allowed.
    #[must_use]
    pub fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid { field, message: message.into() }
    }

    /// What does not go together with what is there.
    #[must_use]
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { message: message.into() }
    }

    pub(crate) fn no_node(name: &str) -> Self {
        let hint = "see GET /api/v1/nodes".to_owned();
        Self::NotFound { what: "node", name: name.to_owned(), hint }
    }

    /// There is no department of this id.
    #[must_use]
    pub fn no_department(id: u64) -> Self {
        let hint = "see GET /api/v1/org-unit/departments".to_owned();
        Self::NotFound { what: "department", name: id.to_string(), hint }
    }

    /// There is no project of this id.
    #[must_use]
    pub fn no_project(id: u64) -> Self {
        let hint = "see `runai project list`".to_owned();
        Self::NotFound { what: "project", name: id.to_string(), hint }
    }

    /// There is no workload of this id.
    #[must_use]
    pub fn no_workload(id: uuid::Uuid) -> Self {
        let hint = "see `runai list`".to_owned();
        Self::NotFound { what: "workload", name: id.to_string(), hint }
    }

    /// The server is being stopped.
    #[must_use]
    pub fn stopping() -> Self {
        let message = "the server is being stopped; start it again with `elastane up`".to_owned();
        Self::Unavailable { message }
    }
}

impl From<spec::Invalid> for Error {
    fn from(spec::Invalid { field, message }: spec::Invalid) -> Self {
        Self::Invalid { field, message }
    }
}

impl From<spec::OverLimit> for Error {
    fn from(over: spec::OverLimit) -> Self {
        match over.limit.at_limit() {
            AtLimit::RefusesField(field) => Self::invalid(field, format!("{field}: {over}")),
            _ => Self::conflict(over.to_string()),
        }
    }
}

impl From<view::UnknownScope> for Error {
    fn from(error: view::UnknownScope) -> Self {
        Self::Internal { message: error.to_string() }
    }
}
