//! Requests to inferences. Owns: the address of an inference, who may ask it, and what is told and
//! kept from a replica. Refuses to know: which replica answers (`serving`).
//!
//! Answers come from programs of users and share the server's origin. So a browser is told to treat
//! them as from nowhere (`sandbox`): a page from an inference cannot act as who looks at it. And what
//! would hold for the whole origin is neither passed on nor taken from there.

use std::sync::Arc;

use auth::{Action, Resource};
use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State as FromState};
use axum::http::header::{
    ALT_SVC, AUTHORIZATION, CONTENT_SECURITY_POLICY, COOKIE, FORWARDED, HOST, RETRY_AFTER,
    SET_COOKIE, STRICT_TRANSPORT_SECURITY, WWW_AUTHENTICATE,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use control::Audience;
use control::view::{Phase, View, WorkloadView};
use http_body_util::BodyExt as _;
use serving::{Error, NoReplica};
use units::Instant;

use crate::Server;
use crate::edge::{Caller, FORWARDED_FOR, Fault, Origin, bearer, must_be_own_page};
use crate::serve::Place;

/// Where inferences are found.
pub(crate) const ROUTES: [&str; 3] =
    ["/serve/{project}/{name}", "/serve/{project}/{name}/", "/serve/{project}/{name}/{*rest}"];

/// Seconds after which it may be tried again.
const RETRY_S: &str = "10";
const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";
/// What answers would say of all that is at this server.
const OF_THE_ORIGIN: [HeaderName; 6] = [
    SET_COOKIE,
    HeaderName::from_static("clear-site-data"),
    STRICT_TRANSPORT_SECURITY,
    ALT_SVC,
    HeaderName::from_static("nel"),
    HeaderName::from_static("report-to"),
];
/// What the program that answers learns of the request; nothing else can say it. Of the addresses
/// it came from the last is that of the connection, those before are the word of listed proxies.
const USER: HeaderName = HeaderName::from_static("x-forwarded-user");
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
    place: Result<Path<Vec<(String, String)>>, PathRejection>,
    mut request: Request,
) -> Response {
    let Ok(Path(place)) = place else {
        return Fault::bad("the address is no text").into_response();
    };
    serving::strip(request.headers_mut());
    let caller = match take_caller(&server, &origin, request.headers_mut()) {
        Ok(caller) => caller,
        Err(fault) => return refuse(&server, &origin, None, fault),
    };
    match answer(&server, &origin, &place, caller.as_ref(), request).await {
        Ok(answer) => answer,
        Err(fault) => refuse(&server, &origin, caller.as_ref(), fault),
    }
}

/// The answer to who is refused. That it may not is written down.
pub(crate) fn refuse(
    server: &Server,
    origin: &Origin,
    caller: Option<&Caller>,
    refused: Fault,
) -> Response {
    if matches!(refused.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let who = caller.map_or(("", false), |one| (&*one.subject, one.by_program));
        server.note_refusal(origin, who, refused.status, &refused.message);
    }
    match refused.status {
        StatusCode::UNAUTHORIZED => ([(WWW_AUTHENTICATE, "Bearer")], refused).into_response(),
        StatusCode::SERVICE_UNAVAILABLE => ([(RETRY_AFTER, RETRY_S)], refused).into_response(),
        _ => refused.into_response(),
    }
}

async fn answer(
    server: &Arc<Server>,
    origin: &Origin,
    place: &[(String, String)],
    caller: Option<&Caller>,
    mut request: Request,
) -> Result<Response, Fault> {
    let named = |name: &str| {
        place.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str()).unwrap_or("")
    };
    let inference = find(server, named("project"), named("name"), caller)?;
    admit(&server.control.view(), &inference, origin, caller)?;
    must_be_own_page(&server.url, request.headers())?;
    let prefix = path(&inference.project_name, &inference.spec.name);
    // All inferences would share them.
    request.headers_mut().remove(COOKIE);
    tell(server, request.headers_mut(), Some(prefix.trim_end_matches('/')), origin, caller);
    *request.uri_mut() = below(request.uri())?;
    let connection = request.extensions_mut().remove::<Place>();
    let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    let until = no_longer_allowed(server.clone(), caller.cloned(), connection);
    let answer = server.serving.forward(&inference, request, until).await;
    let refused = |error| refusal(server, &inference, error, caller);
    let mut answer = answer.map_err(refused)?.map(Body::new);
    for name in OF_THE_ORIGIN {
        answer.headers_mut().remove(name);
    }
    answer.headers_mut().append(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    Ok(answer)
}

/// Who asks; none without a token of this server. One that is worth nothing is refused, also where
/// no token is needed. It is for this server: the replica never sees it.
pub(crate) fn take_caller(
    server: &Server,
    origin: &Origin,
    headers: &mut HeaderMap,
) -> Result<Option<Caller>, Fault> {
    let token = bearer(headers).filter(|token| server.authority.has_signed(token));
    let Some(token) = token else { return Ok(None) };
    let caller = server.check(token, origin.clone());
    headers.remove(AUTHORIZATION);
    caller.map(Some).map_err(|refusal| Fault::new(StatusCode::UNAUTHORIZED, refusal.why))
}

