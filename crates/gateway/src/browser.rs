//! Secrets that a browser sends and keeps. Owns: the cookie of a visit and the ticket in an
//! address, neither of which reaches a workload, and from which pages a visit is used. Does not
//! know about: their users.

use axum::http::{HeaderMap, HeaderValue, Uri, header};

/// Parameter of an address with a ticket.
pub(crate) const TICKET: &str = "elastane_ticket";
/// The cookie of a visit. Over https no other host can set it, nor can a page without encryption.
const VISIT: &str = "elastane_visit";
const VISIT_ENCRYPTED: &str = "__Host-elastane_visit";

/// The name of the cookie at this address.
pub(crate) fn cookie(address: &str) -> &'static str {
    if address.starts_with("https:") { VISIT_ENCRYPTED } else { VISIT }
}

/// A cookie for the browser, with its lifetime in seconds.
pub(crate) fn set_cookie(address: &str, secret: &str, lasts_s: u64) -> String {
    let name = cookie(address);
    let secure = if name == VISIT_ENCRYPTED { "; Secure" } else { "" };
    format!("{name}={secret}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Lax{secure}")
}

/// Takes the secrets of visits out of what a browser brings. Others pass as they are.
pub(crate) fn take_visits(headers: &mut HeaderMap, name: &str) -> Vec<String> {
    let (mut visits, mut others) = (Vec::new(), Vec::new());
    for cookies in headers.get_all(header::COOKIE) {
        let (own, rest): (Vec<&[u8]>, Vec<&[u8]>) =
            cookies.as_bytes().split(|byte| *byte == b';').partition(|one| named(one, name));
        let secret =
            |one: &&[u8]| Some(std::str::from_utf8(one).ok()?.split_once('=')?.1.to_owned());
        visits.extend(own.iter().filter_map(secret));
        let rest = rest.join(&b';');
        others.extend(HeaderValue::from_bytes(rest.trim_ascii()).ok().filter(|v| !v.is_empty()));
    }
    if !visits.is_empty() {
        headers.remove(header::COOKIE);
        for cookies in others {
            headers.append(header::COOKIE, cookies);
        }
    }
    visits
}

/// Takes away what would have the browser keep another visit.
pub(crate) fn keep_visits(headers: &mut HeaderMap, name: &str) {
    let kept: Vec<_> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    headers.remove(header::SET_COOKIE);
    for one in kept.into_iter().filter(|one| !named(one.as_bytes(), name)) {
        headers.append(header::SET_COOKIE, one);
    }
}

/// True if a cookie has this name.
fn named(cookie: &[u8], name: &str) -> bool {
    cookie.split(|byte| *byte == b'=').next().is_some_and(|own| own.trim_ascii() == name.as_bytes())
}

/// True if a page of another host made the browser send the request; missing headers do not count
/// as that, nor does following a link.
pub(crate) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let said = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    // No page can set this header. Its `Origin` may be hidden (`Referrer-Policy: no-referrer`).
    if said("sec-fetch-site") == Some(b"same-origin") {
        return false;
    }
    if let Some(origin) = said("origin") {
        let place = origin.windows(3).position(|part| part == b"://").map(|at| &origin[at + 3..]);
        let own = said("host").unwrap_or_default();
        return place.is_none_or(|place| !place.eq_ignore_ascii_case(own));
    }
    let follows = (said("sec-fetch-mode"), said("sec-fetch-dest"));
    let follows = follows == (Some(&b"navigate"[..]), Some(&b"document"[..]));
    matches!(said("sec-fetch-site"), Some(b"same-site" | b"cross-site")) && !follows
}

