//! The checks that every request passes before its handler: whose its token is, and what the route
//! needs.

use std::sync::Arc;

use access::{
    Access, Authenticator as _, BEFORE_OWN_PASSWORD, Backend, Caller, Refusal, Where, resource_of,
};
use auth::{Action, Resource};
use axum::Extension;
use axum::extract::{RawPathParams, Request, State as FromState};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_kit::{ApiError, ConnectionPermit, ErrorMessage, Origin, bearer};
use uuid::Uuid;
use view::{Scope, WorkloadView};

use crate::Iam;
use crate::browser::is_of_a_page;

/// Lets only requests with a valid token pass, and those of which the caller is known already.
///
/// # Errors
/// The token is missing, or worth nothing.
pub async fn authenticate(
    FromState(iam): FromState<Arc<Iam>>,
    Extension(origin): Extension<Origin>,
    mut request: Request,
    next: Next,
) -> Result<Response, Response> {
    let known = request.extensions_mut().remove::<Caller>();
    match known.map_or_else(|| who_asks(&iam, &request, &origin), Ok) {
        Ok(caller) => {
            let (who, by_program) = (caller.subject.clone(), caller.by_program);
            let place = request.extensions().get::<ConnectionPermit>();
            if let Some(refused) = place.and_then(|place| place.belongs_to(&who).err()) {
                return Err(refused.into_response());
            }
            request.extensions_mut().insert(caller);
            let response = next.run(request).await;
            if response.status() == StatusCode::FORBIDDEN {
                let said = response.extensions().get::<ErrorMessage>();
                let why = said.map_or("refused", |said| said.0.as_str());
                iam.note_refusal(&origin, (&who, by_program), response.status(), why);
            }
            Ok(response)
        }
        Err((error, who)) => {
            iam.note_refusal(&origin, (&who, false), error.status, &error.message());
            Err(match error.status {
                StatusCode::UNAUTHORIZED => {
                    ([(header::WWW_AUTHENTICATE, "Bearer")], error).into_response()
                }
                _ => error.into_response(),
            })
        }
    }
}

/// Caller of a request, by a token or in the session of a browser; else the error, and the name in
/// the token as far as it was signed. A cookie without the secret of its page counts as nothing.
fn who_asks(iam: &Iam, request: &Request, origin: &Origin) -> Result<Caller, (ApiError, String)> {
    let headers = request.headers();
    let of_page = is_of_a_page(headers).then(|| {
        let found = iam.of_browser(request.method(), headers, origin);
        found.map_err(|error| (error, String::new()))
    });
    let refused = |why: String| ApiError::new(StatusCode::UNAUTHORIZED, why);
    let of_token = bearer(headers).map(|token| {
        iam.check(token, origin.clone()).map_err(|Refusal { why, who }| (refused(why), who))
    });
    match (of_token, of_page) {
        (Some(one), None) | (None, Some(one)) => one,
        (Some(token), Some(page)) => {
            let (token, page) = (token?, page?);
            if token.principal == page.principal {
                return Ok(token);
            }
            let why = format!(
                "the token is of {} and the session of the browser of {}; send one of them",
                token.subject, page.subject
            );
            Err((ApiError::bad(why), String::new()))
        }
        (None, None) => {
            let why = "a token is missing; send `Authorization: Bearer <token>`";
            Err((refused(why.to_owned()), String::new()))
        }
    }
}

/// Lets only callers pass that may do what the route does.
///
/// # Errors
/// The caller may not.
pub async fn authorise(
    FromState((backend, access, path)): FromState<(Backend, Access, &'static str)>,
    Extension(caller): Extension<Caller>,
    parameters: RawPathParams,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if !BEFORE_OWN_PASSWORD.contains(&path) {
        caller.must_have_own_password()?;
    }
    check(&backend, access, &caller, &parameters).await?;
    Ok(next.run(request).await)
}

async fn check(
    backend: &Backend,
    access: Access,
    caller: &Caller,
    parameters: &RawPathParams,
) -> Result<(), ApiError> {
    let (action, resource, place) = match access {
        Access::Open | Access::Token => return Ok(()),
        Access::Undeclared => {
            return Err(ApiError::forbidden("this route says not who may use it"));
        }
        Access::Role((action, resource, place)) => (action, resource, place),
    };
    let named = |name: &str| parameters.iter().find(|(own, _)| *own == name).map(|(_, id)| id);
    match place {
        Where::Tenant => caller.must(action, resource, Scope::Tenant),
        Where::Anywhere => somewhere(caller, action, resource),
        Where::Department => match named("departmentId").and_then(|id| id.parse().ok()) {
            Some(id) => caller.must(action, resource, Scope::Department(id)),
            None => somewhere(caller, action, resource),
        },
        Where::Project => match named("projectId").and_then(|id| id.parse().ok()) {
            Some(id) => caller.must(action, resource, Scope::Project(id)),
            // No project: the handler returns that error, to callers that may read projects.
            None => somewhere(caller, action, resource),
        },
        Where::Workload => {
            let id = named("workloadId").and_then(|id| id.parse::<Uuid>().ok());
            match workload(backend, caller, (action, resource), id).await? {
                Some(workload) => {
                    somewhere(caller, action, resource)?;
                    // The resource of the permission depends on the kind of the workload.
                    let kind = resource_of(workload.spec.kind);
                    let resource = if resource == Resource::Workloads { kind } else { resource };
                    caller.must_to_workload(action, resource, &workload)
                }
                // Unknown or no longer stored: it belongs to the tenant only.
                None if caller.may(action, resource, Scope::Tenant) => Ok(()),
                None => {
                    somewhere(caller, action, resource)?;
                    let id = id.map(|id| id.to_string());
                    let typed = named("workloadId").unwrap_or_default();
                    Err(ApiError::no_such("workload", id.as_deref().unwrap_or(typed)))
                }
            }
        }
    }
}

/// The workload, living (in memory or archived) or deleted. With tenant-wide permission the deleted
/// ones are not searched.
async fn workload(
    backend: &Backend,
    caller: &Caller,
    (action, resource): (Action, Resource),
    id: Option<Uuid>,
) -> Result<Option<Arc<WorkloadView>>, ApiError> {
    let Some(id) = id else { return Ok(None) };
    let living = backend.control.find_workload(id).await?;
    if living.is_some() || caller.may(action, resource, Scope::Tenant) {
        return Ok(living);
    }
    Ok(backend.control.deleted_one(id, backend.now()).await?)
}

fn somewhere(caller: &Caller, action: Action, resource: Resource) -> Result<(), ApiError> {
    if caller.may_somewhere(action, resource) {
        return Ok(());
    }
    Err(caller.refused(action, resource, " anywhere"))
}
