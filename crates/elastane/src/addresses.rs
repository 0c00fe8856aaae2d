//! Addresses of the server: those it listens on, the public one, and its host names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http_kit::{Hosts, Proxies, Tls};
use rustix::process::{Resource, getrlimit};

use super::settings::{Error, SettingText};

/// The public address: a scheme, a host and a port, and nothing else.
pub(super) fn public_url(given: &SettingText) -> Result<String, Error> {
    let text = given.text.trim_end_matches('/');
    let wrong = |why: &str| {
        let shown = units::shown(&given.text);
        given.fault(format!("`{shown}` {why}; write one such as https://gpu.example.org"))
    };
    let (scheme, place) = text.split_once("://").ok_or_else(|| wrong("is not an address"))?;
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https") {
        return Err(wrong("does not begin with http:// or https://"));
    }
    if place.contains(['/', '?', '#']) {
        return Err(wrong("has a path, and the API is at the root"));
    }
    let host = without_port(place);
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_name = |host: &str| {
        let label = |label: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !label.is_empty() && label.chars().all(plain)
        };
        host.split('.').all(label)
    };
    let valid = inner.map_or_else(|| is_name(host), |ip| ip.parse::<Ipv6Addr>().is_ok());
    if valid { Ok(format!("{scheme}://{place}")) } else { Err(wrong("is not an address")) }
}

/// A host and an optional port, without the port.
fn without_port(place: &str) -> &str {
    let port = |(_, port): &(&str, &str)| port.parse::<u16>().is_ok_and(|port| port > 0);
    place.rsplit_once(':').filter(port).map_or(place, |(host, _)| host)
}

pub(super) fn proxies(given: &SettingText) -> Result<Proxies, Error> {
    given.text.parse().map_err(|fault: String| given.fault(fault))
}

/// The host names by which the server may be addressed.
pub(super) fn hosts(public_url: Option<&str>, listen: SocketAddr, tls: Option<&Tls>) -> Hosts {
    let public = public_url.and_then(|url| url.split_once("://"));
    let public = public.map(|(_, place)| without_port(place).trim_matches(['[', ']']).to_owned());
    let beyond = !listen.ip().is_loopback();
    let machine = beyond.then(gpu::host_name).filter(|name| !name.is_empty());
    Hosts {
        names: public.into_iter().chain(machine).collect(),
        addresses: beyond,
        certificate: tls.cloned(),
    }
}

/// Limits on connections: fewer than the limit on open files.
pub(super) fn limits(proxies: &Proxies) -> http_kit::Limits {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let limits = http_kit::Limits::for_files(usize::try_from(files).unwrap_or(usize::MAX));
    http_kit::Limits { proxies: proxies.clone(), ..limits }
}

/// An address that clients on this machine can use: an unspecified one becomes loopback.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let given = SettingText { text: text.to_owned(), origin: "--public-url".to_owned() };
        public_url(&given).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_public_address_is_a_scheme_a_host_and_a_port() {
        for (text, url) in [
            ("https://gpu.example.org", "https://gpu.example.org"),
            ("HTTPS://gpu.example.org:8443/", "https://gpu.example.org:8443"),
            ("http://10.0.0.7:7070", "http://10.0.0.7:7070"),
            ("https://[2001:db8::1]:443", "https://[2001:db8::1]:443"),
        ] {
            assert_eq!(read(text), Ok(url.to_owned()), "{text}");
        }
        for (text, why) in [
            ("gpu.example.org", "is not an address"),
            ("ftp://gpu.example.org", "does not begin with http:// or https://"),
            ("https://gpu.example.org/elastane", "has a path"),
            ("https://gpu.example.org?x=y", "has a path"),
            ("https://ann:hush@gpu.example.org", "is not an address"),
            ("https://gpu.example.org:0", "is not an address"),
            ("https://gpu..example.org", "is not an address"),
            ("https://", "is not an address"),
            ("https://gpu example", "is not an address"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.starts_with("--public-url: `") && fault.contains(why), "{text}: {fault}");
        }
    }
}
