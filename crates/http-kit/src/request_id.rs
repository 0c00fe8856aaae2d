//! The id of a request, by which its line in the log and its row of the audit log are found.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::HeaderName;
use uuid::Uuid;

/// Header with the id of a request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Characters that an id may have which comes with the request.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// The id of a request.
#[derive(Debug, Clone)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Id that came with the request, so that the logs of several programs share it; a new one if
    /// it is missing or malformed.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let allowed = |id: &&str| {
            let sane = |c: u8| c.is_ascii_alphanumeric() || b"-_.:/+=".contains(&c);
            (1..=REQUEST_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(sane)
        };
        let given = request.headers().get(&REQUEST_ID).and_then(|id| id.to_str().ok());
        match given.filter(allowed) {
            Some(id) => Self(id.into()),
            None => Self(Uuid::new_v4().to_string().into()),
        }
    }
}

impl std::ops::Deref for RequestId {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
