//! Page that a browser shows in place of one of a workload. It contains no script.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_kit::{ErrorMessage, Html};
use units::markup;

/// Seconds after which a browser looks again for a workload that does not answer yet.
const AGAIN_S: &str = "5";

/// A refusal as a page.
pub(crate) fn of(refused: Response) -> Response {
    let status = refused.status();
    let why = refused.extensions().get::<ErrorMessage>().map_or("", |said| &said.0);
    let title = status.canonical_reason().unwrap_or("Error");
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>\
         body{{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;\
         padding:0 1rem;overflow-wrap:anywhere}}</style><h1>{title}</h1><p>{}",
        markup(why)
    );
    let (mut head, _) = refused.into_parts();
    head.headers.remove(header::CONTENT_TYPE);
    head.headers.remove(header::CONTENT_LENGTH);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        head.headers.insert(header::REFRESH, HeaderValue::from_static(AGAIN_S));
    }
    let (shown, body) = Html(page.into()).into_response().into_parts();
    head.headers.extend(shown.headers);
    Response::from_parts(head, body)
}
