//! Departments.

use std::sync::Arc;

use api_types::{
    CountResponse, DepartmentCreationRequest, DepartmentForList, DepartmentUpdateRequest,
    DepartmentsPage, ShareRequest,
};
use auth::Action::{Create, Delete, Read, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use control::view::{DepartmentView, View};
use control::{OrgChange, Scope};

use super::Shared;
use crate::access::{Where, check_department};
use crate::convert;
use crate::edge::{Body, Caller, Created, Fault, ListQuery, NoContent};
use crate::openapi::{Route, delete as del, get, patch, post, put};

/// The routes of departments.
pub(super) fn routes() -> impl Iterator<Item = Route<Shared>> {
    let (all, one) =
        ("/api/v1/org-unit/departments", "/api/v1/org-unit/departments/{departmentId}");
    let shares = "/api/v1/org-unit/departments/{departmentId}/resources";
    let count_all = "/api/v1/org-unit/departments/count";
    let replace = "Sets all shares of a department; what is left out gets its default";
    let change = "Sets some shares of a department; what is left out keeps its value";
    let (of, anywhere, here) = (Resource::Department, Where::Anywhere, Where::Department);
    let about = "Creates a department";
    let routes = [
        get(all, "get_departments", "The departments", list).needs(Read, of, anywhere),
        post(all, "create_department", about, create).needs(Create, of, anywhere),
        get(count_all, "count_departments", "How many departments there are", count)
            .needs(Read, of, anywhere),
        get(one, "get_department", "A department", read).needs(Read, of, here),
        put(one, "update_department", "Changes a department", update).needs(Update, of, here),
        del(one, "delete_department", "Deletes a department without projects", delete)
            .needs(Delete, of, here),
        put(shares, "update_department_resources", replace, replace_shares).needs(Update, of, here),
        patch(shares, "patch_department_resources", change, change_shares).needs(Update, of, here),
    ];
    routes.into_iter().map(|route| route.of("Departments"))
}

/// The departments that the caller may see.
fn seen<'a>(view: &'a View, caller: &Caller) -> impl Iterator<Item = &'a DepartmentView> {
    let seen = |id| caller.may(Read, Resource::Department, Scope::Department(id));
    view.departments.values().map(AsRef::as_ref).filter(move |department| seen(department.id))
}

async fn list(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<DepartmentsPage>, Fault> {
    let (view, context) = (state.control.view(), state.context());
    let rows = query.matching(seen(&view, &caller), context.now)?;
    let (page, next) = query.page(rows);
    let departments =
        page.into_iter().map(|row| convert::department(row, &view, &context)).collect();
    Ok(Json(DepartmentsPage { departments, next }))
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

fn find(state: &Shared, id: &str) -> Result<Arc<DepartmentView>, Fault> {
    let view = state.control.view();
    let found = id.parse().ok().and_then(|id: u64| view.departments.get(&id).cloned());
    found.ok_or_else(|| Fault::no_such("department", id))
}

fn shown(state: &Shared, department: &DepartmentView) -> DepartmentForList {
    convert::department(department, &state.control.view(), &state.context())
}

async fn read(
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
) -> Result<Json<DepartmentForList>, Fault> {
    Ok(Json(shown(&state, &*find(&state, &id)?)))
}

async fn create(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<DepartmentCreationRequest>,
) -> Result<Created<DepartmentForList>, Fault> {
    caller.must(Create, Resource::Department, Scope::Cluster)?;
    convert::check_cluster(request.cluster_id.as_deref(), &state.context())?;
    let spec = convert::department_creation(request)?;
    let made = state.asked_by(&caller).create_department(&caller.subject, spec).await?;
    Ok(Created(shown(&state, &made)))
}

async fn update(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<DepartmentUpdateRequest>,
) -> Result<Json<DepartmentForList>, Fault> {
    let id = find(&state, &id)?.id;
    save(&state, &caller, id, convert::department_update(request)?).await
}

/// `PUT`: what is left out gets its default.
async fn replace_shares(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<Vec<ShareRequest>>,
) -> Result<Json<DepartmentForList>, Fault> {
    let id = find(&state, &id)?.id;
    save(&state, &caller, id, convert::Asked::read(&request)?.replacing()).await
}

/// `PATCH`: what is left out keeps its value.
async fn change_shares(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<Vec<ShareRequest>>,
) -> Result<Json<DepartmentForList>, Fault> {
    let now = find(&state, &id)?;
    save(&state, &caller, now.id, convert::Asked::read(&request)?.changing()).await
}

async fn save(
    state: &Shared,
    caller: &Caller,
    id: u64,
    change: OrgChange,
) -> Result<Json<DepartmentForList>, Fault> {
    let now = find(state, &id.to_string())?;
    check_department(caller, &now, &change)?;
    let saved = state.asked_by(caller).update_department(&caller.subject, id, change).await?;
    Ok(Json(shown(state, &saved)))
}

async fn delete(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, Fault> {
    let department = find(&state, &id)?;
    state.asked_by(&caller).delete_department(&caller.subject, department.id).await?;
    Ok(NoContent)
}
