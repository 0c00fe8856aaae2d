//! Requests to inferences. Owns: the address of an inference, who may ask it, and what is told and
//! kept from a replica. Refuses to know: which replica answers (`serving`).
//!
//! Answers come from programs of users and share the server's origin. So a browser is told to treat
//! them as from nowhere (`sandbox`): a page from an inference cannot act as who looks at it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State as FromState};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, HOST, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use control::Audience;
use control::view::{Phase, WorkloadView};
use http_body_util::BodyExt as _;
use serving::{Error, NoReplica};

use crate::Server;
use crate::edge::{Fault, Origin, bearer};

/// Where inferences are found.
pub(crate) const ROUTES: [&str; 3] =
    ["/serve/{project}/{name}", "/serve/{project}/{name}/", "/serve/{project}/{name}/{*rest}"];

/// Seconds after which it may be tried again.
const RETRY_S: &str = "10";
const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";
/// What a replica is told of the request; nobody else can say it.
const USER: HeaderName = HeaderName::from_static("x-forwarded-user");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The address of an inference on this server.
pub(crate) fn path(project: &str, name: &str) -> String {
    format!("/serve/{project}/{name}/")
}

/// Has a request answered by a replica.
pub(crate) async fn forward(
    FromState(server): FromState<Arc<Server>>,
    Extension(origin): Extension<Origin>,
    Path(place): Path<Vec<(String, String)>>,
    request: Request,
) -> Response {
    let refused = match answer(&server, &origin, &place, request).await {
        Ok(answer) => return answer,
        Err(fault) => fault,
    };
    match refused.status {
        StatusCode::UNAUTHORIZED => ([(WWW_AUTHENTICATE, "Bearer")], refused).into_response(),
        StatusCode::SERVICE_UNAVAILABLE => ([(RETRY_AFTER, RETRY_S)], refused).into_response(),
        _ => refused.into_response(),
    }
}

async fn answer(
    server: &Server,
    origin: &Origin,
    place: &[(String, String)],
    mut request: Request,
) -> Result<Response, Fault> {
    let named = |name: &str| {
        place.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str()).unwrap_or("")
    };
    let inference = find(server, named("project"), named("name"))?;
    admit(server, &inference, origin, request.headers_mut())?;
    let prefix = path(&inference.project_name, &inference.spec.name);
    tell(server, request.headers_mut(), &prefix, origin);
    *request.uri_mut() = below(request.uri())?;
    let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    let answer = server.serving.forward(&inference, request).await;
    let mut answer = answer.map_err(|error| refusal(server, &inference, &error))?.map(Body::new);
    answer.headers_mut().append(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    Ok(answer)
}

fn find(server: &Server, project: &str, name: &str) -> Result<Arc<WorkloadView>, Fault> {
    let view = server.control.view();
    let is_it = |one: &&Arc<WorkloadView>| {
        one.project_name == project && one.spec.name == name && one.spec.serving.is_some()
    };
    view.workloads.values().find(is_it).cloned().ok_or_else(|| {
        let name = format!("{}/{}", units::shown(project), units::shown(name));
        Fault::no_such("inference", &name)
    })
}

/// Lets those pass that may ask this inference. A token of this server is for this server: the
/// replica never sees it.
fn admit(
    server: &Server,
    inference: &WorkloadView,
    origin: &Origin,
    headers: &mut HeaderMap,
) -> Result<(), Fault> {
    let Some(serving) = &inference.spec.serving else { return Ok(()) };
    let is_here = origin.address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if serving.local_only && !is_here {
        let why = "this inference answers requests from its own machine only";
        return Err(Fault::forbidden(why));
    }
    let caller = bearer(headers).and_then(|token| server.check(token, origin.clone()).ok());
    if caller.is_some() {
        headers.remove(AUTHORIZATION);
    }
    headers.remove(USER);
    if let Some(value) = caller.as_ref().and_then(|c| HeaderValue::from_str(&c.subject).ok()) {
        headers.insert(USER, value);
    }
    match (&serving.audience, caller) {
        (Audience::Everyone, _) | (Audience::Authenticated, Some(_)) => Ok(()),
        (_, None) => {
            let why = "this inference needs a token; send `Authorization: Bearer <token>`";
            Err(Fault::new(StatusCode::UNAUTHORIZED, why))
        }
        (Audience::Users(users), Some(caller)) if users.contains(&caller.subject) => Ok(()),
        (Audience::Users(_), Some(caller)) => {
            let who = &caller.subject;
            let why = format!("{who} is not one of its authorizedUsers; ask whoever submitted it");
            Err(Fault::forbidden(why))
        }
    }
}

/// Tells the replica where the request came from.
fn tell(server: &Server, headers: &mut HeaderMap, prefix: &str, origin: &Origin) {
    let before = headers.get(&FORWARDED_FOR).and_then(|value| value.to_str().ok());
    let from = match before {
        Some(before) => format!("{before}, {}", origin.address),
        None => origin.address.clone(),
    };
    let proto = if server.url.starts_with("https:") { "https" } else { "http" };
    let host = headers.get(HOST).cloned();
    let values = [
        (FORWARDED_FOR, HeaderValue::from_str(&from).ok()),
        (FORWARDED_HOST, host),
        (FORWARDED_PREFIX, HeaderValue::from_str(prefix.trim_end_matches('/')).ok()),
        (FORWARDED_PROTO, Some(HeaderValue::from_static(proto))),
    ];
    for (name, value) in values {
        match value {
            Some(value) => headers.insert(name, value),
            None => headers.remove(name),
        };
    }
}

/// The path as the replica knows it.
fn below(uri: &Uri) -> Result<Uri, Fault> {
    // Behind `/serve/<project>/<name>/`, as it was written.
    let rest = uri.path().splitn(5, '/').nth(4).unwrap_or_default();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path: PathAndQuery =
        format!("/{rest}{query}").parse().map_err(|_| Fault::bad("the address is not one"))?;
    Ok(Uri::from(path))
}

/// What happened instead of an answer.
fn refusal(server: &Server, inference: &WorkloadView, error: &Error) -> Fault {
    let status = match error {
        Error::NoReplica(_) => StatusCode::SERVICE_UNAVAILABLE,
        Error::TooSlow(_) => StatusCode::GATEWAY_TIMEOUT,
        Error::Broken(_) => StatusCode::BAD_GATEWAY,
    };
    let why = match error {
        Error::NoReplica(NoReplica::InTime { .. }) => {
            format!("{error}; {}", standing(server, inference))
        }
        _ => error.to_string(),
    };
    Fault::new(status, why)
}

/// Why there is no replica, as far as the state says it.
fn standing(server: &Server, inference: &WorkloadView) -> String {
    let view = server.control.view();
    let now = view.workloads.get(&inference.id).map_or(inference, |now| now);
    match (now.pending.first(), now.phase) {
        (Some(reason), _) => format!("it waits: {} ({})", reason.message, reason.code),
        (None, Phase::Running | Phase::Degraded | Phase::Updating | Phase::Initializing) => {
            let last = now.pods.iter().find_map(|pod| pod.last_exit.clone());
            let last = last.map(|exit| format!("; the last one ended with {exit}"));
            format!("its replicas are not ready yet{}", last.unwrap_or_default())
        }
        (None, phase) => format!("it is {}", crate::convert::phase_name(phase)),
    }
}
