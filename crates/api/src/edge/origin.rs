//! Where a request comes from, for the audit log, for limits, and for what only this machine may
//! ask.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State as FromState};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use control::AuditDetail;

use super::proxies::is_forwarded;
use crate::Server;
use crate::monitoring::RequestId;

/// Where a request comes from and what it was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// Address it comes from; empty if that is not known.
    pub(crate) address: String,
    /// Address of the connection it came over: that of the client, or of a proxy.
    pub(crate) peer: String,
    /// Whether that is a listed proxy.
    pub(crate) by_proxy: bool,
    /// Whether the client is on this machine. A proxy on this machine that is not listed may ask
    /// for anybody.
    pub(crate) is_local: bool,
    method: String,
    pub(crate) path: String,
    request_id: String,
}

impl Origin {
    /// For the audit log.
    pub(crate) fn detail(&self, by_program: bool, status: Option<StatusCode>) -> AuditDetail {
        AuditDetail {
            by_program,
            source_ip: self.address.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            request_id: self.request_id.clone(),
            target_id: String::new(),
            status: status.map(|status| status.as_u16()),
        }
    }
}

/// Notes where a request comes from. Headers that name another address are believed of listed
/// proxies only.
pub(crate) async fn note_origin(
    FromState(server): FromState<Arc<Server>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|peer| peer.0.ip().to_canonical());
    let by_proxy = peer.is_some_and(|peer| server.proxies.contain(peer));
    let client = peer.map(|peer| server.proxies.client(peer, request.headers()));
    let shown = |address: Option<IpAddr>| address.map(|of| of.to_string()).unwrap_or_default();
    let request_id = request.extensions().get::<RequestId>();
    let origin = Origin {
        address: shown(client),
        peer: shown(peer),
        by_proxy,
        // What a proxy asks for is never of this machine.
        is_local: peer.is_some_and(|peer| peer.is_loopback()) && !is_forwarded(request.headers()),
        method: request.method().to_string(),
        // Without the query, which may hold what is nobody's business.
        path: request.uri().path().chars().filter(|c| !c.is_control()).take(300).collect(),
        request_id: request_id.map(|id| id.0.to_string()).unwrap_or_default(),
    };
    request.extensions_mut().insert(origin);
    next.run(request).await
}
