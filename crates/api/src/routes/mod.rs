//! The routes, and what every request passes on its way to them.

mod audit;
mod codes;
mod departments;
mod download;
mod elastane_ext;
mod events;
mod explain;
mod inferences;
#[cfg_attr(not(feature = "ui"), path = "without_interface.rs")]
pub(crate) mod interface;
mod kubernetes;
mod landing_page;
mod nodes;
mod org;
mod org_units;
mod pools;
mod priority_classes;
mod projects;
mod properties;
mod quota_effects;
mod storage_classes;
mod tenant;
mod topologies;
mod unimplemented;
mod v2;
mod workload_kinds;
mod workloads;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use access::{Access, Backend, Route, Where};
use auth::Action::{Create, Delete, Read, Update};
use auth::Resource;
use axum::Router;
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use http_kit::openapi::{self, delete as del, get, post, put};
use http_kit::{
    ApiError, check_host, keep_nowhere, limit_time, name_one_host, note_origin, panicked,
};
use iam::{authenticate, authorise};
use telemetry::{Routes, trace};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{ApiState, State};

/// Everything this server answers.
pub fn router(state: State) -> Router {
    let (hosts, proxies) = (Arc::new(state.hosts.clone()), Arc::new(state.proxies.clone()));
    let state = ApiState::from(state);
    let (iam, gateway) = (state.iam.clone(), state.gateway.clone());
    let table = table();
    let traced = (state.telemetry.clone(), Arc::new(Routes::new(&table, &gateway::FORMER_ROUTES)));
    let backend = state.backend.clone();
    let needs_token = |route: &&Route<ApiState>| route.access != Access::Open;
    let closed: BTreeSet<_> = table.iter().filter(needs_token).map(|route| route.path).collect();
    // Some methods of a path may need a token and others none.
    let (mut open, mut half_open) = (Router::new(), Router::new());
    let (mut with_token, mut patient) = (Router::new(), Router::new());
    for route in table {
        let (group, serve) = match (route.access, route.patient) {
            (Access::Open, _) if closed.contains(route.path) => (&mut half_open, route.serve),
            (Access::Open, _) => (&mut open, route.serve),
            (access, in_time) => {
                let group = if in_time { &mut patient } else { &mut with_token };
                let check = from_fn_with_state((backend.clone(), access, route.path), authorise);
                (group, route.serve.route_layer(check))
            }
        };
        *group = std::mem::take(group).route(route.path, serve);
    }
    let with_token = with_token
        .layer(from_fn(limit_time))
        .merge(patient)
        .method_not_allowed_fallback(wrong_method)
        .route_layer(from_fn_with_state(backend, tell_outage))
        .route_layer(from_fn_with_state(iam, authenticate))
        .route_layer(from_fn_with_state(gateway.clone(), gateway::admit_pages));
    let mut former = Router::new();
    for path in gateway::FORMER_ROUTES {
        former = former.route(path, axum::routing::any(gateway::gone));
    }
    open.layer(from_fn(limit_time))
        .method_not_allowed_fallback(wrong_method)
        .merge(with_token)
        .merge(half_open.layer(from_fn(limit_time)))
        .layer(from_fn(landing_page::as_json))
        .merge(former)
        .fallback(landing_page::wrong_path)
        .layer(from_fn(keep_nowhere))
        .layer(from_fn_with_state(hosts, check_host))
        .layer(from_fn_with_state(gateway, gateway::divert))
        .layer(from_fn(name_one_host))
        .layer(from_fn_with_state(proxies, note_origin))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(traced, trace))
        .with_state(state)
}

/// Every route there is.
fn table() -> Vec<Route<ApiState>> {
    let mut all = Vec::new();
    all.extend(iam::routes());
    all.extend(gateway::routes());
    all.extend(telemetry::routes());
    all.extend(changes::routes());
    all.extend(organisation());
    all.extend(nodes::routes());
    all.extend(departments::routes());
    all.extend(projects::routes());
    all.extend(pools::routes());
    all.extend(topologies::routes());
    all.extend(workload_kinds::routes());
    all.extend(v2::routes());
    all.extend(inferences::routes());
    all.extend(workloads::routes());
    all.extend(assets::routes());
    all.extend(properties::routes());
    all.extend(priority_classes::routes());
    all.extend(policy::routes());
    all.extend(elastane_routes());
    all.extend(kubernetes::routes());
    all.extend(codes::routes());
    all.extend(audit::routes());
    all.extend(tenant::routes());
    all.extend(storage_classes::routes());
    all.extend(download::routes());
    all.extend(unimplemented::routes());
    all
}

