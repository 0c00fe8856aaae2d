//! The client of a connection, as far as the network identifies it. Owns: programs of this machine
//! are distinguished by account, containers by their network, others by address. Does not know
//! about tokens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Key by which connections are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// An account of this machine: that of the socket at the other end.
    Account(u32),
    /// A network of containers on this machine: one that only this machine connects to.
    Containers(Ipv4Addr),
    /// An address; of IPv6 the network of 64 bits, all of whose addresses a client may have.
    Address(IpAddr),
}

impl Client {
    /// Client that connected from `peer` to the local address `here`.
    pub(crate) fn of(peer: SocketAddr, here: Option<SocketAddr>) -> Self {
        let ip = peer.ip().to_canonical();
        let here = here.filter(|here| ip.is_loopback() || ip == here.ip().to_canonical());
        let owner = here.and_then(|here| socket_owner::of(peer, here));
        let network = || match ip {
            IpAddr::V4(ip) if !ip.is_loopback() => container_network::of(ip),
            _ => None,
        };
        let network = || network().map_or_else(|| Self::at(ip), Self::Containers);
        owner.map_or_else(network, Self::Account)
    }

    fn at(address: IpAddr) -> Self {
        Self::Address(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        })
    }
}

/// Networks of containers: bridges of this machine without a device of another machine.
mod container_network {
    use std::fs;
    use std::net::Ipv4Addr;
    use std::path::Path;

    /// Network that an address is in; `None` if other machines may be in it too.
    pub(super) fn of(address: Ipv4Addr) -> Option<Ipv4Addr> {
        let routes = fs::read_to_string("/proc/net/route").ok()?;
        let (interface, network) = route(&routes, address)?;
        is_virtual_bridge(Path::new("/sys/class/net"), interface).then_some(network)
    }

    /// Interface and network of an address that this machine reaches without a gateway.
    pub(super) fn route(routes: &str, address: Ipv4Addr) -> Option<(&str, Ipv4Addr)> {
        let number = |word: &str| u32::from_str_radix(word, 16).ok().map(u32::from_be);
        let each = routes.lines().skip(1).filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (interface, network, gateway) = (words.next()?, words.next()?, words.next()?);
            // Flags, two counters and the metric are in between.
            Some((interface, number(network)?, number(gateway)?, number(words.nth(4)?)?))
        });
        let matching = each.filter(|(_, network, _, mask)| address.to_bits() & mask == *network);
        let (interface, network, gateway, _) = matching.max_by_key(|(.., mask)| *mask)?;
        (gateway == 0).then(|| (interface, Ipv4Addr::from_bits(network)))
    }

    /// `true` for a bridge of which each member is an end of a pair, as those of containers are. A
    /// device, a bond, a VLAN or a tunnel leads to other machines.
    pub(super) fn is_virtual_bridge(interfaces: &Path, name: &str) -> bool {
        let Ok(members) = fs::read_dir(interfaces.join(name).join("brif")) else { return false };
        members.flatten().all(|member| is_end_of_a_pair(&interfaces.join(member.file_name())))
    }

    /// `true` if the interface with this folder is linked to another one that is not below it.
    fn is_end_of_a_pair(interface: &Path) -> bool {
        let number = |name: &str| fs::read_to_string(interface.join(name)).ok();
        let Ok(entries) = fs::read_dir(interface) else { return false };
        let leads_elsewhere = entries.flatten().any(|entry| {
            let name = entry.file_name();
            name == "device" || name.as_encoded_bytes().starts_with(b"lower_")
        });
        let [own, linked] = [number("ifindex"), number("iflink")];
        own.is_some() && linked.is_some() && own != linked && !leads_elsewhere
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
    fn containers_are_told_apart_by_the_network_of_a_bridge_without_a_device() {
        let routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
            eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\n\
            eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n\
            br-1\t00001CAC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n";
        let of = |address: &str| container_network::route(routes, address.parse().unwrap());
        assert_eq!(of("172.28.3.4"), Some(("br-1", "172.28.0.0".parse().unwrap())));
        assert_eq!(of("192.0.2.9"), Some(("eth0", "192.0.2.0".parse().unwrap())));
        assert_eq!(of("198.51.100.1"), None, "through a gateway");

        let interfaces = tempfile::tempdir().unwrap();
        let make = |path: &str| std::fs::create_dir_all(interfaces.path().join(path)).unwrap();
        let members = [
            ("veth1", "5", "4", "statistics", true),
            ("eth1", "5", "5", "device", false),
            ("eth0.100", "5", "2", "lower_eth0", false),
            ("bond0", "5", "5", "lower_eth2", false),
            ("tap0", "5", "5", "statistics", false),
        ];
        for (member, own, linked, has, is_of_containers) in members {
            let bridge = format!("br-{member}");
            make(&format!("{bridge}/brif/{member}"));
            make(&format!("{member}/{has}"));
            for (file, number) in [("ifindex", own), ("iflink", linked)] {
                std::fs::write(interfaces.path().join(member).join(file), number).unwrap();
            }
            let is_virtual = container_network::is_virtual_bridge(interfaces.path(), &bridge);
            assert_eq!(is_virtual, is_of_containers, "{member}: other machines may be behind it");
        }
        let is_virtual = |name| container_network::is_virtual_bridge(interfaces.path(), name);
        assert!(!is_virtual("eth1") && !is_virtual("none"));
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
