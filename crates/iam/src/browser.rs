//! The session of a browser in requests: a cookie, which no script reads, and the page secret,
//! which only pages of this origin have. Owns: neither counts without the other, and the request
//! must come from a page of this server. Does not know how sessions begin.

use access::{Caller, Item};
use auth::{Claims, Identity, secret_matches};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_kit::{ApiError, Origin, is_loopback, names_own_page};
use uuid::Uuid;

use crate::session::{Session, SessionSecrets};
use crate::{Iam, IsOwnHost};

/// Header with the page's half of a session.
const PAGE_SECRET: HeaderName = HeaderName::from_static("x-elastane-page");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// This server as browsers reach it.
pub struct Site {
    /// Its public address, if it has one.
    pub public_url: Option<String>,
    /// True if it speaks TLS itself.
    pub encrypts: bool,
    /// The digest of its web interface; empty without one.
    pub interface: &'static str,
    /// Check for the server's own host names.
    pub is_own_host: IsOwnHost,
}

impl Site {
    /// Address that a request was sent to, as its browser sees it, such as `http://gpu-box:7070`.
    pub(crate) fn asked_at(&self, headers: &HeaderMap) -> Result<String, ApiError> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| ApiError::bad("a request names its host once"))?;
        let public = self.public_url.as_ref().and_then(|url| url.split_once("://"));
        let scheme = match public {
            Some((scheme, place)) if place.eq_ignore_ascii_case(host) => scheme,
            _ if self.encrypts => "https",
            _ => "http",
        };
        Ok(format!("{scheme}://{host}"))
    }

    /// The cookie of a session at an address. Cookies are not separated by port, so their names
    /// are. Over https no other host can set it, nor can a page without encryption.
    fn cookie_name(asked_at: &str) -> String {
        let (scheme, place) = asked_at.split_once("://").unwrap_or(("http", asked_at));
        let port = place.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'));
        match scheme {
            "https" => format!("__Host-elastane_session_{}", port.unwrap_or("443")),
            _ => format!("elastane_session_{}", port.unwrap_or("80")),
        }
    }

    /// Has a browser keep its half of a session for so many seconds; 0 takes it away.
    pub(crate) fn set_cookie(
        &self,
        headers: &HeaderMap,
        value: &str,
        lasts_s: u64,
    ) -> Result<HeaderValue, ApiError> {
        let name = Self::cookie_name(&self.asked_at(headers)?);
        let secure = if name.starts_with("__Host-") { "; Secure" } else { "" };
        let cookie =
            format!("{name}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}");
        cookie.try_into().map_err(ApiError::internal)
    }

    /// Refuses a request that a page of another site made the browser send. Browsers name the site:
    /// with each request but `GET` in `Origin`, and in `Sec-Fetch-Site` where the connection is
    /// secure or stays on the machine. A `GET` with neither passes only elsewhere: a page of
    /// another site cannot send the page secret without a CORS preflight, which this server always
    /// refuses.
    pub(crate) fn must_be_own_page(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        let said = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
        // A page may hide its address; the header is `null` then.
        let origin = said(&header::ORIGIN).filter(|origin| *origin != b"null");
        let own = match (origin, said(&FETCH_SITE)) {
            (Some(_), _) => names_own_page(self.public_url.as_deref().unwrap_or_default(), headers),
            (None, Some(site)) => site == b"same-origin",
            (None, None) => {
                let asked_at = self.asked_at(headers)?;
                said(&header::ORIGIN).is_none()
                    && matches!(*method, Method::GET | Method::HEAD)
                    && !says_its_site(&asked_at)
            }
        };
        if own {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "the session of a browser counts only for pages of this server: the request has to say \
             that it comes from one, with `Origin` or `Sec-Fetch-Site: same-origin`; a program \
             sends a token instead",
        ))
    }
}

/// True if browsers send `Sec-Fetch-Site` to an address.
fn says_its_site(address: &str) -> bool {
    let place = address.split_once("://").map_or(address, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    address.starts_with("https:") || is_loopback(host)
}

/// True if a request brings the page's half of a session, so that it means to be of one.
pub(crate) fn is_of_a_page(headers: &HeaderMap) -> bool {
    headers.contains_key(PAGE_SECRET)
}

/// The values of all cookies of this name. Programs at other ports of the host, and hosts beside
/// it, can make a browser send other cookies of this name first, so all are tried, as many as fit
/// in the head of a request.
fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|all| all.to_str().ok());
    let each = all.flat_map(|all| all.split(';')).filter_map(|one| one.trim().split_once('='));
    each.filter(move |(own, _)| *own == name).map(|(_, value)| value)
}

impl Iam {
    /// Caller of a request with both halves of a session.
    ///
    /// # Errors
    /// One half is missing or is of another session, the session has ended, or the request comes
    /// from a page of another site.
    pub(crate) fn of_browser(
        &self,
        method: &Method,
        headers: &HeaderMap,
        origin: &Origin,
    ) -> Result<Caller, ApiError> {
        self.site.must_be_own_page(method, headers)?;
        let found = self.brought(headers)?;
        found.and_then(|(_, session)| self.of_session(&session, origin)).ok_or_else(|| {
            let why = "the session has ended, or its cookie is missing; log in again";
            ApiError::new(StatusCode::UNAUTHORIZED, why)
        })
    }

