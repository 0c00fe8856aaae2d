//! Added priority classes: names with values, as in Kubernetes. Owns: how they are stored and
//! found. Does not know about: the order of workloads; a workload keeps the value that its class
//! had when it was submitted.

use access::{Caller, Family, Route, Where};
use api_types::{CreationRequest, PriorityClassBody, WorkloadPriority};
use auth::Action::{Delete, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, put};
use http_kit::{ApiError, Body, NoContent};
use serde::{Deserialize, Serialize};
use spec::Priority;
use view::{Scope, View};

use crate::ApiState;

/// The highest value that Kubernetes leaves to its users.
const VALUE_MAX: u32 = 1_000_000_000;

/// The routes of priority classes that are added.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let one = "/elastane/v1/priority-classes/{name}";
    let (of, place) = (Resource::WorkloadProperties, Where::Tenant);
    let set = "Adds a priority class, or gives an added one another value; workloads that are \
               there keep theirs";
    let gone = "Deletes an added priority class; workloads that are there keep its value";
    let routes = [
        put(one, "put_priority_class", set, set_one).needs(Update, of, place),
        del(one, "delete_priority_class", gone, delete).needs(Delete, of, place),
    ];
    routes.into_iter().map(|route| route.of("Elastane"))
}

/// Stored body of a priority class.
#[derive(Clone, Serialize, Deserialize)]
struct PriorityClass {
    value: u32,
}

impl Family for PriorityClass {
    const KIND: &'static str = "priority-class";
}

fn shown(name: &str, value: u32) -> WorkloadPriority {
    let source = "custom".to_owned();
    WorkloadPriority { id: name.to_owned(), name: name.to_owned(), value, source }
}

/// The added classes, by name.
pub(super) fn added(view: &View) -> Result<Vec<Priority>, ApiError> {
    let all = view.objects.all(PriorityClass::KIND);
    let mut added = Vec::new();
    for object in all.iter() {
        let PriorityClass { value } = access::Item::of(object)?.body;
        added.push(Priority { value, class: object.name.clone() });
    }
    added.sort_by(|a, b| a.class.cmp(&b.class));
    Ok(added)
}

/// Takes an added class out of a request that names one. The workload is preemptible unless the
/// request sets otherwise.
pub(super) fn take(
    view: &View,
    request: &mut CreationRequest,
) -> Result<Option<Priority>, ApiError> {
    let name = request.spec.as_ref().and_then(|spec| spec.priority_class.as_ref());
    let Some(name) = name else { return Ok(None) };
    let found = added(view)?.into_iter().find(|one| one.class == *name);
    if found.is_some() {
        // A class for the whole workload has already been copied to the master.
        for spec in request.spec.iter_mut().chain(&mut request.master_spec) {
            spec.priority_class = None;
            spec.preemptibility.get_or_insert(api_types::Preemptibility::Preemptible);
        }
    }
    Ok(found)
}

async fn set_one(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Body(PriorityClassBody { value }): Body<PriorityClassBody>,
) -> Result<Json<WorkloadPriority>, ApiError> {
    units::check_name(&name).map_err(|why| ApiError::field("name", why.to_string()))?;
    if Priority::named(&name).is_ok() {
        let why = format!("`{name}` is a class that is there already; choose another name");
        return Err(ApiError::field("name", why));
    }
    if value > VALUE_MAX {
        return Err(ApiError::field("value", format!("{value}; 0 to {VALUE_MAX} are allowed")));
    }
    state.put(&caller, Scope::Tenant, &name, PriorityClass { value }).await?;
    Ok(Json(shown(&name, value)))
}

async fn delete(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<NoContent, ApiError> {
    let found =
        state.control.view().objects.named(PriorityClass::KIND, Scope::Tenant, &name).cloned();
    let object = found.ok_or_else(|| ApiError::no_such("added priority class", &name))?;
    state.remove::<PriorityClass>(&caller, &object.id).await?;
    Ok(NoContent)
}
