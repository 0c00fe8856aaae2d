//! Workloads that are submitted as manifests of Kubernetes.

use std::sync::Arc;

use access::{Caller, Route, Where, find_workload};
use api_types::{
    DesiredPhase, Gvk, Preemptibility, TENANT_ID, WorkloadSpec, WorkloadV2,
    WorkloadV2CreateRequest, WorkloadV2GetResponse, WorkloadV2Metadata,
    WorkloadV2MetadataUpdateParams, WorkloadV2SyncInfo, WorkloadV2UpdateRequest,
};
use auth::Action::{Delete, Read, Update};
use auth::Resource;
use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use convert::{self, Context, manifest};
use http_kit::openapi::{delete as del, get, post, put};
use http_kit::{Accepted, ApiError, Body, parse_json};
use serde_json::Value;
use view::{Phase, WorkloadView};

use super::workload_kinds::{asked_for, changed, source};
use crate::ApiState;

/// Longest manifest.
const MANIFEST_BYTES_MAX: usize = 64 << 10;

/// The routes of workloads that are manifests.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (all, one) = ("/api/v2/workloads", "/api/v2/workloads/{workloadId}");
    let of = Resource::Workloads;
    let about = "Submits a manifest of Kubernetes: a pod, a job, a job of a training \
                 operator, or groups of a leader and workers";
    let changed =
        "Gives a workload another priority, and suspends or resumes it, as its manifest says";
    let routes = [
        post(all, "create_workload_v2", about, create).needs(Read, of, Where::Anywhere),
        get(one, "get_workload_v2_by_id", "A workload with its manifest", read).needs(
            Read,
            of,
            Where::Workload,
        ),
        put(one, "update_workload_v2", changed, update).needs(Update, of, Where::Workload),
        del(one, "delete_workload_v2", "Stops a workload for good", delete).needs(
            Delete,
            of,
            Where::Workload,
        ),
    ];
    routes.into_iter().map(|route| route.of("WorkloadsV2"))
}

/// The manifest, in the one form or the other.
fn given(manifest: Option<Value>, encoded: Option<String>) -> Result<Option<Value>, ApiError> {
    let field = "manifestBase64Encoded";
    let given = match (manifest, encoded) {
        (given, None) => given,
        (Some(_), Some(_)) => {
            return Err(ApiError::field(field, "goes without manifest; leave one out"));
        }
        (None, Some(text)) => {
            let bytes = STANDARD.decode(text).map_err(|why| ApiError::field(field, why))?;
            let read = parse_json(&bytes).map_err(|error| {
                let why = format!("is not JSON ({}); YAML is not read here", error.message());
                ApiError::field(field, why)
            });
            Some(read?)
        }
    };
    match given {
        Some(manifest) if manifest.to_string().len() > MANIFEST_BYTES_MAX => {
            Err(ApiError::field("manifest", format!("is longer than {MANIFEST_BYTES_MAX} bytes")))
        }
        given => Ok(given),
    }
}

async fn create(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(request): Body<WorkloadV2CreateRequest>,
) -> Result<Accepted<WorkloadV2>, ApiError> {
    let given = given(request.manifest, request.manifest_base64_encoded)?;
    let manifest = given.ok_or_else(|| ApiError::field("manifest", "is required"))?;
    let manifest::ManifestCreation { kind, request, note } =
        manifest::creation(request.metadata, &manifest)?;
    let asker = convert::Submitter::of(&caller, source(&headers));
    let strict = request.strict == Some(true);
    let (project_id, mut spec) = asked_for(&state, &caller, kind, request, asker).await?;
    spec.manifest = Some(manifest.to_string().into());
    let made = state.asked_by(&caller).submit(project_id, spec, strict).await?;
    let shown = shown(&made.workload, &state.context())?;
    let of_it = convert::warnings(&made.workload, &state.control.view(), made.warning);
    let warnings = note.into_iter().chain(of_it).collect();
    Ok(Accepted(WorkloadV2 { warnings, ..shown }))
}

/// The workload with this id, if it was submitted as a manifest.
async fn submitted(state: &ApiState, id: &str) -> Result<Arc<WorkloadView>, ApiError> {
    let found = find_workload(&state.control, id).await?;
    if found.spec.manifest.is_some() {
        return Ok(found);
    }
    let why = format!("workload {id} was not submitted as a manifest; see /api/v1/workloads/{id}");
    Err(ApiError::new(StatusCode::NOT_FOUND, why))
}

