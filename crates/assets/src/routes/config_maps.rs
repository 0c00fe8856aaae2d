//! Config maps of projects: what is in them. Does not know which workload gets what of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::{Caller, Family, Route, Where};
use api_types::{ConfigMap, ConfigMapBody, ConfigMapSummary, ConfigMaps};
use auth::Action::{Delete, Read, Update};
use auth::Resource;
use axum::extract::{FromRef, Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get, put};
use http_kit::{ApiError, Body, NoContent};
use orchestrator::{CONFIG_MAP_BYTES_MAX, bytes_of, texts_of};
use serde::{Deserialize, Serialize};
use spec::CONFIG_MAP;
use view::{Object, Scope};

use super::AssetsState;

const OF: Resource = Resource::ConfigMapAssets;
/// Texts in a body are longer than their content, because of escapes.
const BODY_BYTES_MAX: usize = 4 * CONFIG_MAP_BYTES_MAX;

/// The routes of config maps.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    AssetsState: FromRef<S>,
{
    let all = "/elastane/v1/projects/{projectId}/config-maps";
    let one = "/elastane/v1/projects/{projectId}/config-maps/{name}";
    let listed = "The config maps of a project, without their texts";
    let set = "Makes a config map, or gives it other texts; workloads get them at their next start";
    let gone = "Deletes a config map; what runs keeps its files";
    [
        get(all, "list_config_maps", listed, list).needs(Read, OF, Where::Project),
        get(one, "get_config_map", "A config map", read).needs(Read, OF, Where::Project),
        put(one, "put_config_map", set, set_one).needs(Update, OF, Where::Project),
        del(one, "delete_config_map", gone, delete).needs(Delete, OF, Where::Project),
    ]
    .map(|route| route.of("Elastane"))
    .into_iter()
}

/// Stored body of a config map.
#[derive(Clone, Serialize, Deserialize)]
struct ConfigMapData {
    /// Values in this field are deleted with the object.
    #[serde(rename = "secrets")]
    data: BTreeMap<String, String>,
}

impl Family for ConfigMapData {
    const KIND: &'static str = CONFIG_MAP;
}

/// The project of an address.
fn scope(state: &AssetsState, project: &str) -> Result<Scope, ApiError> {
    state.project(access::project_id("projectId", project)?)
}

fn find(state: &AssetsState, scope: Scope, name: &str) -> Result<Arc<Object>, ApiError> {
    let found = state.control.view().objects.named(CONFIG_MAP, scope, name).cloned();
    found.ok_or_else(|| ApiError::no_such("config map", name))
}

fn summary(object: &Object) -> ConfigMapSummary {
    ConfigMapSummary {
        name: object.name.clone(),
        keys: texts_of(object).map(|(key, _)| key.to_owned()).collect(),
        bytes: bytes_of(texts_of(object)) as u64,
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_by: object.updated_by.clone(),
        updated_at: object.updated_at.into(),
    }
}

fn shown(object: &Object) -> ConfigMap {
    let own = |(key, text): (&str, &str)| (key.to_owned(), text.to_owned());
    ConfigMap { summary: summary(object), data: texts_of(object).map(own).collect() }
}

async fn list(
    FromState(state): FromState<AssetsState>,
    Path(project): Path<String>,
) -> Result<Json<ConfigMaps>, ApiError> {
    let scope = scope(&state, &project)?;
    let all = state.control.view().objects.all(CONFIG_MAP);
    let own = all.iter().filter(|object| object.scope == scope);
    let mut config_maps: Vec<_> = own.map(|object| summary(object)).collect();
    config_maps.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(ConfigMaps { config_maps }))
}

async fn read(
    FromState(state): FromState<AssetsState>,
    Path((project, name)): Path<(String, String)>,
) -> Result<Json<ConfigMap>, ApiError> {
    let scope = scope(&state, &project)?;
    Ok(Json(shown(&*find(&state, scope, &name)?)))
}

async fn set_one(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path((project, name)): Path<(String, String)>,
    Body(ConfigMapBody { data }): Body<ConfigMapBody, BODY_BYTES_MAX>,
) -> Result<Json<ConfigMap>, ApiError> {
    let scope = scope(&state, &project)?;
    orchestrator::check_config_map(&name, &data)?;
    if let Ok(there) = find(&state, scope, &name) {
        caller.must_to_object(Update, OF, &there)?;
    }
    let made = state.put(&caller, scope, &name, ConfigMapData { data }).await?;
    Ok(Json(shown(&made.object)))
}

async fn delete(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path((project, name)): Path<(String, String)>,
) -> Result<NoContent, ApiError> {
    let scope = scope(&state, &project)?;
    let object = find(&state, scope, &name)?;
    caller.must_to_object(Delete, OF, &object)?;
    state.remove::<ConfigMapData>(&caller, &object.id).await?;
    Ok(NoContent)
}
