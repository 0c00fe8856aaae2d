//! Refusals. Owns: how every fault becomes a status and the published error body.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use units::{Classify, Failure};

use super::nearest::nearest;

/// Longest text of a refusal.
const MESSAGE_CHARS_MAX: usize = 4000;
/// Most existing names that a refusal of an unknown name lists.
const NAMES_MAX: usize = 13;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// Status of the answer.
    pub status: StatusCode,
    /// Description of the error and its remedy. It begins with `field`, if there is one.
    pub message: String,
    /// Path of the value of the request that is wrong, such as `spec.compute.gpuDevicesRequest`.
    pub field: Option<String>,
    /// The field that is wrong, where it is known.
    pub details: Option<String>,
    /// True if a value names an object that does not exist.
    pub is_unknown_name: bool,
    /// Seconds after which it is worth asking again.
    pub retry_after_s: Option<u64>,
}

/// The message of an error, kept for the audit log and the error page.
#[derive(Debug, Clone)]
pub struct ErrorMessage(pub String);

impl ApiError {
    /// A refusal with this status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            field: None,
            details: None,
            is_unknown_name: false,
            retry_after_s: None,
        }
    }

    /// Refusal of a malformed request.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The value of one field is wrong.
    pub fn field(field: &str, why: impl std::fmt::Display) -> Self {
        Self { field: Some(field.to_owned()), ..Self::bad(format!("{field}: {why}")) }
    }

    /// The value of a field names an object that does not exist; `known` are the names of those
    /// that do.
    pub fn unknown_name<'a>(
        field: &str,
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = match (nearest(name, known.iter().copied()), known.len()) {
            (Some(near), _) => format!("; did you mean `{}`?", units::shown(near)),
            (None, 1..=NAMES_MAX) => format!("; there are {}", known.join(", ")),
            _ => listed_by(kind),
        };
        let why = format!("there is no {kind} `{}`{hint}", units::shown(name));
        Self { is_unknown_name: true, ..Self::field(field, why) }
    }

    /// This error with the field `from`, or a field within it, renamed to `to`.
    #[must_use]
    pub fn moved(self, from: &str, to: &str) -> Self {
        let rest = self.field.as_deref().and_then(|field| field.strip_prefix(from));
        let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])) else {
            return self;
        };
        let why = self.message.get(from.len() + rest.len()..).unwrap_or_default();
        let field = format!("{to}{rest}");
        Self { message: format!("{field}{why}"), field: Some(field), ..self }
    }

    /// Refusal of a well-formed request for a feature that this server does not support yet.
    pub fn not_yet(what: impl std::fmt::Display) -> Self {
        let field = what.to_string();
        let message = format!("{field} is not supported yet; leave it out");
        Self { field: Some(field), ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, message) }
    }

    /// Refusal of a request that the caller has no permission for.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// Refusal of too many requests; the next is allowed after `wait_s` seconds.
    pub fn too_many(wait_s: u64) -> Self {
        let why = format!("too many attempts; try again in {wait_s} s");
        let fault = Self::new(StatusCode::TOO_MANY_REQUESTS, why);
        Self { retry_after_s: Some(wait_s), ..fault }
    }

    /// This program or its surroundings failed. The cause is logged, and not part of the answer.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed on this request")
    }

    /// There is no such thing.
    pub fn no_such(kind: &str, id: &str) -> Self {
        let (id, hint) = (units::shown(id), listed_by(kind));
        Self::new(StatusCode::NOT_FOUND, format!("{kind} {id} was not found{hint}"))
    }
}

/// The command that lists the objects of a kind, for the end of a sentence; empty if there is none.
fn listed_by(kind: &str) -> String {
    let command = match kind {
        "project" => "runai list projects",
        "workload" => "runai list -A",
        "department" => "runai department list",
        "node" => "runai list nodes",
        "node pool" => "runai nodepool list",
        "template" => "runai template list",
        "config map" => "elastane config-map list",
        "access-rule" => "elastane access-rule list",
        "access-key" => "elastane access-key list",
        "user" => "elastane user list",
        "service account" => "elastane service-account list",
        "role" => "elastane access-rule roles",
        _ => return String::new(),
    };
    format!("; `{command}` lists them")
}

impl<E: Classify> From<E> for ApiError {
    fn from(error: E) -> Self {
        let status = match error.failure() {
            Failure::Invalid { field } => {
                let details = Some(format!("field: {field}"));
                return Self { details, ..Self::bad(error.to_string()) };
            }
            Failure::NotFound { what, name } => return Self::no_such(what, name),
            Failure::Conflict => StatusCode::CONFLICT,
            Failure::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status.is_server_error() {
            tracing::error!(%error, "request failed");
        }
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut message = self.message;
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            // The message may quote the request, and so be as long as a body.
            message.truncate(end);
            message.push('…');
        }
        let field = self.field.filter(|_| self.status == StatusCode::BAD_REQUEST);
        let details = self.details.or_else(|| field.map(|field| format!("field: {field}")));
        let unknown_name = self.is_unknown_name.then_some(true);
        let body = api_types::Error { code: self.status.as_u16(), message, details, unknown_name };
        let said = ErrorMessage(body.message.clone());
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(said);
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_follows_its_field_by_whole_names_and_leaves_words_alone() {
        let moved = |error: ApiError| error.moved("spec", "masterSpec").message;
        assert_eq!(
            moved(ApiError::field("spec.image", "spec. is odd")),
            "masterSpec.image: spec. is odd"
        );
        assert_eq!(moved(ApiError::field("spec", "is empty")), "masterSpec: is empty");
        assert_eq!(moved(ApiError::field("specs.image", "is empty")), "specs.image: is empty");
        assert_eq!(
            moved(ApiError::not_yet("spec.x[0]")),
            "masterSpec.x[0] is not supported yet; leave it out"
        );
        let unknown = |known: &[&str]| {
            let error = ApiError::unknown_name("pool", "node pool", "fsat", known.iter().copied());
            assert!(error.is_unknown_name);
            error.message
        };
        let why = "pool: there is no node pool `fsat`; ";
        assert_eq!(unknown(&["fast", "slow"]), format!("{why}did you mean `fast`?"));
        assert_eq!(unknown(&["big", "default"]), format!("{why}there are big, default"));
        assert_eq!(unknown(&["big"; 14]), format!("{why}`runai nodepool list` lists them"));
        assert_eq!(moved(ApiError::bad("spec.image: was said")), "spec.image: was said");
        let twice = ApiError::field("a.b", "c").moved("a", "d").moved("d.b", "e");
        assert_eq!(twice.message, "e: c");
    }
}
