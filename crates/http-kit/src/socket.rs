//! WebSockets that a browser opens. Any page may open one to any server, and its `Origin` header
//! names the page. Owns: only pages of this server may open one.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};

use crate::error::ApiError;

/// True if a request is to be upgraded to a WebSocket.
pub fn is_websocket(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::UPGRADE);
    all.iter().any(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"websocket"))
}

/// Refuses a WebSocket of a page that is not at this address, the public one or that of the
/// request. A request without `Origin` is not from a browser.
pub fn must_be_own_page(public_url: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    let origin = headers.get(header::ORIGIN).filter(|_| is_websocket(headers));
    let Some(origin) = origin.map(|origin| origin.to_str().unwrap_or_default()) else {
        return Ok(());
    };
    if names_own_page(public_url, headers) {
        return Ok(());
    }
    let why = match origin {
        "null" => {
            "a page without an address of its own asked for this WebSocket, such as a file or a \
             sandboxed frame; open the page at its own address"
        }
        _ => "a page of another site asked for this WebSocket; only pages of this server may",
    };
    Err(ApiError::forbidden(format!("{why} (Origin: {})", units::shown(origin))))
}

/// True if the `Origin` of a request is a page at the public address, or at the address that the
/// request was sent to.
pub fn names_own_page(public_url: &str, headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next().and_then(|origin| origin.to_str().ok()) else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let place = origin.split_once("://").map(|(_, place)| place);
    let is_here = host.is_some() && place.map(same_case) == host.map(same_case);
    origins.next().is_none() && (is_here || origin.eq_ignore_ascii_case(public_url))
}

fn same_case(place: &str) -> Option<Authority> {
    place.to_ascii_lowercase().parse().ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn only_pages_of_this_server_open_a_websocket() {
        let asked = |upgrade: &str, origins: &[&str]| {
            let all = [("host", "GPU-box:7070"), ("upgrade", upgrade)];
            let origins = origins.iter().map(|origin| ("origin", *origin));
            let mut headers = HeaderMap::new();
            for (name, value) in all.into_iter().chain(origins) {
                headers.append(HeaderName::from_static(name), value.parse().unwrap());
            }
            must_be_own_page("https://gpu.example.org", &headers).is_ok()
        };
        for (upgrade, origins, own) in [
            ("websocket", &[][..], true),
            ("websocket", &["http://gpu-box:7070"], true),
            ("WebSocket", &["https://gpu-box:7070"], true),
            ("websocket", &["https://gpu.example.org"], true),
            ("websocket", &["http://gpu-box"], false),
            ("websocket", &["http://gpu-box:7071"], false),
            ("websocket", &["http://evil.example"], false),
            ("WEBSOCKET", &["http://evil.example"], false),
            ("websocket", &["http://gpu-box:7070.evil.example"], false),
            ("websocket", &["https://gpu.example.org.evil.example"], false),
            ("websocket", &["http://gpu-box:7070", "http://evil.example"], false),
            ("websocket", &["null"], false),
            ("websocket", &[""], false),
            ("echo", &["http://evil.example"], true),
        ] {
            assert_eq!(asked(upgrade, origins), own, "{upgrade} {origins:?}");
        }
    }
}
