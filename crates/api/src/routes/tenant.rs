//! Routes of the whole installation: its settings, and the ranks of its units.
//!
//! Settings are kept for the interfaces that read them; the server itself follows none of them.

use access::{Caller, Family, Item, Route, Where};
use api_types::{
    Priorities, Priority, Setting, TenantSettingCreationRequest, TenantSettingCreationResponse,
};
use auth::Action::{Read, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{get, put};
use http_kit::{ApiError, Body};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use view::Scope;

use crate::ApiState;

/// The routes of settings and ranks.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (all, one) = ("/v1/k8s/setting", "/v1/k8s/setting/{settingKey}");
    let ranks = "/api/v1/org-unit/priorities";
    let (of, place) = (Resource::Settings, Where::Tenant);
    let about = "Whether a setting is on: `false` for the values false and null, `true` for others";
    let about_ranks = "The ranks of projects and departments";
    let settings = [
        get(all, "get_tenant_settings", "The settings", list).needs(Read, of, place),
        put(all, "update_tenant_setting", "Sets a setting", set).needs(Update, of, place),
        get(one, "get_tenant_settings_by_key", about, read).needs(Read, of, place),
    ]
    .map(|route| route.of("Tenant"));
    let ranks = get(ranks, "get_priorities", about_ranks, priorities).own().of("OrgUnit");
    settings.into_iter().chain([ranks])
}

/// A setting as it is kept; its name is its key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SettingValue {
    value: Value,
}

impl Family for SettingValue {
    const KIND: &'static str = "setting";
}

fn wire(kept: &Item<SettingValue>) -> Setting {
    let (kind, value) = match &kept.body.value {
        Value::String(text) => ("String", text.clone()),
        value @ Value::Bool(_) => ("Boolean", value.to_string()),
        value @ Value::Number(_) => ("Number", value.to_string()),
        value => ("Object", value.to_string()),
    };
    Setting {
        key: kept.object.name.clone(),
        value,
        kind: kind.to_owned(),
        source: "Tenant".to_owned(),
        active: true,
    }
}

async fn list(FromState(state): FromState<ApiState>) -> Result<Json<Vec<Setting>>, ApiError> {
    Ok(Json(state.all::<SettingValue>()?.iter().map(wire).collect()))
}

fn find(state: &ApiState, key: &str) -> Result<Option<Item<SettingValue>>, ApiError> {
    Ok(state.all::<SettingValue>()?.into_iter().find(|kept| kept.object.name == key))
}

async fn read(
    FromState(state): FromState<ApiState>,
    Path(key): Path<String>,
) -> Result<Json<bool>, ApiError> {
    let found = find(&state, &key)?.ok_or_else(|| ApiError::no_such("setting", &key))?;
    Ok(Json(!matches!(found.body.value, Value::Bool(false) | Value::Null)))
}

async fn set(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<TenantSettingCreationRequest>,
) -> Result<Json<TenantSettingCreationResponse>, ApiError> {
    let TenantSettingCreationRequest { key, value } = request;
    state.put(&caller, Scope::Tenant, &key, SettingValue { value }).await?;
    Ok(Json(TenantSettingCreationResponse { msg: "done".to_owned() }))
}

async fn priorities() -> Json<Priorities> {
    let rank = |(name, value, is_default): (&str, u32, bool)| Priority {
        name: name.to_owned(),
        value,
        is_default,
    };
    Json(Priorities { priorities: convert::ranks().map(rank).collect() })
}
