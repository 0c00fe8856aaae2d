//! Credentials: assets whose values are sealed before they are kept, and never shown again.

use access::{Caller, Route, Where};
use api_types::{
    AccessKeySpec, Asset, AssetCreation, CredentialUpdate, DockerRegistrySpec, GenericSecretSpec,
    MixedAssetList, NgcApiKeySpec, PasswordSpec,
};
use auth::Action::{Create, Delete, Read, Update};
use auth::Resource;
use axum::extract::{FromRef, Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get, post, put};
use http_kit::{Accepted, ApiError, Body};
use serde_json::{Value, json};
use uuid::Uuid;

use super::AssetsState;
use super::kinds::{delete, find, list, mixed, read, wanted};
use crate::{self as assets, AssetQuery, Credential, Stored};

/// The routes of one kind: its specification, where it lies, its words, its published names and
/// operations.
macro_rules! kind {
    ($spec:ident, $path:literal, $one:literal, $published:literal,
     $create:literal $list:literal $read:literal $update:literal $delete:literal) => {{
        let all = concat!("/api/v1/asset/credentials/", $path);
        let one = concat!("/api/v1/asset/credentials/", $path, "/{assetId}");
        let (of, place) = (Resource::Credentials, Where::Anywhere);
        [
            post(all, $create, concat!("Keeps ", $one), create::<$spec>).needs(Create, of, place),
            get(all, $list, concat!("Every ", $one, " that is kept"), list::<$spec>)
                .needs(Read, of, place),
            get(one, $read, concat!("One ", $one), read::<$spec>).needs(Read, of, place),
            put(one, $update, concat!("Changes ", $one), update::<$spec>).needs(Update, of, place),
            del(one, $delete, concat!("Deletes ", $one), delete::<$spec>).needs(Delete, of, place),
        ]
        .map(|route| {
            route
                .of("Credentials")
                .part::<$spec>()
                .naming("AssetCreation", concat!($published, "CreationRequest"))
                .naming("CredentialUpdate", concat!($published, "UpdateRequest"))
                .naming("Asset", $published)
                .naming(concat!("Asset_", stringify!($spec)), $published)
                .naming("AssetList", concat!($published, "ListResponse"))
        })
    }};
}

/// The routes of all kinds.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    AssetsState: FromRef<S>,
{
    let access_keys = kind!(
        AccessKeySpec, "access-key", "access key of a store", "AccessKey",
        "create_access_key" "list_access_keys" "get_access_key_by_id" "update_access_key"
        "delete_access_key"
    );
    let registries = kind!(
        DockerRegistrySpec, "docker-registry", "login of an image registry", "DockerRegistry",
        "create_docker_registry" "list_docker_registries" "get_docker_registry_by_id"
        "update_docker_registry" "delete_docker_registry"
    );
    let secrets = kind!(
        GenericSecretSpec, "generic-secret", "secret of named values", "GenericSecret",
        "create_generic_secret" "list_generic_secret" "get_generic_secret_by_id"
        "update_generic_secret" "delete_generic_secret"
    );
    let ngc = kind!(
        NgcApiKeySpec, "ngc-api-key", "key of the NVIDIA registry", "NgcApiKey",
        "create_ngc_api_key" "list_ngc_api_key" "get_ngc_api_key_by_id" "update_ngc_api_key"
        "delete_ngc_api_key"
    );
    let passwords = kind!(
        PasswordSpec, "password", "user and password", "Password",
        "create_password" "list_passwords" "get_password_by_id" "update_password"
        "delete_password"
    );
    let all = get(
        "/api/v1/asset/credentials",
        "list_credentials_assets",
        "Every credential that is kept, without its values",
        list_all,
    );
    let all = all.of("Credentials").needs(Read, Resource::Credentials, Where::Anywhere);
    let kinds = [access_keys, registries, secrets, ngc, passwords];
    kinds.into_iter().flatten().chain([all])
}

async fn create<S: Credential>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<AssetCreation<S>>,
) -> Result<Accepted<Asset<S>>, ApiError> {
    let (scope, name, mut body) =
        assets::creation(&state, &caller, request.meta, request.spec).await?;
    let id = Uuid::now_v7();
    body.seal(&state.vault, id)?;
    let made = state.make_as(&caller, id, scope, &name, &body).await?;
    Ok(Accepted(assets::shown(&state, &state.control.view(), made, None)))
}

async fn update<S: Credential>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<CredentialUpdate<S>>,
) -> Result<Accepted<Asset<S>>, ApiError> {
    let before = find::<S>(&state, &caller, &id)?;
    caller.must_to_object(Update, S::RESOURCE, &before.object)?;
    assets::check_description(request.meta.description.as_deref().filter(|text| !text.is_empty()))?;
    let mut new = Stored { updates: 0, description: None, ..before.body };
    let replaces = request.spec.is_some();
    if let Some(spec) = request.spec {
        assets::check(&spec)?;
        new.spec = spec;
        new.seal(&state.vault, id.parse().map_err(ApiError::internal)?)?;
    }
    let edit = move |name: &mut String, body: &mut Stored<S>| {
        if replaces {
            (body.keys, body.secrets) = (new.keys.clone(), new.secrets.clone());
        }
        let spec = if replaces { new.spec.clone() } else { body.spec.clone() };
        body.change(name, request.meta.clone(), Some((assets::HostPathGrant::default(), spec)));
        Ok(())
    };
    let made = state.change(&caller, &id, edit).await?;
    Ok(Accepted(assets::shown(&state, &state.control.view(), made, None)))
}

async fn list_all(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    query: AssetQuery,
) -> Result<Json<MixedAssetList>, ApiError> {
    let mut all = Vec::new();
    add::<AccessKeySpec>(&mut all, &state, &caller, &query)?;
    add::<DockerRegistrySpec>(&mut all, &state, &caller, &query)?;
    add::<GenericSecretSpec>(&mut all, &state, &caller, &query)?;
    add::<NgcApiKeySpec>(&mut all, &state, &caller, &query)?;
    add::<PasswordSpec>(&mut all, &state, &caller, &query)?;
    Ok(mixed(all))
}

/// In this list a specification lies in a field of its kind.
fn add<S: Credential>(
    to: &mut Vec<(u64, Value)>,
    state: &AssetsState,
    caller: &Caller,
    query: &AssetQuery,
) -> Result<(), ApiError> {
    for (seq, asset) in wanted::<S>(state, caller, query)? {
        let mut wire = serde_json::to_value(asset).map_err(ApiError::internal)?;
        let kind = wire["meta"]["kind"].as_str().unwrap_or_default().to_owned();
        wire["spec"] = json!({ kind: wire["spec"].take() });
        to.push((seq, wire));
    }
    Ok(())
}
