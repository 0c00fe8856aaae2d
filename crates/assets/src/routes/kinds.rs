//! Workload assets: the same routes for every kind.

use access::{Caller, Item, Route, Where};
use api_types::{
    Asset, AssetCreation, AssetList, AssetUpdate, Compute, ConfigMapAssetSpec,
    EnvironmentAssetSpec, GitAssetSpec, HistoryPage, HostPathSpec, HttpResponse, MixedAssetList,
    NfsAssetSpec, PvcAssetSpec, S3AssetSpec, SecretAssetSpec,
};
use auth::Action::{Create, Delete, Read, Update};
use axum::extract::{FromRef, Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get, post, put};
use http_kit::{Accepted, ApiError, Body, Page, QueryParameters};
use serde_json::Value;

use super::AssetsState;
use crate::data::each_data_source;
use crate::{self as assets, AssetQuery, AssetSpec, OneAssetQuery, Stored, Usage};

/// The routes of one kind: its specification, as the description of the interface names it and as
/// it is published; where it lies; its family; its words; its operations.
macro_rules! kind {
    (
        $spec:ident $published:literal, $path:literal, $family:literal, $one:literal,
        $asset:literal, $create:literal $list:literal $read:literal $update:literal $delete:literal
    ) => {{
        let all = concat!("/api/v1/asset/", $path);
        let one = concat!("/api/v1/asset/", $path, "/{assetId}");
        [
            post(all, $create, concat!("Keeps ", $one), create::<$spec>).needs(
                Create,
                $spec::RESOURCE,
                Where::Anywhere,
            ),
            get(all, $list, concat!("Every ", $one, " that is kept"), list::<$spec>).needs(
                Read,
                $spec::RESOURCE,
                Where::Anywhere,
            ),
            get(one, $read, concat!("One ", $one), read::<$spec>).needs(
                Read,
                $spec::RESOURCE,
                Where::Anywhere,
            ),
            put(one, $update, concat!("Changes ", $one), update::<$spec>).needs(
                Update,
                $spec::RESOURCE,
                Where::Anywhere,
            ),
            del(one, $delete, concat!("Deletes ", $one), delete::<$spec>).needs(
                Delete,
                $spec::RESOURCE,
                Where::Anywhere,
            ),
        ]
        .map(|route| {
            route
                .of($family)
                .part::<$spec>()
                .naming(stringify!($spec), $published)
                .naming("AssetCreation", concat!($asset, "CreationRequest"))
                .naming("AssetUpdate", concat!($asset, "UpdateRequest"))
                .naming("Asset", concat!($asset, "Asset"))
                .naming(concat!("Asset_", stringify!($spec)), concat!($asset, "Asset"))
                .naming("AssetList", concat!($asset, "Assets"))
        })
    }};
}

/// The routes of all kinds.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    AssetsState: FromRef<S>,
{
    let compute = kind!(
        Compute "ComputeAssetSpec", "compute", "Compute", "compute resource", "Compute",
        "create_compute_asset" "list_compute_assets" "get_compute_asset_by_id"
        "update_compute_asset_by_id" "delete_compute_asset_by_id"
    );
    let environments = kind!(
        EnvironmentAssetSpec "EnvironmentAssetSpec", "environment", "Environment", "environment",
        "Environment",
        "create_environment_asset" "list_environment_assets" "get_environment_asset_by_id"
        "update_environment_asset_by_id" "delete_environment_asset_by_id"
    );
    let all = get(
        "/api/v1/asset/datasource",
        "list_datasource_assets",
        "Every data source that is kept",
        list_data_sources,
    );
    // Each kind is shown to callers that may read it.
    let all = all.of("Datasources").own();
    compute.into_iter().chain(environments).chain([all]).chain(data_sources())
}

