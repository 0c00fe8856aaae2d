//! Answers to requests that match no route. Owns: which addresses show a page to people, and that
//! every refusal of a route is JSON. Does not know about: the page (`interface`).

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_kit::{ApiError, ErrorMessage, wants_page};

use super::interface;
use crate::ApiState;

/// Longest text of a refusal that is kept.
const TEXT_BYTES_MAX: usize = 4096;

/// Only routes answer below these paths, also to a browser.
pub(super) const OF_ROUTES: [&str; 4] = ["/api/", "/elastane/", "/v1/", "/serve/"];

/// Fallback for requests that match no route: the interface for people, a 404 for programs and
/// below [`OF_ROUTES`].
pub(super) async fn wrong_path(
    FromState(server): FromState<ApiState>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let reads = matches!(method, Method::GET | Method::HEAD);
    let by_person = of_people(&headers, uri.path());
    if reads && let Some(shown) = interface::at(&server, &headers, (uri.path(), by_person)) {
        return shown;
    }
    let why = format!(
        "there is no route `{}`; /elastane/v1/docs on this server lists them",
        units::shown(uri.path())
    );
    ApiError::new(StatusCode::NOT_FOUND, why).into_response()
}

/// True if a person asks for a page at an address that is none of a route.
fn of_people(headers: &HeaderMap, path: &str) -> bool {
    wants_page(headers) && !OF_ROUTES.iter().any(|own| path.starts_with(own))
}

/// Has refusals that the framework words, such as for a path that is no text, be JSON like all
/// others.
pub(super) async fn as_json(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let refused = status.is_client_error() || status.is_server_error();
    if !refused || response.extensions().get::<ErrorMessage>().is_some() {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let text = to_bytes(body, TEXT_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let usual = || status.canonical_reason().unwrap_or("refused").to_owned();
    let why = Some(text).filter(|text| !text.is_empty()).unwrap_or_else(usual);
    let (shown, body) = ApiError::new(status, why).into_response().into_parts();
    for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
        head.headers.remove(name);
    }
    head.headers.extend(shown.headers);
    head.extensions.extend(shown.extensions);
    Response::from_parts(head, Body::new(body))
}
