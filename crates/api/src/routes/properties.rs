//! Properties of workloads: types, priorities, categories. The program's own are fixed; types of
//! foreign workloads can be added.

use access::{Caller, Family, Item, Route, Where};
use api_types::{
    ResourceInterfaceOfVersion, WorkloadCategories, WorkloadCategory, WorkloadPriorities,
    WorkloadPriority, WorkloadTypeConfig, WorkloadTypeCreateFields, WorkloadTypeUpdateFields,
    WorkloadTypes,
};
use auth::Action::{Create, Delete, Update};
use auth::Resource;
use axum::extract::{FromRequestParts, Path, State as FromState};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, delete as del, get, post, put};
use http_kit::{
    ApiError, Body, Created, ListQuery, NoContent, Row, Scalar, Type, flag, parameters,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spec::{Priority, WorkloadKind};
use units::Instant;
use utoipa::openapi::schema::Type as Schema;
use view::Scope;

use crate::ApiState;

/// Id, name and meaning of every category.
const CATEGORIES: [(&str, &str, &str); 3] = [
    ("build", "Build", "Interactive work"),
    ("train", "Train", "Work that ends"),
    ("deploy", "Deploy", "Serving"),
];

/// The routes of types, priorities and categories.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (types, one) = ("/api/v1/workload-types", "/api/v1/workload-types/{workloadTypeId}");
    let categories = "/api/v1/workload-categories";
    let category = "/api/v1/workload-categories/{categoryId}";
    let priorities = "/api/v1/workload-priorities";
    let (of, place) = (Resource::WorkloadProperties, Where::Tenant);
    let routes = [
        get(categories, "list_categories", "What workloads are for", list_categories).own(),
        get(category, "get_category_by_id", "A category", read_category).own(),
        get(priorities, "get_workload_priorities", "The priority classes", list_priorities)
            .rows::<Priority, _>()
            .own(),
        get(types, "list_workload_types", "The types of workloads", list)
            .rows::<WorkloadTypeConfig, _>()
            .own(),
        get(one, "get_workload_type", "A type of workloads", read).own(),
        post(types, "create_workload_type", "Adds a type of others' workloads", create)
            .needs(Create, of, place),
        put(one, "update_workload_type", "Changes an added type", update).needs(Update, of, place),
        del(one, "delete_workload_type", "Deletes an added type", delete).needs(Delete, of, place),
    ];
    routes.into_iter().map(|route| route.of("WorkloadProperties"))
}

fn category(row: (&str, &str, &str)) -> WorkloadCategory {
    let (id, name, description) = row;
    WorkloadCategory { id: id.into(), name: name.into(), description: description.into() }
}

async fn list_categories() -> Json<WorkloadCategories> {
    Json(WorkloadCategories { categories: CATEGORIES.map(category).into() })
}

async fn read_category(Path(id): Path<String>) -> Result<Json<WorkloadCategory>, ApiError> {
    let found = CATEGORIES.into_iter().find(|(known, ..)| *known == id);
    found.map(category).map(Json).ok_or_else(|| ApiError::no_such("category", &id))
}

impl Row<crate::Listed> for Priority {
    const FIELDS: &'static [(&'static str, Type)] =
        &[("id", Type::Text), ("name", Type::Text), ("value", Type::Number)];
    const SEARCHED: &'static [&'static str] = &["name"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "value" => Scalar::count(u64::from(self.value)),
            _ => Scalar::text(&self.class),
        }
    }
}

async fn list_priorities(
    FromState(state): FromState<ApiState>,
    query: ListQuery,
) -> Result<Json<WorkloadPriorities>, ApiError> {
    let added = super::priority_classes::added(&state.control.view())?;
    let all: Vec<Priority> = Priority::all().chain(added).collect();
    let one = |priority: &Priority| WorkloadPriority {
        id: priority.class.clone(),
        name: priority.class.clone(),
        value: priority.value,
        source: match Priority::named(&priority.class) {
            Ok(_) => "system".to_owned(),
            Err(_) => "custom".to_owned(),
        },
    };
    let rows = query.matching(all.iter(), state.now())?;
    Ok(Json(WorkloadPriorities { priorities: rows.into_iter().map(one).collect() }))
}

/// A type of others' workloads, as it is kept. Its scope is the installation, its name the kind
/// and the group.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct External {
    name: String,
    group: String,
    category_id: String,
    priority_id: String,
    /// How manifests of the type are read, as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource_interfaces: Option<Vec<Value>>,
}

