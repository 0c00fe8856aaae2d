//! What there is one of: the cluster, its node pool; and its nodes.

use api_types::{CountResponse, DisplayedCluster, NODE_POOL_ID, Nodepool, Nodepools, Nodes};
use axum::Json;
use axum::extract::{Path, State as FromState};

use super::Shared;
use crate::convert;
use crate::edge::{Fault, ListQuery};

pub(super) async fn clusters(
    FromState(state): FromState<Shared>,
    _: ListQuery,
) -> Json<Vec<DisplayedCluster>> {
    Json(vec![convert::cluster(state.control.cluster(), &state.context())])
}

pub(super) async fn cluster(
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
) -> Result<Json<DisplayedCluster>, Fault> {
    let own = convert::cluster(state.control.cluster(), &state.context());
    if own.uuid == id { Ok(Json(own)) } else { Err(Fault::no_such("cluster", &id)) }
}

pub(super) async fn node_pools(
    FromState(state): FromState<Shared>,
    _: ListQuery,
) -> Json<Nodepools> {
    let pool = convert::node_pool(state.control.cluster(), &state.context());
    Json(Nodepools { nodepools: vec![pool] })
}

pub(super) async fn node_pool(
    FromState(state): FromState<Shared>,
    Path(id): Path<String>,
) -> Result<Json<Nodepool>, Fault> {
    if id == NODE_POOL_ID {
        return Ok(Json(convert::node_pool(state.control.cluster(), &state.context())));
    }
    Err(Fault::no_such("node pool", &id))
}

/// The count of what there is one of.
pub(super) async fn one(_: ListQuery) -> Json<CountResponse> {
    Json(CountResponse { count: 1 })
}

pub(super) async fn nodes(
    FromState(state): FromState<Shared>,
    query: ListQuery,
) -> Result<Json<Nodes>, Fault> {
    let (view, context) = (state.control.view(), state.context());
    let rows = query.matching(view.nodes.iter().map(AsRef::as_ref), context.now)?;
    let (page, _) = query.page(rows);
    let nodes = page.into_iter().map(|row| convert::node(row, &context)).collect();
    Ok(Json(Nodes { nodes }))
}

pub(super) async fn count_nodes(
    FromState(state): FromState<Shared>,
    query: ListQuery,
) -> Result<Json<CountResponse>, Fault> {
    let view = state.control.view();
    let rows = query.matching(view.nodes.iter().map(AsRef::as_ref), state.now())?;
    Ok(Json(CountResponse { count: rows.len() as u64 }))
}
