//! Owner of the listener at a local address, by the kernel's socket table. Owns that table's
//! format. Does not know about the requests.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;

/// State of a listening socket in the table.
const LISTEN: &str = "0A";

/// True if the address is that of this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// True if only programs of this user receive requests to this address.
///
/// False without a listener, for an address of another machine, and if the kernel does not report
/// the owner: an unknown listener is not trusted.
pub(crate) fn is_of_user(url: &str, uid: u32) -> bool {
    let Some((addresses, port)) = Url::parse(url).ok().as_ref().and_then(addresses) else {
        return false;
    };
    let table = table();
    let owners: Vec<u32> =
        addresses.into_iter().flat_map(|ip| owners(&table, SocketAddr::new(ip, port))).collect();
    !owners.is_empty() && owners.iter().all(|owner| *owner == uid)
}

fn addresses(url: &Url) -> Option<(Vec<IpAddr>, u16)> {
    let host = url.host_str()?;
    let port = url.port_or_known_default()?;
    if host == "localhost" {
        // A client may try either, so both must be the user's.
        return Some((vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], port));
    }
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    Some((vec![ip], port))
}

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listener {
    address: SocketAddr,
    uid: u32,
}

fn table() -> Vec<Listener> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (four, six) = (read("/proc/net/tcp"), read("/proc/net/tcp6"));
    four.lines().chain(six.lines()).filter_map(parse).collect()
}

/// Parses `sl local remote state queues timer retransmits uid …`, with addresses as words of
/// memory, in hexadecimal. `None` for the heading.
fn parse(line: &str) -> Option<Listener> {
    let mut fields = line.split_ascii_whitespace();
    let (ip, port) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let uid = fields.nth(3)?.parse().ok()?;
    let address = SocketAddr::new(parse_ip(ip)?, u16::from_str_radix(port, 16).ok()?);
    (state == LISTEN).then_some(Listener { address, uid })
}

fn parse_ip(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let bytes = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical())
        }
        _ => None,
    }
}

/// Owners of the sockets that a connection to this address may reach. A listener at the address
/// itself takes precedence over one at all addresses.
fn owners(table: &[Listener], to: SocketAddr) -> Vec<u32> {
    let mut order = vec![to.ip()];
    if to.is_ipv4() {
        order.push(Ipv4Addr::UNSPECIFIED.into());
    }
    order.push(Ipv6Addr::UNSPECIFIED.into());
    let at = |ip| {
        let there = SocketAddr::new(ip, to.port());
        table.iter().filter(move |one| one.address == there).map(|one| one.uid)
    };
    order
        .into_iter()
        .map(|ip| at(ip).collect())
        .find(|uids: &Vec<u32>| !uids.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn uids(lines: &[&str], to: &str) -> Vec<u32> {
        let table: Vec<Listener> = lines.iter().copied().filter_map(parse).collect();
        owners(&table, to.parse().unwrap())
    }

    const HEADING: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
                           retrnsmt   uid  timeout inode";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_one_who_listens_closest_is_the_one() {
        let ours = "0: 0100007F:1B9E 00000000:0000 0A 0:0 0:0 0 1000 0 556";
        let stranger = "1: 00000000:1B9E 00000000:0000 0A 0:0 0:0 0 1001 0 557";
        let connected = "2: 0100007F:1B9E 0100007F:EA50 01 0:0 0:0 0 1002 0 558";
        let six = "3: 00000000000000000000000000000000:1B9E \
                   00000000000000000000000000000000:0000 0A 0:0 0:0 0 1003 0 559";
        let mapped = "4: 0000000000000000FFFF00000100007F:1B9E \
                      00000000000000000000000000000000:0000 0A 0:0 0:0 0 1004 0 560";
        let all = [HEADING, ours, stranger, connected, six];
        assert_eq!(uids(&all, "127.0.0.1:7070"), [1000]);
        assert_eq!(uids(&all, "127.0.0.2:7070"), [1001]);
        assert_eq!(uids(&all, "[::1]:7070"), [1003]);
        assert_eq!(uids(&[six], "127.0.0.1:7070"), [1003], "it takes those of the older kind, too");
        assert_eq!(uids(&[stranger], "[::1]:7070"), [0_u32; 0]);
        assert_eq!(uids(&[ours, mapped], "127.0.0.1:7070"), [1000, 1004]);
        assert_eq!(uids(&[connected, HEADING], "127.0.0.1:7070"), [0_u32; 0]);
        assert_eq!(uids(&all, "127.0.0.1:7071"), [0_u32; 0]);
    }

    #[test]
    fn a_listener_is_its_users_and_nobody_elses() {
        let uid = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap());
        for bind in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(bind).unwrap();
            let port = listener.local_addr().unwrap().port();
            for host in ["127.0.0.1", "localhost"] {
                let url = format!("http://{host}:{port}");
                assert!(is_of_user(&url, uid), "{url}");
                assert!(!is_of_user(&url, uid + 1), "{url}");
            }
            drop(listener);
            assert!(!is_of_user(&format!("http://127.0.0.1:{port}"), uid));
        }
        assert!(!is_of_user("http://gpu.example.org:7070", uid));
    }
}
