//! Requests that take no parameters. Owns: that an unexpected one is refused, not ignored: a caller
//! that filters by it would take the whole list for the result.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::ApiError;
use super::list::parameters;
use crate::openapi::{Description, Input};

/// Refuses any parameter.
pub struct NoParameters;

impl Input for NoParameters {
    fn describe(_: &mut Description) {}
}

impl<S: Sync> FromRequestParts<S> for NoParameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match parameters(&parts.uri)?.first() {
            Some((name, _)) => {
                let name = units::shown(name);
                Err(ApiError::bad(format!(
                    "unknown parameter `{name}`; leave it out, all are shown"
                )))
            }
            None => Ok(Self),
        }
    }
}
