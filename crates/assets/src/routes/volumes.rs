//! Volumes of projects: which there are, and their end.

use access::{Caller, Route, Where};
use api_types::{Volume, Volumes};
use auth::Action::{Delete, Read};
use auth::Resource;
use axum::extract::{FromRef, Path, State as FromState};
use axum::{Extension, Json};
use http_kit::openapi::{delete as del, get};
use http_kit::{ApiError, NoContent};
use orchestrator::{VOLUME, VOLUME_ENDING, volume_name};
use view::{Object, Scope, View};

use super::AssetsState;

/// The routes of volumes.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    AssetsState: FromRef<S>,
{
    let (all, one) = ("/elastane/v1/volumes", "/elastane/v1/volumes/{volumeId}");
    let of = Resource::PvcAssets;
    let about = "The volumes of projects, and who uses them";
    let gone = "Deletes a volume with all that is in it";
    [
        get(all, "list_volumes", about, list).needs(Read, of, Where::Anywhere),
        del(one, "delete_volume", gone, delete).needs(Delete, of, Where::Anywhere),
    ]
    .map(|route| route.of("Elastane"))
    .into_iter()
}

async fn list(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
) -> Json<Volumes> {
    let view = state.control.view();
    let all = view.objects.all(VOLUME);
    let seen = all.iter().filter(|object| caller.sees(Resource::PvcAssets, object));
    let ending = view.objects.all(VOLUME_ENDING);
    let ending = ending.iter().map(|object| in_its_project(object));
    let ending = ending.filter(|object| caller.sees(Resource::PvcAssets, object));
    let volumes = seen.filter_map(|object| shown(object, &view)).collect::<Vec<_>>();
    let ending = ending.filter_map(|object| {
        let error = object.body["error"].as_str().map(str::to_owned);
        Some(Volume { used_by: Vec::new(), deleting: true, error, ..shown(&object, &view)? })
    });
    Json(Volumes { volumes: volumes.into_iter().chain(ending).collect() })
}

/// A volume that is being deleted, as it was; who may see it outlives it as long as the project is
/// there.
fn in_its_project(ending: &Object) -> Object {
    let project = ending.body["project"].as_u64().unwrap_or_default();
    let claim = ending.body["claim"].as_str().unwrap_or_default().to_owned();
    Object { scope: Scope::Project(project), name: claim, ..ending.clone() }
}

fn shown(object: &Object, view: &View) -> Option<Volume> {
    let Scope::Project(id) = object.scope else { return None };
    let project = view.projects.get(&id);
    let name = volume_name(id, &object.name);
    let used_by = view.workloads.values().filter(|one| one.spec.volumes().any(|own| own == name));
    Some(Volume {
        id: object.id.clone(),
        name: object.name.clone(),
        project_id: id.to_string(),
        project_name: project.map(|project| project.unit.name.clone()).unwrap_or_default(),
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        used_by: used_by.map(|workload| workload.spec.name.clone()).collect(),
        deleting: false,
        error: None,
    })
}

async fn delete(
    FromState(state): FromState<AssetsState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<NoContent, ApiError> {
    let object = state.control.view().objects.get(VOLUME, &id).cloned();
    let object = object.ok_or_else(|| ApiError::no_such(VOLUME, &id))?;
    caller.must_see(Resource::PvcAssets, &object)?;
    caller.must_to_object(Delete, Resource::PvcAssets, &object)?;
    state.asked_by(&caller).delete_object(&caller.subject, VOLUME, &id).await?;
    Ok(NoContent)
}
