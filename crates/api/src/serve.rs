//! Listening and stopping. Owns: connections, how many there are and how long they may be silent,
//! and a shutdown that answers what has been asked and ends streams.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::server::TlsStream;
use tower::Service as _;

use crate::Tls;

/// How long open connections may take to end.
const DRAIN_WAIT: Duration = Duration::from_secs(3);
/// How long a connection may take to be encrypted.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// How long a connection may be silent, or take for the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(60);
/// Most connections at a time; further ones wait.
const CONNECTIONS_MAX: u32 = 8192;
const _: () = assert!(
    serving::REQUESTS_MAX * 2 <= CONNECTIONS_MAX as usize,
    "requests to inferences may last; they leave room for others"
);
/// Wait after the machine refused a connection.
const REFUSED_PAUSE: Duration = Duration::from_millis(200);

/// The wish that the server stops; can be triggered and waited for by any number.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Shutdown {
    /// Asks the server to stop.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Returns when the server is to stop.
    pub async fn wait(&self) {
        let mut told = self.0.subscribe();
        // The sender lives as long as `self`, so waiting ends with a trigger only.
        drop(told.wait_for(|stop| *stop).await);
    }
}

/// Answers requests until `shutdown` is triggered and what was asked before is answered.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, router: Router, shutdown: Shutdown) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
    loop {
        let next = tokio::select! {
            () = shutdown.wait() => break,
            next = accept(&listener, &places) => next,
        };
        let Some((stream, address, place)) = next else {
            tokio::time::sleep(REFUSED_PAUSE).await;
            continue;
        };
        let connection =
            Connection { router: router.clone(), address, stop: shutdown.clone(), place };
        tokio::spawn(connection.begin(stream, tls.clone()));
    }
    drop(listener);
    // All have ended when all places are free. What has not ended by then is cut off.
    drop(tokio::time::timeout(DRAIN_WAIT, places.acquire_many(CONNECTIONS_MAX)).await);
}

/// The next connection, once there is a place for it; none if the machine refuses it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return Some((stream, address, place)),
            // That one went away by itself.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                tracing::error!("cannot accept connections: {error}; trying again");
                return None;
            }
        }
    }
}

/// The place of a connection. What it goes over to keeps it.
#[derive(Clone)]
pub(crate) struct Place(#[expect(dead_code, reason = "it is held")] Arc<OwnedSemaphorePermit>);

/// What whoever speaks http to a server that speaks https is told.
const PLAIN: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
    {\"code\":400,\"message\":\"this server speaks https; ask again with https:// in place of http://\"}\n";
/// Bytes of a plain request that are read before it is answered: closing on unread ones would take the
/// answer with it.
const PLAIN_BYTES: usize = 16 << 10;

/// The connection, encrypted. Whoever begins with the name of a method speaks plain http, and hears
/// what to do.
async fn encrypt(mut stream: TcpStream, tls: &Tls) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
        let read = stream.read(&mut vec![0; PLAIN_BYTES]).await?;
        stream.write_all(PLAIN.as_bytes()).await?;
        stream.shutdown().await?;
        return Err(io::Error::other(format!("{read} bytes of plain http")));
    }
    tls.acceptor.accept(stream).await
}

/// A connection and what it needs.
struct Connection {
    router: Router,
    address: SocketAddr,
    stop: Shutdown,
    place: OwnedSemaphorePermit,
}

impl Connection {
    async fn begin(self, stream: TcpStream, tls: Option<Tls>) {
        let Some(tls) = tls else { return self.answer(stream).await };
        let address = self.address;
        match tokio::time::timeout(HANDSHAKE_WAIT, encrypt(stream, &tls)).await {
            Ok(Ok(stream)) => self.answer(stream).await,
            Ok(Err(error)) => tracing::debug!(%address, "no TLS came about: {error}"),
            Err(_) => tracing::debug!(%address, "no TLS came about in time"),
        }
    }

    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { router, address, stop, place } = self;
        let place = Place(Arc::new(place));
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(address));
            request.extensions_mut().insert(place.clone());
            router.clone().call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .serve_connection(TokioIo::new(stream), service)
            // A request to an inference may go over to another protocol.
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.wait() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%address, "a connection ended: {error}");
        }
    }
}
