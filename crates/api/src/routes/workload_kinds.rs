//! Trainings, workspaces and distributed workloads: the same routes for all.

use std::sync::Arc;

use access::{Caller, Route, Where, find_of_kind, resource_of};
use api_types::{
    CreationRequest, HttpResponse, InferenceUpdateRequest, SOURCE_HEADER, TypedWorkload,
    WorkloadSpec as RequestedSpec,
};
use auth::Action::{Create, Delete, Read, Update};
use axum::extract::{Path, State as FromState};
use axum::http::HeaderMap;
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get, patch, post};
use http_kit::{Accepted, ApiError, Body};
use spec::{UsedObject, WorkloadKind, WorkloadSpec};
use view::{Scope, View, WorkloadView};

use crate::ApiState;
use assets::{compose, take_secrets};
use policy::Policies;

/// Characters that make a name of a prefix.
const SUFFIX_CHARS: usize = 5;

pub(super) type Answer = Result<Accepted<TypedWorkload>, ApiError>;
type Done = Result<Accepted<HttpResponse>, ApiError>;

/// The routes of one kind.
macro_rules! routes {
    ($kind:expr, $path:literal, $family:literal, $one:literal, $shape:literal,
     create: $create:literal, $request:literal, change: $change:literal) => {
        [
            post(
                concat!("/api/v1/workloads/", $path),
                $create,
                concat!("Submits a ", $one),
                create,
            )
            .needs(Create, resource_of($kind), Where::Anywhere)
            .naming("CreationRequest", $request),
            get(
                concat!("/api/v1/workloads/", $path, "/{workloadId}"),
                concat!("get_", $one),
                concat!("A ", $one, " as it was asked for"),
                read,
            )
            .needs(Read, resource_of($kind), Where::Workload),
            patch(
                concat!("/api/v1/workloads/", $path, "/{workloadId}"),
                concat!("update_", $one, "_spec"),
                concat!("Changes the priority, labels and limits of a ", $one, " that exists"),
                update,
            )
            .needs(Update, resource_of($kind), Where::Workload)
            .naming("InferenceUpdateRequest", $change),
            del(
                concat!("/api/v1/workloads/", $path, "/{workloadId}"),
                concat!("delete_", $one),
                concat!("Stops a ", $one, " for good"),
                delete,
            )
            .needs(Delete, resource_of($kind), Where::Workload),
            post(
                concat!("/api/v1/workloads/", $path, "/{workloadId}/suspend"),
                concat!("suspend_", $one),
                concat!("Stops a ", $one, " and keeps it"),
                suspend,
            )
            .needs(Update, resource_of($kind), Where::Workload),
            post(
                concat!("/api/v1/workloads/", $path, "/{workloadId}/resume"),
                concat!("resume_", $one),
                concat!("Queues a ", $one, " again"),
                resume,
            )
            .needs(Update, resource_of($kind), Where::Workload),
        ]
        .map(|route| route.of($family).with($kind).naming("Training1", $shape))
    };
}

/// The routes of all kinds.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let trainings = routes!(
        WorkloadKind::Training, "trainings", "Trainings", "training", "Training1",
        create: "create_training1", "TrainingCreationRequest", change: "TrainingUpdateRequest"
    );
    let workspaces = routes!(
        WorkloadKind::Workspace, "workspaces", "Workspaces", "workspace", "Workspace1",
        create: "create_workspace1", "WorkspaceCreationRequest",
        change: "WorkspaceUpdateRequest"
    );
    let distributed = routes!(
        WorkloadKind::Distributed, "distributed", "Distributed", "distributed",
        "DistributedWorkload",
        create: "create_distributed", "DistributedCreationRequest",
        change: "DistributedUpdateRequest"
    );
    trainings.into_iter().chain(workspaces).chain(distributed)
}

/// The source a client says it is.
pub(super) fn source(headers: &HeaderMap) -> String {
    let said = headers.get(SOURCE_HEADER).and_then(|value| value.to_str().ok());
    let known = said.filter(|said| matches!(*said, "CLI" | "Other"));
    known.unwrap_or("Control-plane").to_owned()
}

