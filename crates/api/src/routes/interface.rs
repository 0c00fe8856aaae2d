//! The web interface at the addresses of this server. Does not know about: what is in it (`ui_dist`),
//! and which addresses are left to it.

use axum::http::HeaderMap;
use axum::response::Response;

use crate::Shared;

/// The digest of the web interface.
pub(crate) const DIGEST: &str = ui_dist::DIGEST;

/// The file at a path, or for a person the page, which is the same at every address.
pub(super) fn at(
    server: &Shared,
    headers: &HeaderMap,
    (path, by_person): (&str, bool),
) -> Option<Response> {
    let file = match path.starts_with(ui_dist::FILES) {
        true => ui_dist::at(path),
        false => ui_dist::page().filter(|_| by_person),
    };
    file.map(|file| file.answer(headers, only_https(server)))
}

/// True if a name of its own leads to this server, at the usual port of https: a browser that was
/// told to use nothing else for the name keeps to that at every port of it, also at those of
/// workloads.
fn only_https(server: &Shared) -> bool {
    let named = server.url.strip_prefix("https://").filter(|_| server.url_is_public);
    named.is_some_and(|place| !place.contains(':'))
}
