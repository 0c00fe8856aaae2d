//! Connections to the API server. Owns: the way there, by a proxy or none, and the TLS on it. Does
//! not know about: requests, credentials.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::{Service, ServiceExt as _};

use crate::error::ConfigError;

/// The time for a connection, and again for TLS on it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection through which nothing comes is probed this often.
const KEEPALIVE: Duration = Duration::from_secs(30);

type BoxError = Box<dyn Error + Send + Sync>;
type Tcp = TokioIo<TcpStream>;

#[derive(Clone)]
enum Route {
    Direct(HttpConnector),
    Tunnel(Tunnel<HttpConnector>),
    Socks(SocksV5<HttpConnector>),
}

/// Makes connections to one API server.
#[derive(Clone)]
pub(crate) struct Connector {
    route: Route,
    /// TLS of the connection; `None` without it.
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Connector {
    pub(crate) fn new(
        server: &Uri,
        server_name: Option<&str>,
        proxy: Option<&Uri>,
        tls: ClientConfig,
    ) -> Result<Self, ConfigError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_keepalive(Some(KEEPALIVE));
        let secured = if server.scheme_str() == Some("https") {
            let host = server_name.or_else(|| server.host()).unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let name = ServerName::try_from(host.clone()).map_err(|_| ConfigError::Field {
                field: "tls-server-name",
                place: server.to_string(),
                fault: format!("`{host}` is no name that a certificate can have"),
            })?;
            Some((TlsConnector::from(Arc::new(tls)), name))
        } else {
            None
        };
        Ok(Self { route: route(proxy, tcp)?, tls: secured })
    }
}

fn route(proxy: Option<&Uri>, tcp: HttpConnector) -> Result<Route, ConfigError> {
    let Some(proxy) = proxy else { return Ok(Route::Direct(tcp)) };
    let login =
        proxy.authority().and_then(|all| all.as_str().rsplit_once('@')).map(|(user, _)| user);
    if proxy.scheme_str() == Some("socks5") {
        let socks = SocksV5::new(proxy.clone(), tcp);
        let Some(login) = login else { return Ok(Route::Socks(socks)) };
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        return Ok(Route::Socks(socks.with_auth(user.to_owned(), password.to_owned())));
    }
    let tunnel = Tunnel::new(proxy.clone(), tcp);
    let Some(login) = login else { return Ok(Route::Tunnel(tunnel)) };
    let basic = format!("Basic {}", BASE64_STANDARD.encode(login));
    let basic = HeaderValue::try_from(basic).map_err(|error| ConfigError::Field {
        field: "proxy-url",
        place: "the kubeconfig".to_owned(),
        fault: error.to_string(),
    })?;
    Ok(Route::Tunnel(tunnel.with_auth(basic)))
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Self { route, tls } = self.clone();
        Box::pin(async move {
            // A proxy may take the connection and be silent.
            let tcp = timed("no connection", route.connect(server)).await??;
            let Some((connector, name)) = tls else { return Ok(Stream::Plain(tcp)) };
            let handshake = connector.connect(name, tcp.into_inner());
            let stream = timed("no TLS", handshake).await??;
            Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
        })
    }
}

impl Route {
    async fn connect(self, server: Uri) -> Result<Tcp, BoxError> {
        Ok(match self {
            Self::Direct(tcp) => tcp.oneshot(server).await?,
            Self::Tunnel(tunnel) => tunnel.oneshot(server).await?,
            Self::Socks(socks) => socks.oneshot(server).await?,
        })
    }
}

async fn timed<T>(what: &str, work: impl Future<Output = T>) -> Result<T, BoxError> {
    let late = |_| format!("{what} within {} s", CONNECT_TIMEOUT.as_secs()).into();
    tokio::time::timeout(CONNECT_TIMEOUT, work).await.map_err(late)
}

/// A connection, with TLS or without.
pub(crate) enum Stream {
    Plain(Tcp),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Plain(_) => Connected::new(),
            Self::Tls(stream) => {
                let (_, session) = stream.inner().get_ref();
                let connected = Connected::new();
                let is_h2 = session.alpn_protocol() == Some(b"h2");
                if is_h2 { connected.negotiated_h2() } else { connected }
            }
        }
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
