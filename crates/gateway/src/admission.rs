//! Common parts of requests to programs of users, and the ones specific to inferences. Owns: the
//! caller of a request, its admission, the headers that a program gets, and the response at the
//! former addresses of inferences. Does not know which host leads to which program (`front`), and
//! which replica answers (`serving`).

use std::sync::Arc;

use access::{Caller, until_revoked};
use auth::{Action, Resource};
use axum::extract::{Request, State as FromState};
use axum::http::header::{AUTHORIZATION, FORWARDED, HOST, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use http_kit::{ApiError, ConnectionPermit, FORWARDED_FOR, Origin, bearer};
use serving::{Error, NoReplica};
use spec::Audience;
use units::Instant;
use view::{Phase, View, WorkloadView};

use crate::Gateway;

const _: () = assert!(
    serving::REQUESTS_MAX * 2 <= http_kit::CONNECTIONS_MAX,
    "requests to inferences may last; they leave room for others"
);

/// Former routes of inferences, before each had a host of its own.
pub const FORMER_ROUTES: [&str; 3] =
    ["/serve/{project}/{name}", "/serve/{project}/{name}/", "/serve/{project}/{name}/{*rest}"];

/// Seconds after which it may be tried again.
const RETRY_S: &str = "10";
/// Headers about a request for the program behind it, which only this server can set. The last of
/// the forwarded addresses is that of the connection; listed proxies named the ones before.
const USER: HeaderName = HeaderName::from_static("x-forwarded-user");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Refers to the current address of an inference. No workload answers at the address of the server,
/// and nothing is looked up: a caller without a token learns nothing about what exists.
pub async fn gone(FromState(gateway): FromState<Arc<Gateway>>, request: Request) -> ApiError {
    let mut parts = request.uri().path().split('/').skip(2);
    let (project, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_name =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let named = Some((project, name)).filter(|_| is_name(project) && is_name(name));
    let now = named.and_then(|(project, name)| gateway.origins.of_inference_named(project, name));
    let now = now.map_or_else(
        || "the address that `runai describe job NAME` shows".to_owned(),
        |address| units::shown(&format!("{address}/")),
    );
    let why = format!(
        "inferences are not served at the address of the API; each has a host of its own. Use \
         {now} (a program that cannot look that name up connects here and sends it as `Host`)"
    );
    ApiError::new(StatusCode::GONE, why)
}

/// Response to a refused caller. A missing right is written to the audit log.
pub(crate) fn refuse(
    gateway: &Gateway,
    origin: &Origin,
    caller: Option<&Caller>,
    refused: ApiError,
) -> Response {
    if matches!(refused.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let who = caller.map_or(("", false), |one| (&*one.subject, one.by_program));
        gateway.authenticator.note_refusal(origin, who, refused.status, &refused.message());
    }
    match refused.status {
        StatusCode::UNAUTHORIZED => ([(WWW_AUTHENTICATE, "Bearer")], refused).into_response(),
        StatusCode::SERVICE_UNAVAILABLE => ([(RETRY_AFTER, RETRY_S)], refused).into_response(),
        _ => refused.into_response(),
    }
}

/// Caller of a request; `None` without a token of this server. An invalid token is refused, also if
/// no token is needed. The token is for this server: the replica never sees it.
pub(crate) fn take_caller(
    gateway: &Gateway,
    origin: &Origin,
    headers: &mut HeaderMap,
) -> Result<Option<Caller>, ApiError> {
    let token = bearer(headers).filter(|token| gateway.authenticator.has_signed(token));
    let Some(token) = token else { return Ok(None) };
    let caller = gateway.authenticator.check(token, origin.clone());
    headers.remove(AUTHORIZATION);
    caller.map(Some).map_err(|refusal| ApiError::new(StatusCode::UNAUTHORIZED, refusal.why))
}

fn needs_a_token() -> ApiError {
    let why = "this needs a token; send `Authorization: Bearer <token>`";
    ApiError::new(StatusCode::UNAUTHORIZED, why)
}

/// Lets those pass that were meant by who said it at that moment.
pub(crate) fn is_meant(
    audience: &Audience,
    caller: Option<&Caller>,
    said_at: Instant,
) -> Result<(), ApiError> {
    match (audience, caller) {
        (Audience::Everyone, _) | (Audience::Authenticated, Some(_)) => Ok(()),
        (_, None) => Err(needs_a_token()),
        (Audience::Users(users), Some(caller)) => {
            let who = &caller.subject;
            let why = if !users.contains(who) {
                "is not one of its authorizedUsers"
            } else if said_at < caller.since {
                "came after its authorizedUsers were named, who were others"
            } else {
                return Ok(());
            };
            Err(ApiError::forbidden(format!("{who} {why}; ask its owner")))
        }
    }
}

/// Time of the last change of an inference. The names in it do not mean users created later.
pub(crate) fn said_at(view: &View, inference: &WorkloadView) -> Instant {
    let newest = inference.revisions.last().and_then(|id| view.revisions.get(id));
    newest.map_or(inference.created_at, |newest| newest.created_at)
}

/// Returns when a connection that was upgraded to another protocol has to end. It keeps its permit
/// until then.
pub(crate) async fn no_longer_allowed(
    gateway: Arc<Gateway>,
    caller: Option<Caller>,
    _place: Option<ConnectionPermit>,
) {
    let shutdown = gateway.shutdown.clone();
    let revoked = async move {
        match caller {
            Some(caller) => until_revoked(gateway.authenticator.clone(), caller).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = shutdown.wait() => {}
        () = revoked => {}
    }
}

/// Adds headers with the caller and the origin of the request.
pub(crate) fn set_caller_headers(
    gateway: &Gateway,
    headers: &mut HeaderMap,
    origin: &Origin,
    caller: Option<&Caller>,
) {
    take_away(headers);
    // Only listed proxies may name the client of a request.
    let before = headers.get_all(&FORWARDED_FOR).iter().filter(|_| origin.by_proxy);
    let before = before.filter_map(|value| value.to_str().ok());
    let from = before.chain([origin.peer.as_str()]).collect::<Vec<_>>().join(", ");
    let proto = if gateway.origins.server.starts_with("https:") { "https" } else { "http" };
    let host = headers.get(HOST).cloned();
    let values = [
        (USER, caller.and_then(|caller| HeaderValue::from_str(&caller.subject).ok())),
        (FORWARDED_FOR, HeaderValue::from_str(&from).ok()),
        (FORWARDED_HOST, host),
        (FORWARDED_PROTO, Some(HeaderValue::from_static(proto))),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
}

/// Removes headers that only this server sets, also in other spellings: many programs read `_` as
/// `-`.
fn take_away(headers: &mut HeaderMap) {
    let is_ours = |name: &&HeaderName| {
        let read_as = name.as_str().replace('_', "-");
        **name != FORWARDED_FOR && read_as.starts_with("x-forwarded-")
    };
    let ours: Vec<_> = headers.keys().filter(is_ours).cloned().collect();
    for name in ours.into_iter().chain([FORWARDED]) {
        headers.remove(name);
    }
}

/// Error that takes the place of a response.
pub(crate) struct NoAnswer(pub(crate) ApiError);

impl From<Error> for NoAnswer {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::NoReplica(_) | Error::Crowded | Error::NoTurn => StatusCode::SERVICE_UNAVAILABLE,
            Error::TooSlow(_) => StatusCode::GATEWAY_TIMEOUT,
            Error::Broken(_) => StatusCode::BAD_GATEWAY,
        };
        Self(ApiError::new(status, error.to_string()))
    }
}

/// Error of an inference; a caller who may see the inference also learns why no replica answered.
pub(crate) fn refusal(
    gateway: &Gateway,
    inference: &WorkloadView,
    error: Error,
    caller: Option<&Caller>,
) -> ApiError {
    let waited = matches!(error, Error::NoReplica(NoReplica::InTime { .. }));
    let may_know = caller.is_some_and(|caller| {
        caller.must_to_workload(Action::Read, Resource::Inferences, inference).is_ok()
    });
    let mut fault = NoAnswer::from(error).0;
    if waited && may_know {
        fault.why = format!("{}; {}", fault.why, standing(gateway, inference));
    }
    fault
}

/// Reason in the state why there is no replica.
fn standing(gateway: &Gateway, inference: &WorkloadView) -> String {
    let view = gateway.control.view();
    let now = view.workloads.get(&inference.id).map_or(inference, |now| now);
    match (view.why(now).first(), now.phase) {
        (Some(reason), _) if !now.waits_for_a_place() => {
            format!("{} ({})", reason.message, reason.code)
        }
        (Some(reason), _) => format!("it waits: {} ({})", reason.message, reason.code),
        (None, Phase::Running | Phase::Degraded | Phase::Updating | Phase::Initializing) => {
            let last = now.pods.iter().find_map(|pod| pod.last_exit.clone());
            let last = last.map(|exit| format!("; the last one ended with {exit}"));
            format!("its replicas are not ready yet{}", last.unwrap_or_default())
        }
        (None, phase) => format!("it is {phase:?}"),
    }
}
