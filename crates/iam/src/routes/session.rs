//! Sessions of browsers and one-time links. Owns: their requests and responses. Does not know how a
//! session is kept (`session`), and how requests carry one (`browser`).

use std::collections::BTreeMap;

use access::{Caller, Route, SESSION, audit_detail};
use api_types::{
    LinkRequest, LoginLink, PrincipalKind, SessionInfo, SessionPrincipal, SessionRequest,
    SessionRight, SessionVersions, Time,
};
use auth::{
    Action, LinkFault, LinkTarget, PasswordHash, Principal, Resource, Role, SYSTEM_ADMINISTRATOR,
};
use axum::extract::{FromRef, State as FromState};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http_kit::openapi::{Description, Output, delete, get, post};
use http_kit::{ApiError, Body, Created, NoContent, Origin, QueryParameters};
use units::Instant;
use view::Scope;

use super::access_rules::scope_wire;
use super::{IamState, token::OPEN_BODY_BYTES_MAX};
use crate::Iam;
use crate::grant;
use crate::logins::{wrong, wrong_secret};
use crate::session::{self, Beginner, Session};
use crate::subjects::User;

const LINKS: &str = "/elastane/v1/session/links";

http_kit::takes! {
    /// Sessions to end: this one, or all.
    HowMuch: EVERYWHERE;
}

const EVERYWHERE: http_kit::Parameter =
    ("everywhere", http_kit::Allowed::Flag, "All sessions of the caller, not this one alone");

/// The routes of sessions and links.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let begins = "Begins the session of a browser";
    let tells = "Who the caller is and what it may do";
    let ends = "Ends the caller's session, or all of them";
    let link = "Makes a link that logs in, once";
    let all = [
        post(SESSION, "begin_browser_session", begins, begin).open(),
        get(SESSION, "get_browser_session", tells, read_session).own(),
        delete(SESSION, "end_browser_session", ends, end).own(),
        // The handler checks for which user.
        post(LINKS, "create_login_link", link, make_link).own(),
    ];
    all.into_iter().map(|route| route.of("Elastane"))
}

/// A response about a session, and the cookie that the browser stores.
struct WithCookie<T> {
    cookie: Option<HeaderValue>,
    about: T,
}

