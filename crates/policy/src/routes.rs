//! Policies: the same routes for every kind of workload.

use std::sync::Arc;

use access::{Caller, Item, NamedScope, Route, Where, scopes};
use api_types::{
    Policies, PolicyChangeRequest, PolicyCreationFields, PolicyListEntry, PolicyRequest, PolicyV2,
};
use auth::Action::{Delete, Read, Update};
use auth::Resource;
use axum::extract::{FromRef, FromRequestParts, State as FromState};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, delete as del, get, patch, put};
use http_kit::{ApiError, Body, NoContent, flag, parameters, unknown_word};
use spec::WorkloadKind;
use utoipa::openapi::schema::Type;
use view::Scope;

use crate::{Context, Policy, check, merge, meta, shown, type_word};

type PolicyState = Arc<Context>;

/// The routes of one kind of workload, with the published word for it in their names.
macro_rules! of_kind {
    ($kind:ident, $path:literal, $one:literal) => {{
        let path = concat!("/api/v2/policy/", $path);
        let (of, place) = (Resource::Policies, Where::Anywhere);
        let (read_id, write_id) = (
            concat!("get_", $one, "_policy", "_v2"),
            concat!("overwrite_", $one, "_policy", "_v2"),
        );
        let (change_id, delete_id) =
            (concat!("update_", $one, "_policy", "_v2"), concat!("delete_", $one, "_policy"));
        let about = concat!("The policy for ", $path, " of a scope");
        [
            get(path, read_id, about, read).needs(Read, of, place),
            put(path, write_id, concat!("Sets the policy for ", $path, " of a scope"), write)
                .needs(Update, of, place),
            patch(
                path,
                change_id,
                concat!("Changes the policy for ", $path, " of a scope"),
                change,
            )
            .needs(Update, of, place),
            del(path, delete_id, concat!("Deletes the policy for ", $path, " of a scope"), delete)
                .needs(Delete, of, place),
        ]
        .map(|route| route.of("Policy").with(WorkloadKind::$kind))
    }};
}

/// The routes of policies.
pub fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    PolicyState: FromRef<S>,
{
    let all = get("/api/v2/policy", "list_policies", "The policies", list);
    let all = all.of("Policy").needs(Read, Resource::Policies, Where::Anywhere);
    let kinds = [
        of_kind!(Training, "trainings", "training"),
        of_kind!(Workspace, "workspaces", "workspace"),
        of_kind!(Distributed, "distributed", "distributed"),
        of_kind!(Inference, "inferences", "inference"),
    ];
    [all].into_iter().chain(kinds.into_iter().flatten())
}

/// Attempts at a change that conflicts with concurrent ones.
const TRIES: u32 = 3;

const PARAMETERS: [(&str, Type, &str); 8] = [
    (
        "workloadType",
        Type::String,
        "Only those for `training`, `workspace`, `distributed` or `inference`",
    ),
    ("scope", Type::String, "Of this kind of scope"),
    ("projectId", Type::String, "Of this project"),
    ("departmentId", Type::String, "Of this department"),
    ("clusterId", Type::String, "Of the cluster"),
    ("validateOnly", Type::Boolean, "Only check it, and change nothing"),
    ("approveClusterDeletion", Type::Boolean, "Taken and ignored"),
    ("includeFallbackPolicies", Type::Boolean, "Taken and ignored"),
];

/// The parameters of all of them.
#[derive(Default)]
struct PolicyQuery {
    workload_type: Option<String>,
    kind: Option<api_types::ScopeType>,
    project: Option<u64>,
    department: Option<String>,
    cluster: Option<String>,
    validate_only: bool,
}

impl Input for PolicyQuery {
    fn describe(to: &mut Description) {
        for (name, kind, about) in PARAMETERS {
            to.parameter(name, kind, about);
        }
    }
}

impl<S: Sync> FromRequestParts<S> for PolicyQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut query = Self::default();
        for (name, value) in parameters(&parts.uri)? {
            match name.as_str() {
                "workloadType" => query.workload_type = Some(value.to_lowercase()),
                "scope" => query.kind = Some(scopes::named(&name, &value)?),
                "projectId" => query.project = Some(access::project_id(&name, &value)?),
                "departmentId" => query.department = Some(value),
                "clusterId" => query.cluster = Some(value),
                "validateOnly" => query.validate_only = flag(&name, &value)?,
                known if PARAMETERS.iter().any(|row| row.0 == known) => {}
                unknown => {
                    return Err(unknown_word("parameter", unknown, &PARAMETERS.map(|row| row.0)));
                }
            }
        }
        Ok(query)
    }
}

impl PolicyQuery {
    /// The scope of the query, which must name one.
    fn scope(&self, state: &PolicyState) -> Result<Scope, ApiError> {
        let kind = self.kind.ok_or_else(|| ApiError::field("scope", "must be set"))?;
        let (cluster, department) = (self.cluster.as_deref(), self.department.as_deref());
        state.scope("", NamedScope { kind, cluster, department, project: self.project })
    }
}

