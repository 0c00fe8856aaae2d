//! Where a request comes from, for the audit log.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use control::AuditDetail;

use crate::monitoring::RequestId;

/// Where a request comes from and what it was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// Address it comes from; empty if that is not known.
    pub(crate) address: String,
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

/// Notes where a request comes from. Headers that name another address are not believed.
pub(crate) async fn note_origin(mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let request_id = request.extensions().get::<RequestId>();
    let origin = Origin {
        address: peer.map(|peer| peer.0.ip().to_string()).unwrap_or_default(),
        method: request.method().to_string(),
        // Without the query, which may hold what is nobody's business.
        path: request.uri().path().chars().filter(|c| !c.is_control()).take(300).collect(),
        request_id: request_id.map(|id| id.0.to_string()).unwrap_or_default(),
    };
    request.extensions_mut().insert(origin);
    next.run(request).await
}
