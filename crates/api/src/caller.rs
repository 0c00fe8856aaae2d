//! Who asks: the check of the token that every request passes, and what is known of the caller then.

use std::sync::Arc;

use auth::{Claims, Principal};
use axum::Extension;
use axum::extract::{Request, State as FromState};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use control::AuditDetail;
use control::view::View;
use http_kit::{Fault, Origin, Said, bearer, is_websocket, must_be_own_page};
use units::Instant;
use uuid::Uuid;

use crate::access::Grant;
use crate::identity::Refusal;
use crate::{Server, convert, urls};

/// Where the WebSockets of a workload are.
const WORKLOADS: &str = "/elastane/v1/workloads/";

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

/// Where a request comes from, for the audit log.
pub(crate) fn audit_detail(
    origin: &Origin,
    by_program: bool,
    status: Option<StatusCode>,
) -> AuditDetail {
    AuditDetail {
        by_program,
        source_ip: origin.address.clone(),
        method: origin.method.clone(),
        path: origin.path.clone(),
        request_id: origin.request_id.clone(),
        target_id: String::new(),
        status: status.map(|status| status.as_u16()),
    }
}

/// Who opens a WebSocket of a workload in a browser, by the ticket in its address; none if there is
/// no ticket. The ticket is taken out of the address.
fn by_ticket(
    server: &Server,
    origin: &Origin,
    request: &mut Request,
) -> Option<Result<Caller, Fault>> {
    let path = request.uri().path();
    let opens = request.method() == Method::GET
        && ["/exec", "/attach", "/portforward"].iter().any(|end| path.ends_with(end));
    let by_a_page = request.headers().contains_key(header::ORIGIN);
    if !opens || !by_a_page || !is_websocket(request.headers()) {
        return None;
    }
    let (ticket, rest) = urls::take_ticket(request.uri())?;
    let workload = request.uri().path().strip_prefix(WORKLOADS);
    let workload = workload.and_then(|path| path.split('/').next()?.parse::<Uuid>().ok());
    if let Ok(rest) = rest.parse::<PathAndQuery>() {
        *request.uri_mut() = Uri::from(rest);
    }
    let caller = workload.and_then(|id| urls::redeem_for_socket(server, &ticket, id));
    let caller = caller.and_then(|one| server.again(&Caller { origin: origin.clone(), ..one }));
    Some(caller.ok_or_else(|| {
        let why = "the ticket was used, is older than a minute, or is for another workload; \
                   POST /elastane/v1/workloads/{workloadId}/websocket-tickets gives a new one";
        Fault::new(StatusCode::UNAUTHORIZED, why)
    }))
}
