//! Proxy for requests to replicas. Owns: the connections to replicas, removing hop-by-hop headers,
//! trying another replica, and streaming bodies. Does not know about: the client, and the address
//! of an inference.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt as _, Empty, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::upgrade::OnUpgrade;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::endpoint::{Endpoint, NoReplica, Ticket};
use crate::limits::{CONNECTING_MAX, OWN_MAX, REQUESTS_MAX, Shares};

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A streamed body.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Timeout of establishing a connection to a replica.
pub(crate) const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of idle connections to a replica.
const IDLE_MAX: usize = 64;
/// Maximum number of replicas that are tried when one cannot be reached.
const TRIES_MAX: u32 = 3;
/// Hop-by-hop headers, in addition to those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Protocols that no connection is upgraded to: further requests in them would pass unchecked.
const CARRIERS: [&str; 3] = ["h2c", "http", "tls"];

/// Reason why a request got no response from a replica.
#[derive(Debug, Error)]
pub enum Error {
    /// There was no replica.
    #[error(transparent)]
    NoReplica(#[from] NoReplica),
    /// Too many requests to this workload are in progress.
    #[error("{OWN_MAX} requests to this workload are under way already; try again later")]
    Crowded,
    /// Other requests were waiting for a connection, and none was accepted in time.
    #[error("it takes no connection, and {CONNECTING_MAX} wait for one already; try again later")]
    NoTurn,
    /// Its response did not begin in time.
    #[error("it did not begin to answer within {0} s")]
    TooSlow(u64),
    /// The replica could not be reached, or broke off.
    #[error("it did not answer: {0}")]
    Broken(String),
}

/// Client for all replicas.
#[derive(Debug, Clone)]
pub struct Proxy {
    client: Client<HttpConnector, BodyLease>,
    places: Arc<Semaphore>,
    pub(crate) shares: Shares,
}

impl Default for Proxy {
    fn default() -> Self {
        Self::with_places(REQUESTS_MAX)
    }
}

impl Proxy {
    pub(crate) fn with_places(places: usize) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_WAIT));
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(IDLE_MAX)
            .retry_canceled_requests(true)
            .build(connector);
        Self { client, places: Arc::new(Semaphore::new(places)), shares: Shares::default() }
    }

    /// Forwards a request to a replica, within `most` until its response begins. The path is that
    /// of the replica, the headers are those that [`strip`] leaves, and those added since. An
    /// upgraded connection ends with `until`.
    ///
    /// # Errors
    /// No replica responded.
    pub async fn forward(
        &self,
        endpoint: &Arc<Endpoint>,
        mut request: Request<Body>,
        most: Duration,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response<Body>, Error> {
        let place = self.place()?;
        let client_side = client_side(&mut request);
        let (head, body) = request.into_parts();
        let lender = ReusableBody::new(body);
        let mut ticket = endpoint.admit(most).await?;
        let mut tries = 1;
        let response = loop {
            let Some(address) = ticket.address() else {
                return Err(NoReplica::Closed("its replica is gone".to_owned()).into());
            };
            let mut request = Request::new(lender.lend());
            *request.method_mut() = head.method.clone();
            *request.uri_mut() = at(address, &head.uri)?;
            *request.headers_mut() = head.headers.clone();
            let left = most.saturating_sub(ticket.age());
            let answer = tokio::time::timeout(left, self.client.request(request)).await;
            match answer.map_err(|_| Error::TooSlow(most.as_secs()))? {
                Ok(response) => break response,
                Err(error) if error.is_connect() && tries < TRIES_MAX && !lender.touched() => {
                    tries += 1;
                    tracing::debug!(%address, %error, "a replica cannot be reached");
                    ticket.try_another(most.saturating_sub(ticket.age())).await?;
                }
                Err(error) => return Err(Error::Broken(in_words(&error))),
            }
        };
        ticket.keep(place);
        Ok(answer(response, client_side, ticket, until))
    }

    /// Takes a permit among all requests.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        let place = self.places.clone().try_acquire_owned();
        Ok(place.map_err(|_| NoReplica::Crowded)?)
    }

    /// Checks that a replica responds to a GET of this path with 200 to 399.
    pub(crate) async fn look(&self, address: SocketAddr, path: &str) -> Result<(), ProbeFault> {
        let failed = |error: &dyn std::error::Error| ProbeFault::Failed(in_words(error));
        let path = path.parse::<Uri>().map_err(|error| failed(&error))?;
        let uri = at(address, &path).map_err(|error| failed(&error))?;
        let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let mut request = Request::new(ReusableBody::new(nothing).lend());
        *request.uri_mut() = uri;
        let answer = self.client.request(request).await.map_err(|error| failed(&error))?;
        match answer.status() {
            status if (200..400).contains(&status.as_u16()) => Ok(()),
            status => Err(ProbeFault::Status(status)),
        }
    }
}

