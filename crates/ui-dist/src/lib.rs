//! The web interface as files, and the headers that browsers get with them.
//!
//! Owns: what `make ui` wrote to `dist/`, compressed into the program, and the policy under which a
//! browser runs it. Does not know about: which addresses show the page, what the pages do, and the
//! API.

use std::io::Read as _;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;

/// The digest of what the files were made from, as `make ui` wrote it.
pub const DIGEST: &str = env!("UI_DIGEST");
/// Below this path are files whose names change with their content.
pub const FILES: &str = "/_ui/";

/// Nothing runs or is loaded but what is served here, no other page shows this one, and no text
/// becomes HTML. Styles are the exception: a terminal writes its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; \
    style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
    form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types elastane-worker";

/// With every file, since a worker is under the policy of its own.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=(self)",
    ),
];

/// A file of the interface.
#[derive(Debug)]
pub struct File {
    /// Where it lies below `dist/`.
    path: &'static str,
    media_type: &'static str,
    /// Stands for its content.
    tag: &'static str,
    gzip: &'static [u8],
}

static ALL: &[File] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page, which is the same at every address.
#[must_use]
pub fn page() -> Option<&'static File> {
    named("index.html")
}

/// The file at a path of the server that begins with [`FILES`].
#[must_use]
pub fn at(path: &str) -> Option<&'static File> {
    path.strip_prefix('/').filter(|_| path.starts_with(FILES)).and_then(named)
}

fn named(path: &str) -> Option<&'static File> {
    ALL.iter().find(|file| file.path == path)
}

impl File {
    /// The answer to a request with these headers. `only_https`: this server's name is reached over
    /// https and no other way.
    #[must_use]
    pub fn answer(&self, asked: &HeaderMap, only_https: bool) -> Response {
        let named_by_content = self.path.starts_with(FILES.trim_start_matches('/'));
        let cached =
            if named_by_content { "public, max-age=31536000, immutable" } else { "no-cache" };
        let known = asked.get(IF_NONE_MATCH).is_some_and(|tags| has(tags, self.tag));
        let gzip = accepts_gzip(asked);
        let mut response = match (known, gzip) {
            (true, _) => StatusCode::NOT_MODIFIED.into_response(),
            (false, true) => Body::from(Bytes::from_static(self.gzip)).into_response(),
            (false, false) => match self.inflated() {
                Ok(plain) => Body::from(plain).into_response(),
                Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            },
        };
        let headers = response.headers_mut();
        headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(ETAG, HeaderValue::from_static(self.tag));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cached));
        if !known {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
            if gzip {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        if only_https {
            let year = HeaderValue::from_static("max-age=31536000");
            headers.insert(STRICT_TRANSPORT_SECURITY, year);
        }
        response
    }

    fn inflated(&self) -> std::io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        GzDecoder::new(self.gzip).read_to_end(&mut plain)?;
        Ok(plain)
    }
}

/// True if one of the tags that a browser has is this one. Proxies that compress may weaken it.
fn has(tags: &HeaderValue, own: &str) -> bool {
    let tags = tags.to_str().unwrap_or_default().split(',').map(str::trim);
    tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag)).any(|tag| tag == own || tag == "*")
}

/// True if what asks can read gzip.
fn accepts_gzip(asked: &HeaderMap) -> bool {
    let all = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = |weight: &str| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0);
        named && !parts.filter_map(|part| part.strip_prefix("q=")).any(refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_who_reads_it() {
        for (said, reads) in [
            (&["gzip, deflate, br"][..], true),
            (&["br", "GZIP;q=0.5"], true),
            (&["gzip;q=0"], false),
            (&["gzip; q=0.000, br"], false),
            (&["identity"], false),
            (&["x-gzip"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in said {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(accepts_gzip(&headers), reads, "{said:?}");
        }
    }

    #[test]
    fn a_tag_is_known_in_each_of_its_spellings() {
        for (tags, known) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            assert_eq!(has(&HeaderValue::from_static(tags), "\"a\""), known, "{tags}");
        }
    }

    #[test]
    fn there_is_a_page_and_every_file_is_whole() {
        assert!(page().is_some());
        for file in ALL {
            let inflated = file.inflated().unwrap();
            let path = format!("{}/dist/{}", env!("CARGO_MANIFEST_DIR"), file.path);
            assert_eq!(inflated, std::fs::read(path).unwrap(), "{}", file.path);
        }
        assert!(at("/index.html").is_none() && at("index.html").is_none());
        assert!(at("/_ui/../index.html").is_none());
    }
}