/// Most resource interfaces of a type, and the longest text that all of them may be.
const INTERFACES_MAX: usize = 4;
const INTERFACES_BYTES_MAX: usize = 64 << 10;

impl Family for External {
    const KIND: &'static str = "workload-type";
}

/// The program's own types.
fn own_types() -> [WorkloadTypeConfig; 4] {
    let own = |id, name, kind, category| {
        shown(id, name, "run.ai", category, &Priority::default_of(kind).class)
    };
    [
        own("training", "TrainingWorkload", WorkloadKind::Training, "train"),
        own("workspace", "InteractiveWorkload", WorkloadKind::Workspace, "build"),
        own("distributed", "DistributedWorkload", WorkloadKind::Distributed, "train"),
        own("inference", "InferenceWorkload", WorkloadKind::Inference, "deploy"),
    ]
}

fn shown(id: &str, name: &str, group: &str, category: &str, priority: &str) -> WorkloadTypeConfig {
    let named = CATEGORIES.iter().find(|(known, ..)| *known == category);
    WorkloadTypeConfig {
        id: id.to_owned(),
        name: name.to_owned(),
        group: group.to_owned(),
        category_id: category.to_owned(),
        category_name: named.map_or(category, |(_, name, _)| name).to_owned(),
        priority_id: priority.to_owned(),
        priority_name: priority.to_owned(),
        resource_interfaces: None,
        created_at: None,
        created_by: None,
        updated_at: None,
        updated_by: None,
    }
}

fn external(item: &Item<External>) -> WorkloadTypeConfig {
    let (object, body) = (&item.object, &item.body);
    WorkloadTypeConfig {
        created_at: Some(object.created_at.into()),
        created_by: Some(object.created_by.clone()),
        updated_at: Some(object.updated_at.into()),
        updated_by: Some(object.updated_by.clone()),
        resource_interfaces: body.resource_interfaces.as_deref().map(by_version),
        ..shown(&object.id, &body.name, &body.group, &body.category_id, &body.priority_id)
    }
}

/// Resource interfaces as they are shown, each with the version of the type that it is about.
fn by_version(all: &[Value]) -> Vec<ResourceInterfaceOfVersion> {
    let one = |resource_interface: &Value| ResourceInterfaceOfVersion {
        version: resource_interface
            .pointer("/spec/structureDefinition/rootComponent/kind/version")
            .and_then(|version| version.as_str().map(str::to_owned)),
        resource_interface: resource_interface.clone(),
    };
    all.iter().map(one).collect()
}

fn check_interfaces(all: &[Value]) -> Result<(), ApiError> {
    let field = "resourceInterfaces";
    if all.len() > INTERFACES_MAX {
        let why = format!("has {} items; at most {INTERFACES_MAX} are allowed", all.len());
        return Err(ApiError::field(field, why));
    }
    if let Some(at) = all.iter().position(|one| !one.is_object()) {
        return Err(ApiError::field(&format!("{field}[{at}]"), "is not an object"));
    }
    let bytes: usize = all.iter().map(|one| one.to_string().len()).sum();
    if bytes > INTERFACES_BYTES_MAX {
        let why = format!("has {bytes} bytes; at most {INTERFACES_BYTES_MAX} are allowed");
        return Err(ApiError::field(field, why));
    }
    Ok(())
}

impl Row<crate::Listed> for WorkloadTypeConfig {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("name", Type::Text),
        ("group", Type::Text),
        ("categoryId", Type::Text),
        ("categoryName", Type::Text),
        ("priorityId", Type::Text),
        ("priorityName", Type::Text),
    ];
    const SEARCHED: &'static [&'static str] = &["name", "group"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        Scalar::text(match name {
            "name" => &self.name,
            "group" => &self.group,
            "categoryId" => &self.category_id,
            "categoryName" => &self.category_name,
            _ => &self.priority_id,
        })
    }
}

/// The parameters of the list of types.
struct TypesQuery {
    external_only: bool,
    list: ListQuery,
}

impl Input for TypesQuery {
    fn describe(to: &mut Description) {
        to.parameter("externalTypesOnly", Schema::Boolean, "Only those that were added");
        ListQuery::describe(to);
    }
}

