//! The socket of the broker. Owns: connections, one thread for all of them. A client that sends
//! anything but requests, or does not read its answers, loses its connection and what it holds.
//! Does not know about: the meaning of requests.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fraction_abi::wire::{REPLY_BYTES, REQUEST_WORDS, read_words, write_words};
use fraction_abi::{sys::monotonic_ns, wire};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, listen, recv, send, socket_with, sockopt::socket_peercred,
};
use thiserror::Error;

use crate::devices::{Client, Devices, Driver};

/// Why there is no broker.
#[derive(Debug, Error)]
#[error(
    "the socket {path} of the simulated driver cannot be opened: {error}; \
         check that its folder exists and is writable, and that the path is below 108 bytes"
)]
pub struct Error {
    /// The socket.
    path: PathBuf,
    /// The kernel's error.
    error: io::Error,
}

/// Connections beyond this many are closed at once.
const CONNECTIONS_MAX: usize = 4096;

/// A running broker; it ends when this value does.
#[derive(Debug)]
pub struct Broker {
    devices: Arc<Mutex<Devices>>,
    connections: Arc<AtomicUsize>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Broker {
    /// Serves the devices of a driver at this path, to all accounts of the machine.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn start(path: &Path, driver: Driver) -> Result<Self, Error> {
        let open = || -> io::Result<(OwnedFd, OwnedFd)> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            bind(&socket, &SocketAddrUnix::new(path)?)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
            listen(&socket, 128)?;
            Ok((socket, eventfd(0, EventfdFlags::CLOEXEC)?))
        };
        let (socket, stop) = open().map_err(|error| Error { path: path.to_owned(), error })?;
        let devices = Arc::new(Mutex::new(Devices::new(driver)));
        let stop = Arc::new(stop);
        let connections = Arc::new(AtomicUsize::new(0));
        let (of_thread, until) = (Arc::clone(&devices), Arc::clone(&stop));
        let count = Arc::clone(&connections);
        let thread = std::thread::spawn(move || serve(&socket, &of_thread, &count, &until));
        Ok(Self { devices, connections, stop, thread: Some(thread), path: path.to_owned() })
    }

    /// How many processes are connected.
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// Bytes that processes hold on a device, by process id.
    pub fn holders(&self, device: usize) -> BTreeMap<u32, u64> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).holders(device)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Writing to it cannot fail: it is open, and its count is far from full.
        let _written = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
        let _removed = std::fs::remove_file(&self.path);
    }
}

fn serve(listener: &OwnedFd, devices: &Mutex<Devices>, connected: &AtomicUsize, stop: &OwnedFd) {
    let mut clients: Vec<(OwnedFd, Client)> = Vec::new();
    let mut connections = 0;
    loop {
        let ready = {
            let waiting = clients.iter().map(|(socket, _)| socket);
            let all = [stop, listener].into_iter().chain(waiting);
            let mut all: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            match poll(&mut all, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            all.iter().map(|one| !one.revents().is_empty()).collect::<Vec<_>>()
        };
        if ready.first() == Some(&true) {
            return;
        }
        let mut devices = devices.lock().unwrap_or_else(PoisonError::into_inner);
        let mut readiness = ready.iter().skip(2);
        clients.retain(|(socket, client)| {
            let stays = readiness.next() != Some(&true) || step(socket, *client, &mut devices);
            if !stays {
                devices.leave(*client);
            }
            stays
        });
        if ready.get(1) == Some(&true)
            && let Some((socket, pid)) = admit(listener)
            && clients.len() < CONNECTIONS_MAX
        {
            connections += 1;
            clients.push((socket, Client { pid, connection: connections }));
        }
        connected.store(clients.len(), Relaxed);
    }
}

fn admit(listener: &OwnedFd) -> Option<(OwnedFd, u32)> {
    let socket = accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()?;
    let pid = socket_peercred(&socket).ok()?.pid.as_raw_nonzero().get();
    Some((socket, u32::try_from(pid).ok()?))
}

/// Answers one request of a client. Returns `false` if the client must be disconnected.
fn step(socket: &OwnedFd, client: Client, devices: &mut Devices) -> bool {
    let mut request = [0; REQUEST_WORDS * 8];
    match recv(socket, &mut request, RecvFlags::TRUNC) {
        Ok((_, length)) if length == request.len() => {}
        Err(Errno::AGAIN | Errno::INTR) => return true,
        _ => return false,
    }
    let (words, list) = devices.answer(client, read_words(&request), monotonic_ns());
    let mut reply = [0; REPLY_BYTES];
    let length = (wire::REPLY_WORDS + 2 * list.len()) * 8;
    write_words(&mut reply, &words);
    let entries: Vec<u64> =
        list.into_iter().flat_map(|(pid, bytes)| [u64::from(pid), bytes]).collect();
    if let Some(room) = reply.get_mut(wire::REPLY_WORDS * 8..) {
        write_words(room, &entries);
    }
    reply.get(..length).is_some_and(|reply| send(socket, reply, SendFlags::NOSIGNAL).is_ok())
}
