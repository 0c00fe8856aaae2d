//! Ports that processes of a run listen on. Owns: that a port leads to no other run's process, and
//! the ports assigned to programs of images. Does not know about protocols.
//!
//! Processes of all runs share this machine's addresses. A socket belongs to a run if one of its
//! processes has it open, according to `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use engine::{Duplex, Error, RunKey, RunSpec};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::process::subtrees;
use crate::record::Runtime;
use crate::session_client::running;
use crate::shared::LocalEngineState;
use crate::shared::blocking;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";
/// The variable with the program's port.
const VARIABLE: &str = "PORT";

/// Sets the port of a program whose image serves at one: the user's `PORT`, else the image's port
/// if the pod asks for it on this machine, else any free one. If another process takes that port
/// first, the program fails, and the next run gets another port.
pub(crate) fn set_port_variable(
    usual: u16,
    spec: &RunSpec,
    env: &mut BTreeMap<String, String>,
) -> Result<u16, Error> {
    if let Some(port) = env.get(VARIABLE).and_then(|port| port.parse().ok()) {
        return Ok(port);
    }
    let asked = spec.container.ports.iter().any(|port| port.host == Some(usual));
    let free = || Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port());
    let failed = |source| Error::io("find a free port", source);
    let port = if asked { usual } else { free().map_err(failed)? };
    env.insert(VARIABLE.to_owned(), port.to_string());
    Ok(port)
}

/// Concurrent searches: each reads much of `/proc`.
static SEARCHES: Semaphore = Semaphore::const_new(8);

/// Connects to a port of a run.
pub(crate) async fn connect(
    shared: &Arc<LocalEngineState>,
    key: RunKey,
    port: u16,
) -> Result<Box<dyn Duplex>, Error> {
    running(shared, key)?;
    let failed = |source| Error::io(format!("connect to port {port} of run {key}"), source);
    let listener = own_listener(shared, key, port).await?;
    let stream = TcpStream::connect(listener.reached_at()).await.map_err(failed)?;
    // The listener is the same before and after, so the connection reached it.
    if own_listener(shared, key, port).await? != listener {
        let why = format!("port {port} changed hands at this moment; try again");
        return Err(Error::Invalid(why));
    }
    stream.set_nodelay(true).map_err(failed)?;
    Ok(Box::new(stream))
}

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listener {
    address: SocketAddr,
    inode: u64,
}

