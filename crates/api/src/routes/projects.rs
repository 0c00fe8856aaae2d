//! Projects.

use std::sync::Arc;

use api_types::{
    CountResponse, Project, ProjectCreationRequest, ProjectUpdateRequest, ProjectsPage,
    ShareRequest,
};
use auth::Action::{Create, Delete, Read, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use control::view::{ProjectView, View};
use control::{OrgChange, Scope};

use super::Shared;
use crate::access::{Where, check_project};
use crate::convert;
use crate::edge::{Body, Caller, Created, Fault, ListQuery, NoContent};
use crate::openapi::{Route, delete as del, get, patch, post, put};

/// The routes of projects.
pub(super) fn routes() -> impl Iterator<Item = Route<Shared>> {
    let (all, one) = ("/api/v1/org-unit/projects", "/api/v1/org-unit/projects/{projectId}");
    let shares = "/api/v1/org-unit/projects/{projectId}/resources";
    let count_all = "/api/v1/org-unit/projects/count";
    let replace = "Sets all shares of a project; what is left out gets its default";
    let change = "Sets some shares of a project; what is left out keeps its value";
    let of = Resource::Project;
    let routes = [
        get(all, "get_projects", "The projects", list).needs(Read, of, Where::Anywhere),
        post(all, "create_project", "Creates a project", create).needs(Create, of, Where::Anywhere),
        get(count_all, "count_projects", "How many projects there are", count).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        get(one, "get_project", "A project", read).needs(Read, of, Where::Project),
        put(one, "update_project", "Changes a project", update).needs(Update, of, Where::Project),
        del(one, "delete_project", "Deletes a project without workloads", delete).needs(
            Delete,
            of,
            Where::Project,
        ),
        put(shares, "update_project_resources", replace, replace_shares).needs(
            Update,
            of,
            Where::Project,
        ),
        patch(shares, "patch_project_resources", change, change_shares).needs(
            Update,
            of,
            Where::Project,
        ),
    ];
    routes.into_iter().map(|route| route.of("Projects"))
}

/// The projects that the caller may see.
fn seen<'a>(view: &'a View, caller: &Caller) -> impl Iterator<Item = &'a ProjectView> {
    let sight = caller.sight(Resource::Project, view);
    view.projects.values().map(AsRef::as_ref).filter(move |project| sight.has(project.id))
}

async fn list(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<ProjectsPage>, Fault> {
    let (view, context) = (state.control.view(), state.context());
    let rows = query.matching(seen(&view, &caller), context.now)?;
    let (page, next) = query.page(rows);
    let projects = page.into_iter().map(|row| convert::project(row, &context)).collect();
    Ok(Json(ProjectsPage { projects, next }))
}

async fn count(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<CountResponse>, Fault> {
    let view = state.control.view();
    let rows = query.matching(seen(&view, &caller), state.now())?;
    Ok(Json(CountResponse { count: rows.len() as u64 }))
}

fn find(state: &Shared, id: &str) -> Result<Arc<ProjectView>, Fault> {
    let found = id.parse().ok().and_then(|id: u64| state.control.view().projects.get(&id).cloned());
    found.ok_or_else(|| Fault::no_such("project", id))
}

async fn read(
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
) -> Result<Json<Project>, Fault> {
    Ok(Json(convert::project(&*find(&state, &id)?, &state.context())))
}

async fn create(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<ProjectCreationRequest>,
) -> Result<Created<Project>, Fault> {
    let context = state.context();
    convert::check_cluster(request.cluster_id.as_deref(), &context)?;
    let parent = convert::parent(request.parent_id.as_deref(), &state.control.view().departments)?;
    caller.must(Create, Resource::Project, Scope::Department(parent))?;
    let spec = convert::creation(request, parent)?;
    let made = state.asked_by(&caller).create_project(&caller.subject, spec).await?;
    Ok(Created(convert::project(&made, &context)))
}

async fn update(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<ProjectUpdateRequest>,
) -> Result<Json<Project>, Fault> {
    let id = find(&state, &id)?.id;
    save(&state, &caller, id, convert::update(request)?).await
}

/// `PUT`: what is left out gets its default.
async fn replace_shares(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<Vec<ShareRequest>>,
) -> Result<Json<Project>, Fault> {
    let id = find(&state, &id)?.id;
    save(&state, &caller, id, convert::Asked::read(&request)?.replacing()).await
}

/// `PATCH`: what is left out keeps its value.
async fn change_shares(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<Vec<ShareRequest>>,
) -> Result<Json<Project>, Fault> {
    let now = find(&state, &id)?;
    save(&state, &caller, now.id, convert::Asked::read(&request)?.changing()).await
}

async fn save(
    state: &Shared,
    caller: &Caller,
    id: u64,
    change: OrgChange,
) -> Result<Json<Project>, Fault> {
    let now = find(state, &id.to_string())?;
    check_project(caller, &now, &change)?;
    let saved = state.asked_by(caller).update_project(&caller.subject, id, change).await?;
    Ok(Json(convert::project(&saved, &state.context())))
}

async fn delete(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, Fault> {
    let project = find(&state, &id)?;
    state.asked_by(&caller).delete_project(&caller.subject, project.id).await?;
    Ok(NoContent)
}
