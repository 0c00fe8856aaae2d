//! Network topologies.

use std::sync::Arc;

use access::{Caller, Route, Where};
use api_types::{CountResponse, NetworkTopology, NetworkTopologyCreateRequest, TopologiesPage};
use auth::Action::{Create, Delete, Read};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get, post};
use http_kit::{ApiError, Body, Created, ListQuery, NoContent};
use spec::TOPOLOGY;
use view::{Object, View};

use crate::ApiState;

/// The routes of network topologies.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (all, one) =
        ("/api/v1/network-topologies", "/api/v1/network-topologies/{networkTopologyId}");
    let count_all = "/api/v1/network-topologies/count";
    let (of, here, tenant) = (Resource::NetworkTopologies, Where::Anywhere, Where::Tenant);
    let made = "Creates a network topology: labels of nodes, from far to near";
    let gone = "Deletes a network topology that no node pool and no workload names";
    let counted = "How many network topologies";
    let routes = [
        get(all, "get_network_topologies", "The network topologies", list).needs(Read, of, here),
        post(all, "create_network_topology", made, create).needs(Create, of, tenant),
        get(count_all, "get_network_topologies_count", counted, count).needs(Read, of, here),
        get(one, "get_network_topology_by_id", "A network topology", read).needs(Read, of, here),
        del(one, "delete_network_topology", gone, delete).needs(Delete, of, tenant),
    ];
    routes.into_iter().map(|route| route.of("NetworkTopologies").rows::<NetworkTopology, _>())
}

fn all(state: &ApiState) -> Vec<NetworkTopology> {
    let (view, context) = (state.control.view(), state.context());
    let all = view.objects.all(TOPOLOGY);
    all.iter().map(|one| convert::network_topology(one, &view, &context)).collect()
}

async fn list(
    FromState(state): FromState<ApiState>,
    query: ListQuery,
) -> Result<Json<TopologiesPage>, ApiError> {
    let all = all(&state);
    let (page, _) = query.page(query.matching(all.iter(), state.now())?);
    let network_topologies = page.into_iter().cloned().collect();
    Ok(Json(TopologiesPage { network_topologies }))
}

async fn count(
    FromState(state): FromState<ApiState>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    query.count(all(&state).iter(), state.now())
}

fn find(view: &View, id: &str) -> Result<Arc<Object>, ApiError> {
    let found = view.objects.get(TOPOLOGY, id).cloned();
    found.ok_or_else(|| ApiError::no_such("network topology", id))
}

async fn read(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<NetworkTopology>, ApiError> {
    let view = state.control.view();
    Ok(Json(convert::network_topology(&*find(&view, &id)?, &view, &state.context())))
}

async fn create(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<NetworkTopologyCreateRequest>,
) -> Result<Created<NetworkTopology>, ApiError> {
    state.check_cluster(request.cluster_id.as_deref())?;
    let new = orchestrator::new_topology(request.name, &request.levels);
    let made = state.asked_by(&caller).create_object(&caller.subject, new).await?;
    let view = state.control.view();
    Ok(Created(convert::network_topology(&made, &view, &state.context())))
}

async fn delete(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    find(&state.control.view(), &id)?;
    state.asked_by(&caller).delete_object(&caller.subject, TOPOLOGY, &id).await?;
    Ok(NoContent)
}