impl Listener {
    /// The address that reaches it on this machine.
    fn reached_at(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip.to_canonical(),
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// True if a connection to this address may reach it.
    fn hears(&self, address: SocketAddr) -> bool {
        let ip = self.address.ip();
        let all = ip.is_unspecified() && (ip.is_ipv6() || address.is_ipv4());
        all || ip.to_canonical() == address.ip().to_canonical()
    }
}

async fn own_listener(
    shared: &Arc<LocalEngineState>,
    key: RunKey,
    port: u16,
) -> Result<Listener, Error> {
    // The semaphore is never closed.
    let _turn = SEARCHES.acquire().await;
    let own = Arc::clone(shared);
    let found = blocking(move || {
        find(&own, key, port)
            .map_err(|source| Error::io(format!("see who listens on port {port}"), source))
    });
    match found.await? {
        PortListener::Own(listener) => Ok(listener),
        PortListener::Absent => {
            Err(Error::Invalid(format!("no process of this pod listens on port {port}")))
        }
        PortListener::Shared => Err(Error::Invalid(format!(
            "port {port} is shared with a process that is not of this pod; use another port"
        ))),
    }
}

/// The listener on a port.
enum PortListener {
    Own(Listener),
    Absent,
    /// The run, and another process in the same place (`SO_REUSEPORT`).
    Shared,
}

/// Finds the listener behind this port of the run.
fn find(shared: &LocalEngineState, key: RunKey, port: u16) -> io::Result<PortListener> {
    let found = find_at(shared, key, port)?;
    if !matches!(found, PortListener::Absent) {
        return Ok(found);
    }
    let Runtime::Process(process) = shared.dir(key).read_spec()?.runtime;
    match process.port {
        Some((usual, told)) if usual == port && told != port => find_at(shared, key, told),
        _ => Ok(PortListener::Absent),
    }
}

fn find_at(shared: &LocalEngineState, key: RunKey, port: u16) -> io::Result<PortListener> {
    let Some(supervisor) = shared.dir(key).holder()? else { return Ok(PortListener::Absent) };
    let root = supervisor.as_raw_nonzero().get();
    let family = subtrees(&BTreeSet::from([root])).remove(&root).unwrap_or_default();
    let sockets: BTreeSet<u64> = family.pids.iter().flat_map(|pid| sockets_of(*pid)).collect();
    let (own, others): (Vec<_>, Vec<_>) =
        listeners(port)?.into_iter().partition(|one| sockets.contains(&one.inode));
    let Some(listener) = own.first() else { return Ok(PortListener::Absent) };
    let shared = others.iter().any(|other| other.hears(listener.reached_at()));
    Ok(if shared { PortListener::Shared } else { PortListener::Own(*listener) })
}

/// The sockets that a process has open, by inode. Empty if the process has ended.
fn sockets_of(pid: i32) -> Vec<u64> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let inode = |link: fs::DirEntry| {
        let link = fs::read_link(link.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    links.filter_map(inode).collect()
}

fn listeners(port: u16) -> io::Result<Vec<Listener>> {
    let mut all = parse(&fs::read_to_string("/proc/net/tcp")?);
    match fs::read_to_string("/proc/net/tcp6") {
        Ok(table) => all.extend(parse(&table)),
        // A machine without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    all.retain(|one| one.address.port() == port);
    Ok(all)
}

/// The listening sockets in a table of the kernel.
fn parse(table: &str) -> Vec<Listener> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (ip, port) = local.split_once(':')?;
        let address = SocketAddr::new(address(ip)?, u16::from_str_radix(port, 16).ok()?);
        (*state == LISTENS).then(|| Some(Listener { address, inode: inode.parse().ok()? }))?
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// An address as the kernel prints it: words of 32 bits, each in the machine's own order.
fn address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(table: &str) -> Vec<String> {
        parse(table).iter().map(|one| one.reached_at().to_string()).collect()
    }

    #[test]
    fn the_tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0
   2: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0\n";
        assert_eq!(
            heard(table),
            ["127.0.0.1:8080", "127.0.0.1:80"],
            "who only talks is not listed"
        );
        let table = "head
   0: 00000000000000000000000001000000:1F90 0:0 0A 0:0 00:0 0     0        0 1 1 0
   1: 0000000000000000FFFF00000100007F:0050 0:0 0A 0:0 00:0 0     0        0 2 1 0\n";
        assert_eq!(heard(table), ["[::1]:8080", "127.0.0.1:80"]);
    }

    #[test]
    fn a_program_of_an_image_is_told_a_port_unless_it_was() {
        let mut spec = crate::environment::tests::spec();
        let told = |spec: &RunSpec, env: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let mut env: BTreeMap<String, String> = env.iter().map(own).collect();
            let port = set_port_variable(80, spec, &mut env).expect("a port");
            assert_eq!(env[VARIABLE], port.to_string());
            port
        };
        assert!(told(&spec, &[]) > 1023, "anybody can listen there");
        assert_eq!(told(&spec, &[("PORT", "4711")]), 4711);
        spec.container.ports = vec![engine::Port { container: 80, host: Some(80) }];
        assert_eq!(told(&spec, &[]), 80);
    }

    #[test]
    fn who_listens_to_all_addresses_hears_each() {
        let one = |address: &str| Listener { address: address.parse().expect("one"), inode: 1 };
        assert!(one("0.0.0.0:1").hears(one("127.0.0.1:1").address));
        assert!(one("[::]:1").hears(one("127.0.0.1:1").address));
        assert!(!one("0.0.0.0:1").hears(one("[::1]:1").address));
        assert!(!one("10.0.0.1:1").hears(one("127.0.0.1:1").address));
    }
}
