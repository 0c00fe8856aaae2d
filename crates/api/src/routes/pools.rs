//! Node pools.

use std::sync::Arc;

use access::{Caller, Route, Where};
use api_types::{CountResponse, Nodepool, NodepoolCreateFields, NodepoolUpdateFields, Nodepools};
use auth::Action::{Create, Delete, Read, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get, patch, post, put};
use http_kit::{ApiError, Body, Created, ListQuery, NoContent, QueryParameters};
use view::{PoolView, View};

use crate::ApiState;
use crate::quota_effects::{Forced, PoolEdit, QuotaEffects, agreed, of_pools};

/// The routes of node pools.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (all, one) = ("/api/v1/node-pools", "/api/v1/node-pools/{nodepoolId}");
    let count_all = "/api/v1/node-pools/count";
    let (of, here, tenant) = (Resource::NodePools, Where::Anywhere, Where::Tenant);
    let replace = "Changes a node pool; what is left out gets its default, but the label stays";
    let change = "Changes a node pool; what is left out stays";
    let gone = "Deletes a node pool; its nodes go to others, and what runs on them runs on";
    let routes = [
        get(all, "get_nodepools", "The node pools", list).needs(Read, of, here),
        post(all, "create_nodepool", "Creates a node pool", create).needs(Create, of, tenant),
        get(count_all, "count_nodepools", "How many node pools", count).needs(Read, of, here),
        get(one, "get_nodepool", "A node pool", read).needs(Read, of, here),
        put(one, "update_nodepool", replace, replaced).needs(Update, of, tenant),
        patch(one, "patch_nodepool", change, changed).needs(Update, of, tenant),
        del(one, "delete_nodepool", gone, delete).needs(Delete, of, tenant),
    ];
    routes.into_iter().map(|route| route.of("NodePools").rows::<Nodepool, _>())
}

fn all(state: &ApiState) -> Vec<Nodepool> {
    let (view, context) = (state.control.view(), state.context());
    view.pools.iter().map(|pool| convert::node_pool(pool, &view, &context)).collect()
}

async fn list(
    FromState(state): FromState<ApiState>,
    query: ListQuery,
) -> Result<Json<Nodepools>, ApiError> {
    let all = all(&state);
    let (page, _) = query.page(query.matching(all.iter(), state.now())?);
    Ok(Json(Nodepools { nodepools: page.into_iter().cloned().collect() }))
}

async fn count(
    FromState(state): FromState<ApiState>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    query.count(all(&state).iter(), state.now())
}

fn find(view: &View, id: &str) -> Result<Arc<PoolView>, ApiError> {
    let found = view.pools.iter().find(|pool| pool.id == id).cloned();
    found.ok_or_else(|| ApiError::no_such("node pool", id))
}

fn shown(state: &ApiState, id: &str) -> Result<Nodepool, ApiError> {
    let view = state.control.view();
    Ok(convert::node_pool(&*find(&view, id)?, &view, &state.context()))
}

async fn read(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<Nodepool>, ApiError> {
    Ok(Json(shown(&state, &id)?))
}

async fn create(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    force: QueryParameters<Forced>,
    Body(request): Body<NodepoolCreateFields>,
) -> Result<Created<Nodepool>, ApiError> {
    state.check_cluster(request.cluster_id.as_deref())?;
    let label = (request.label_key.clone(), request.label_value.clone());
    let name = request.name.clone();
    let spec = convert::pool_creation(request)?;
    let effects =
        move |view: &View| of_pools(view, PoolEdit::Create { name: &name, label: &label });
    let control = agreed(state.asked_by(&caller), force.has("force"), effects);
    let made = control.create_pool(&caller.subject, spec).await?;
    Ok(Created(shown(&state, &made.id)?))
}

async fn replaced(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    force: QueryParameters<Forced>,
    Body(request): Body<NodepoolUpdateFields>,
) -> Result<Json<Nodepool>, ApiError> {
    save(&state, &caller, &id, (request, true), force.has("force")).await
}

async fn changed(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    force: QueryParameters<Forced>,
    Body(request): Body<NodepoolUpdateFields>,
) -> Result<Json<Nodepool>, ApiError> {
    save(&state, &caller, &id, (request, false), force.has("force")).await
}

async fn save(
    state: &ApiState,
    caller: &Caller,
    id: &str,
    (request, replaces_all): (NodepoolUpdateFields, bool),
    forced: bool,
) -> Result<Json<Nodepool>, ApiError> {
    let change = convert::pool_change(request, replaces_all)?;
    let view = state.control.view();
    find(&view, id)?;
    let (pool, key, value) = (id.to_owned(), change.label_key.clone(), change.label_value.clone());
    let effects = move |view: &View| {
        let there = view.pools.iter().find(|one| one.id == pool);
        let label = there.and_then(|one| one.settings.label.clone()).map(|(own_key, own_value)| {
            (key.clone().unwrap_or(own_key), value.clone().unwrap_or(own_value))
        });
        label.map_or_else(QuotaEffects::default, |label| {
            of_pools(view, PoolEdit::Relabel { id: &pool, label: &label })
        })
    };
    let control = agreed(state.asked_by(caller), forced, effects);
    control.update_pool(&caller.subject, id, change).await?;
    Ok(Json(shown(state, id)?))
}

async fn delete(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    force: QueryParameters<Forced>,
) -> Result<NoContent, ApiError> {
    let pool = id.clone();
    let effects = move |view: &View| of_pools(view, PoolEdit::Delete { id: &pool });
    let control = agreed(state.asked_by(&caller), force.has("force"), effects);
    control.delete_pool(&caller.subject, &id).await?;
    Ok(NoContent)
}
