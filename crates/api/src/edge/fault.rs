//! Refusals. Owns: how every fault becomes a status and the published error body.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Longest text of a refusal.
const MESSAGE_CHARS_MAX: usize = 4000;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) details: Option<String>,
    /// Seconds after which it is worth asking again.
    pub(crate) retry_after_s: Option<u64>,
}

/// What a refusal says, for whoever writes it down on its way out.
#[derive(Debug, Clone)]
pub(crate) struct Said(pub(crate) String);

impl Fault {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), details: None, retry_after_s: None }
    }

    /// Something in the request is wrong.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The value of one field is wrong.
    pub(crate) fn field(field: &str, why: impl std::fmt::Display) -> Self {
        Self::bad(format!("{field}: {why}"))
    }

    /// The request is well-formed and asks for what this server does not do yet.
    pub(crate) fn not_yet(what: impl std::fmt::Display) -> Self {
        let message = format!("{what} is not supported yet; leave it out");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// Who asks may not do this.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// It was asked too often.
    pub(crate) fn too_many(wait_s: u64) -> Self {
        let why = format!("too many attempts; try again in {wait_s} s");
        let fault = Self::new(StatusCode::TOO_MANY_REQUESTS, why);
        Self { retry_after_s: Some(wait_s), ..fault }
    }

    /// This program or its surroundings failed. What failed is told to the log, not to the asker.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed on this request")
    }

    /// What is wrong with a specification, as a change says it.
    pub(crate) fn into_refusal(self) -> control::Error {
        control::Error::Invalid { field: "spec", message: self.message }
    }

    /// There is no such thing.
    pub(crate) fn no_such(kind: &str, id: &str) -> Self {
        let id = units::shown(id);
        // In the words of the command line.
        let hint = match kind {
            "project" => "; run `runai list projects` to see those there are",
            "workload" => "; run `runai list -A` to see those there are",
            _ => "",
        };
        Self::new(StatusCode::NOT_FOUND, format!("{kind} {id} was not found{hint}"))
    }
}

impl From<control::Error> for Fault {
    fn from(error: control::Error) -> Self {
        use control::Error as E;
        if let E::NotFound { what, name, .. } = &error {
            return Self::no_such(what, name);
        }
        let status = match &error {
            E::Invalid { .. } => StatusCode::BAD_REQUEST,
            E::NotFound { .. } => StatusCode::NOT_FOUND,
            E::Conflict { .. } => StatusCode::CONFLICT,
            E::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            E::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status.is_server_error() {
            tracing::error!(%error, "request failed");
        }
        let details = match &error {
            E::Invalid { field, .. } => Some(format!("field: {field}")),
            _ => None,
        };
        Self { status, message: error.to_string(), details, retry_after_s: None }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut message = self.message;
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            // What was sent may be part of it, and as long as a body.
            message.truncate(end);
            message.push('…');
        }
        let body = api_types::Error { code: self.status.as_u16(), message, details: self.details };
        let said = Said(body.message.clone());
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(said);
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
