//! The client of a connection, as far as the network identifies it. Owns: programs of this machine
//! are distinguished by account, others by address. Does not know about tokens.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Key by which connections are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// An account of this machine: that of the socket at the other end.
    Account(u32),
    /// An address; of IPv6 the network of 64 bits, all of whose addresses a client may have.
    Address(IpAddr),
}

impl Client {
    /// Client that connected from `peer` to the local address `here`.
    pub(crate) fn of(peer: SocketAddr, here: Option<SocketAddr>) -> Self {
        let ip = peer.ip().to_canonical();
        let here = here.filter(|here| ip.is_loopback() || ip == here.ip().to_canonical());
        let owner = here.and_then(|here| socket_owner::of(peer, here));
        owner.map_or_else(|| Self::at(ip), Self::Account)
    }

    fn at(address: IpAddr) -> Self {
        Self::Address(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        })
    }
}

/// Account of a socket, from the kernel's `sock_diag` query for exactly one socket, whose time does
/// not grow with the number of sockets.
#[cfg(target_os = "linux")]
mod socket_owner {
    use std::net::{IpAddr, SocketAddr};

    use rustix::io::Errno;
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
        socket_with,
    };

    /// `SOCK_DIAG_BY_FAMILY`.
    const BY_FAMILY: u16 = 20;
    /// `NLM_F_REQUEST`.
    const REQUEST: u16 = 1;
    // Numbers of every Linux.
    const INET: u8 = 2;
    const INET6: u8 = 10;
    const TCP: u8 = 6;
    /// Bytes of `nlmsghdr`.
    const HEAD: usize = 16;
    /// Where `inet_diag_msg` has the account: behind four bytes, the 48 of the socket's name, and
    /// three numbers.
    const UID: usize = HEAD + 4 + 48 + 12;

    /// Account of the socket with these two ends; `None` if the kernel does not report it.
    pub(super) fn of(its_end: SocketAddr, other_end: SocketAddr) -> Option<u32> {
        ask(&request(its_end, other_end))
            .inspect_err(|error| tracing::debug!("no owner of the socket {its_end}: {error}"))
            .ok()
            .and_then(|answer| uid(&answer))
    }

    fn ask(request: &[u8]) -> Result<Vec<u8>, Errno> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
        let kernel = socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
        send(&kernel, request, SendFlags::empty())?;
        let mut answer = vec![0; 1024];
        // The answer is there when `send` returns.
        let (bytes, _) = recv(&kernel, &mut answer[..], RecvFlags::DONTWAIT)?;
        answer.truncate(bytes);
        Ok(answer)
    }

    /// `nlmsghdr` and `inet_diag_req_v2`.
    fn request(its_end: SocketAddr, other_end: SocketAddr) -> Vec<u8> {
        let ends = [its_end, other_end].map(|end| (end.ip().to_canonical(), end.port()));
        let family = if ends[0].0.is_ipv4() { INET } else { INET6 };
        let mut rest = vec![family, TCP, 0, 0];
        rest.extend(u32::MAX.to_ne_bytes());
        rest.extend(ends.iter().flat_map(|(_, port)| port.to_be_bytes()));
        for (ip, _) in ends {
            let mut bytes = match ip {
                IpAddr::V4(ip) => ip.octets().to_vec(),
                IpAddr::V6(ip) => ip.octets().to_vec(),
            };
            bytes.resize(16, 0);
            rest.extend(bytes);
        }
        // Any interface, and no cookie.
        rest.extend(0_u32.to_ne_bytes());
        rest.extend([0xff; 8]);
        let length = u32::try_from(HEAD + rest.len()).unwrap_or(u32::MAX);
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(BY_FAMILY.to_ne_bytes());
        message.extend(REQUEST.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(rest);
        message
    }

    fn uid(answer: &[u8]) -> Option<u32> {
        let word = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
        (kind == BY_FAMILY).then(|| word(UID))?
    }
}

/// Other systems do not distinguish accounts.
#[cfg(not(target_os = "linux"))]
mod socket_owner {
    pub(super) const fn of(_: std::net::SocketAddr, _: std::net::SocketAddr) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn of(bound: &str, asked: &str) -> (Client, TcpStream) {
        let listener = TcpListener::bind(bound).unwrap();
        let port = listener.local_addr().unwrap().port();
        let there = TcpStream::connect((asked, port)).unwrap();
        let (here, peer) = listener.accept().unwrap();
        (Client::of(peer, here.local_addr().ok()), there)
    }

    #[test]
    fn programs_of_this_machine_are_told_apart_by_account() {
        let own = std::fs::metadata("/proc/self").unwrap().uid();
        for (bound, asked) in
            [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "127.0.0.1")]
        {
            let (client, _open) = of(bound, asked);
            assert_eq!(client, Client::Account(own), "{bound}");
        }
    }

    #[test]
    fn others_are_told_apart_by_address_or_network() {
        let here = "192.0.2.7:7070".parse().ok();
        let of = |peer: &str| Client::of(peer.parse().unwrap(), here);
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::2:0:0:1]:2"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
        assert_eq!(of("[::ffff:192.0.2.1]:1"), of("192.0.2.1:2"));
        // A socket that the kernel does not know.
        assert_eq!(of("127.0.0.1:1"), Client::Address("127.0.0.1".parse().unwrap()));
    }
}
