//! Tickets to ports of workloads. Owns: which port is meant, and that who gets one may open it.
//! Does not know who may see the workload.

use access::Caller;
use axum::http::StatusCode;
use http_kit::ApiError;
use spec::{Audience, ExposedUrl};
use uuid::Uuid;
use view::WorkloadView;

use crate::Gateway;
use crate::admission::{is_meant, said_at};
use crate::browser::TICKET;
use crate::tickets::TICKET_MS;

/// No port of a workload has this number.
const NO_PORT: u16 = 0;

/// The port that is meant, by name or number, or the only one; and an address by which a browser
/// comes there as this caller. Where everyone may come there is no ticket in it.
pub(crate) fn ticket(
    gateway: &Gateway,
    workload: &WorkloadView,
    asked: Option<&str>,
    caller: &Caller,
) -> Result<(u16, String), ApiError> {
    let (port, audience, named_at, address) = match &workload.spec.serving {
        Some(serving) if asked.is_none_or(|asked| asked == serving.container_port.to_string()) => {
            let named_at = said_at(&gateway.control.view(), workload);
            let address = gateway.origins.of_inference(workload) + "/";
            (serving.container_port, &serving.audience, named_at, Some(address))
        }
        _ => {
            let url = chosen(workload, asked)?;
            let address = gateway.origins.of_page(workload, url.port);
            (url.port, &url.audience, workload.created_at, address)
        }
    };
    let Some(address) = address else {
        let why = "its project was renamed, and there is no host for it any more; submit it again";
        return Err(ApiError::new(StatusCode::CONFLICT, why));
    };
    if *audience == Audience::Everyone {
        return Ok((port, address));
    }
    is_meant(audience, Some(caller), named_at)?;
    let ticket = gateway.tickets.ticket((workload.id, port), caller, gateway.now());
    let ticket = ticket.map_err(ApiError::internal)?;
    Ok((port, format!("{address}?{TICKET}={ticket}")))
}

/// A ticket to the WebSockets of a workload, and for how many seconds it is good.
pub(crate) fn ticket_for_socket(
    gateway: &Gateway,
    workload: &WorkloadView,
    caller: &Caller,
) -> Result<(String, u64), ApiError> {
    let ticket = gateway.tickets.ticket((workload.id, NO_PORT), caller, gateway.now());
    Ok((ticket.map_err(ApiError::internal)?, TICKET_MS / 1000))
}

/// Caller of a ticket for WebSockets. The ticket is used up.
pub(crate) fn redeem_for_socket(gateway: &Gateway, ticket: &str, workload: Uuid) -> Option<Caller> {
    gateway.tickets.redeem(ticket, (workload, NO_PORT), gateway.now())
}

fn chosen<'a>(workload: &'a WorkloadView, asked: Option<&str>) -> Result<&'a ExposedUrl, ApiError> {
    let (name, urls) = (&workload.spec.name, &workload.spec.urls);
    let is = |url: &&ExposedUrl, asked: &str| {
        url.name.as_deref() == Some(asked) || url.port.to_string() == asked
    };
    let found = match (asked, &urls[..]) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(asked), _) => urls.iter().find(|url| is(url, asked)),
    };
    found.ok_or_else(|| {
        if urls.is_empty() {
            let why = "has no port that is opened in a browser; submit it with `--external-url \
                       container=PORT` (`runai submit`: `--service-type ingress --port PORT`)";
            return ApiError::new(StatusCode::CONFLICT, format!("{name} {why}"));
        }
        let one = |url: &ExposedUrl| url.name.clone().unwrap_or_else(|| url.port.to_string());
        let all = urls.iter().map(one).collect::<Vec<_>>().join(", ");
        ApiError::field("url", format!("say which of those of {name}: {all}"))
    })
}
