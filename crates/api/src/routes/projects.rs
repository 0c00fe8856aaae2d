//! Projects.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::{Caller, Route, Where};
use api_types::{
    Project, ProjectCreationRequest, ProjectUpdateRequest, ProjectsPage, Resources, ShareRequest,
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
use view::{OrgUnit, ProjectView, Scope, SharedMap, View};

use super::org_units::{self, Unit};
use super::workload_kinds::pools_exist;
use crate::ApiState;

/// The routes of projects.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (all, one) = ("/api/v1/org-unit/projects", "/api/v1/org-unit/projects/{projectId}");
    let shares = "/api/v1/org-unit/projects/{projectId}/resources";
    let count_all = "/api/v1/org-unit/projects/count";
    let replace = "Sets all shares of a project; what is left out gets its default";
    let change = "Sets some shares of a project; what is left out keeps its value";
    let of = Resource::Project;
    let routes = [
        get(all, "get_projects", "The projects", list).needs(Read, of, Where::Anywhere),
        post(all, "create_project", "Creates a project", create).needs(Create, of, Where::Anywhere),
        get(
            count_all,
            "count_projects",
            "How many projects there are",
            org_units::count::<ProjectView>,
        )
        .needs(Read, of, Where::Anywhere),
        get(one, "get_project", "A project", org_units::read::<ProjectView>).needs(
            Read,
            of,
            Where::Project,
        ),
        put(one, "update_project", "Changes a project", org_units::update::<ProjectView>).needs(
            Update,
            of,
            Where::Project,
        ),
        del(
            one,
            "delete_project",
            "Deletes a project without workloads",
            org_units::delete::<ProjectView>,
        )
        .needs(Delete, of, Where::Project),
        put(shares, "update_project_resources", replace, org_units::replace_shares::<ProjectView>)
            .needs(Update, of, Where::Project),
        patch(shares, "patch_project_resources", change, org_units::change_shares::<ProjectView>)
            .needs(Update, of, Where::Project),
    ];
    routes.into_iter().map(|route| route.of("Projects").rows::<ProjectView, _>())
}

async fn list(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<ProjectsPage>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    let rows = query.matching(ProjectView::seen(&view, &caller), context.now)?;
    let (page, next) = query.page(rows);
    let projects = page.into_iter().map(|row| convert::project(row, &view, &context)).collect();
    Ok(Json(ProjectsPage { projects, next }))
}

async fn create(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<ProjectCreationRequest>,
) -> Result<Created<Project>, ApiError> {
    state.check_cluster(request.cluster_id.as_deref())?;
    let parent = convert::parent(request.parent_id.as_deref(), &state.control.view().departments)?;
    caller.must(Create, Resource::Project, Scope::Department(parent))?;
    let spec = convert::creation(request)?;
    if let Some(names) = &spec.default_pools {
        pools_exist(&state.control.view(), "defaultNodePools", names)?;
    }
    let made = state.asked_by(&caller).create_project(&caller.subject, parent, spec).await?;
    Ok(Created(org_units::shown(&state, &*made)))
}

impl Unit for ProjectView {
    const NAME: &'static str = "project";
    const RESOURCE: Resource = Resource::Project;
    type Shown = Project;
    type Update = ProjectUpdateRequest;

    fn all(view: &View) -> &SharedMap<u64, Arc<Self>> {
        &view.projects
    }

    fn unit(&self) -> &OrgUnit {
        &self.unit
    }

    fn around(&self) -> Scope {
        Scope::Department(self.department_id)
    }

    fn shown(&self, view: &View, context: &Context) -> Project {
        convert::project(self, view, context)
    }

    fn shares(shown: Project) -> Vec<Resources> {
        shown.resources
    }

    fn seen<'a>(view: &'a View, caller: &Caller) -> impl Iterator<Item = &'a Self> {
        caller.projects(view)
    }

    fn replacing_shares(asked: &[ShareRequest]) -> Result<BTreeMap<String, ShareChange>, ApiError> {
        convert::some_shares(asked)
    }

    fn requested_change(request: ProjectUpdateRequest) -> Result<OrgChange, ApiError> {
        convert::update(request)
    }

    async fn change(
        control: &Handle,
        by: &str,
        id: u64,
        change: OrgChange,
    ) -> Result<Arc<Self>, orchestrator::Error> {
        control.update_project(by, id, change).await
    }

    async fn delete(control: &Handle, by: &str, id: u64) -> Result<(), orchestrator::Error> {
        control.delete_project(by, id).await
    }
}