pub(super) async fn create(
    FromState(state): FromState<ApiState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(request): Body<CreationRequest>,
) -> Answer {
    let asker = convert::Submitter::of(&caller, source(&headers));
    let strict = request.strict == Some(true);
    let (project_id, spec) = asked_for(&state, &caller, kind, request, asker).await?;
    let made = state.asked_by(&caller).submit(project_id, spec, strict).await?;
    let typed = convert::typed(&made.workload, &state.context());
    let warnings = convert::warnings(&made.workload, &state.control.view(), made.warning);
    Ok(Accepted(TypedWorkload { warnings, ..typed }))
}

/// Project and specification of a creation, with assets, template and policies, if the caller may
/// create it.
pub(super) async fn asked_for(
    state: &ApiState,
    caller: &Caller,
    kind: WorkloadKind,
    mut request: CreationRequest,
    asker: convert::Submitter,
) -> Result<(u64, WorkloadSpec), ApiError> {
    if request.use_given_name_as_prefix == Some(true) {
        // Random, so that concurrent submissions do not collide.
        let own = uuid::Uuid::new_v4().simple().to_string();
        request.name = format!("{}-{}", request.name, &own[..SUFFIX_CHARS]);
    }
    state.check_cluster(request.cluster_id.as_deref())?;
    let project_id = access::project_id("projectId", &request.project_id)?;
    caller.must(Create, resource_of(kind), Scope::Project(project_id))?;
    // A request is large, and callers hold it in theirs.
    Box::pin(project_and_spec(state, kind, request, asker)).await
}

/// Project and specification of a creation, for a caller with permission.
pub(super) async fn project_and_spec(
    state: &ApiState,
    kind: WorkloadKind,
    mut request: CreationRequest,
    asker: convert::Submitter,
) -> Result<(u64, WorkloadSpec), ApiError> {
    let project_id = access::project_id("projectId", &request.project_id)?;
    let mut uses = compose(state, kind, &mut request)?;
    let policies = Policies::around(&state.policy, kind, Scope::Project(project_id))?;
    add(&mut uses, policies.fill(&mut request)?);
    convert::fill_master(&mut request)?;
    check_policies(&policies, &request)?;
    if let Some(spec) = &request.spec {
        assets::must_exist(state, project_id, spec)?;
    }
    if let Some(master) = &request.master_spec {
        assets::must_exist(state, project_id, master).map_err(convert::of_the_master)?;
    }
    convert::check_addresses(&state.gateway.origins, &state.control.view(), project_id, &request)?;
    let secrets = take_secrets(state, project_id, request.spec.get_or_insert_default())?;
    let master = request
        .master_spec
        .as_mut()
        .map(|master| take_secrets(state, project_id, master).map_err(convert::of_the_master));
    let master = master.transpose()?;
    let class = super::priority_classes::take(&state.control.view(), &mut request)?;
    let (project_id, mut spec) = convert::command(kind, request, asker.clone())?;
    spec.priority = class.unwrap_or(spec.priority);
    for set in spec.sets_mut() {
        let own = master.as_ref().filter(|_| set.role != spec::WORKER);
        set.pod.secrets.clone_from(own.unwrap_or(&secrets));
    }
    let secrets = secrets.iter().chain(master.iter().flatten());
    add(&mut uses, secrets.map(|secret| secret.object.clone()));
    let view = state.control.view();
    spec.uses = uses.into_iter().map(|key| named(&view, key)).collect();
    pools_exist(&state.control.view(), "nodePools", &spec.node_pools)?;
    assets::resolve_mounts(state, &asker, project_id, &mut spec).await?;
    Ok((project_id, spec))
}

/// Rejects names of node pools that do not exist.
pub(super) fn pools_exist(view: &View, field: &str, names: &[String]) -> Result<(), ApiError> {
    let known = || view.pools.iter().map(|pool| pool.name.as_str());
    match names.iter().find(|name| known().all(|pool| pool != *name)) {
        Some(name) => Err(ApiError::unknown_name(field, "node pool", name, known())),
        None => Ok(()),
    }
}

