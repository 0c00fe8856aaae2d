//! Ports of a pod on this machine. Owns: the local listeners, and that a server that restarts is
//! used again: each connection is a new request.

use std::convert::Infallible;
use std::io::{ErrorKind, Write};
use std::rc::Rc;
use std::time::Duration;

use client::{Receiver, Sender};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::context::Context;
use super::exec_session::refuse_ended;
use super::logs::refuse_resting;
use cli_kit::exit::Error;
use cli_kit::message::print_note;
use dialects::intent::Target;

/// Maximum number of bytes in one read.
const PIECE_BYTES: usize = 64 << 10;
/// Wait after a connection that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Addresses of `localhost`.
const LOCALHOST: [&str; 2] = ["127.0.0.1", "::1"];

/// Listens until this program is ended.
pub(super) async fn run(
    of: &Target,
    ports: &[(u16, u16)],
    address: &str,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(of).await?;
    refuse_resting(&workload)?;
    refuse_ended(&workload)?;
    let mut listening = Vec::new();
    for (local, remote) in ports {
        listening.push(Forwarded { here: listen(address, *local).await?, there: *remote });
    }
    for Forwarded { here, there } in &listening {
        for listener in here {
            writeln!(out, "Forwarding from {} -> {there}", listener.local_addr()?)?;
        }
    }
    out.flush()?;
    if workload.running_pods == 0 {
        let (name, phase) = (&workload.name, &workload.phase);
        print_note(&format!("{name} is {phase}; it can be reached as soon as it runs"));
    }
    carry_all(listening, workload.id, of.pod.clone(), context).await
}

/// A local port that is forwarded to a pod.
pub(super) struct Forwarded {
    /// Local listeners.
    pub(super) here: Vec<TcpListener>,
    /// Port of the pod.
    pub(super) there: u16,
}

/// Forwards connections until this program is ended.
pub(super) async fn carry_all(
    listening: Vec<Forwarded>,
    id: String,
    pod: Option<String>,
    context: &Context,
) -> Result<(), Error> {
    let place = Rc::new(Place { id, pod, context: context.renewed().await? });
    let mut ends = JoinSet::new();
    let served = tokio::task::LocalSet::new();
    let all = async {
        for Forwarded { here, there } in listening {
            for listener in here {
                let place = place.clone();
                ends.spawn_local(async move { accept(&listener, there, &place).await });
            }
        }
        match ends.join_next().await {
            Some(Ok(never)) => match never {},
            Some(Err(panic)) => Err(Error::Failed(format!("a listener failed: {panic}"))),
            None => Ok(()),
        }
    };
    served.run_until(all).await
}

/// Pod to connect to, and the context of its requests.
struct Place {
    id: String,
    pod: Option<String>,
    context: Context,
}

/// `localhost` is two addresses, of which a machine may lack the second.
pub(super) async fn listen(address: &str, port: u16) -> Result<Vec<TcpListener>, Error> {
    let fault = |error: std::io::Error| {
        Error::Failed(format!(
            "cannot listen on port {port} of {}: {error}; choose another with --port LOCAL:REMOTE",
            units::shown(address)
        ))
    };
    if address != "localhost" {
        let listener = TcpListener::bind((address, port)).await.map_err(fault)?;
        return Ok(vec![listener]);
    }
    let first = TcpListener::bind((LOCALHOST[0], port)).await.map_err(fault)?;
    let port = first.local_addr()?.port();
    let second = match TcpListener::bind((LOCALHOST[1], port)).await {
        Ok(second) => Some(second),
        Err(error) if is_absent(&error) => None,
        // Otherwise a client that tries this address first would reach another program.
        Err(error) => return Err(fault(error)),
    };
    Ok(std::iter::once(first).chain(second).collect())
}

/// True if this machine has no such address.
fn is_absent(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

/// Forwards the connections of one listener, for ever.
async fn accept(listener: &TcpListener, port: u16, place: &Rc<Place>) -> Infallible {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            // This connection is lost, or there are too many open files for a moment: the others
            // continue.
            Err(error) => {
                print_note(&format!("A connection to port {port} failed: {error}"));
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        // The server may have restarted since the last connection, or the token been renewed.
        let now = place.context.renewed().await;
        let place = place.clone();
        tokio::task::spawn_local(async move {
            let carried = match now {
                Ok(now) => carry(stream, port, &place, &now).await,
                Err(error) => Err(error),
            };
            if let Err(error) = carried {
                print_note(&format!("Connection from {from} to port {port} ended: {error}"));
            }
        });
    }
}

async fn carry(
    stream: TcpStream,
    port: u16,
    place: &Place,
    context: &Context,
) -> Result<(), Error> {
    let visit = context.client.connect(&place.id, place.pod.as_deref(), port).await?;
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let (to, from) = visit.split();
    tokio::try_join!(send(reader, to), receive(from, writer)).map(drop)
}

async fn send(mut from: OwnedReadHalf, mut to: Sender) -> Result<(), Error> {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        // A local program that broke its connection reads no more.
        let count = from.read_buf(&mut piece).await.unwrap_or(0);
        if to.sends(piece).await.is_err() || count == 0 {
            return Ok(());
        }
    }
}

async fn receive(mut from: Receiver, mut to: OwnedWriteHalf) -> Result<(), Error> {
    loop {
        let bytes = from.receives().await?;
        if bytes.is_empty() {
            // It may have gone; then it needs no end.
            let _gone = to.shutdown().await;
            return Ok(());
        }
        if to.write_all(&bytes).await.is_err() {
            return Ok(());
        }
    }
}
