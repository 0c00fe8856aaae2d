//! The routes, and what every request passes on its way to them.

mod events;
mod org;
mod own;
mod projects;
mod token;
mod typed;
mod workloads;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use control::view::WorkloadKind;
use tower_http::catch_panic::CatchPanicLayer;

use crate::State;
use crate::edge::{Fault, authenticate, check_host, limit_time, panicked};

type Shared = Arc<State>;

/// Everything this server answers.
pub fn router(state: State) -> Router {
    let state = Arc::new(state);
    let open = Router::new()
        .route("/api/v1/token", post(token::grant))
        .route("/healthz", get(own::health))
        .layer(from_fn(limit_time));
    let with_token = Router::new()
        .merge(organisation())
        .merge(workload_routes())
        .merge(own_routes())
        .layer(from_fn(limit_time))
        // Stopping takes as long as the workloads' grace periods.
        .route("/elastane/v1/down", post(own::down))
        .method_not_allowed_fallback(wrong_method)
        .route_layer(from_fn_with_state(Arc::clone(&state), authenticate));
    open.method_not_allowed_fallback(wrong_method)
        .merge(with_token)
        .fallback(wrong_path)
        .layer(from_fn_with_state(Arc::clone(&state), check_host))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(state)
}

fn organisation() -> Router<Shared> {
    let project = get(projects::get).put(projects::update).delete(projects::delete);
    let shares = axum::routing::put(projects::replace_shares).patch(projects::change_shares);
    Router::new()
        .route("/api/v1/clusters", get(org::clusters))
        .route("/api/v1/clusters/{id}", get(org::cluster))
        .route("/api/v1/org-unit/departments", get(org::departments))
        .route("/api/v1/org-unit/departments/count", get(org::one))
        .route("/api/v1/org-unit/departments/{id}", get(org::department))
        .route("/api/v1/node-pools", get(org::node_pools))
        .route("/api/v1/node-pools/count", get(org::one))
        .route("/api/v1/node-pools/{id}", get(org::node_pool))
        .route("/api/v1/nodes", get(org::nodes))
        .route("/api/v1/nodes/count", get(org::count_nodes))
        .route("/api/v1/org-unit/projects", get(projects::list).post(projects::create))
        .route("/api/v1/org-unit/projects/count", get(projects::count))
        .route("/api/v1/org-unit/projects/{id}", project)
        .route("/api/v1/org-unit/projects/{id}/resources", shares)
}

fn workload_routes() -> Router<Shared> {
    Router::new()
        .nest("/api/v1/workloads/trainings", typed::routes(WorkloadKind::Training))
        .nest("/api/v1/workloads/workspaces", typed::routes(WorkloadKind::Workspace))
        // A published quickstart lists by POST with an empty body (curl --data '').
        .route("/api/v1/workloads", get(workloads::list).post(workloads::list_by_post))
        .route("/api/v1/workloads/count", get(workloads::count))
        .route("/api/v1/workloads/batch", post(workloads::batch))
        .route("/api/v1/workloads/pods", get(workloads::all_pods))
        .route("/api/v1/workloads/pods/count", get(workloads::count_pods))
        .route("/api/v1/workloads/{id}", get(workloads::get))
        .route("/api/v1/workloads/{id}/pods", get(workloads::pods))
        .route("/api/v1/workloads/{id}/events", get(workloads::events))
        .route("/api/v1/workloads/{id}/history", get(workloads::history))
}

fn own_routes() -> Router<Shared> {
    Router::new()
        .route("/elastane/v1/status", get(own::status))
        .route("/elastane/v1/snapshot", get(own::snapshot))
        .route("/elastane/v1/events", get(events::stream))
        .route("/elastane/v1/workloads/{id}/logs", get(own::logs))
        .route("/elastane/v1/workloads/{id}/explain", get(own::explain))
        .route("/elastane/v1/workloads/{id}/shell", get(own::shell))
}

async fn wrong_path(uri: Uri) -> Fault {
    Fault::new(StatusCode::NOT_FOUND, format!("there is no route `{}`", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> Fault {
    let why = format!("`{}` does not answer {method}", uri.path());
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, why)
}
