//! Roles, permissions, and what the caller itself may do.

use std::collections::BTreeSet;

use access::{Caller, Route};
use api_types::{
    GetPermittedScopesRequest, Permission, PermittedScopes, PermittedScopesActions, Role as Wire,
    TENANT_ID,
};
use auth::{Action, ROLES, Resource, Role};
use axum::extract::{FromRef, Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{get, post};
use http_kit::{ApiError, Body, NoParameters};
use view::Scope;

use super::IamState;

/// Routes of roles and permissions; all callers may read them.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    IamState: FromRef<S>,
{
    let all = "/api/v1/authorization/roles";
    let one = "/api/v1/authorization/roles/{roleIdPath}";
    let can = "/api/v1/authorization/permissions";
    let permitted = "/api/v1/authorization/permitted-scopes";
    let where_to = "Where the caller may do something to a kind of resource";
    let roles = [
        get(all, "get_roles_v1", "The roles", roles).own(),
        get(one, "get_role_v1", "A role", role).own(),
    ]
    .map(|route| route.of("Roles"));
    let permissions = [
        get(can, "get_permissions", "Everything that a role can allow", permissions).own(),
        post(permitted, "get_permitted_scopes", where_to, permitted_scopes).own(),
    ]
    .map(|route| route.of("Permissions"));
    roles.into_iter().chain(permissions)
}

fn permission(resource: Resource, allowed: impl Fn(Action) -> bool) -> Permission {
    let actions = Action::ALL.into_iter().filter(|action| allowed(*action));
    Permission {
        resource_type: resource.word().to_owned(),
        display_name: resource.shown().to_owned(),
        group_id: resource.group().to_owned(),
        actions: actions.map(|action| action.word().to_owned()).collect(),
    }
}

fn wire(iam: &IamState, role: &Role) -> Wire {
    let at = iam.control.cluster().created_at.into();
    let all = Resource::ALL.iter();
    let permissions =
        all.map(|resource| permission(*resource, |action| role.allows(action, *resource)));
    Wire {
        id: role.id,
        name: role.name.to_owned(),
        description: role.description.to_owned(),
        created_at: at,
        updated_at: at,
        created_by: "elastane".to_owned(),
        custom: false,
        enabled: true,
        effective_enabled: true,
        permissions: permissions.filter(|permission| !permission.actions.is_empty()).collect(),
    }
}

async fn roles(FromState(iam): FromState<IamState>, _: NoParameters) -> Json<Vec<Wire>> {
    Json(ROLES.iter().map(|role| wire(&iam, role)).collect())
}

async fn role(
    FromState(iam): FromState<IamState>,
    Path(id): Path<String>,
) -> Result<Json<Wire>, ApiError> {
    let found = id.parse().ok().and_then(Role::by_id);
    Ok(Json(wire(&iam, found.ok_or_else(|| ApiError::no_such("role", &id))?)))
}

async fn permissions(_: NoParameters) -> Json<Vec<Permission>> {
    Json(Resource::ALL.iter().map(|resource| permission(*resource, |_| true)).collect())
}

async fn permitted_scopes(
    FromState(iam): FromState<IamState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<GetPermittedScopesRequest>,
) -> Result<Json<PermittedScopesActions>, ApiError> {
    let word = &request.resource_type;
    let resource = Resource::named(word).ok_or_else(|| {
        let known: Vec<_> = Resource::ALL.iter().map(|resource| resource.word()).collect();
        let why = format!("`{}` is not one of {}", units::shown(word), known.join(", "));
        ApiError::field("resourceType", why)
    })?;
    let asked = request.action.as_deref();
    if asked.is_some_and(|asked| Action::ALL.iter().all(|action| action.word() != asked)) {
        return Err(ApiError::field("action", "is not one of create, read, update, delete"));
    }
    let scopes = |action: Action| {
        let wanted = asked.is_none_or(|asked| asked == action.word());
        if wanted { permitted(&iam, &caller, action, resource) } else { <_>::default() }
    };
    Ok(Json(PermittedScopesActions {
        create: scopes(Action::Create),
        read: scopes(Action::Read),
        update: scopes(Action::Update),
        delete: scopes(Action::Delete),
    }))
}

/// The widest scopes that allow it.
fn permitted(
    iam: &IamState,
    caller: &Caller,
    action: Action,
    resource: Resource,
) -> PermittedScopes {
    let may = |scope| caller.may(action, resource, scope);
    let none = PermittedScopes::default();
    if may(Scope::Tenant) {
        return PermittedScopes { tenant: Some(TENANT_ID.to_string()), ..none };
    }
    if may(Scope::Cluster) {
        return PermittedScopes { clusters: vec![iam.control.cluster().uuid.to_string()], ..none };
    }
    let view = iam.control.view();
    let departments = view.departments.keys().copied().filter(|id| may(Scope::Department(*id)));
    let departments: BTreeSet<u64> = departments.collect();
    // Projects of these departments are covered by them.
    let projects = view.projects.values().filter(|project| {
        !departments.contains(&project.department_id) && may(Scope::Project(project.unit.id))
    });
    PermittedScopes {
        projects: projects.map(|project| project.unit.id.to_string()).collect(),
        departments: departments.iter().map(ToString::to_string).collect(),
        ..none
    }
}
