//! Nodes: their list, their settings, and drills with simulated ones.

use access::{Caller, Route, Where};
use api_types::{CountResponse, Gpus, Node, NodeLabels, NodePatch, Nodes, SimulatedNode};
use auth::Action::{Read, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get, patch, post, put};
use http_kit::{ApiError, Body, Created, ListQuery, NoContent, QueryParameters};
use orchestrator::NodeChange;
use spec::Scheduling;
use view::{GpuView, NodeView, Scope, View};

use crate::ApiState;
use crate::drain_effects::Drain;
use crate::node_order::in_natural_order;
use crate::quota_effects::{Forced, PoolEdit, QuotaEffects, agreed, labels_after, of_pools};

pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let of_cluster = "/api/v1/clusters/{clusterUuid}/nodes/count";
    let published = [
        get("/api/v1/nodes", "get_tenant_nodes", "The nodes", nodes),
        get("/api/v1/nodes/count", "count_tenant_nodes", "How many nodes", count_nodes),
        get(of_cluster, "count_nodes", "How many nodes a cluster has", count_nodes_of),
    ]
    .map(|route| {
        route.of("Nodes").rows::<NodeView, _>().needs(Read, Resource::Nodes, Where::Anywhere)
    });
    let labels = "/elastane/v1/nodes/{node}/labels";
    let about_labels = "Gives a node labels beside those it came with";
    let one = "/elastane/v1/nodes/{node}";
    let about_one = "Cordons, drains or uncordons a node, and changes its labels and taints";
    let failure = "/elastane/v1/nodes/{node}/gpus/{gpu}/simulated-failure";
    let (fails, works) = ("Makes a simulated GPU fail", "Makes a simulated GPU work again");
    let simulated = "/elastane/v1/simulated-nodes";
    let simulated_one = "/elastane/v1/simulated-nodes/{node}";
    let removes = "Removes a simulated node at once, with all that runs there";
    let own = [
        put(labels, "label_node", about_labels, label_node),
        patch(one, "change_node", about_one, change_node),
        put(failure, "fail_simulated_gpu", fails, fail_gpu),
        del(failure, "heal_simulated_gpu", works, heal_gpu),
        post(simulated, "add_simulated_node", "Adds a simulated node", add_simulated),
        del(simulated_one, "remove_simulated_node", removes, remove_simulated),
    ]
    .map(|route| route.of("Elastane").needs(Update, Resource::Nodes, Where::Tenant));
    let gpus =
        get("/elastane/v1/gpus", "get_gpus", "The GPUs of the nodes and the pods on them", gpus)
            .of("Elastane")
            .rows::<GpuView<'_>, _>()
            .needs(Read, Resource::Nodes, Where::Anywhere);
    published.into_iter().chain(own).chain([gpus])
}

async fn nodes(
    FromState(state): FromState<ApiState>,
    query: ListQuery,
) -> Result<Json<Nodes>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    let rows = query.matching(in_natural_order(&view.nodes).into_iter(), context.now)?;
    let (page, _) = query.page(rows);
    let nodes = page.into_iter().map(|row| convert::node(row, &context)).collect();
    Ok(Json(Nodes { nodes }))
}

async fn gpus(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<Gpus>, ApiError> {
    let view = state.control.view();
    let all: Vec<_> = view.nodes.iter().flat_map(|node| node.gpus()).collect();
    let (page, _) = query.page(query.matching(all.iter(), state.now())?);
    let is_seen = |project| caller.may(Read, Resource::Workloads, Scope::Project(project));
    let context = state.context();
    let gpus = page.into_iter().map(|gpu| convert::gpu(gpu, &view, &context, is_seen)).collect();
    Ok(Json(Gpus { gpus }))
}

async fn count_nodes(
    FromState(state): FromState<ApiState>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    let view = state.control.view();
    query.count(view.nodes.iter().map(AsRef::as_ref), state.now())
}

async fn count_nodes_of(
    state: FromState<ApiState>,
    Path(id): Path<String>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    state.must_be_cluster(&id)?;
    count_nodes(state, query).await
}

/// Replaces all labels of a node beside its built-in ones.
async fn label_node(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    force: QueryParameters<Forced>,
    Body(request): Body<NodeLabels>,
) -> Result<Json<Node>, ApiError> {
    let labels = request.labels.into_iter().map(|(key, value)| (key, Some(value))).collect();
    let change = NodeChange { labels, replaces_labels: true, ..NodeChange::default() };
    save(&state, &caller, &name, (change, force.has("force"))).await
}

/// Labels, taints, and whether new pods may come.
async fn change_node(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    force: QueryParameters<Forced>,
    Body(patch): Body<NodePatch>,
) -> Result<Json<Node>, ApiError> {
    let change = convert::node_change(patch);
    save(&state, &caller, &name, (change, force.has("force"))).await
}

async fn save(
    state: &ApiState,
    caller: &Caller,
    name: &str,
    (change, forced): (NodeChange, bool),
) -> Result<Json<Node>, ApiError> {
    let drain = match change.scheduling {
        Some(Scheduling::Draining) if !forced => {
            Some(Drain::considered((state, caller), name).await?)
        }
        _ => None,
    };
    let (node, considered) = (name.to_owned(), change.clone());
    let effects = move |view: &View| {
        let of_labels = of_change(view, &node, &considered);
        drain.iter().fold(of_labels, |all, drain| all.and(drain.as_of(view)))
    };
    let control = agreed(state.asked_by(caller), forced, effects);
    control.change_node(&caller.subject, name, change).await?;
    shown(state, name)
}

/// The effects of a change of a node on quotas; empty if there is no such node.
pub(super) fn of_change(view: &View, name: &str, change: &NodeChange) -> QuotaEffects {
    let Some(node) = view.nodes.iter().find(|node| node.name == name) else {
        return QuotaEffects::default();
    };
    of_pools(view, PoolEdit::LabelNode { name, labels: &labels_after(node, change) })
}

async fn add_simulated(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(node): Body<SimulatedNode>,
) -> Result<Created<Node>, ApiError> {
    let name = node.name.clone();
    let asked = state.asked_by(&caller);
    asked.add_node(&caller.subject, convert::new_node(node)).await?;
    shown(&state, &name).map(|Json(node)| Created(node))
}

/// Removes a simulated node at once.
async fn remove_simulated(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<NoContent, ApiError> {
    state.asked_by(&caller).remove_node(&caller.subject, &name).await?;
    Ok(NoContent)
}

fn shown(state: &ApiState, name: &str) -> Result<Json<Node>, ApiError> {
    let view = state.control.view();
    let node = view.nodes.iter().find(|node| node.name == name);
    let node = node.ok_or_else(|| ApiError::no_such("node", name))?;
    Ok(Json(convert::node(node, &state.context())))
}

/// Makes a simulated GPU fail.
async fn fail_gpu(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path((name, gpu)): Path<(String, String)>,
) -> Result<Json<Node>, ApiError> {
    state.asked_by(&caller).fail_gpu(&caller.subject, &name, number(&gpu)?).await?;
    shown(&state, &name)
}

/// Makes a simulated GPU work again.
async fn heal_gpu(
    FromState(state): FromState<ApiState>,
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
