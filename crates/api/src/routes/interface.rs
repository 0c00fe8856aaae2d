//! The web interface at the addresses of this server. Does not know about: its content (`ui_dist`),
//! and which addresses belong to it.

use axum::http::HeaderMap;
use axum::response::Response;

use crate::ApiState;

/// The digest of the web interface.
pub(crate) const DIGEST: &str = ui_dist::DIGEST;

/// The file at a path, or for a person the page, which is the same at every address.
pub(super) fn at(
    server: &ApiState,
    headers: &HeaderMap,
    (path, by_person): (&str, bool),
) -> Option<Response> {
    let file = match path.starts_with(ui_dist::FILES) {
        true => ui_dist::at(path),
        false => ui_dist::page().filter(|_| by_person),
    };
    file.map(|file| file.answer(headers, only_https(server)))
}

/// True if this server has a host name of its own, at the usual port of https: a browser that may
/// only use https for the name does so at all its ports, also at those of workloads.
fn only_https(server: &ApiState) -> bool {
    let named = server.url.strip_prefix("https://").filter(|_| server.url_is_public);
    named.is_some_and(|place| !place.contains(':'))
}