/// The ticket in an address, and the path and query without it.
pub(crate) fn take_ticket(uri: &Uri) -> Option<(String, String)> {
    let (mut ticket, mut others) = (None, Vec::new());
    for pair in uri.query()?.split('&') {
        match pair.strip_prefix(TICKET).and_then(|rest| rest.strip_prefix('=')) {
            Some(secret) => ticket = Some(secret.to_owned()),
            None => others.push(pair),
        }
    }
    let others = Some(others.join("&")).filter(|others| !others.is_empty());
    let others = others.map(|others| format!("?{others}")).unwrap_or_default();
    ticket.map(|ticket| (ticket, format!("{}{others}", uri.path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn left(headers: &HeaderMap, name: &str) -> Vec<String> {
        headers.get_all(name).iter().map(|v| v.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn cookies_of_visits_stay_here_and_others_pass_as_they_are() {
        for (brought, visits, others) in [
            ("a=1; elastane_visit=x; b=2", vec!["x"], vec!["a=1; b=2"]),
            ("elastane_visit=x", vec!["x"], vec![]),
            ("elastane_visit=x;elastane_visit=y; c", vec!["x", "y"], vec!["c"]),
            (
                "a=1;  b=elastane_visit=x; elastane_visits=z",
                vec![],
                vec!["a=1;  b=elastane_visit=x; elastane_visits=z"],
            ),
        ] {
            let mut headers = headers(&[("cookie", brought)]);
            assert_eq!(take_visits(&mut headers, VISIT), visits, "{brought}");
            assert_eq!(left(&headers, "cookie"), others, "{brought}");
        }
    }

    #[test]
    fn a_workload_sets_every_cookie_but_ours() {
        let mut headers = headers(&[
            ("set-cookie", "a=1; Path=/"),
            ("set-cookie", " elastane_visit =x; Path=/"),
            ("set-cookie", "b=elastane_visit=1"),
        ]);
        keep_visits(&mut headers, VISIT);
        assert_eq!(left(&headers, "set-cookie"), ["a=1; Path=/", "b=elastane_visit=1"]);
    }

    #[test]
    fn pages_of_other_hosts_use_no_visit() {
        for (said, elsewhere) in [
            (vec![], false),
            (vec![("origin", "http://a.localhost:70")], false),
            (vec![("origin", "https://A.localhost:70")], false),
            (vec![("origin", "http://b.localhost:70")], true),
            (vec![("origin", "http://a.localhost:71")], true),
            (vec![("origin", "null")], true),
            (vec![("origin", "")], true),
            (vec![("origin", "null"), ("sec-fetch-site", "same-origin")], false),
            (vec![("origin", "null"), ("sec-fetch-site", "same-site")], true),
            (vec![("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")], false),
            (vec![("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")], true),
            (
                vec![
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
                false,
            ),
            (
                vec![
                    ("sec-fetch-site", "same-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "iframe"),
                ],
                true,
            ),
        ] {
            let mut headers = headers(&said);
            headers.insert("host", HeaderValue::from_static("a.localhost:70"));
            assert_eq!(is_from_elsewhere(&headers), elsewhere, "{said:?}");
        }
    }

    #[test]
    fn a_ticket_is_taken_out_of_an_address() {
        for (address, taken) in [
            ("/?elastane_ticket=x", Some(("x", "/"))),
            ("/a%20b?c=%2F&elastane_ticket=x&d", Some(("x", "/a%20b?c=%2F&d"))),
            ("/?elastane_tickets=x", None),
            ("/elastane_ticket=x", None),
        ] {
            let took = take_ticket(&address.parse().unwrap());
            let took = took.as_ref().map(|(ticket, rest)| (ticket.as_str(), rest.as_str()));
            assert_eq!(took, taken, "{address}");
        }
    }

    #[test]
    fn over_https_the_cookie_is_bound_to_the_host() {
        let over = |address| set_cookie(address, "x", 5);
        let rest = "=x; Path=/; Max-Age=5; HttpOnly; SameSite=Lax";
        assert_eq!(over("http://a"), format!("elastane_visit{rest}"));
        assert_eq!(over("https://a"), format!("__Host-elastane_visit{rest}; Secure"));
    }
}