fn data_sources<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    AssetsState: FromRef<S>,
{
    let nfs = kind!(
        NfsAssetSpec "NFSAssetSpec", "datasource/nfs", "NFS", "NFS data source", "NFS",
        "create_nfs_asset" "list_nfs_assets" "get_nfs_asset_by_id" "update_nfs_asset_by_id"
        "delete_nfs_asset_by_id"
    );
    let pvc = kind!(
        PvcAssetSpec "PVCAssetSpec", "datasource/pvc", "PVC", "PVC data source", "PVC",
        "create_pvc_asset" "list_pvc_assets" "get_pvc_asset_by_id" "update_pvc_asset_by_id"
        "delete_pvc_asset_by_id"
    );
    let s3 = kind!(
        S3AssetSpec "S3AssetSpec", "datasource/s3", "S3", "S3 data source", "S3",
        "create_s3_asset" "list_s3_assets" "get_s3_asset_by_id" "update_s3_asset_by_id"
        "delete_s3_asset_by_id"
    );
    let git = kind!(
        GitAssetSpec "GitAssetSpec", "datasource/git", "Git", "Git data source", "Git",
        "create_git_asset" "list_git_assets" "get_git_asset_by_id" "update_git_asset_by_id"
        "delete_git_asset_by_id"
    );
    let host_path = kind!(
        HostPathSpec "HostPathSpec", "datasource/host-path", "HostPath", "host path data source",
        "HostPath",
        "create_host_path" "list_host_path_assets" "get_host_path_by_id"
        "update_host_path_by_id" "delete_host_path_by_id"
    );
    let config_map = kind!(
        ConfigMapAssetSpec "ConfigMapAssetSpec", "datasource/config-map", "ConfigMap",
        "config map data source", "ConfigMap",
        "create_config_map_asset" "list_config_map_assets" "get_config_map_asset_by_id"
        "update_config_map_asset_by_id" "delete_config_map_asset_by_id"
    );
    let secrets = kind!(
        SecretAssetSpec "SecretAssetSpec", "datasource/secrets", "Secret", "secret data source",
        "Secret",
        "create_secret_asset" "list_secret_assets" "get_secret_asset_by_id"
        "update_secret_asset_by_id" "delete_secret_asset_by_id"
    );
    let history = get(
        "/api/v1/asset/datasource/pvc/{assetId}/history",
        "get_pvc_history",
        "Who made a PVC data source, and who changed it last",
        history::<PvcAssetSpec>,
    );
    let history = history
        .of("PVC")
        .needs(Read, PvcAssetSpec::RESOURCE, Where::Anywhere)
        .naming("HistoryPage", "PVCHistoryResponse");
    let all = [nfs, pvc, s3, git, host_path, config_map, secrets].into_iter().flatten();
    all.chain([history])
}

async fn create<S: AssetSpec>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<AssetCreation<S>>,
) -> Result<Accepted<Asset<S>>, ApiError> {
    let (scope, name, body) = assets::creation(&state, &caller, request.meta, request.spec).await?;
    let made = state.make(&caller, scope, &name, &body).await?;
    Ok(Accepted(assets::shown(&state, &state.control.view(), made, None)))
}

/// Assets of a kind that a query selects, with their numbers in order of creation.
pub(super) fn wanted<S: AssetSpec>(
    state: &AssetsState,
    caller: &Caller,
    query: &AssetQuery,
) -> Result<Vec<(u64, Asset<S>)>, ApiError> {
    let view = state.control.view();
    let asked_for = query.test(state, &view)?;
    let wanted = |item: &Item<Stored<S>>| {
        caller.sees(S::RESOURCE, &item.object)
            && asked_for(&item.object)
            && query.fits(item.body.supports.as_ref())
    };
    let all = state.all::<Stored<S>>()?.into_iter().filter(wanted);
    let usage = if query.usage { Some(Usage::new(state, &view, Some(caller))?) } else { None };
    let shown =
        |item: Item<_>| (item.object.seq, assets::shown(state, &view, item, usage.as_ref()));
    Ok(all.map(shown).collect())
}

