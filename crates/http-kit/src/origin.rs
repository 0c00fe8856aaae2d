//! Origin of a request, for the audit log, for limits, and for requests that only this machine may
//! send.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State as FromState};
use axum::middleware::Next;
use axum::response::Response;

use crate::proxies::{Proxies, is_forwarded};
use crate::request_id::RequestId;

/// Origin of a request, with its method and path.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Address it comes from; empty if that is not known.
    pub address: String,
    /// Address of the connection it came over: that of the client, or of a proxy.
    pub peer: String,
    /// True if that is a listed proxy.
    pub by_proxy: bool,
    /// True if the client is on this machine. A proxy on this machine that is not listed may ask
    /// for anybody.
    pub is_local: bool,
    /// Method of the request.
    pub method: String,
    /// Path of the request, without the query.
    pub path: String,
    /// The id under which it is in the log.
    pub request_id: String,
}

/// Records the origin of a request. Headers that name another address count only from listed
/// proxies.
pub async fn note_origin(
    FromState(proxies): FromState<Arc<Proxies>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|peer| peer.0.ip().to_canonical());
    let by_proxy = peer.is_some_and(|peer| proxies.contain(peer));
    let client = peer.map(|peer| proxies.client(peer, request.headers()));
    let shown = |address: Option<IpAddr>| address.map(|of| of.to_string()).unwrap_or_default();
    let request_id = request.extensions().get::<RequestId>();
    let origin = Origin {
        address: shown(client),
        peer: shown(peer),
        by_proxy,
        // A request through a proxy never counts as one of this machine.
        is_local: peer.is_some_and(|peer| peer.is_loopback()) && !is_forwarded(request.headers()),
        method: request.method().to_string(),
        // The path is recorded without the query, which may hold secrets.
        path: request.uri().path().chars().filter(|c| !c.is_control()).take(300).collect(),
        request_id: request_id.map(|id| id.to_string()).unwrap_or_default(),
    };
    request.extensions_mut().insert(origin);
    next.run(request).await
}
