//! What every request passes before a handler sees it: who asks, from which page, for how long.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use auth::{Claims, Principal};
use axum::Extension;
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use control::view::View;
use units::Instant;

use super::fault::{Fault, Said};
use super::origin::Origin;
use super::socket::{by_ticket, must_be_own_page};
use crate::Server;
use crate::access::Grant;
use crate::convert;
use crate::identity::Refusal;

/// How long a handler may take until its answer begins. Streams may go on after that.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// Its name, as it is recorded.
    pub(crate) subject: String,
    /// Since when there is somebody of this name; what is older was made by another.
    pub(crate) since: Instant,
    /// Who it is; whose key it has is not told apart from the person.
    pub(crate) principal: Principal,
    /// Whether a program asks, not a person.
    pub(crate) by_program: bool,
    /// The session the token belongs to.
    pub(crate) session: Option<String>,
    /// The groups that the login provider says it is in; none for a token that it did not vouch for.
    pub(crate) groups: Arc<[String]>,
    /// The roles it has, and where.
    pub(crate) grants: Arc<[Grant]>,
    /// What there was when it asked: which department a project is in.
    pub(crate) view: Arc<View>,
    /// Whether nothing but changing the password is allowed.
    pub(crate) must_change_password: bool,
    /// What its token says; none before there is one.
    pub(crate) claims: Option<Arc<Claims>>,
    /// From where.
    pub(crate) origin: Origin,
}

impl Caller {
    pub(crate) fn new(principal: Principal, subject: &str, origin: Origin) -> Self {
        Self {
            subject: subject.to_owned(),
            by_program: matches!(principal, Principal::Admin | Principal::ServiceAccount(_)),
            principal,
            since: Instant(0),
            session: None,
            groups: Arc::default(),
            grants: Arc::default(),
            view: Arc::default(),
            must_change_password: false,
            claims: None,
            origin,
        }
    }
}

/// Lets only requests with a valid token pass.
pub(crate) async fn authenticate(
    FromState(server): FromState<Arc<Server>>,
    Extension(origin): Extension<Origin>,
    mut request: Request,
    next: Next,
) -> Result<Response, Response> {
    let refuse_page = |fault: Fault| {
        server.note_refusal(&origin, ("", false), fault.status, &fault.message);
        fault.into_response()
    };
    must_be_own_page(&server.url, request.headers()).map_err(refuse_page)?;
    let by_ticket = by_ticket(&server, &origin, &mut request).transpose().map_err(refuse_page)?;
    let token = bearer(request.headers());
    let missing = || Refusal {
        why: "a token is missing; send `Authorization: Bearer <token>`".to_owned(),
        who: String::new(),
    };
    let of_token = |token: &str| server.check(token, origin.clone());
    let caller = by_ticket.map_or_else(|| token.ok_or_else(missing).and_then(of_token), Ok);
    match caller {
        Ok(caller) => {
            let (who, by_program) = (caller.subject.clone(), caller.by_program);
            request.extensions_mut().insert(caller);
            let mut response = next.run(request).await;
            // Reads tell what was last known.
            if let Some(outage) = server.control.outage()
                && let Ok(notice) = HeaderValue::from_bytes(convert::notice(&outage).as_bytes())
            {
                response.headers_mut().insert(api_types::NOTICE_HEADER, notice);
            }
            if response.status() == StatusCode::FORBIDDEN {
                let said = response.extensions().get::<Said>();
                let why = said.map_or("refused", |said| said.0.as_str());
                server.note_refusal(&origin, (&who, by_program), response.status(), why);
            }
            Ok(response)
        }
        Err(Refusal { why, who }) => {
            let status = StatusCode::UNAUTHORIZED;
            server.note_refusal(&origin, (&who, false), status, &why);
            let fault = Fault::new(status, why);
            Err(([(header::WWW_AUTHENTICATE, "Bearer")], fault).into_response())
        }
    }
}

/// The token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a browser asks for a page to show.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

/// Ends a handler that takes too long.
pub(crate) async fn limit_time(request: Request, next: Next) -> Result<Response, Fault> {
    tokio::time::timeout(ANSWER_WAIT, next.run(request)).await.map_err(|_| {
        let why = "the server took too long; whether it was done is seen in the lists";
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, why)
    })
}

/// The answer of a request whose handler panicked. The panic itself is on stderr.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    let why = "the server failed on this request; its log says more, please report it";
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, why).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_without_its_text() {
        let body = panicked(Box::new("boom")).into_body();
        let body = axum::body::to_bytes(body, 1000).await.unwrap();
        let fault: api_types::Error = serde_json::from_slice(&body).unwrap();
        assert_eq!(fault.code, 500);
        assert!(!fault.message.contains("boom"), "what a panic says may be secret");
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        for (text, token) in
            [("Bearer x", Some("x")), ("bearer  x ", Some("x")), ("Basic x", None), ("x", None)]
        {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, text.parse().unwrap())]);
            assert_eq!(bearer(&headers), token, "{text}");
        }
    }
}
