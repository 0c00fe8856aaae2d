//! Storage classes. There is one: every volume is a folder on the machine.

use access::{Route, Where};
use api_types::{
    AccessModeCustomization, PvcAccessModes, StorageClass, StorageClassCustomization,
    StorageClassNames, StorageClassPermissions, StorageClassSpec, StorageClasses,
    VolumeModeCustomization, VolumeModes,
};
use auth::Action::Read;
use auth::Resource;
use axum::Json;
use axum::extract::{Path, State as FromState};
use http_kit::openapi::get;
use http_kit::{Allowed, ApiError, QueryParameters, takes};

use crate::ApiState;

/// The class of every volume.
const LOCAL: &str = "local";

/// The routes of storage classes.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let about = "The storage classes; there is one, whose volumes are folders on the machine";
    let names = "The names of the storage classes";
    let of_cluster = "/v1/k8s/clusters/{uuid}/storage-classes";
    let of = Resource::StorageClasses;
    [
        get("/api/v1/storage-classes", "get_storage_classes", about, list),
        get("/api/v2/storage-classes", "get_storage_classes_v2", about, list),
        get(of_cluster, "v1_get_storage_classes", names, list_names).deprecated(),
    ]
    .map(|route| route.needs(Read, of, Where::Anywhere).of("StorageClasses"))
    .into_iter()
}

takes! {
    /// Which classes are asked for.
    Classes:
        ("clusterId", Allowed::Text, "Id of the cluster; there is one"),
        ("name", Allowed::Text, "The class with this name only"),
        INCLUDE_NONE;
    /// Parameters of the list of names.
    Names: INCLUDE_NONE;
}

const INCLUDE_NONE: http_kit::Parameter = (
    "includeNone",
    Allowed::Flag,
    "Changes nothing here: a claim that names no class is of the one there is",
);

async fn list(
    FromState(state): FromState<ApiState>,
    query: QueryParameters<Classes>,
) -> Result<Json<StorageClasses>, ApiError> {
    state.check_cluster(query.value("clusterId"))?;
    let wanted = query.value("name").is_none_or(|name| name == LOCAL);
    let items = wanted.then(|| local(state.context().cluster_id));
    Ok(Json(StorageClasses { items: items.into_iter().collect() }))
}

async fn list_names(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    _: QueryParameters<Names>,
) -> Result<Json<StorageClassNames>, ApiError> {
    state.must_be_cluster(&id)?;
    Ok(Json(StorageClassNames { storage_classes: vec![LOCAL.to_owned()] }))
}

fn local(cluster_id: String) -> StorageClass {
    let modes = |once, read, write| PvcAccessModes {
        read_write_once: Some(once),
        read_only_many: Some(read),
        read_write_many: Some(write),
    };
    StorageClass {
        cluster_id,
        storage_class_name: LOCAL.to_owned(),
        spec: StorageClassSpec {
            provisioner: "elastane".to_owned(),
            allow_volume_expansion: false,
            is_default: true,
        },
        permissions: StorageClassPermissions {
            allowed_for_assets: true,
            allowed_for_workloads: true,
            allowed_for_ephemeral_volumes: true,
            allowed_for_persistent_volumes: true,
            allow_data_sharing: false,
        },
        customization: StorageClassCustomization {
            access_mode: AccessModeCustomization {
                required: false,
                default: modes(false, false, true),
                supported_values: modes(true, true, true),
            },
            volume_mode: VolumeModeCustomization {
                required: false,
                default: "Filesystem".to_owned(),
                supported_values: VolumeModes { filesystem: true, block: false },
            },
        },
    }
}
