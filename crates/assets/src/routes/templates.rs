//! Workload templates: the same routes for every type of workload.

use access::{Caller, Item, Route, Where, scopes};
use api_types::{
    CountResponse, Pagination, TemplateCreation, TemplateList, TemplateUpdate, TemplateUpdateMeta,
    WorkloadTemplate, WorkloadType,
};
use auth::Action::{Create, Delete, Read, Update};
use auth::Resource;
use axum::extract::FromRef;
use axum::extract::{FromRequestParts, Path, State as FromState};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, delete as del, get, patch, post, put};
use http_kit::{Accepted, ApiError, Body, ListQuery, NoContent, parameters, unknown_word};
use spec::WorkloadKind;
use utoipa::openapi::schema::Type;

use super::AssetsState;
use crate::templates::{Template, Values, shown, type_of};
use crate::{check_description, description_after};

/// The routes that all types of workload have.
macro_rules! of_type {
    (
        $type:ident, $path:literal, $one:literal,
        $create:literal $list:literal $read:literal $delete:literal
    ) => {{
        let all = concat!("/api/v1/workload-templates/", $path);
        let one = concat!("/api/v1/workload-templates/", $path, "/{templateId}");
        [
            post(all, $create, concat!("Keeps a template of ", $one), create)
                .needs(Create, Resource::Templates, Where::Anywhere)
                .naming("TemplateCreation", concat!(stringify!($type), "TemplateCreationRequest")),
            get(all, $list, concat!("Templates of ", $one), list_of_type).needs(
                Read,
                Resource::Templates,
                Where::Anywhere,
            ),
            get(one, $read, concat!("A template of ", $one), read).needs(
                Read,
                Resource::Templates,
                Where::Anywhere,
            ),
            del(one, $delete, concat!("Deletes a template of ", $one), delete).needs(
                Delete,
                Resource::Templates,
                Where::Anywhere,
            ),
        ]
        .map(|route| route.of("WorkloadTemplates").with(WorkloadKind::$type))
        .map(|route| route.rows::<Item<Template>, _>())
    }};
}

/// The routes to change templates.
macro_rules! changing {
    ($type:ident, $path:literal, $one:literal, $update:literal $patch:literal) => {{
        let one = concat!("/api/v1/workload-templates/", $path, "/{templateId}");
        let part = concat!("Changes some values of a template of ", $one);
        [
            put(one, $update, concat!("Replaces a template of ", $one), update)
                .naming("TemplateUpdate", concat!(stringify!($type), "TemplateUpdateRequest")),
            patch(one, $patch, part, change)
                .naming("TemplateUpdate", concat!(stringify!($type), "TemplatePatchRequest")),
        ]
        .map(|route| route.of("WorkloadTemplates").with(WorkloadKind::$type))
        .map(|route| route.needs(Update, Resource::Templates, Where::Anywhere))
    }};
}

/// The routes of templates.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    AssetsState: FromRef<S>,
{
    let all = "/api/v1/workload-templates";
    let free = "/api/v1/workload-templates/name-availability";
    let any = [
        get(all, "list_templates1", "Every template", list),
        get("/api/v1/workload-templates/count", "count_templates", "How many", count),
        get(
            free,
            "template_name_availability",
            "204 if a name is free, 409 if it is taken",
            availability,
        ),
        get("/api/v1/workload-templates/{templateId}", "get_template_by_id1", "A template", find),
    ]
    .map(|route| route.rows::<Item<Template>, _>())
    .map(|route| route.of("WorkloadTemplates").needs(Read, Resource::Templates, Where::Anywhere));
    let trainings = of_type!(
        Training, "trainings", "trainings", "create_training_template"
        "list_training_templates" "get_training_template" "delete_training_template"
    );
    let workspaces = of_type!(
        Workspace, "workspaces", "workspaces", "create_workspace_template"
        "list_workspace_templates" "get_workspace_template" "delete_workspace_template"
    );
    let distributed = of_type!(
        Distributed, "distributed", "distributed trainings",
        "create_distributed_template" "list_distributed_templates" "get_distributed_template"
        "delete_distributed_template"
    );
    let inferences = of_type!(
        Inference, "inferences", "inferences", "create_inference_template"
        "list_inference_templates" "get_inference_template" "delete_inference_template"
    );
    let changing = [
        changing!(Training, "trainings", "trainings",
            "update_training_template" "patch_training_template"),
        changing!(Workspace, "workspaces", "workspaces",
            "update_workspace_template" "patch_workspace_template"),
        changing!(Distributed, "distributed", "distributed trainings",
            "update_distributed_template" "patch_distributed_template"),
    ];
    let types = [trainings, workspaces, distributed, inferences].into_iter().flatten();
    any.into_iter().chain(types).chain(changing.into_iter().flatten())
}