async fn read(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<WorkloadV2GetResponse>, ApiError> {
    let view = submitted(&state, &id).await?;
    let workload = shown(&view, &state.context())?;
    let status = match (view.deleted_at, view.phase) {
        (Some(_), _) => "Deleted",
        (None, Phase::Deleting) => "Deleting",
        (None, _) => "Synced",
    };
    let sync_info = WorkloadV2SyncInfo { status: status.to_owned() };
    Ok(Json(WorkloadV2GetResponse { workload, sync_info }))
}

async fn delete(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Accepted<WorkloadV2>, ApiError> {
    let id = submitted(&state, &id).await?.id;
    let gone = state.asked_by(&caller).delete_workload(&caller.subject, id).await?;
    Ok(Accepted(shown(&gone, &state.context())?))
}

/// As in Kubernetes, what runs cannot be made into something else.
async fn update(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Body(request): Body<WorkloadV2UpdateRequest>,
) -> Result<Accepted<WorkloadV2>, ApiError> {
    let workload = submitted(&state, &id).await?;
    let fixed = |field: &str| {
        let name = &workload.spec.name;
        let why = format!(
            "{field}: cannot be changed; `suspend` and metadata.priority can. Delete `{name}` and \
             submit it again with another value"
        );
        ApiError::new(StatusCode::CONFLICT, why)
    };
    let before = shown(&workload, &state.context())?;
    let said = request.metadata.unwrap_or_default();
    let WorkloadV2MetadataUpdateParams { priority, category } = said;
    if category.is_some_and(|said| said != before.metadata.category) {
        return Err(fixed("metadata.category"));
    }
    let after = given(request.manifest, request.manifest_base64_encoded)?;
    let after = after.unwrap_or_else(|| before.raw_manifest.clone());
    let suspend = manifest::is_suspended(&after);
    let running = |manifest: &Value| manifest::suspended(manifest, false);
    let (was, is) = (running(&before.raw_manifest), running(&after));
    if let Some(field) = manifest::difference(&was, &is, "manifest") {
        return Err(fixed(&field));
    }
    let workload = match priority {
        Some(priority) => {
            let asked = WorkloadSpec { priority_class: Some(priority), ..WorkloadSpec::default() };
            let named = |error: ApiError| error.moved("spec.priorityClass", "metadata.priority");
            changed(&state, &caller, &workload, asked).await.map_err(named)?
        }
        None => workload,
    };
    let (control, by, id) = (state.asked_by(&caller), &caller.subject, workload.id);
    let made = match (suspend, before.desired_phase == DesiredPhase::Stopped) {
        (true, false) => control.suspend(by, id).await?,
        (false, true) => control.resume(by, id).await?,
        _ => workload,
    };
    Ok(Accepted(shown(&made, &state.context())?))
}

/// A workload with its manifest, as the wire shows it.
fn shown(view: &WorkloadView, context: &Context) -> Result<WorkloadV2, ApiError> {
    let text = view.spec.manifest.as_deref().unwrap_or("null");
    let typed = convert::typed(view, context);
    let stopped = typed.desired_phase == DesiredPhase::Stopped;
    let sent: Value = serde_json::from_str(text).map_err(ApiError::internal)?;
    let raw_manifest = match manifest::is_suspended(&sent) == stopped {
        true => sent,
        false => manifest::suspended(&sent, stopped),
    };
    let word = |field: &str| raw_manifest[field].as_str().unwrap_or_default().to_owned();
    let version = word("apiVersion");
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let mut workload_manifest = raw_manifest.clone();
    workload_manifest["metadata"]["name"] = typed.name.clone().into();
    workload_manifest["metadata"]["namespace"] = convert::namespace(&view.project_name).into();
    let preemptible = view.spec.preemptible;
    let metadata = WorkloadV2Metadata {
        id: typed.workload_id,
        name: typed.name,
        project_id: typed.project_id,
        project_name: view.project_name.clone(),
        department_id: typed.department_id,
        department_name: view.department_name.clone(),
        cluster_id: typed.cluster_id,
        tenant_id: TENANT_ID,
        gvk: Gvk { group: group.to_owned(), version: version.to_owned(), kind: word("kind") },
        priority: view.spec.priority.class.clone(),
        category: convert::category(view.spec.kind).to_owned(),
        preemptibility: match preemptible {
            true => Preemptibility::Preemptible,
            false => Preemptibility::NonPreemptible,
        },
        created_by: typed.created_by.clone(),
        created_at: typed.created_at,
        updated_by: typed.created_by,
        updated_at: view.phase_since.into(),
    };
    Ok(WorkloadV2 {
        metadata,
        desired_phase: typed.desired_phase,
        workload_manifest,
        raw_manifest,
        warnings: Vec::new(),
    })
}
