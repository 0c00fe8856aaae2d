//! The check that every request with a token passes before its handler.

use std::sync::Arc;

use auth::{Action, Resource};
use axum::Extension;
use axum::extract::{RawPathParams, Request, State as FromState};
use axum::middleware::Next;
use axum::response::Response;
use control::Scope;
use control::view::WorkloadView;
use http_kit::Fault;
use uuid::Uuid;

use super::{Access, Where, resource_of};
use crate::Server;
use crate::caller::Caller;

/// The one route that is open to whoever has to change its password.
const OWN_PASSWORD: &str = "/api/v1/me/password";

/// Lets only callers pass that may do what the route does.
pub(crate) async fn authorise(
    FromState((server, access, path)): FromState<(Arc<Server>, Access, &'static str)>,
    Extension(caller): Extension<Caller>,
    parameters: RawPathParams,
    request: Request,
    next: Next,
) -> Result<Response, Fault> {
    if path != OWN_PASSWORD {
        caller.must_have_own_password()?;
    }
    check(&server, access, &caller, &parameters).await?;
    Ok(next.run(request).await)
}

impl Caller {
    /// Refuses whoever has to change its password first.
    pub(crate) fn must_have_own_password(&self) -> Result<(), Fault> {
        if !self.must_change_password {
            return Ok(());
        }
        let why = format!("the password was given out; change it first with POST {OWN_PASSWORD}");
        Err(Fault::forbidden(why))
    }
}

async fn check(
    server: &Server,
    access: Access,
    caller: &Caller,
    parameters: &RawPathParams,
) -> Result<(), Fault> {
    let (action, resource, place) = match access {
        Access::Open | Access::Token => return Ok(()),
        Access::Undeclared => return Err(Fault::forbidden("this route says not who may use it")),
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
            // No project: the handler says so, to whoever may know about any.
            None => somewhere(caller, action, resource),
        },
        Where::Workload => {
            let id = named("workloadId").and_then(|id| id.parse().ok());
            match workload(server, caller, (action, resource), id).await? {
                Some(workload) => {
                    // What may be done to a workload depends on what it is.
                    let kind = resource_of(workload.spec.kind);
                    let resource = if resource == Resource::Workloads { kind } else { resource };
                    caller.must_to_workload(action, resource, &workload)
                }
                // It is unknown, or has been forgotten, and then nobody's but the installation's.
                None if caller.may(action, resource, Scope::Tenant) => Ok(()),
                None => {
                    somewhere(caller, action, resource)?;
                    Err(Fault::no_such("workload", named("workloadId").unwrap_or_default()))
                }
            }
        }
    }
}

/// The workload, living or deleted. Whoever may do this everywhere needs no look into the past.
async fn workload(
    server: &Server,
    caller: &Caller,
    (action, resource): (Action, Resource),
    id: Option<Uuid>,
) -> Result<Option<Arc<WorkloadView>>, Fault> {
    let Some(id) = id else { return Ok(None) };
    let living = server.control.view().workloads.get(&id).cloned();
    if living.is_some() || caller.may(action, resource, Scope::Tenant) {
        return Ok(living);
    }
    Ok(server.control.deleted_one(id, server.now()).await?)
}

fn somewhere(caller: &Caller, action: Action, resource: Resource) -> Result<(), Fault> {
    if caller.may_somewhere(action, resource) {
        return Ok(());
    }
    Err(caller.refused(action, resource, " anywhere"))
}