/// The templates that the caller may see.
fn seen(state: &AssetsState, caller: &Caller) -> Result<Vec<Item<Template>>, ApiError> {
    let mut all = state.all::<Template>()?;
    all.retain(|item| caller.sees(Resource::Templates, &item.object));
    Ok(all)
}

/// Page of the templates that a list query selects among those of type `of_type`, `None` for all.
fn page(
    state: &AssetsState,
    caller: &Caller,
    query: &ListQuery,
    of_type: Option<WorkloadType>,
) -> Result<Json<TemplateList>, ApiError> {
    let mut all = seen(state, caller)?;
    all.retain(|item| of_type.is_none_or(|wanted| item.body.workload_type == wanted));
    let rows = query.matching(all.iter(), state.now())?;
    let total = rows.len() as u64;
    let (page, next) = query.page(rows);
    let entries = page.into_iter().map(|item| shown(state, item)).collect();
    Ok(Json(TemplateList { entries, pagination: Pagination { total, next } }))
}

async fn list(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<TemplateList>, ApiError> {
    page(&state, &caller, &query, None)
}

async fn list_of_type(
    FromState(state): FromState<AssetsState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<TemplateList>, ApiError> {
    page(&state, &caller, &query, Some(type_of(kind)))
}

async fn count(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    query.count(seen(&state, &caller)?.iter(), state.now())
}

/// The template with this id, if the caller may see it.
fn any(state: &AssetsState, caller: &Caller, id: &str) -> Result<Item<Template>, ApiError> {
    let found = state.one::<Template>(id)?;
    caller.must_see(Resource::Templates, &found.object)?;
    Ok(found)
}

/// The template with this id, if it is for this kind of workloads.
fn one(
    state: &AssetsState,
    caller: &Caller,
    kind: WorkloadKind,
    id: &str,
) -> Result<Item<Template>, ApiError> {
    let (found, of_type) = (any(state, caller, id)?, type_of(kind));
    if found.body.workload_type == of_type {
        return Ok(found);
    }
    let why = format!("template {id} is of type {:?}, not {of_type:?}", found.body.workload_type);
    Err(ApiError::new(axum::http::StatusCode::NOT_FOUND, why))
}

async fn find(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<WorkloadTemplate>, ApiError> {
    Ok(Json(shown(&state, &any(&state, &caller, &id)?)))
}

async fn read(
    FromState(state): FromState<AssetsState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<WorkloadTemplate>, ApiError> {
    Ok(Json(shown(&state, &one(&state, &caller, kind, &id)?)))
}

async fn create(
    FromState(state): FromState<AssetsState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<TemplateCreation>,
) -> Result<Accepted<WorkloadTemplate>, ApiError> {
    let meta = request.meta;
    let scope = state.scope_by_id("meta.", meta.scope_type, meta.scope_id.as_deref())?;
    caller.must(Create, Resource::Templates, scope)?;
    check_description(meta.description.as_deref())?;
    let values = Values::new(request.spec, request.master_spec_same_as_worker, request.master)?;
    values.check(kind)?;
    let mut body = Template::new(meta.description, type_of(kind));
    body.set(&state.control.view(), scope, &values)?;
    let made = state.make(&caller, scope, &meta.name, &body).await?;
    Ok(Accepted(shown(&state, &made)))
}

/// `PUT`: the values are those of the request.
async fn update(
    FromState(state): FromState<AssetsState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<TemplateUpdate>,
) -> Result<Json<WorkloadTemplate>, ApiError> {
    if request.fields_to_clear.is_some() {
        let why = "goes with PATCH only; PUT replaces all values";
        return Err(ApiError::field("fieldsToClear", why));
    }
    let before = one(&state, &caller, kind, &id)?;
    let values = Values::new(request.spec, request.master_spec_same_as_worker, request.master)?;
    values.check(kind)?;
    save(&state, &caller, &before, request.meta, move |_| Ok(values.clone())).await
}

/// `PATCH`: what is left out keeps its value.
async fn change(
    FromState(state): FromState<AssetsState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<TemplateUpdate>,
) -> Result<Json<WorkloadTemplate>, ApiError> {
    let before = one(&state, &caller, kind, &id)?;
    let values = Values::new(request.spec, request.master_spec_same_as_worker, request.master)?;
    let clear = request.fields_to_clear.unwrap_or_default();
    let merged = move |body: &mut Template| {
        body.clear(&clear)?;
        let merged = values.clone().over(body.values()?);
        // The check covers the result with a concurrent change, too.
        merged.check(kind)?;
        Ok(merged)
    };
    save(&state, &caller, &before, request.meta, merged).await
}

/// Makes a change to the template as it is then; `values` returns its new values.
async fn save(
    state: &AssetsState,
    caller: &Caller,
    before: &Item<Template>,
    meta: TemplateUpdateMeta,
    values: impl Fn(&mut Template) -> Result<Values, ApiError> + Send + Sync + 'static,
) -> Result<Json<WorkloadTemplate>, ApiError> {
    caller.must_to_object(Update, Resource::Templates, &before.object)?;
    check_description(meta.description.as_deref().filter(|text| !text.is_empty()))?;
    let (control, scope) = (state.control.clone(), before.object.scope);
    let edit = move |name: &mut String, body: &mut Template| {
        if let Some(new) = &meta.name {
            name.clone_from(new);
        }
        let values = values(body).map_err(convert::refusal)?;
        body.set(&control.view(), scope, &values)?;
        body.description = description_after(meta.description.clone(), body.description.take());
        Ok(())
    };
    Ok(Json(shown(state, &state.change(caller, &before.object.id, edit).await?)))
}

async fn delete(
    FromState(state): FromState<AssetsState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    let before = one(&state, &caller, kind, &id)?;
    caller.must_to_object(Delete, Resource::Templates, &before.object)?;
    state.remove::<Template>(&caller, &id).await?;
    Ok(NoContent)
}

/// A name in a scope.
struct NameQuery(Vec<(String, String)>);

const NAME_PARAMETERS: [&str; 3] = ["templateName", "scopeType", "scopeId"];

impl Input for NameQuery {
    fn describe(to: &mut Description) {
        for name in NAME_PARAMETERS {
            to.parameter(name, Type::String, "Of the template");
        }
    }
}

impl<S: Sync> FromRequestParts<S> for NameQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let pairs = parameters(&parts.uri)?;
        match pairs.iter().find(|(name, _)| !NAME_PARAMETERS.contains(&name.as_str())) {
            Some((name, _)) => Err(unknown_word("parameter", name, &NAME_PARAMETERS)),
            None => Ok(Self(pairs)),
        }
    }
}

async fn availability(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    NameQuery(pairs): NameQuery,
) -> Result<NoContent, ApiError> {
    let value = |name: &str| pairs.iter().find(|(own, _)| own == name).map(|(_, v)| v.as_str());
    let needed = |name: &str| value(name).ok_or_else(|| ApiError::field(name, "must be set"));
    let (name, kind) = (needed("templateName")?, needed("scopeType")?);
    let scope = state.scope_by_id("", scopes::named("scopeType", kind)?, value("scopeId"))?;
    caller.must_see_in(Resource::Templates, scope)?;
    let taken = |item: &Item<Template>| item.object.name == name && item.object.scope == scope;
    if state.all()?.iter().any(taken) {
        let why = format!("templateName: there is a template `{name}`; choose another name");
        return Err(ApiError::new(StatusCode::CONFLICT, why));
    }
    Ok(NoContent)
}