/// The inference of this name. Whoever has no token is not told which there are.
fn find(
    server: &Server,
    project: &str,
    name: &str,
    caller: Option<&Caller>,
) -> Result<Arc<WorkloadView>, Fault> {
    server.control.view().inference(project, name).cloned().ok_or_else(|| {
        let name = format!("{}/{}", units::shown(project), units::shown(name));
        caller.map_or_else(needs_a_token, |_| Fault::no_such("inference", &name))
    })
}

fn needs_a_token() -> Fault {
    let why = "this inference needs a token; send `Authorization: Bearer <token>`";
    Fault::new(StatusCode::UNAUTHORIZED, why)
}

/// Lets those pass that may ask this inference.
fn admit(
    view: &View,
    inference: &WorkloadView,
    origin: &Origin,
    caller: Option<&Caller>,
) -> Result<(), Fault> {
    let Some(serving) = &inference.spec.serving else { return Err(needs_a_token()) };
    caller.map_or(Ok(()), Caller::must_have_own_password)?;
    if serving.local_only && !origin.is_local {
        // For a stranger elsewhere it is as if it were not there.
        caller.ok_or_else(needs_a_token)?;
        let why = "this inference answers requests from its own machine only";
        return Err(Fault::forbidden(why));
    }
    is_meant(&serving.audience, caller, said_at(view, inference))
}

/// Lets those pass that were meant by who said it at that moment.
pub(crate) fn is_meant(
    audience: &Audience,
    caller: Option<&Caller>,
    said_at: Instant,
) -> Result<(), Fault> {
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
            Err(Fault::forbidden(format!("{who} {why}; ask whoever submitted it")))
        }
    }
}

/// When what it is was said last. Whoever came later is not who was meant.
fn said_at(view: &View, inference: &WorkloadView) -> Instant {
    let newest = inference.revisions.last().and_then(|id| view.revisions.get(id));
    newest.map_or(inference.created_at, |newest| newest.created_at)
}

/// Returns when a connection that went over to another protocol has to end. It keeps its place until
/// then.
pub(crate) async fn no_longer_allowed(
    server: Arc<Server>,
    caller: Option<Caller>,
    _place: Option<Place>,
) {
    let shutdown = server.shutdown.clone();
    let revoked = async move {
        match caller {
            Some(caller) => server.until_revoked(caller).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = shutdown.wait() => {}
        () = revoked => {}
    }
}

/// Tells whoever answers who asks and where the request came from.
pub(crate) fn tell(
    server: &Server,
    headers: &mut HeaderMap,
    prefix: Option<&str>,
    origin: &Origin,
    caller: Option<&Caller>,
) {
    take_away(headers);
    // Only listed proxies are believed about who asked them.
    let before = headers.get_all(&FORWARDED_FOR).iter().filter(|_| origin.by_proxy);
    let before = before.filter_map(|value| value.to_str().ok());
    let from = before.chain([origin.peer.as_str()]).collect::<Vec<_>>().join(", ");
    let proto = if server.url.starts_with("https:") { "https" } else { "http" };
    let host = headers.get(HOST).cloned();
    let values = [
        (USER, caller.and_then(|caller| HeaderValue::from_str(&caller.subject).ok())),
        (FORWARDED_FOR, HeaderValue::from_str(&from).ok()),
        (FORWARDED_HOST, host),
        (FORWARDED_PREFIX, prefix.and_then(|prefix| HeaderValue::from_str(prefix).ok())),
        (FORWARDED_PROTO, Some(HeaderValue::from_static(proto))),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
}

/// Takes away what only this server says, also in other spellings: many programs read `_` as `-`.
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
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::NoReplica(_) | Error::Crowded | Error::NoTurn => StatusCode::SERVICE_UNAVAILABLE,
            Error::TooSlow(_) => StatusCode::GATEWAY_TIMEOUT,
            Error::Broken(_) => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, error.to_string())
    }
}

/// The same of an inference; those who may know are told why none of its replicas answered.
fn refusal(
    server: &Server,
    inference: &WorkloadView,
    error: Error,
    caller: Option<&Caller>,
) -> Fault {
    let waited = matches!(error, Error::NoReplica(NoReplica::InTime { .. }));
    let may_know = caller.is_some_and(|caller| {
        caller.must_to_workload(Action::Read, Resource::Inferences, inference).is_ok()
    });
    let mut fault = Fault::from(error);
    if waited && may_know {
        fault.message = format!("{}; {}", fault.message, standing(server, inference));
    }
    fault
}

/// Why there is no replica, as far as the state says it.
fn standing(server: &Server, inference: &WorkloadView) -> String {
    let view = server.control.view();
    let now = view.workloads.get(&inference.id).map_or(inference, |now| now);
    match (now.pending.first(), now.phase) {
        (Some(reason), _) if !now.waits_for_a_place() => {
            format!("{} ({})", reason.message, reason.code)
        }
        (Some(reason), _) => format!("it waits: {} ({})", reason.message, reason.code),
        (None, Phase::Running | Phase::Degraded | Phase::Updating | Phase::Initializing) => {
            let last = now.pods.iter().find_map(|pod| pod.last_exit.clone());
            let last = last.map(|exit| format!("; the last one ended with {exit}"));
            format!("its replicas are not ready yet{}", last.unwrap_or_default())
        }
        (None, phase) => format!("it is {}", crate::convert::phase_name(phase)),
    }
}
