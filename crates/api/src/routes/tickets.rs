//! Tickets: by them somebody comes to a port of a workload in a browser.

use access::{Caller, Route, Where, find_workload};
use api_types::{Ticket, TicketRequest, WebSocketTicket};
use auth::Action::{Read, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::post;
use http_kit::{Body, Fault};

use crate::Shared;
use crate::urls;

/// The routes.
pub(super) fn routes() -> [Route<Shared>; 2] {
    let path = "/elastane/v1/workloads/{workloadId}/websocket-tickets";
    let about = "A ticket by which a page opens a WebSocket of a workload; good once, for a minute";
    let socket = post(path, "create_websocket_ticket", about, create_for_socket);
    [route(), socket.needs(Update, Resource::Workloads, Where::Workload)]
}

fn route() -> Route<Shared> {
    let path = "/elastane/v1/workloads/{workloadId}/tickets";
    let about =
        "An address by which a browser comes to a port of a workload; good once, for a minute";
    post(path, "create_ticket", about, create).needs(Read, Resource::Workloads, Where::Workload)
}

async fn create(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<TicketRequest>,
) -> Result<Json<Ticket>, Fault> {
    let workload = find_workload(&state.control.view(), &id)?;
    let (port, url) = urls::ticket(&state, &workload, request.url.as_deref(), &caller)?;
    let target = format!("{}/{}: {port}", workload.project_name, workload.spec.name);
    state.asked_by(&caller).record(&caller.subject, "workload.ticket", &target, "ok");
    Ok(Json(Ticket { url }))
}

async fn create_for_socket(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<WebSocketTicket>, Fault> {
    let workload = find_workload(&state.control.view(), &id)?;
    let (ticket, expires_in_seconds) = urls::ticket_for_socket(&state, &workload, &caller)?;
    let target = format!("{}/{}: WebSocket", workload.project_name, workload.spec.name);
    state.asked_by(&caller).record(&caller.subject, "workload.ticket", &target, "ok");
    Ok(Json(WebSocketTicket { ticket, expires_in_seconds }))
}
