//! Departments.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::{Caller, Route, Where};
use api_types::{
    DepartmentCreationRequest, DepartmentForList, DepartmentUpdateRequest, DepartmentsPage,
    Resources, ShareRequest,
};
use auth::Action::{Create, Delete, Read, Update};
use auth::Resource;
use axum::extract::State as FromState;
use axum::{Extension, Json};
use control::Handle;
use convert::{self, Context};
use http_kit::openapi::{delete as del, get, patch, post, put};
use http_kit::{ApiError, Body, Created, ListQuery};
use orchestrator::OrgChange;
use spec::ShareChange;
use view::{OrgUnit, Scope, SharedMap, View};

use super::org_units::{self, Unit};
use super::workload_kinds::pools_exist;
use crate::ApiState;

/// The routes of departments.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
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
        get(
            count_all,
            "count_departments",
            "How many departments there are",
            org_units::count::<OrgUnit>,
        )
        .needs(Read, of, anywhere),
        get(one, "get_department", "A department", org_units::read::<OrgUnit>)
            .needs(Read, of, here),
        put(one, "update_department", "Changes a department", org_units::update::<OrgUnit>)
            .needs(Update, of, here),
        del(
            one,
            "delete_department",
            "Deletes a department without projects",
            org_units::delete::<OrgUnit>,
        )
        .needs(Delete, of, here),
        put(shares, "update_department_resources", replace, org_units::replace_shares::<OrgUnit>)
            .needs(Update, of, here),
        patch(shares, "patch_department_resources", change, org_units::change_shares::<OrgUnit>)
            .needs(Update, of, here),
    ];
    routes.into_iter().map(|route| route.of("Departments").rows::<OrgUnit, _>())
}

async fn list(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<DepartmentsPage>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    let rows = query.matching(OrgUnit::seen(&view, &caller), context.now)?;
    let (page, next) = query.page(rows);
    let departments =
        page.into_iter().map(|row| convert::department(row, &view, &context)).collect();
    Ok(Json(DepartmentsPage { departments, next }))
}

async fn create(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<DepartmentCreationRequest>,
) -> Result<Created<DepartmentForList>, ApiError> {
    caller.must(Create, Resource::Department, Scope::Cluster)?;
    state.check_cluster(request.cluster_id.as_deref())?;
    let spec = convert::department_creation(request)?;
    if let Some(names) = &spec.default_pools {
        pools_exist(&state.control.view(), "defaultNodePools", names)?;
    }
    let made = state.asked_by(&caller).create_department(&caller.subject, spec).await?;
    Ok(Created(org_units::shown(&state, &*made)))
}

impl Unit for OrgUnit {
    const NAME: &'static str = "department";
    const RESOURCE: Resource = Resource::Department;
    type Shown = DepartmentForList;
    type Update = DepartmentUpdateRequest;

    fn all(view: &View) -> &SharedMap<u64, Arc<Self>> {
        &view.departments
    }

    fn unit(&self) -> &OrgUnit {
        self
    }

    fn around(&self) -> Scope {
        Scope::Cluster
    }

    fn shown(&self, view: &View, context: &Context) -> DepartmentForList {
        convert::department(self, view, context)
    }

    fn shares(shown: DepartmentForList) -> Vec<Resources> {
        shown.resources
    }

    fn seen<'a>(view: &'a View, caller: &Caller) -> impl Iterator<Item = &'a Self> {
        caller.departments(view)
    }

    /// An empty list is the way back to having been given nothing.
    fn replacing_shares(asked: &[ShareRequest]) -> Result<BTreeMap<String, ShareChange>, ApiError> {
        convert::shares(asked)
    }

    fn requested_change(request: DepartmentUpdateRequest) -> Result<OrgChange, ApiError> {
        convert::department_update(request)
    }

    async fn change(
        control: &Handle,
        by: &str,
        id: u64,
        change: OrgChange,
    ) -> Result<Arc<Self>, orchestrator::Error> {
        control.update_department(by, id, change).await
    }

    async fn delete(control: &Handle, by: &str, id: u64) -> Result<(), orchestrator::Error> {
        control.delete_department(by, id).await
    }
}
