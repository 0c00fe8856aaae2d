//! The host that a request names. Owns: each request names exactly one, and it is one of this
//! server's: a web page can have its own name point to this machine (DNS rebinding), and would be
//! served by that name.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State as FromState};
use axum::http::uri::{Authority, Scheme};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::error::ApiError;
use crate::tls::Tls;

/// The names by which a server may be addressed, beside those of the loopback.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// Names of the server.
    pub names: Vec<String>,
    /// True if any IP address is one: for a server that listens beyond the loopback. No page can
    /// have an address point anywhere else.
    pub addresses: bool,
    /// The names in its certificate.
    pub certificate: Option<Tls>,
}

impl Hosts {
    /// True if a name without its port is one of this server's.
    pub fn allow(&self, name: &str) -> bool {
        is_loopback(name) || self.addresses && name.parse::<IpAddr>().is_ok() || self.is_named(name)
    }

    /// True if it is one of the names that this server was given, by a setting or its certificate.
    pub fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
            || self.certificate.as_ref().is_some_and(|tls| tls.is_for(name))
    }
}

/// Refuses requests that name no host, or several: what checks one of them may not be what uses
/// another.
pub async fn name_one_host(request: Request, next: Next) -> Result<Response, ApiError> {
    check_one(&request)?;
    Ok(next.run(request).await)
}

fn check_one(request: &Request) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(ApiError::bad("a request names its host once; send one `Host` header"));
    };
    let is_plain = |host: &Authority| !host.host().is_empty() && !host.as_str().contains('@');
    let host = Authority::try_from(host.as_bytes()).ok().filter(is_plain);
    let host = host.ok_or_else(|| ApiError::bad("the header `Host` is not a name and a port"))?;
    let port = |of: &Authority| {
        let usual = if request.uri().scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        of.port_u16().unwrap_or(usual)
    };
    match request.uri().authority() {
        Some(target)
            if target.as_str().contains('@')
                || !target.host().eq_ignore_ascii_case(host.host())
                || port(target) != port(&host) =>
        {
            Err(ApiError::bad(
                "the address of the request and its header `Host` name different hosts",
            ))
        }
        _ => Ok(()),
    }
}

/// Lets only requests pass that were addressed to this server.
pub async fn check_host(
    FromState(hosts): FromState<Arc<Hosts>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let name = host_of(&request);
    if hosts.allow(name) {
        return Ok(next.run(request).await);
    }
    let name = units::shown(name);
    let why = format!(
        "requests for host `{name}` are not answered here; use localhost or 127.0.0.1, or start \
         the server with `--public-url` and the address it is reached by"
    );
    Err(ApiError::new(StatusCode::FORBIDDEN, why))
}

/// The host a request was addressed to, without its port. There is one: [`name_one_host`].
pub fn host_of(request: &Request) -> &str {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let name = without_port(host.unwrap_or_default());
    // Fully qualified, it is the same name.
    name.strip_suffix('.').unwrap_or(name)
}

/// The name in an authority such as `gpu-box:7070`.
#[must_use]
pub fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// True if this names the machine it is used on.
pub fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn hosts_are_read_without_their_port() {
        for (host, name, loopback) in [
            ("localhost:8080", "localhost", true),
            ("LOCALHOST", "LOCALHOST", true),
            ("127.0.0.1:1", "127.0.0.1", true),
            ("127.9.9.9", "127.9.9.9", true),
            ("[::1]:80", "::1", true),
            ("evil.example:80", "evil.example", false),
            ("127.0.0.1.evil.example", "127.0.0.1.evil.example", false),
            ("", "", false),
        ] {
            assert_eq!(without_port(host), name, "{host}");
            assert_eq!(is_loopback(name), loopback, "{host}");
        }
    }

    #[test]
    fn a_server_that_others_reach_knows_its_names_too() {
        let names = vec!["gpu-box".to_owned()];
        let hosts = Hosts { names, addresses: true, certificate: None };
        for (name, allowed) in [
            ("localhost", true),
            ("GPU-Box", true),
            ("10.1.2.3", true),
            ("2001:db8::1", true),
            ("10.1.2.3.evil.example", false),
            ("gpu-box.evil.example", false),
            ("evil.example", false),
            ("", false),
        ] {
            assert_eq!(hosts.allow(name), allowed, "{name}");
        }
        assert!(!Hosts::default().allow("10.1.2.3"), "it listens on the loopback only");
    }

    #[test]
    fn a_request_names_one_host() {
        let asked = |target: &str, hosts: &[&str]| {
            let request = Request::builder().uri(target);
            let request = hosts.iter().fold(request, |request, host| request.header("host", *host));
            check_one(&request.body(Body::empty()).unwrap()).map_err(|error| error.message())
        };
        for (target, hosts) in [
            ("/", &["localhost"][..]),
            ("/", &["[::1]:7070"]),
            ("http://localhost:7070/a", &["LocalHost:7070"]),
            ("http://localhost/a", &["localhost:80"]),
            ("https://localhost/a", &["localhost:443"]),
        ] {
            assert_eq!(asked(target, hosts), Ok(()), "{target} {hosts:?}");
        }
        for (target, hosts, said) in [
            ("/", &[][..], "a request names its host once"),
            ("/", &["localhost", "localhost"], "a request names its host once"),
            ("/", &["localhost", "evil.example"], "a request names its host once"),
            ("/", &[""], "the header `Host` is not"),
            ("/", &["localhost, evil.example"], "the header `Host` is not"),
            ("/", &["evil.example@localhost"], "the header `Host` is not"),
            ("/", &["localhost/evil"], "the header `Host` is not"),
            ("http://evil.example/", &["localhost"], "the address of the request"),
            ("http://localhost:1/", &["localhost:2"], "the address of the request"),
            ("http://evil@localhost/", &["localhost"], "the address of the request"),
        ] {
            let refused = asked(target, hosts).unwrap_err();
            assert!(refused.starts_with(said), "{target} {hosts:?}: {refused}");
        }
    }
}
