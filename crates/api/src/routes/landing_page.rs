//! What a browser shows at the address of the server, and that every refusal of a route is JSON.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_kit::{ApiError, ErrorMessage, Html, wants_page};
use units::markup;

use super::download;
use crate::Shared;

/// Longest text of a refusal that is kept.
const TEXT_BYTES_MAX: usize = 4096;

/// What no route answers: a page at the root for people, for programs and elsewhere a 404.
pub(super) async fn wrong_path(
    FromState(server): FromState<Shared>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let reads = matches!(method, Method::GET | Method::HEAD);
    if uri.path() == "/" && reads && wants_page(&headers) {
        return download::own_url(&server, &headers).map(|url| page(&url)).into_response();
    }
    let why = format!(
        "there is no route `{}`; /elastane/v1/docs on this server lists them",
        units::shown(uri.path())
    );
    ApiError::new(StatusCode::NOT_FOUND, why).into_response()
}

/// What this is and what to do next. It says nothing that needs a token.
fn page(url: &str) -> Html {
    let url = markup(url);
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Elastane</title><style>\
         body{{font:1rem/1.5 system-ui,sans-serif;max-width:45rem;margin:4rem auto;padding:0 1rem}}\
         pre{{background:#8881;padding:.8rem;overflow-x:auto}}</style>\
         <h1>Elastane</h1>\
         <p>This is an Elastane server: it shares the GPUs of a cluster between projects. \
         It has no web interface yet; work with it from a terminal.\
         <h2>Install the command line and log in</h2>\
         <pre>curl -fsSL {url}/api/v1/cli-exposer/installer/linux | sh\n\
         export RUNAI_CP_URL={url}\n\
         runai login user</pre>\
         <p>On the machine of the server no login is needed: run <code>elastane status</code>.\
         <h2>Run something</h2>\
         <pre>runai list projects\n\
         runai config project team-a\n\
         runai submit train1 -i gcr.io/run-ai-demo/quickstart -g 1\n\
         runai list</pre>\
         <h2>Write a program</h2>\
         <p>The REST API is described in <a href=/elastane/v1/docs>/elastane/v1/docs</a>, and for \
         programs in <a href=/elastane/v1/openapi.json>/elastane/v1/openapi.json</a>."
    );
    Html(page.into())
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