async fn list(
    FromState(state): FromState<PolicyState>,
    Extension(caller): Extension<Caller>,
    query: PolicyQuery,
) -> Result<Json<Policies>, ApiError> {
    let scope = query.kind.map(|_| query.scope(&state)).transpose()?;
    let wanted = |item: &Item<Policy>| {
        caller.sees(Resource::Policies, &item.object)
            && scope.is_none_or(|scope| scope == item.object.scope)
            && query.project.is_none_or(|id| item.object.scope == Scope::Project(id))
            && query.department.as_ref().is_none_or(
                |id| matches!(item.object.scope, Scope::Department(own) if own.to_string() == *id),
            )
            && query.workload_type.as_ref().is_none_or(|word| *word == item.object.name)
    };
    let all = state.all::<Policy>()?;
    let entry = |item: &Item<Policy>| PolicyListEntry {
        workload_type: item.object.name.clone(),
        meta: meta(&state, item),
        policy: item.body.body.clone(),
    };
    let policies = all.iter().filter(|item| wanted(item)).map(entry).collect();
    Ok(Json(Policies { policies }))
}

/// The policy of exactly this scope, if there is one.
fn found(
    state: &PolicyState,
    kind: WorkloadKind,
    scope: Scope,
) -> Result<Option<Item<Policy>>, ApiError> {
    let all = state.all::<Policy>()?.into_iter();
    let mut all = all.filter(|i| i.object.scope == scope && i.object.name == type_word(kind));
    Ok(all.next())
}

fn none(kind: WorkloadKind, scope: Scope) -> ApiError {
    let why = format!(
        "there is no policy for {} of {scope}; set one with `elastane policy apply`, or with PUT \
         on this path",
        convert::kind_plural(kind)
    );
    ApiError::new(StatusCode::NOT_FOUND, why)
}

async fn read(
    FromState(state): FromState<PolicyState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    query: PolicyQuery,
) -> Result<Json<PolicyV2>, ApiError> {
    let scope = query.scope(&state)?;
    caller.must_see_in(Resource::Policies, scope)?;
    let item = found(&state, kind, scope)?.ok_or_else(|| none(kind, scope))?;
    Ok(Json(shown(&state, &item)))
}

/// The scope that a request is about, if the caller may change the policy of it.
fn scope_of(
    state: &PolicyState,
    caller: &Caller,
    meta: &PolicyCreationFields,
) -> Result<Scope, ApiError> {
    let named = NamedScope {
        kind: meta.scope,
        cluster: meta.cluster_id.as_deref(),
        department: meta.department_id.as_deref(),
        project: meta.project_id,
    };
    let scope = state.scope("meta.", named)?;
    caller.must(Update, Resource::Policies, scope)?;
    orchestrator::check_name(&meta.name).map_err(|why| ApiError::field("meta.name", why))?;
    Ok(scope)
}

/// `PUT`: the policy is that of the request.
async fn write(
    FromState(state): FromState<PolicyState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    query: PolicyQuery,
    Body(request): Body<PolicyRequest>,
) -> Result<Json<PolicyV2>, ApiError> {
    let scope = scope_of(&state, &caller, &request.meta)?;
    let names = check(&state, kind, scope, &request.policy)?;
    if query.validate_only {
        return Ok(Json(PolicyV2 { meta: None, policy: request.policy }));
    }
    let policy = Policy { name: request.meta.name, body: request.policy, names };
    let made = state.put(&caller, scope, type_word(kind), policy).await?;
    Ok(Json(shown(&state, &made)))
}

/// `PATCH`: what is left out stays.
async fn change(
    FromState(state): FromState<PolicyState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    query: PolicyQuery,
    Body(request): Body<PolicyChangeRequest>,
) -> Result<Json<PolicyV2>, ApiError> {
    let scope = scope_of(&state, &caller, &request.meta)?;
    let reset = request.reset.unwrap_or_default();
    let said = request.policy.unwrap_or_default();
    let mut tries = 0..TRIES;
    loop {
        let before = found(&state, kind, scope)?.ok_or_else(|| none(kind, scope))?;
        let after = merge(before.body.body.clone(), &said, &reset)?;
        let names = check(&state, kind, scope, &after)?;
        if query.validate_only {
            return Ok(Json(PolicyV2 { meta: None, policy: after }));
        }
        let policy = Policy { name: request.meta.name.clone(), body: after, names };
        let was = before.body.body;
        // The checked policy is the one stored; a concurrent change repeats the check once.
        let edit = move |_: &mut String, kept: &mut Policy| {
            if kept.body != was {
                let message = "the policy is being changed by another request; send it again";
                return Err(orchestrator::Error::Conflict { message: message.to_owned() });
            }
            kept.clone_from(&policy);
            Ok(())
        };
        match state.change(&caller, &before.object.id, edit).await {
            Err(error) if error.status == StatusCode::CONFLICT && tries.next().is_some() => {}
            made => return Ok(Json(shown(&state, &made?))),
        }
    }
}

async fn delete(
    FromState(state): FromState<PolicyState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    query: PolicyQuery,
) -> Result<NoContent, ApiError> {
    let scope = query.scope(&state)?;
    caller.must(Delete, Resource::Policies, scope)?;
    let item = found(&state, kind, scope)?.ok_or_else(|| none(kind, scope))?;
    state.remove::<Policy>(&caller, &item.object.id).await?;
    Ok(NoContent)
}
