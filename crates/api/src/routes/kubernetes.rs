//! Pods of Kubernetes by their names there. Owns: who may see a pod that is in no workload.

use std::sync::Arc;

use access::{Caller, Route, Where};
use api_types::KubernetesPod;
use auth::{Action, Resource};
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::{Extension, Json};
use http_kit::openapi::get;
use http_kit::{ApiError, nearest};
use view::{AdoptedPodView, Scope, View};

use crate::ApiState;

pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let path = "/elastane/v1/kubernetes/pods/{namespace}/{name}";
    let about = "A pod of Kubernetes: its workload, or why it is in none";
    let pod = get(path, "get_kubernetes_pod", about, pod).needs(
        Action::Read,
        Resource::Workloads,
        Where::Anywhere,
    );
    std::iter::once(pod.of("Elastane"))
}

async fn pod(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Json<KubernetesPod>, ApiError> {
    let view = state.control.view();
    let found = view.adopted.get(&(namespace.clone(), name.clone()));
    match found.filter(|pod| sees(&caller, pod, &view)) {
        Some(pod) => Ok(Json(convert::kubernetes_pod(pod, &view))),
        None => Err(no_pod(&caller, &view, &namespace, &name)),
    }
}

/// True if a caller may see a pod: where its project is, or everywhere if it has none.
fn sees(caller: &Caller, pod: &AdoptedPodView, view: &View) -> bool {
    let workload = pod.workload_id.as_ref().and_then(|id| view.workloads.get(id));
    let of_workload = workload.map(|workload| workload.project_id);
    let project = of_workload.or_else(|| pod.held.as_ref()?.project_id);
    let scope = project.map_or(Scope::Tenant, Scope::Project);
    caller.may(Action::Read, Resource::Workloads, scope)
}

/// The error about a pod that the server does not place, with the nearest name or the next command.
fn no_pod(caller: &Caller, view: &View, namespace: &str, name: &str) -> ApiError {
    let wrong = format!("{namespace}/{name}");
    let (shown, place) = (units::shown(&wrong), units::shown(namespace));
    if !view.is_kubernetes {
        let why = format!("there is no pod {shown}: this server places no pods of Kubernetes");
        return ApiError::new(StatusCode::NOT_FOUND, why);
    }
    // The comparison of names takes time, and a cluster has many pods.
    let is_near =
        |one: &&Arc<AdoptedPodView>| one.pod.namespace == namespace || one.pod.name == name;
    let near = view.adopted.values().filter(is_near).filter(|pod| sees(caller, pod, view));
    let names: Vec<_> = near.map(|near| near.pod.full_name()).collect();
    let next = match nearest(&wrong, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "`kubectl get pods -n {place} -o \
             custom-columns=NAME:.metadata.name,SCHEDULER:.spec.schedulerName` lists the pods there \
             with their schedulers"
        ),
    };
    ApiError::new(StatusCode::NOT_FOUND, format!("no pod {shown} names this scheduler; {next}"))
}
