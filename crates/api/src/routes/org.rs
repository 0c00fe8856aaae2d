//! The cluster.

use access::Caller;
use api_types::{
    ClusterCreationRequest, ClusterInstallationInfoResponse, ClusterUpdateRequest, DisplayedCluster,
};
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::{Extension, Json};
use convert::{self, ClusterName};
use http_kit::{
    Allowed, ApiError, Body, Created, ListQuery, NoContent, PlainText, QueryParameters, VERBOSITY,
    takes,
};
use view::Scope;

use crate::ApiState;

pub(super) async fn clusters(
    FromState(state): FromState<ApiState>,
    _: ListQuery,
) -> Json<Vec<DisplayedCluster>> {
    Json(vec![convert::cluster(state.control.cluster(), &state.context())])
}

takes! {
    /// Verbosity of the answer.
    pub(super) Verbosity: VERBOSITY;
    /// Forces an immediate deletion.
    pub(super) Force: ("force", Allowed::Flag, "Changes nothing here: it is refused in any case");
    /// Version and address of an installation.
    pub(super) Installation:
        ("version", Allowed::Text, "Changes nothing here"),
        ("remoteClusterUrl", Allowed::Text, "Changes nothing here");
    /// Subject and form of an installation file.
    pub(super) InstallFile:
        ("cloud", Allowed::Text, "Changes nothing here"),
        ("clusterip", Allowed::Text, "Changes nothing here"),
        ("format", Allowed::Word(&["yaml"]), "The form");
}

pub(super) async fn cluster(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    _: QueryParameters<Verbosity>,
) -> Result<Json<DisplayedCluster>, ApiError> {
    let own = convert::cluster(state.control.cluster(), &state.context());
    if own.uuid == id { Ok(Json(own)) } else { Err(ApiError::no_such("cluster", &id)) }
}

/// There is one cluster, and it is this server.
pub(super) async fn one_cluster(
    FromState(state): FromState<ApiState>,
    Body(_): Body<ClusterCreationRequest>,
) -> Result<Created<DisplayedCluster>, ApiError> {
    let name = state.context().cluster_name;
    let why = format!(
        "a server runs one cluster, and this is `{name}`; start another server for another, or \
         divide this one into node pools"
    );
    Err(ApiError::new(StatusCode::CONFLICT, why))
}

pub(super) async fn rename_cluster(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<ClusterUpdateRequest>,
) -> Result<NoContent, ApiError> {
    state.must_be_cluster(&id)?;
    match state.all::<ClusterName>()?.first() {
        None => {
            state.make(&caller, Scope::Cluster, &request.name, &ClusterName {}).await?;
        }
        Some(named) => {
            let rename = move |name: &mut String, _: &mut ClusterName| {
                name.clone_from(&request.name);
                Ok(())
            };
            state.change(&caller, &named.object.id, rename).await?;
        }
    }
    Ok(NoContent)
}

pub(super) async fn keep_cluster(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    _: QueryParameters<Force>,
) -> Result<NoContent, ApiError> {
    state.must_be_cluster(&id)?;
    let why = "the server is the cluster and cannot go on without; `elastane down` stops it";
    Err(ApiError::new(StatusCode::CONFLICT, why))
}

/// Instructions to install the cluster: none are needed. The text is a comment in a shell and in
/// YAML.
fn nothing_to_install(state: &ApiState, id: &str) -> Result<String, ApiError> {
    state.must_be_cluster(id)?;
    let name = state.context().cluster_name;
    Ok(format!("# nothing to install: this server is the cluster `{name}`\n"))
}

pub(super) async fn install_info(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    _: QueryParameters<Installation>,
) -> Result<Json<ClusterInstallationInfoResponse>, ApiError> {
    let installation_str = nothing_to_install(&state, &id)?;
    // There is no chart, and no secret is needed.
    Ok(Json(ClusterInstallationInfoResponse { installation_str, ..Default::default() }))
}

pub(super) async fn install_file(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    _: QueryParameters<InstallFile>,
) -> Result<PlainText, ApiError> {
    Ok(PlainText(nothing_to_install(&state, &id)?.into()))
}
