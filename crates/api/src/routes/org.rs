//! The cluster and its nodes.

use access::Caller;
use api_types::{
    ClusterCreationRequest, ClusterInstallationInfoResponse, ClusterUpdateRequest, CountResponse,
    DisplayedCluster, Node, NodeLabels, Nodes,
};
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::{Extension, Json};
use control::Scope;
use convert::{self, ClusterName};
use http_kit::{
    Allowed, ApiError, Body, Created, ListQuery, NoContent, PlainText, QueryParameters, VERBOSITY,
    takes,
};

use crate::Shared;

pub(super) async fn clusters(
    FromState(state): FromState<Shared>,
    _: ListQuery,
) -> Json<Vec<DisplayedCluster>> {
    Json(vec![convert::cluster(state.control.cluster(), &state.context())])
}

takes! {
    /// How much to tell.
    pub(super) Verbosity: VERBOSITY;
    /// Whether at once.
    pub(super) Force: ("force", Allowed::Flag, "Changes nothing here: it is refused in any case");
    /// Of what, and from where.
    pub(super) Installation:
        ("version", Allowed::Text, "Changes nothing here"),
        ("remoteClusterUrl", Allowed::Text, "Changes nothing here");
    /// Of what, and in which form.
    pub(super) InstallFile:
        ("cloud", Allowed::Text, "Changes nothing here"),
        ("clusterip", Allowed::Text, "Changes nothing here"),
        ("format", Allowed::Word(&["yaml"]), "The form");
}

pub(super) async fn cluster(
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
    _: QueryParameters<Verbosity>,
) -> Result<Json<DisplayedCluster>, ApiError> {
    let own = convert::cluster(state.control.cluster(), &state.context());
    if own.uuid == id { Ok(Json(own)) } else { Err(ApiError::no_such("cluster", &id)) }
}

/// There is one cluster, and it is this server.
pub(super) async fn one_cluster(
    FromState(state): FromState<Shared>,
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
    FromState(state): FromState<Shared>,
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
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
    _: QueryParameters<Force>,
) -> Result<NoContent, ApiError> {
    state.must_be_cluster(&id)?;
    let why = "the server is the cluster and cannot go on without; `elastane down` stops it";
    Err(ApiError::new(StatusCode::CONFLICT, why))
}

/// What there is to do to have the cluster: nothing. It is a comment in a shell and in YAML.
fn nothing_to_install(state: &Shared, id: &str) -> Result<String, ApiError> {
    state.must_be_cluster(id)?;
    let name = state.context().cluster_name;
    Ok(format!("# nothing to install: this server is the cluster `{name}`\n"))
}

pub(super) async fn install_info(
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
    _: QueryParameters<Installation>,
) -> Result<Json<ClusterInstallationInfoResponse>, ApiError> {
    let installation_str = nothing_to_install(&state, &id)?;
    // There is no chart, and no secret is needed.
    Ok(Json(ClusterInstallationInfoResponse { installation_str, ..Default::default() }))
}

pub(super) async fn install_file(
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
    _: QueryParameters<InstallFile>,
) -> Result<PlainText, ApiError> {
    Ok(PlainText(nothing_to_install(&state, &id)?.into()))
}

pub(super) async fn nodes(
    FromState(state): FromState<Shared>,
    query: ListQuery,
) -> Result<Json<Nodes>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    let rows = query.matching(view.nodes.iter().map(AsRef::as_ref), context.now)?;
    let (page, _) = query.page(rows);
    let nodes = page.into_iter().map(|row| convert::node(row, &context)).collect();
    Ok(Json(Nodes { nodes }))
}

pub(super) async fn count_nodes(
    FromState(state): FromState<Shared>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    let view = state.control.view();
    query.count(view.nodes.iter().map(AsRef::as_ref), state.now())
}

pub(super) async fn count_nodes_of(
    state: FromState<Shared>,
    Path(id): Path<String>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    state.must_be_cluster(&id)?;
    count_nodes(state, query).await
}

/// Replaces all labels of a node beside its built-in ones.
pub(super) async fn label_node(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Body(request): Body<NodeLabels>,
) -> Result<Json<Node>, ApiError> {
    state.asked_by(&caller).label_node(&caller.subject, &name, request.labels).await?;
    shown(&state, &name)
}

fn shown(state: &Shared, name: &str) -> Result<Json<Node>, ApiError> {
    let view = state.control.view();
    let node = view.nodes.iter().find(|node| node.name == name);
    let node = node.ok_or_else(|| ApiError::no_such("node", name))?;
    Ok(Json(convert::node(node, &state.context())))
}

/// Makes a simulated GPU fail.
pub(super) async fn fail_gpu(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path((name, gpu)): Path<(String, String)>,
) -> Result<Json<Node>, ApiError> {
    state.asked_by(&caller).fail_gpu(&caller.subject, &name, number(&gpu)?).await?;
    shown(&state, &name)
}

/// Makes a simulated GPU work again.
pub(super) async fn heal_gpu(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path((name, gpu)): Path<(String, String)>,
) -> Result<Json<Node>, ApiError> {
    state.asked_by(&caller).heal_gpu(&caller.subject, &name, number(&gpu)?).await?;
    shown(&state, &name)
}

/// The number of a GPU on its node.
fn number(text: &str) -> Result<u32, ApiError> {
    let why = || format!("`{}` is not the number of a GPU; 0 or more", units::shown(text));
    text.parse().map_err(|_| ApiError::field("gpu", why()))
}
