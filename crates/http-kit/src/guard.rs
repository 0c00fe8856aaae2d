//! Middleware of every request: a time limit, a response if the handler panics, and response
//! headers that restrict browsers.
//! Owns also: the token and the accepted format in the headers of a request.

use std::any::Any;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;

/// How long a handler may take until its response begins. Streams may continue after that.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// The token of a request.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// True if a browser requests a page to show.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

/// Ends a handler that takes too long.
pub async fn limit_time(request: Request, next: Next) -> Result<Response, ApiError> {
    tokio::time::timeout(ANSWER_WAIT, next.run(request)).await.map_err(|_| {
        let why = "the server took too long; whether it was done is seen in the lists";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why)
    })
}

/// Makes browsers keep to the content type of a response and store no response, unless it sets its
/// own cache time: it may hold a token, or data that only its reader may see.
pub async fn keep_nowhere(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The answer of a request whose handler panicked. The panic itself is on stderr.
pub fn panicked(_: Box<dyn Any + Send>) -> Response {
    let why = "the server failed on this request; its log says more, please report it";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, why).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_without_its_text() {
        let body = panicked(Box::new("boom")).into_body();
        let body = axum::body::to_bytes(body, 1000).await.unwrap();
        let error: api_types::Error = serde_json::from_slice(&body).unwrap();
        assert_eq!(error.code, 500);
        assert!(!error.message.contains("boom"), "what a panic says may be secret");
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        for (text, token) in
            [("Bearer x", Some("x")), ("bearer  x ", Some("x")), ("Basic x", None), ("x", None)]
        {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, text.parse().unwrap())]);
            assert_eq!(bearer(&headers), token, "{text}");
        }
    }
}