/// Rejects a request that the rules do not allow; parameter servers follow the rules of the master.
fn check_policies(policies: &Policies, request: &CreationRequest) -> Result<(), ApiError> {
    policies.check(request)?;
    let Some(servers) = &request.parameter_servers else { return Ok(()) };
    let alike = convert::with_servers_as_master(request, servers);
    policies.check_as(&alike, "parameterServers").map_err(convert::of_the_servers)
}

/// An object with its present name; a credential may be one that cannot be seen.
fn named(view: &View, key: String) -> UsedObject {
    let found = key.split_once('/').and_then(|(kind, id)| view.objects.get(kind, id));
    let name = found.map(|object| object.name.clone()).unwrap_or_default();
    UsedObject { key, name }
}

/// Adds objects to the list of objects whose values are used.
fn add(uses: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for object in more {
        if !uses.contains(&object) {
            uses.push(object);
        }
    }
}

pub(super) fn accepted(state: &ApiState, view: &WorkloadView) -> Answer {
    Ok(Accepted(convert::typed(view, &state.context())))
}

pub(super) async fn read(
    FromState(state): FromState<ApiState>,
    Extension(kind): Extension<WorkloadKind>,
    Path(id): Path<String>,
) -> Result<Json<TypedWorkload>, ApiError> {
    Ok(Json(convert::typed(&*find_of_kind(&state.control, kind, &id).await?, &state.context())))
}

async fn update(
    FromState(state): FromState<ApiState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<InferenceUpdateRequest>,
) -> Answer {
    let of_inferences = [
        ("recreate", request.recreate.is_some()),
        ("fromRevision", request.from_revision.is_some()),
    ];
    if let Some((field, _)) = of_inferences.into_iter().find(|(_, is_given)| *is_given) {
        let why = "is for inferences: pods of other workloads do not change";
        return Err(ApiError::field(field, why));
    }
    let view = find_of_kind(&state.control, kind, &id).await?;
    let view = changed(&state, &caller, &view, request.spec).await?;
    accepted(&state, &view)
}

/// Changes a workload that exists. A policy rejects only violations that the workload did not have
/// before.
pub(super) async fn changed(
    state: &ApiState,
    caller: &Caller,
    view: &WorkloadView,
    asked: RequestedSpec,
) -> Result<Arc<WorkloadView>, ApiError> {
    let now = convert::typed(view, &state.context());
    let as_request = |spec: &RequestedSpec| CreationRequest {
        name: now.name.clone(),
        project_id: now.project_id.clone(),
        spec: Some(spec.clone()),
        master_spec: now.master_spec.clone(),
        master_spec_same_as_worker: now.master_spec_same_as_worker,
        ..CreationRequest::default()
    };
    let after = asked.clone().over(now.spec.clone());
    let of_manifest = view.spec.manifest.is_some();
    convert::check_changeable(&now.name, of_manifest, &now.spec, &after)?;
    let change = convert::change(asked, &after)?;
    let policies =
        Policies::around(&state.policy, view.spec.kind, Scope::Project(view.project_id))?;
    policies.check_change(&as_request(&now.spec), &as_request(&after))?;
    let control = state.asked_by(caller);
    Ok(control.update_workload(&caller.subject, view.id, change).await?)
}

pub(super) async fn delete(
    FromState(state): FromState<ApiState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Done {
    let id = find_of_kind(&state.control, kind, &id).await?.id;
    state.asked_by(&caller).delete_workload(&caller.subject, id).await?;
    Ok(Accepted(HttpResponse::accepted("the workload is being deleted")))
}

async fn suspend(
    FromState(state): FromState<ApiState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Done {
    let id = find_of_kind(&state.control, kind, &id).await?.id;
    state.asked_by(&caller).suspend(&caller.subject, id).await?;
    Ok(Accepted(HttpResponse::accepted("the workload is being suspended")))
}

async fn resume(
    FromState(state): FromState<ApiState>,
    Extension(kind): Extension<WorkloadKind>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Done {
    let id = find_of_kind(&state.control, kind, &id).await?.id;
    state.asked_by(&caller).resume(&caller.subject, id).await?;
    Ok(Accepted(HttpResponse::accepted("the workload is being resumed")))
}
