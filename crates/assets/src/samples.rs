//! Assets of a new installation, as Run:ai ships them, with the images of its documentation.
//!
//! Owns: their table (`samples.json`). Does not know which installation is new.

use api_types::{Compute, EnvironmentAssetSpec, WorkloadSupportedTypes};
use http_kit::ApiError;
use orchestrator::{NewId, NewObject};
use serde::Deserialize;
use view::Scope;

use super::{AssetSpec, Stored};

/// The table, by kind of asset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Samples {
    compute: Vec<Sample<Compute>>,
    environments: Vec<Sample<EnvironmentAssetSpec>>,
}

/// A row of the table. Its specification has the published form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sample<S> {
    name: String,
    description: String,
    workload_supported_types: Option<WorkloadSupportedTypes>,
    spec: S,
}

/// The objects to create. Their scope is the one in which the web interface creates assets, so that
/// it refuses their names.
///
/// # Errors
/// A row of the table is invalid.
pub fn samples() -> Result<Vec<NewObject>, ApiError> {
    let table = serde_json::from_str::<Samples>(include_str!("samples.json"));
    let table = table.map_err(|error| ApiError::internal(format!("samples: {error}")))?;
    let compute = table.compute.into_iter().map(object);
    compute.chain(table.environments.into_iter().map(object)).collect()
}

fn object<S: AssetSpec>(sample: Sample<S>) -> Result<NewObject, ApiError> {
    let Sample { name, description, workload_supported_types, spec } = sample;
    let body = Stored::new(Some(description), workload_supported_types, spec)?;
    Ok(NewObject {
        kind: S::STORED,
        id: NewId::Any,
        scope: Scope::Cluster,
        owner: String::new(),
        name,
        body: serde_json::to_value(body).unwrap_or_default(),
        newest: None,
    })
}
