//! WebSockets of workloads that a browser opens: it cannot send a token. Owns: that a page opens
//! one by a ticket that is good once.

use std::sync::Arc;

use access::Caller;
use axum::Extension;
use axum::extract::{Request, State as FromState};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_kit::{ApiError, Origin, is_websocket, must_be_own_page};
use uuid::Uuid;

use crate::Gateway;
use crate::browser::take_ticket;
use crate::ticket_issue::redeem_for_socket;

/// Prefix of the paths of a workload's WebSockets.
const WORKLOADS: &str = "/elastane/v1/workloads/";

/// Lets only pages of this server open WebSockets, and makes known who opens one by a ticket.
pub async fn admit_pages(
    FromState(gateway): FromState<Arc<Gateway>>,
    Extension(origin): Extension<Origin>,
    mut request: Request,
    next: Next,
) -> Response {
    let own = must_be_own_page(&gateway.origins.server, request.headers());
    match own.and_then(|()| by_ticket(&gateway, &origin, &mut request).transpose()) {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(error) => {
            gateway.authenticator.note_refusal(
                &origin,
                ("", false),
                error.status,
                &error.message(),
            );
            error.into_response()
        }
    }
}

/// Caller that opens a WebSocket of a workload in a browser, by the ticket in its address; `None`
/// without a ticket. The ticket is removed from the address.
fn by_ticket(
    gateway: &Gateway,
    origin: &Origin,
    request: &mut Request,
) -> Option<Result<Caller, ApiError>> {
    let path = request.uri().path();
    let opens = request.method() == Method::GET
        && ["/exec", "/attach", "/portforward"].iter().any(|end| path.ends_with(end));
    let by_a_page = request.headers().contains_key(header::ORIGIN);
    if !opens || !by_a_page || !is_websocket(request.headers()) {
        return None;
    }
    let (ticket, rest) = take_ticket(request.uri())?;
    let workload = request.uri().path().strip_prefix(WORKLOADS);
    let workload = workload.and_then(|path| path.split('/').next()?.parse::<Uuid>().ok());
    if let Ok(rest) = rest.parse::<PathAndQuery>() {
        *request.uri_mut() = Uri::from(rest);
    }
    let caller = workload.and_then(|id| redeem_for_socket(gateway, &ticket, id));
    let caller = caller
        .and_then(|one| gateway.authenticator.again(&Caller { origin: origin.clone(), ..one }));
    Some(caller.ok_or_else(|| {
        let why = "the ticket was used, is older than a minute, or is for another workload; \
                   POST /elastane/v1/workloads/{workloadId}/websocket-tickets gives a new one";
        ApiError::new(StatusCode::UNAUTHORIZED, why)
    }))
}
