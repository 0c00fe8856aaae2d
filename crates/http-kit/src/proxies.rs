//! Trusted proxies, whose headers name the client of a request. Owns: the list of them, and the
//! parsing of their headers. Such headers from other addresses are ignored.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName, header};

/// Header with the client's address: each proxy appends the address that it got the request from.
pub const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Most addresses that are read, from the end.
const CHAIN_MAX: usize = 32;

/// Addresses of proxies, each with the number of its bits that count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies(Vec<(IpAddr, u32)>);

/// Texts such as `10.0.0.7,192.168.0.0/16`.
impl FromStr for Proxies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let each = text.split(',').map(str::trim).filter(|one| !one.is_empty());
        each.map(network).collect::<Result<_, _>>().map(Self)
    }
}

fn network(text: &str) -> Result<(IpAddr, u32), String> {
    let wrong = || {
        let text = units::shown(text);
        format!(
            "`{text}` is not an address; write addresses or networks such as 10.0.0.7,192.168.0.0/16"
        )
    };
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, bits)| (a, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    // Connections of such an address are seen as IPv4.
    if address.to_canonical() != address {
        return Err(wrong());
    }
    let most = width(address);
    let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
    if bits <= most { Ok((address, bits)) } else { Err(wrong()) }
}

const fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address as a number whose first bits are the network.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Proxies {
    /// True if this address is one of theirs.
    #[must_use]
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let differing = |one: IpAddr| (number(one) ^ number(address)).leading_zeros();
        let within = |(one, bits): &(IpAddr, u32)| {
            one.is_ipv4() == address.is_ipv4() && differing(*one) >= *bits
        };
        self.0.iter().any(within)
    }

    /// Client of a request over `peer`: the last address that is not a proxy's.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let chain = headers.get_all(FORWARDED_FOR).iter().rev();
        let each = chain.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
        for text in each.take(CHAIN_MAX) {
            let Some(before) = address(text.trim()).filter(|_| self.contain(client)) else { break };
            client = before;
        }
        client
    }
}

/// An address, with its port or without.
fn address(text: &str) -> Option<IpAddr> {
    let socket = || text.parse::<std::net::SocketAddr>().map(|of| of.ip()).ok();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(socket).map(|address: IpAddr| address.to_canonical())
}

/// True if a proxy, listed or not, stands between the client and this server.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED_FOR) || headers.contains_key(header::FORWARDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(text: &str) -> Proxies {
        text.parse().unwrap()
    }

    #[test]
    fn proxies_are_addresses_and_networks() {
        let some = proxies("127.0.0.1, 10.2.0.0/16,2001:db8::/32");
        for (address, is) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("10.2.255.1", true),
            ("10.3.0.1", false),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
            ("::1", false),
        ] {
            assert_eq!(some.contain(address.parse().unwrap()), is, "{address}");
        }
        assert!(proxies("0.0.0.0/0").contain("1.2.3.4".parse().unwrap()));
        for wrong in ["proxy", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "10.0.0.1:80", "10.0.0.0/"] {
            let error = wrong.parse::<Proxies>().unwrap_err();
            assert!(error.contains("is not an address; write"), "{wrong}: {error}");
        }
    }

    #[test]
    fn only_listed_proxies_say_where_a_request_comes_from() {
        let from = |peer: &str, said: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in said {
                headers.append(FORWARDED_FOR, text.parse().unwrap());
            }
            let client = proxies("10.0.0.0/8").client(peer.parse().unwrap(), &headers);
            client.to_string()
        };
        for (peer, said, client) in [
            ("192.0.2.1", &["203.0.113.9"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["203.0.113.9:4711"], "203.0.113.9"),
            ("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            // An entry of the client itself stands before the one that the proxy appended.
            ("10.0.0.1", &["127.0.0.1, 203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["127.0.0.1", "203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["127.0.0.1, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
            ("10.0.0.1", &["127.0.0.1, junk"], "10.0.0.1"),
            ("10.0.0.1", &["junk, 203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ] {
            assert_eq!(from(peer, said), client, "{peer} {said:?}");
        }
    }
}