/// Reason why a replica is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeFault {
    /// It responds with a status other than 200 to 399.
    Status(StatusCode),
    /// It does not respond; the text is the cause.
    Failed(String),
}

impl std::fmt::Display for ProbeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "it answers with status {status}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// The client's side of an upgrade, if the request asks for one.
pub(crate) fn client_side(request: &mut Request<Body>) -> Option<OnUpgrade> {
    let goes_over = request.headers().contains_key(header::UPGRADE);
    goes_over.then(|| hyper::upgrade::on(request))
}

/// The error with its causes.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The URI of this path at a replica.
fn at(address: SocketAddr, uri: &Uri) -> Result<Uri, Error> {
    let broken = |error: &dyn std::error::Error| Error::Broken(error.to_string());
    let authority: Authority = address.to_string().parse().map_err(|e| broken(&e))?;
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority);
    parts.path_and_query = uri.path_and_query().cloned();
    if parts.path_and_query.is_none() {
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    }
    Uri::from_parts(parts).map_err(|e| broken(&e))
}

/// The protocol that a request asks to upgrade to, if it is allowed.
fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = connection_words(headers).any(|word| word.eq_ignore_ascii_case("upgrade"));
    let protocols = headers.get(header::UPGRADE).filter(|_| asked)?;
    let names = protocols.to_str().ok()?.split(',').filter_map(|one| one.trim().split('/').next());
    let is_carrier = |name: &str| CARRIERS.iter().any(|one| one.eq_ignore_ascii_case(name));
    (!names.into_iter().any(is_carrier)).then(|| protocols.clone())
}

fn go_over(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

fn connection_words(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::CONNECTION).into_iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).map(str::trim)
}

/// Removes the hop-by-hop headers of a client, except for its request to upgrade. Must precede
/// adding headers in its name: a client names headers at will.
pub fn strip(headers: &mut HeaderMap) {
    let wanted = upgrade_of(headers);
    strip_all(headers);
    if let Some(protocol) = wanted {
        go_over(headers, protocol);
    }
}

/// Removes all hop-by-hop headers.
fn strip_all(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        connection_words(headers).filter_map(|word| word.parse().ok()).collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// A value that is kept until the end of a response.
pub(crate) trait UntilAnswered: Send + Unpin + 'static {
    /// Called after a complete response.
    fn answered(&mut self) {}
}

impl UntilAnswered for OwnedSemaphorePermit {}

impl UntilAnswered for Ticket {
    fn answered(&mut self) {
        Ticket::answered(self);
    }
}

/// Streams the response; `held` is kept until its end.
pub(crate) fn answer(
    mut response: Response<Incoming>,
    client_side: Option<OnUpgrade>,
    held: impl UntilAnswered,
    until: impl Future<Output = ()> + Send + 'static,
) -> Response<Body> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let protocol = response.headers().get(header::UPGRADE).cloned();
        let replica_side = hyper::upgrade::on(&mut response);
        strip_all(response.headers_mut());
        if let Some(protocol) = protocol {
            go_over(response.headers_mut(), protocol);
        }
        if let Some(client_side) = client_side {
            tokio::spawn(async move {
                tokio::select! {
                    () = connect(client_side, replica_side) => {}
                    () = until => tracing::debug!("an upgraded connection was ended"),
                }
                drop(held);
            });
        }
        return response.map(|_| Empty::new().map_err(|never| match never {}).boxed_unsync());
    }
    strip_all(response.headers_mut());
    response.map(|body| HoldingBody { body, held }.boxed_unsync())
}

