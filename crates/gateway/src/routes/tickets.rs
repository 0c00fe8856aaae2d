//! Tickets, which open a port of a workload in a browser.

use access::{Caller, Route, Where, find_workload};
use api_types::{Ticket, TicketRequest, WebSocketTicket};
use auth::Action::{Read, Update};
use auth::Resource;
use axum::extract::{FromRef, Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::post;
use http_kit::{ApiError, Body};

use super::GatewayState;
use crate::ticket_issue;

/// The routes.
pub(super) fn routes<S>() -> [Route<S>; 2]
where
    S: Clone + Send + Sync + 'static,
    GatewayState: FromRef<S>,
{
    let path = "/elastane/v1/workloads/{workloadId}/websocket-tickets";
    let about = "A ticket by which a page opens a WebSocket of a workload; good once, for a minute";
    let socket = post(path, "create_websocket_ticket", about, create_for_socket);
    [route(), socket.needs(Update, Resource::Workloads, Where::Workload)]
}

fn route<S>() -> Route<S>
where
    S: Clone + Send + Sync + 'static,
    GatewayState: FromRef<S>,
{
    let path = "/elastane/v1/workloads/{workloadId}/tickets";
    let about =
        "An address by which a browser comes to a port of a workload; good once, for a minute";
    post(path, "create_ticket", about, create).needs(Read, Resource::Workloads, Where::Workload)
}

async fn create(
    FromState(gateway): FromState<GatewayState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<TicketRequest>,
) -> Result<Json<Ticket>, ApiError> {
    let workload = find_workload(&gateway.control, &id).await?;
    let (port, url) = ticket_issue::ticket(&gateway, &workload, request.url.as_deref(), &caller)?;
    let target = format!("{}/{}: {port}", workload.project_name, workload.spec.name);
    gateway.asked_by(&caller).record(&caller.subject, "workload.ticket", &target, "ok");
    Ok(Json(Ticket { url }))
}

async fn create_for_socket(
    FromState(gateway): FromState<GatewayState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<WebSocketTicket>, ApiError> {
    let workload = find_workload(&gateway.control, &id).await?;
    let (ticket, expires_in_seconds) =
        ticket_issue::ticket_for_socket(&gateway, &workload, &caller)?;
    let target = format!("{}/{}: WebSocket", workload.project_name, workload.spec.name);
    gateway.asked_by(&caller).record(&caller.subject, "workload.ticket", &target, "ok");
    Ok(Json(WebSocketTicket { ticket, expires_in_seconds }))
}
