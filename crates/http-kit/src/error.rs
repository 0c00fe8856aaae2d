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
    /// Description of the error and its remedy.
    pub why: String,
    /// Path of the value of the request that is wrong, such as `spec.compute.gpuDevicesRequest`.
    pub field: Option<String>,
    /// True if the sentence begins with the field; false if `why` is a whole sentence.
    pub begins_with_field: bool,
    /// True if a value names an object that does not exist.
    pub is_unknown_name: bool,
    /// The permission that the caller lacks.
    pub missing_permission: Option<Box<api_types::MissingPermission>>,
    /// Seconds after which it is worth asking again.
    pub retry_after_s: Option<u64>,
}

/// The message of an error, kept for the audit log and the error page.
#[derive(Debug, Clone)]
pub struct ErrorMessage(pub String);

impl ApiError {
    /// A refusal with this status.
    pub fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self {
            status,
            why: why.into(),
            field: None,
            begins_with_field: true,
            is_unknown_name: false,
            missing_permission: None,
            retry_after_s: None,
        }
    }

    /// Refusal of a malformed request.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The value of one field is wrong.
    pub fn field(field: &str, why: impl std::fmt::Display) -> Self {
        Self { field: Some(field.to_owned()), ..Self::bad(why.to_string()) }
    }

    /// The whole sentence.
    #[must_use]
    pub fn message(&self) -> String {
        match &self.field {
            Some(field) if self.begins_with_field => format!("{field}: {}", self.why),
            _ => self.why.clone(),
        }
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
            (None, 1) => format!("; there is only {}", known.join("")),
            (None, 2..=NAMES_MAX) => format!("; there are {}", known.join(", ")),
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
        let field = Some(format!("{to}{rest}"));
        Self { field, ..self }
    }

    /// Refusal of a well-formed request for a feature that this server does not support yet.
    pub fn not_yet(field: impl std::fmt::Display) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self { status, ..Self::field(&field.to_string(), "not supported yet; leave it out") }
    }

    /// Refusal of a value of a field that this server supports with other values.
    pub fn value_not_yet(field: &str, value: impl std::fmt::Display) -> Self {
        let why = format!("{value} is not supported yet; leave it out");
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, ..Self::field(field, why) }
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
        "config map" => "elastane config-map list --project PROJECT",
        "pod" => "runai describe job NAME",
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
                return Self { begins_with_field: false, ..Self::field(field, &error) };
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
        let message = shortened(self.message());
        let field_fault = self.field.map(|field| api_types::FieldFault {
            field: shortened(field),
            message: shortened(self.why),
        });
        let body = api_types::Error {
            code: self.status.as_u16(),
            message,
            details: None,
            field_fault,
            unknown_name: self.is_unknown_name.then_some(true),
            missing_permission: self.missing_permission.map(|missing| *missing),
        };
        let said = ErrorMessage(body.message.clone());
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(said);
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// A text of at most [`MESSAGE_CHARS_MAX`]: it may quote the request, and so be as long as a body.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MESSAGE_CHARS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_follows_its_field_by_whole_names_and_leaves_words_alone() {
        let moved = |error: ApiError| error.moved("spec", "masterSpec").message();
        assert_eq!(
            moved(ApiError::field("spec.image", "spec. is odd")),
            "masterSpec.image: spec. is odd"
        );
        assert_eq!(moved(ApiError::field("spec", "is empty")), "masterSpec: is empty");
        assert_eq!(moved(ApiError::field("specs.image", "is empty")), "specs.image: is empty");
        assert_eq!(
            moved(ApiError::not_yet("spec.x[0]")),
            "masterSpec.x[0]: not supported yet; leave it out"
        );
        let unknown = |known: &[&str]| {
            let error = ApiError::unknown_name("pool", "node pool", "fsat", known.iter().copied());
            assert!(error.is_unknown_name);
            error.message()
        };
        let why = "pool: there is no node pool `fsat`; ";
        assert_eq!(unknown(&["fast", "slow"]), format!("{why}did you mean `fast`?"));
        assert_eq!(unknown(&["big", "default"]), format!("{why}there are big, default"));
        assert_eq!(unknown(&["default"]), format!("{why}there is only default"));
        assert_eq!(unknown(&["big"; 14]), format!("{why}`runai nodepool list` lists them"));
        assert_eq!(moved(ApiError::bad("spec.image: was said")), "spec.image: was said");
        let twice = ApiError::field("a.b", "c").moved("a", "d").moved("d.b", "e");
        assert_eq!(twice.message(), "e: c");
    }
}
