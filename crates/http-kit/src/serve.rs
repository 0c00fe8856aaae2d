//! Listening and stopping. Owns: connections, how long they may be silent, and a shutdown that
//! answers pending requests and ends streams. Does not know which of them make room
//! (`connections`).

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;
use tower::Service as _;

use crate::connections::{ConnectionPermit, Connections, Full, Limits};
use crate::heads::{self, CheckedHeads};
use crate::tls::Tls;

/// Longest time for open connections to end.
const DRAIN_WAIT: Duration = Duration::from_secs(3);
/// Longest silence of a connection between two requests, and longest time for a head except the
/// first.
const HEAD_WAIT: Duration = Duration::from_secs(60);
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
    /// Requests the stop of the server.
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

/// Serves requests until `shutdown` is triggered and all earlier ones are answered.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, router: Router, shutdown: Shutdown) {
    serve_within(Limits::default(), listener, tls, router, shutdown).await;
}

/// Serves like [`serve`], with other limits.
pub async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    shutdown: Shutdown,
) {
    let connections = Connections::new(limits);
    loop {
        let next = tokio::select! {
            () = shutdown.wait() => break,
            next = accept(&listener) => next,
        };
        let Some((stream, address)) = next else {
            tokio::time::sleep(REFUSED_PAUSE).await;
            continue;
        };
        let place = match connections.admit(address, stream.local_addr().ok()) {
            Ok(place) => place,
            Err(full) => {
                refuse(&stream, tls.is_some(), full);
                continue;
            }
        };
        let first_wait = connections.first_wait();
        let stop = shutdown.clone();
        let connection = Connection { router: router.clone(), address, stop, place, first_wait };
        tokio::spawn(connection.begin(stream, tls.clone()));
    }
    drop(listener);
    // Connections that have not ended by then are cut off.
    drop(tokio::time::timeout(DRAIN_WAIT, connections.all_ended()).await);
}

/// The next connection; none if the machine refuses it.
async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    loop {
        match listener.accept().await {
            Ok(accepted) => return Some(accepted),
            // The client closed that connection.
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

/// Closes a connection for which there is no place, as far as possible with the reason.
fn refuse(stream: &TcpStream, encrypted: bool, full: Full) {
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         connection: close\r\nretry-after: 5\r\n\r\n{{\"code\":503,\"message\":\"{full}\"}}\n"
    );
    if !encrypted && let Err(error) = stream.try_write(answer.as_bytes()) {
        tracing::debug!("a connection was refused without a word: {error}");
    }
}

/// The answer to plain HTTP on an HTTPS port.
const PLAIN: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
    {\"code\":400,\"message\":\"this server speaks https; ask again with https:// in place of http://\"}\n";
/// Bytes of a plain request that are read before it is answered: closing on unread ones would take
/// the answer with it.
const PLAIN_BYTES: usize = 16 << 10;

/// The encrypted connection. A client that starts with a method name speaks plain HTTP, and gets a
/// response that names https.
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
    place: ConnectionPermit,
    first_wait: Duration,
}

impl Connection {
    /// Serves it, unless it stays silent for too long or has to make room.
    async fn begin(self, stream: TcpStream, tls: Option<Tls>) {
        let (place, address) = (self.place.clone(), self.address);
        let stays_silent = async {
            tokio::time::sleep(self.first_wait).await;
            if place.has_asked() {
                std::future::pending::<()>().await;
            }
        };
        let stays_silent = std::pin::pin!(stays_silent);
        let why = tokio::select! {
            () = self.serve(stream, tls) => return,
            () = stays_silent => "it asked nothing in time",
            () = place.has_to_leave() => "it made room for another",
        };
        tracing::debug!(%address, "a connection was closed: {why}");
    }

    async fn serve(&self, stream: TcpStream, tls: Option<Tls>) {
        let Some(tls) = tls else { return self.answer(stream).await };
        match encrypt(stream, &tls).await {
            Ok(stream) => self.answer(stream).await,
            Err(error) => tracing::debug!(address = %self.address, "no TLS came about: {error}"),
        }
    }

    async fn answer(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (place, router, address) = (self.place.clone(), self.router.clone(), self.address);
        let service = service_fn(move |request: Request<Incoming>| {
            let (parts, body) = request.into_parts();
            let ends = heads::ends_connection(&parts.method, &parts.headers);
            let (busy, body) = place.begin(Body::new(body));
            let mut request = Request::from_parts(parts, Body::new(body));
            request.extensions_mut().insert(ConnectInfo(address));
            request.extensions_mut().insert(place.clone());
            let answer = router.clone().call(request);
            async move {
                let mut answer = answer.await?;
                if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                    busy.goes_over();
                } else if ends {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer.map(|body| busy.until_end_of(body)))
            }
        });
        // hyper answers bytes that are not HTTP, before there is a request: 400 (a long head: 431)
        // without a body, which it has no setting for. Then it closes the connection.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .serve_connection(TokioIo::new(CheckedHeads::new(stream)), service)
            // A request to an inference may go over to another protocol.
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.wait() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%address, "a connection ended: {error}");
        }
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
