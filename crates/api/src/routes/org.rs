//! What there is one of: the cluster, its node pool, its department; and its nodes.

use api_types::{
    CountResponse, DEPARTMENT_ID, DepartmentForList, DepartmentsPage, DisplayedCluster,
    NODE_POOL_ID, Nodepool, Nodepools, Nodes,
};
use auth::{Action, Resource};
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use control::Scope;

use super::Shared;
use crate::access::DEPARTMENT;
use crate::convert;
use crate::edge::{Caller, Fault, ListQuery};

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

fn the_department(state: &Shared) -> DepartmentForList {
    let view = state.control.view();
    convert::department(view.projects.values(), state.control.cluster(), &state.context())
}

pub(super) async fn departments(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Json<DepartmentsPage> {
    // Its sums tell of every project in it.
    let seen = caller.may(Action::Read, Resource::Department, Scope::Department(DEPARTMENT));
    let all = if seen { vec![the_department(&state)] } else { Vec::new() };
    let (departments, next) = query.page(all);
    Json(DepartmentsPage { departments, next })
}

pub(super) async fn department(
    FromState(state): FromState<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<DepartmentForList>, Fault> {
    caller.must(Action::Read, Resource::Department, Scope::Department(DEPARTMENT))?;
    if id == DEPARTMENT_ID {
        return Ok(Json(the_department(&state)));
    }
    Err(Fault::no_such("department", &id))
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