    /// The session of which a request brings both halves, and its cookie.
    pub(crate) fn brought<'a>(
        &self,
        headers: &'a HeaderMap,
    ) -> Result<Option<(&'a str, Item<Session>)>, ApiError> {
        let page = headers.get(PAGE_SECRET).and_then(|page| page.to_str().ok());
        let name = Site::cookie_name(&self.site.asked_at(headers)?);
        let both = |whole: &'a str| {
            let (id, cookie) = whole.split_once('.')?;
            let session = self.living::<Session>(id)?;
            let SessionSecrets::Browser(hashes) = &session.body.secrets else { return None };
            let matches = secret_matches(cookie, &hashes.cookie)
                && page.is_some_and(|page| secret_matches(page, &hashes.page));
            matches.then_some((whole, session))
        };
        Ok(cookies(headers, &name).find_map(both))
    }

    /// Caller in a session; `None` if it has ended.
    pub(crate) fn of_session(&self, session: &Item<Session>, origin: &Origin) -> Option<Caller> {
        let Item { object, body } = session;
        let (principal, proof) = (object.owner.clone(), object.id.clone());
        let identity = Identity { name: object.created_by.clone(), principal, proof };
        let (iat, exp) = (object.created_at.0 / 1000, body.expires_at_ms / 1000);
        self.caller_with(Claims { identity, jti: Uuid::new_v4(), iat, exp }, origin.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(public_url: Option<&str>, encrypts: bool) -> Site {
        let is_own_host = Box::new(|_: &str| true);
        Site { public_url: public_url.map(str::to_owned), encrypts, interface: "", is_own_host }
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn servers_at_different_ports_of_a_host_have_different_cookies() {
        for (public, encrypts, host, name) in [
            (None, false, "localhost:7070", "elastane_session_7070"),
            (None, false, "gpu-box", "elastane_session_80"),
            (None, false, "[::1]:7071", "elastane_session_7071"),
            (None, false, "[::1]", "elastane_session_80"),
            (None, true, "gpu-box:7070", "__Host-elastane_session_7070"),
            (
                Some("https://gpu.example.org"),
                false,
                "gpu.example.org",
                "__Host-elastane_session_443",
            ),
            (Some("https://gpu.example.org"), false, "127.0.0.1:7070", "elastane_session_7070"),
        ] {
            let host = headers(&[("host", host)]);
            let site = site(public, encrypts);
            let cookie = site.set_cookie(&host, "v", 5).unwrap();
            let secure = if name.starts_with("__Host-") { "; Secure" } else { "" };
            let whole = format!("{name}=v; Path=/; Max-Age=5; HttpOnly; SameSite=Strict{secure}");
            assert_eq!(cookie.to_str().unwrap(), whole);
        }
    }

    #[test]
    fn only_pages_of_this_server_use_a_session() {
        const BOX: (&str, &str) = ("host", "gpu-box:7070");
        const LOCAL: (&str, &str) = ("host", "localhost:7070");
        for (method, said, own) in [
            ("GET", &[LOCAL, ("origin", "http://localhost:7070")][..], true),
            ("POST", &[BOX, ("origin", "http://gpu-box:7070")], true),
            ("POST", &[BOX, ("origin", "https://gpu.example.org")], true),
            ("POST", &[BOX, ("origin", "http://gpu-box:8888")], false),
            ("POST", &[BOX, ("origin", "http://lab--a--8888.gpu-box:7070")], false),
            ("POST", &[LOCAL, ("origin", "http://127.0.0.1:7070")], false),
            ("POST", &[LOCAL, ("origin", "null")], false),
            ("GET", &[BOX, ("origin", "null")], false),
            ("POST", &[LOCAL, ("origin", "null"), ("sec-fetch-site", "same-origin")], true),
            ("POST", &[LOCAL, ("origin", "null"), ("sec-fetch-site", "cross-site")], false),
            (
                "POST",
                &[LOCAL, ("origin", "http://evil.example"), ("sec-fetch-site", "same-origin")],
                false,
            ),
            (
                "POST",
                &[LOCAL, ("origin", "http://localhost:7070"), ("origin", "http://evil.example")],
                false,
            ),
            ("GET", &[LOCAL, ("sec-fetch-site", "same-origin")], true),
            ("GET", &[LOCAL, ("sec-fetch-site", "same-site")], false),
            ("GET", &[LOCAL, ("sec-fetch-site", "none")], false),
            ("GET", &[LOCAL], false),
            ("GET", &[("host", "[::1]:7070")], false),
            ("GET", &[BOX], true),
            ("HEAD", &[BOX], true),
            ("POST", &[BOX], false),
            ("DELETE", &[BOX], false),
        ] {
            let site = site(Some("https://gpu.example.org"), false);
            let method = method.parse().unwrap();
            let passes = site.must_be_own_page(&method, &headers(said)).is_ok();
            assert_eq!(passes, own, "{method} {said:?}");
        }
        let encrypted = site(None, true).must_be_own_page(&Method::GET, &headers(&[BOX]));
        assert!(encrypted.is_err(), "over https browsers say it");
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let brought = headers(&[("cookie", "a=1; s=x;s=y"), ("cookie", "ss=no; s=z=1; s")]);
        assert_eq!(cookies(&brought, "s").collect::<Vec<_>>(), ["x", "y", "z=1"]);
        // A page at another port put as many in front as a browser keeps.
        let many = format!("{}s=own", "s=worthless; ".repeat(180)).parse().unwrap();
        let many = HeaderMap::from_iter([(header::COOKIE, many)]);
        assert_eq!(cookies(&many, "s").last(), Some("own"));
    }
}