impl<T: IntoResponse> IntoResponse for WithCookie<T> {
    fn into_response(self) -> Response {
        let mut response = self.about.into_response();
        if let Some(cookie) = self.cookie {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
        response
    }
}

impl<T: Output> Output for WithCookie<T> {
    fn describe(to: &mut Description) {
        T::describe(to);
    }
}

async fn begin(
    FromState(iam): FromState<IamState>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    Body(request): Body<SessionRequest, OPEN_BODY_BYTES_MAX>,
) -> Result<WithCookie<Created<SessionInfo>>, ApiError> {
    iam.site.must_be_own_page(&Method::POST, &headers)?;
    let name = request.username.trim().to_lowercase();
    let who = match (name.is_empty(), request.once.is_empty()) {
        (false, true) => grant::by_password(&iam, &name, request.password, &origin).await,
        (true, false) => by_link(&iam, &request.once, &origin),
        _ => {
            let why = "must be set, with `password`; or `once` alone, from a one-time link";
            return Err(ApiError::field("username", why));
        }
    };
    let who = who.inspect_err(|error| {
        if iam.notes_refusal(&name, &origin) {
            let control = iam.control.asked_from(audit_detail(&origin, false, Some(error.status)));
            control.record(&units::shown(&name), "session.begin", "", &error.message());
        }
    })?;
    let (made, halves) = session::begin_in_browser(&iam, &who, &origin).await?;
    let ends = Instant(made.body.expires_at_ms);
    let cookie = format!("{}.{}", made.object.id, halves.cookie);
    let cookie = iam.site.set_cookie(&headers, &cookie, ends.since_ms(iam.now()) / 1000)?;
    let caller = iam.of_session(&made, &origin).ok_or_else(|| wrong(ENDED_MEANWHILE))?;
    let info = SessionInfo { page_secret: Some(halves.page), ..info(&iam, &caller, ends) };
    Ok(WithCookie { cookie: Some(cookie), about: Created(info) })
}

const ENDED_MEANWHILE: &str = "what you logged in with was changed at this moment; log in again";

/// User whom a link logs in.
fn by_link(iam: &Iam, secret: &str, origin: &Origin) -> Result<Beginner, ApiError> {
    let refused = |why: &str| wrong_secret(iam, "once", origin, why);
    let target = iam.authority.redeem_link(secret, iam.now()).map_err(|fault| match fault {
        LinkFault::Used(at) => {
            let why = format!("{fault}, at {}; make another with `elastane ui`", Time(at));
            refused(&why)
        }
        LinkFault::Unknown | LinkFault::Expired => refused(&fault.to_string()),
    })?;
    let LinkTarget { principal, mark } = target;
    let name = match &principal {
        Principal::Local if iam.authority.is_current_local(&mark) => {
            Some(iam.authority.local_user().to_owned())
        }
        Principal::User(id) => iam.living::<User>(id).and_then(|user| {
            let still = user.body.must_change && given_out(&user.body).as_ref() == Some(&mark);
            still.then(|| user.object.name.clone())
        }),
        _ => None,
    };
    let name = name.ok_or_else(|| {
        refused("this link does not count any more: a password was set, or tokens were revoked")
    })?;
    Ok(Beginner { principal, name, mark, by_provider: false, by_link: true })
}

/// Fingerprint of the user's current password; `None` without one.
fn given_out(user: &User) -> Option<String> {
    user.secrets.password.as_ref().map(PasswordHash::fingerprint)
}

async fn read_session(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<WithCookie<Json<SessionInfo>>, ApiError> {
    let claims = caller.claims.as_ref();
    let until = || Instant(claims.map_or(0, |claims| claims.exp.saturating_mul(1000)));
    // Only the session of a browser is renewed by use.
    let Some((cookie, session)) = iam.brought(&headers)? else {
        return Ok(WithCookie { cookie: None, about: Json(info(&iam, &caller, until())) });
    };
    let ends = session::renew(&iam, &caller, &session.object.id).await?;
    let cookie = iam.site.set_cookie(&headers, cookie, ends.since_ms(iam.now()) / 1000)?;
    Ok(WithCookie { cookie: Some(cookie), about: Json(info(&iam, &caller, ends)) })
}

fn info(iam: &Iam, caller: &Caller, expires_at: Instant) -> SessionInfo {
    let (kind, id) = match &caller.principal {
        Principal::Local => (PrincipalKind::Local, None),
        Principal::Admin => (PrincipalKind::Admin, None),
        // A key speaks for its user, who is the principal then.
        Principal::User(id) | Principal::AccessKey(id) => (PrincipalKind::User, Some(id.clone())),
        Principal::ServiceAccount(id) => (PrincipalKind::ServiceAccount, Some(id.clone())),
    };
    let session = caller.session.as_deref().and_then(|id| iam.living::<Session>(id));
    SessionInfo {
        page_secret: None,
        principal: SessionPrincipal {
            since: id.as_ref().map(|_| caller.since.into()),
            kind,
            id,
            name: caller.subject.clone(),
        },
        must_change_password: caller.must_change_password,
        by_link: session.is_some_and(|session| session.body.by_link),
        expires_at: expires_at.into(),
        rights: rights(iam, caller),
        versions: SessionVersions {
            server: iam.control.cluster().version.clone(),
            interface: iam.site.interface.to_owned(),
        },
    }
}

/// Rights of a caller. Built-in principals have no access rule and may do everything.
fn rights(iam: &Iam, caller: &Caller) -> Vec<SessionRight> {
    let everything = Role::by_id(SYSTEM_ADMINISTRATOR)
        .filter(|_| caller.principal.is_built_in())
        .map(|role| (Scope::Tenant, role));
    let given = caller.grants.iter().map(|grant| (grant.scope, grant.role));
    let right = |(scope, role): (Scope, &Role)| {
        let (scope_type, scope_id, scope_name) = scope_wire(iam, &caller.view, scope);
        let words = |resource: Resource| {
            let allowed = Action::ALL.into_iter().filter(|action| role.allows(*action, resource));
            allowed.map(|action| action.word().to_owned()).collect::<Vec<_>>()
        };
        let all = Resource::ALL.iter().map(|of| (of.word().to_owned(), words(*of)));
        let actions: BTreeMap<_, _> = all.filter(|(_, words)| !words.is_empty()).collect();
        SessionRight { scope_type, scope_id, scope_name, own_only: role.own_only, actions }
    };
    everything.into_iter().chain(given).map(right).collect()
}

async fn end(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    asked: QueryParameters<HowMuch>,
    headers: HeaderMap,
) -> Result<WithCookie<NoContent>, ApiError> {
    let Some(session) = &caller.session else {
        let why = "this caller has no session: its token ends with the secret it was given for";
        return Err(ApiError::new(StatusCode::CONFLICT, why));
    };
    if asked.has(EVERYWHERE.0) {
        iam.end_all_of::<Session>(&caller, &caller.principal.to_string()).await?;
        iam.authority.end_links(&caller.principal, iam.now());
    } else {
        iam.end::<Session>(&caller, session).await?;
    }
    let cookie = iam.site.set_cookie(&headers, "", 0)?;
    Ok(WithCookie { cookie: Some(cookie), about: NoContent })
}

async fn make_link(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(request): Body<LinkRequest>,
) -> Result<WithCookie<Created<LoginLink>>, ApiError> {
    let asked_at = iam.site.asked_at(&headers)?;
    let (place, whose, made) = match request.user {
        None => {
            // A browser would have a session without end by it.
            if caller.principal != Principal::Local || caller.session.is_some() {
                let why = "only the administrator of the server's machine makes a link for itself, \
                           with `elastane ui`; name a `user`, or log in with a password";
                return Err(ApiError::forbidden(why));
            }
            let made = iam.authority.local_link(iam.now()).map_err(ApiError::internal)?;
            let made = made.ok_or_else(|| wrong("all tokens were revoked at this moment"))?;
            (asked_at, caller.subject.clone(), made)
        }
        Some(id) => {
            caller.must(Action::Update, Resource::Users, Scope::Tenant)?;
            let user = iam.one::<User>(&id)?;
            let mark =
                given_out(&user.body).filter(|_| user.body.must_change).ok_or_else(|| {
                    let why = format!(
                        "{} has chosen a password; reset it first, which ends its sessions",
                        user.object.name
                    );
                    ApiError::new(StatusCode::CONFLICT, why)
                })?;
            let target = LinkTarget { principal: Principal::User(id), mark };
            let made = iam.authority.link(target, iam.now()).map_err(ApiError::internal)?;
            let place = iam.site.public_url.clone().unwrap_or(asked_at);
            (place, user.object.name.clone(), made)
        }
    };
    iam.asked_by(&caller).record(&caller.subject, "session.link", &whose, "ok");
    let (secret, expires_at) = made;
    let link = LoginLink { url: auth::login_url(&place, &secret), expires_at: expires_at.into() };
    Ok(WithCookie { cookie: None, about: Created(link) })
}