/// Copies the data of either side to the other, until both are done.
async fn connect(client: OnUpgrade, replica: OnUpgrade) {
    let (client, replica) = tokio::join!(client, replica);
    if let (Ok(client), Ok(replica)) = (client, replica) {
        let (mut client, mut replica) = (TokioIo::new(client), TokioIo::new(replica));
        let ended = tokio::io::copy_bidirectional(&mut client, &mut replica).await;
        tracing::debug!(?ended, "an upgraded connection ended");
    }
}

/// A response's body, and the value that is dropped with it.
struct HoldingBody<H: UntilAnswered> {
    body: Incoming,
    held: H,
}

impl<H: UntilAnswered> http_body::Body for HoldingBody<H> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) {
            self.held.answered();
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<H: UntilAnswered> Drop for HoldingBody<H> {
    fn drop(&mut self) {
        // The end of a body of known length is not polled.
        if self.body.is_end_stream() {
            self.held.answered();
        }
    }
}

/// A request's body that can be sent again as long as none of it was read.
struct ReusableBody {
    body: Arc<Mutex<Body>>,
    touched: Arc<AtomicBool>,
}

impl ReusableBody {
    fn new(body: Body) -> Self {
        Self { body: Arc::new(Mutex::new(body)), touched: Arc::default() }
    }

    fn lend(&self) -> BodyLease {
        BodyLease { body: self.body.clone(), touched: self.touched.clone() }
    }

    fn touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }
}

struct BodyLease {
    body: Arc<Mutex<Body>>,
    touched: Arc<AtomicBool>,
}

impl http_body::Body for BodyLease {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.touched.store(true, Ordering::Relaxed);
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_connection_is_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("x-other", "2"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        strip(&mut headers);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-other"]);
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_an_end_to_how_many_requests_there_can_be() {
        let (proxy, endpoint) = (Proxy::with_places(1), Endpoint::new(Arc::default()));
        let ask = || {
            let (proxy, endpoint) = (proxy.clone(), endpoint.clone());
            let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
            async move {
                let never = std::future::pending();
                let most = Duration::from_secs(5);
                proxy.forward(&endpoint, Request::new(body), most, never).await.map(drop)
            }
        };
        let (first, second) = tokio::join!(ask(), ask());
        assert!(matches!(first, Err(Error::NoReplica(NoReplica::InTime { .. }))));
        assert!(matches!(second, Err(Error::NoReplica(NoReplica::Crowded))));
        assert!(matches!(ask().await, Err(Error::NoReplica(NoReplica::InTime { .. }))));
    }

    #[test]
    fn going_over_takes_both_headers_and_a_protocol_that_carries_no_requests() {
        for (connection, protocol, goes_over) in [
            ("keep-alive, Upgrade", "websocket", true),
            ("keep-alive", "websocket", false),
            ("upgrade, http2-settings", "h2c", false),
            ("upgrade", "websocket, H2C", false),
            ("upgrade", "HTTP/2.0", false),
            ("upgrade", "TLS/1.0", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::UPGRADE, HeaderValue::from_static(protocol));
            headers.insert(header::CONNECTION, HeaderValue::from_static(connection));
            headers.insert("http2-settings", HeaderValue::from_static("AAMAAABkAAQAAP__"));
            strip(&mut headers);
            let left = if goes_over { &[header::CONNECTION, header::UPGRADE][..] } else { &[] };
            let mut names: Vec<_> = headers.keys().cloned().collect();
            names.sort_by_key(ToString::to_string);
            assert_eq!(names, left, "{connection}: {protocol}");
        }
    }
}
