//! Requests that take no parameters. Owns: that one which is there all the same is told, not left
//! out: whoever filters by it would take everything for what was found.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::fault::Fault;
use super::list::parameters;
use crate::openapi::{Description, Input};

/// Refuses any parameter.
pub struct NoParameters;

impl Input for NoParameters {
    fn describe(_: &mut Description) {}
}

impl<S: Sync> FromRequestParts<S> for NoParameters {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Fault> {
        match parameters(&parts.uri)?.first() {
            Some((name, _)) => {
                let name = units::shown(name);
                Err(Fault::bad(format!("unknown parameter `{name}`; leave it out, all are shown")))
            }
            None => Ok(Self),
        }
    }
}