impl<S: Sync> FromRequestParts<S> for TypesQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (own, list): (Vec<_>, Vec<_>) =
            parameters(&parts.uri)?.into_iter().partition(|(name, _)| name == "externalTypesOnly");
        let external_only = own.last().map_or(Ok(false), |(name, value)| flag(name, value))?;
        Ok(Self { external_only, list: ListQuery::parse(&list)? })
    }
}

async fn list(
    FromState(state): FromState<ApiState>,
    query: TypesQuery,
) -> Result<Json<WorkloadTypes>, ApiError> {
    let mut all = if query.external_only { vec![] } else { own_types().to_vec() };
    all.extend(state.all::<External>()?.iter().map(external));
    let rows = query.list.matching(all.iter(), state.now())?;
    Ok(Json(WorkloadTypes { types: rows.into_iter().cloned().collect() }))
}

async fn read(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<WorkloadTypeConfig>, ApiError> {
    if let Some(own) = own_types().into_iter().find(|own| own.id == id) {
        return Ok(Json(own));
    }
    Ok(Json(external(&state.one(&id)?)))
}

/// Rejects names that no kind or group of kinds can have, and unknown values.
fn check(kind: &External) -> Result<(), ApiError> {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    if !kind.name.starts_with(|c: char| c.is_ascii_uppercase())
        || !kind.name.chars().all(alphanumeric)
    {
        let why = format!(
            "`{}` is not a valid kind; write a capital letter, then letters and digits",
            kind.name
        );
        return Err(ApiError::field("name", why));
    }
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let group = &kind.group;
    let ends = group.starts_with(|c: char| c.is_ascii_lowercase()) && group.ends_with(inner);
    if !ends || !group.chars().all(|c| inner(c) || c == '.' || c == '-') {
        let why = format!(
            "`{group}` is not a valid group; write small letters, digits, dots and hyphens"
        );
        return Err(ApiError::field("group", why));
    }
    if !CATEGORIES.iter().any(|(known, ..)| *known == kind.category_id) {
        let known: Vec<&str> = CATEGORIES.iter().map(|(known, ..)| *known).collect();
        let why =
            format!("`{}` is not a category; allowed are {}", kind.category_id, known.join(", "));
        return Err(ApiError::field("categoryId", why));
    }
    check_interfaces(kind.resource_interfaces.as_deref().unwrap_or_default())?;
    let named = Priority::named(&kind.priority_id);
    named.map(|_| ()).map_err(|why| ApiError::field("priorityId", why))
}

async fn create(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<WorkloadTypeCreateFields>,
) -> Result<Created<WorkloadTypeConfig>, ApiError> {
    let WorkloadTypeCreateFields { name, group, category_id, priority_id, resource_interfaces } =
        request;
    let body = External { name, group, category_id, priority_id, resource_interfaces };
    check(&body)?;
    let own = own_types();
    if own.iter().any(|own| own.name == body.name && own.group == body.group) {
        let why = format!("type {}.{} is the program's own", body.name, body.group);
        return Err(ApiError::new(StatusCode::CONFLICT, why));
    }
    let name = format!("{}.{}", body.name, body.group);
    let made = state.make(&caller, Scope::Tenant, &name, &body).await?;
    Ok(Created(external(&made)))
}

/// Refuses to change the program's own.
fn must_be_external(id: &str) -> Result<(), ApiError> {
    if own_types().iter().any(|own| own.id == id) {
        let why = format!("type `{id}` is the program's own and cannot be changed");
        return Err(ApiError::new(StatusCode::CONFLICT, why));
    }
    Ok(())
}

async fn update(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<WorkloadTypeUpdateFields>,
) -> Result<Json<WorkloadTypeConfig>, ApiError> {
    must_be_external(&id)?;
    let changed = move |body: &External| External {
        category_id: request.category_id.clone().unwrap_or_else(|| body.category_id.clone()),
        priority_id: request.priority_id.clone().unwrap_or_else(|| body.priority_id.clone()),
        resource_interfaces: request
            .resource_interfaces
            .clone()
            .or_else(|| body.resource_interfaces.clone()),
        ..body.clone()
    };
    check(&changed(&state.one::<External>(&id)?.body))?;
    let edit = move |_: &mut String, body: &mut External| {
        *body = changed(body);
        Ok(())
    };
    Ok(Json(external(&state.change(&caller, &id, edit).await?)))
}

async fn delete(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    must_be_external(&id)?;
    state.remove::<External>(&caller, &id).await?;
    Ok(NoContent)
}