pub(super) async fn list<S: AssetSpec>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    query: AssetQuery,
) -> Result<Json<AssetList<S>>, ApiError> {
    let entries = wanted(&state, &caller, &query)?.into_iter().map(|(_, asset)| asset).collect();
    Ok(Json(AssetList { entries }))
}

async fn list_data_sources(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    query: AssetQuery,
) -> Result<Json<MixedAssetList>, ApiError> {
    let mut all = Vec::new();
    macro_rules! add_each {
        ($($spec:ident)+) => {$( add::<$spec>(&mut all, &state, &caller, &query)?; )+};
    }
    each_data_source!(add_each);
    Ok(mixed(all))
}

fn add<S: AssetSpec>(
    to: &mut Vec<(u64, Value)>,
    state: &AssetsState,
    caller: &Caller,
    query: &AssetQuery,
) -> Result<(), ApiError> {
    let wire = |asset: Asset<S>| serde_json::to_value(asset).unwrap_or_default();
    to.extend(wanted(state, caller, query)?.into_iter().map(|(seq, asset)| (seq, wire(asset))));
    Ok(())
}

pub(super) fn mixed(mut all: Vec<(u64, Value)>) -> Json<MixedAssetList> {
    all.sort_unstable_by_key(|(seq, _)| *seq);
    Json(MixedAssetList { entries: all.into_iter().map(|(_, asset)| asset).collect() })
}

/// The asset with this id, if the caller may see it.
pub(super) fn find<S: AssetSpec>(
    state: &AssetsState,
    caller: &Caller,
    id: &str,
) -> Result<Item<Stored<S>>, ApiError> {
    let found = state.one::<Stored<S>>(id)?;
    caller.must_see(S::RESOURCE, &found.object)?;
    Ok(found)
}

pub(super) async fn read<S: AssetSpec>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: OneAssetQuery,
) -> Result<Json<Asset<S>>, ApiError> {
    let found = find::<S>(&state, &caller, &id)?;
    let view = state.control.view();
    let usage = if query.usage { Some(Usage::new(&state, &view, Some(&caller))?) } else { None };
    Ok(Json(assets::shown(&state, &view, found, usage.as_ref())))
}

async fn history<S: AssetSpec>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: QueryParameters<Page>,
) -> Result<Json<HistoryPage>, ApiError> {
    let found = find::<S>(&state, &caller, &id)?;
    let all = convert::asset_history(&found.object, found.body.updates, &state.context());
    let (records, next) = query.list()?.page(all);
    Ok(Json(HistoryPage { records, next }))
}

async fn update<S: AssetSpec>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<AssetUpdate<S>>,
) -> Result<Accepted<Asset<S>>, ApiError> {
    let before = find::<S>(&state, &caller, &id)?;
    caller.must_to_object(Update, S::RESOURCE, &before.object)?;
    assets::check_description(request.meta.description.as_deref().filter(|text| !text.is_empty()))?;
    let mut spec = None;
    if let Some(said) = request.spec {
        let after = said.clone().after(&before.body.spec);
        assets::check(&after)?;
        spec = Some((assets::HostPathGrant::by(&caller, &state, &after).await?, said));
    }
    let edit = move |name: &mut String, body: &mut Stored<S>| {
        body.change(name, request.meta.clone(), spec.clone());
        Ok(())
    };
    let made = state.change(&caller, &id, edit).await?;
    Ok(Accepted(assets::shown(&state, &state.control.view(), made, None)))
}

pub(super) async fn delete<S: AssetSpec>(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Accepted<HttpResponse>, ApiError> {
    let before = find::<S>(&state, &caller, &id)?;
    caller.must_to_object(Delete, S::RESOURCE, &before.object)?;
    state.remove::<Stored<S>>(&caller, &id).await?;
    Ok(Accepted(HttpResponse::accepted("the asset is deleted")))
}