fn organisation() -> impl Iterator<Item = Route<ApiState>> {
    let (clusters, one) = ("/api/v1/clusters", "/api/v1/clusters/{clusterUuid}");
    let info = "/api/v1/clusters/{clusterUuid}/cluster-install-info";
    let file = "/v1/k8s/clusters/{clusterUuid}/installfile";
    let nothing = "What to install for a cluster: nothing";
    let of = Resource::Cluster;
    let clusters = [
        get(clusters, "get_clusters", "The clusters; there is one", org::clusters).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        post(clusters, "create_cluster", "Refused: there is one cluster", org::one_cluster).needs(
            Create,
            of,
            Where::Tenant,
        ),
        get(one, "get_cluster_by_uuid", "A cluster", org::cluster).needs(Read, of, Where::Anywhere),
        put(one, "update_cluster", "Renames the cluster", org::rename_cluster).needs(
            Update,
            of,
            Where::Tenant,
        ),
        del(one, "delete_cluster", "Refused: the server is the cluster", org::keep_cluster).needs(
            Delete,
            of,
            Where::Tenant,
        ),
        get(info, "get_cluster_install_info_by_uuid", nothing, org::install_info).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        get(file, "get_install_file", nothing, org::install_file).needs(Read, of, Where::Anywhere),
    ]
    .map(|route| route.of("Clusters"));
    clusters.into_iter()
}

fn elastane_routes() -> impl Iterator<Item = Route<ApiState>> {
    let health =
        get("/healthz", "get_health", "Whether the server answers", elastane_ext::health).open();
    let document = "/elastane/v1/openapi.json";
    let about = "This description, for programs";
    let described = get(document, "get_openapi", about, elastane_ext::openapi).open();
    let about = "This description, for people";
    let page = get("/elastane/v1/docs", "get_docs", about, elastane_ext::docs).open();
    let about = "Stops every workload, then the server";
    let down = post("/elastane/v1/down", "stop_server", about, elastane_ext::down).patient().needs(
        Delete,
        Resource::Cluster,
        Where::Tenant,
    );
    let status =
        get("/elastane/v1/status", "get_status", "The cluster in short", elastane_ext::status)
            .needs(Read, Resource::Nodes, Where::Anywhere);
    let about = "What the scheduler sees, as a scenario for `elastane simulate`";
    let snapshot = get("/elastane/v1/snapshot", "get_snapshot", about, elastane_ext::snapshot)
        .needs(Read, Resource::Workloads, Where::Tenant);
    let about = "What would happen if this were submitted, or changed; touches nothing";
    let asked = post("/elastane/v1/what-if", "what_if", about, elastane_ext::what_if).needs(
        Read,
        Resource::Workloads,
        Where::Anywhere,
    );
    let about = "The effects of a change on quotas; touches nothing";
    let effects = post("/elastane/v1/quota-effects", "quota_effects", about, quota_effects::shown)
        .needs(Read, Resource::NodePools, Where::Anywhere);
    let about = "What happens, as it happens; resumable";
    let stream = get("/elastane/v1/events", "stream_events", about, events::stream).needs(
        Read,
        Resource::Workloads,
        Where::Anywhere,
    );
    let of_workload = [
        get(
            "/elastane/v1/workloads/{workloadId}/logs",
            "get_logs",
            "What a pod has printed",
            elastane_ext::logs,
        )
        .needs(Read, Resource::Workloads, Where::Workload),
        get(
            "/elastane/v1/workloads/{workloadId}/explain",
            "explain_workload",
            "Why a workload is where it is, and what would help",
            explain::explain,
        )
        .needs(Read, Resource::Workloads, Where::Workload),
    ];
    let server = [health, described, page, down, status, snapshot, asked, effects, stream];
    let own = server.into_iter().chain(of_workload);
    own.map(|route| route.of("Elastane"))
}

/// The description of every route, for programs and for people.
struct Described {
    document: String,
    page: String,
}

/// Made once: it never changes.
fn description() -> Result<&'static Described, ApiError> {
    static MADE: OnceLock<Result<Described, String>> = OnceLock::new();
    let make = || {
        let document = openapi::document(&table()).map_err(|error| error.to_string())?;
        Ok(Described { document: format!("{document:#}"), page: openapi::page(&document) })
    };
    MADE.get_or_init(make).as_ref().map_err(ApiError::internal)
}

/// Adds a notice of the engine's outage to answers: reads show the last known state.
async fn tell_outage(
    FromState(backend): FromState<Backend>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    if let Some(outage) = backend.control.outage()
        && let Ok(notice) = HeaderValue::from_bytes(convert::notice(&outage).as_bytes())
    {
        response.headers_mut().insert(api_types::NOTICE_HEADER, notice);
    }
    response
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let why = format!("`{}` does not answer {method}", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_take_no_address_that_a_route_may_have() {
        // One that names no thing is no family of addresses: a page elsewhere is never taken for
        // it.
        let is_family = |path: &str| path.contains('{') || path.matches('/').count() > 1;
        for route in table().into_iter().filter(|route| is_family(route.path)) {
            let known = landing_page::OF_ROUTES.iter().any(|own| route.path.starts_with(own));
            assert!(known, "{}", route.path);
        }
    }

    #[test]
    fn nothing_is_served_twice_or_served_and_missing() {
        let mut served = BTreeSet::new();
        for route in table() {
            assert!(
                served.insert((route.path, route.method.clone())),
                "{} {}",
                route.method,
                route.path
            );
        }
    }
}
