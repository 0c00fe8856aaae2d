//! Sources of values for submissions: assets, templates, config maps; and the volumes of projects.
//!
//! Owns: how they are kept, checked, found and shown, their routes, the composition of a submission
//! from those it names, and rights on the machine ([`resolve_mounts`]). The kinds are defined in
//! [`kinds`]. Does not know policies.

mod checks;
mod compose;
mod config_maps;
mod connections;
mod credentials;
mod data;
mod documents;
mod kinds;
mod mounts;
mod query;
mod reseal;
mod routes;
mod samples;
mod secrets;
mod templates;
mod usage;

use std::path::PathBuf;

use access::{Backend, Caller, Family, Ids, Item, NamedScope, scopes};
use api_types::{
    Asset, AssetCreationMeta, AssetKind, AssetMeta, AssetUpdateMeta, TENANT_ID,
    WorkloadSupportedTypes, asks_for_something,
};
use auth::Action::Create;
use auth::{Resource, Vault};
use convert::Origins;
use http_kit::ApiError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use view::{Scope, View};

pub use compose::{compose, imposed};
use credentials::Credential;
pub use documents::documents;
pub use mounts::{may_enter, must_exist, resolve_mounts};
use query::{AssetQuery, OneAssetQuery};
pub use reseal::reseal;
pub use routes::routes;
pub use samples::samples;
pub use secrets::take_secrets;
use usage::{Usage, keys};

/// State of the handlers.
pub struct Assets {
    backend: Backend,
    /// Seals what credentials keep.
    vault: Vault,
    origins: Origins,
}

impl Assets {
    /// Assets of a server that is reached at these addresses.
    #[must_use]
    pub const fn new(backend: Backend, vault: Vault, origins: Origins) -> Self {
        Self { backend, vault, origins }
    }

    fn context(&self) -> convert::Context {
        convert::Context::new(&self.backend, &self.origins)
    }
}

impl std::ops::Deref for Assets {
    type Target = Backend;
    fn deref(&self) -> &Backend {
        &self.backend
    }
}

/// Marker: this crate defines how its resources are listed.
struct Listed;

/// Longest description.
const DESCRIPTION_CHARS_MAX: usize = 250;

/// Specification of an asset of one kind.
pub(crate) trait AssetSpec:
    Serialize + DeserializeOwned + ToSchema + Clone + Send + Sync + 'static
{
    /// The published word for the kind.
    const KIND: AssetKind;
    /// Resource that roles name for it.
    const RESOURCE: Resource;
    /// Name in the database and in errors.
    const STORED: &'static str;

    /// Refuses values that can never be right.
    fn check(&self) -> Result<(), ApiError>;

    /// The specification after a change to this one.
    fn after(self, _before: &Self) -> Self {
        self
    }

    /// Folder of the machine that it gives access to.
    fn path_on_machine(&self) -> Option<&str> {
        None
    }
}

/// An asset as it is kept. Its specification is kept as it was given, in the published form.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "S: DeserializeOwned"))]
pub(crate) struct Stored<S> {
    pub(crate) description: Option<String>,
    pub(crate) supports: Option<WorkloadSupportedTypes>,
    pub(crate) updates: u64,
    #[serde(flatten)]
    pub(crate) given: HostPathGrant,
    pub(crate) spec: S,
    /// The names of the values that are sealed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) keys: Vec<String>,
    /// The values, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secrets: Option<String>,
}

/// Rights on the machine that come with an asset: none, unless an administrator made it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostPathGrant {
    /// True if its creator may mount paths of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_administrator: bool,
    /// The folder that it named then, with links followed. Later links have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) real_path: Option<PathBuf>,
}

impl HostPathGrant {
    /// Grant of an asset that `caller` makes or changes now.
    pub(crate) async fn by<S: AssetSpec>(
        caller: &Caller,
        state: &Backend,
        spec: &S,
    ) -> Result<Self, ApiError> {
        let by_administrator = caller.administers();
        let real_path = match spec.path_on_machine().filter(|_| by_administrator) {
            // A missing folder is granted by saving the asset once the folder exists.
            Some(path) => mounts::real(state, path.into()).await?.ok(),
            None => None,
        };
        Ok(Self { by_administrator, real_path })
    }
}

impl<S: AssetSpec> Family for Stored<S> {
    const KIND: &'static str = S::STORED;
}

/// A new asset, checked: its scope, its name, and what is kept.
pub(crate) async fn creation<S: AssetSpec>(
    state: &Backend,
    caller: &Caller,
    meta: AssetCreationMeta,
    spec: S,
) -> Result<(Scope, String, Stored<S>), ApiError> {
    let named = NamedScope {
        kind: meta.scope,
        cluster: meta.cluster_id.as_deref(),
        department: meta.department_id.as_deref(),
        project: meta.project_id,
    };
    let scope = state.scope("meta.", named)?;
    caller.must(Create, S::RESOURCE, scope)?;
    for (field, later) in [("autoDelete", &meta.auto_delete), ("private", &meta.private)] {
        if asks_for_something(later) {
            return Err(ApiError::not_yet(format!("meta.{field}")));
        }
    }
    let mut body = Stored::new(meta.description, meta.workload_supported_types, spec)?;
    body.given = HostPathGrant::by(caller, state, &body.spec).await?;
    Ok((scope, meta.name, body))
}

/// Refuses a description that is too long, or none and yet there.
pub(crate) fn check_description(text: Option<&str>) -> Result<(), ApiError> {
    match text.map(|text| text.chars().count()) {
        None | Some(1..=DESCRIPTION_CHARS_MAX) => Ok(()),
        Some(chars) => {
            let why = format!("has {chars} characters; 1 to {DESCRIPTION_CHARS_MAX}, or left out");
            Err(ApiError::field("meta.description", why))
        }
    }
}

/// The description after a change: an empty one takes it away, none leaves it.
pub(crate) fn description_after(new: Option<String>, before: Option<String>) -> Option<String> {
    new.or(before).filter(|text| !text.is_empty())
}

/// Refuses a specification that can never be right.
pub(crate) fn check<S: AssetSpec>(spec: &S) -> Result<(), ApiError> {
    let wire = serde_json::to_value(spec).unwrap_or_default();
    if let Some(path) = blank(&wire, "spec") {
        return Err(ApiError::field(&path, "is empty; leave it out instead"));
    }
    spec.check()
}

/// The first text in a document that is empty. The value of a variable may be.
fn blank(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => Some(path.to_owned()),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| blank(item, &format!("{path}[{at}]")))
        }
        Value::Object(fields) => {
            let mut fields = fields.iter().filter(|(name, _)| *name != "value");
            fields.find_map(|(name, value)| blank(value, &format!("{path}.{name}")))
        }
        _ => None,
    }
}

impl<S: AssetSpec> Stored<S> {
    /// A new asset without rights on the machine.
    fn new(
        description: Option<String>,
        supports: Option<WorkloadSupportedTypes>,
        spec: S,
    ) -> Result<Self, ApiError> {
        check_description(description.as_deref())?;
        check(&spec)?;
        let (given, keys, secrets) = (HostPathGrant::default(), Vec::new(), None);
        Ok(Self { description, supports, updates: 0, given, spec, keys, secrets })
    }

    /// Makes a change that was checked. If `spec` is `None`, the specification and its rights on
    /// the machine stay.
    pub(crate) fn change(
        &mut self,
        name: &mut String,
        meta: AssetUpdateMeta,
        spec: Option<(HostPathGrant, S)>,
    ) {
        if let Some(new) = meta.name {
            *name = new;
        }
        self.description = description_after(meta.description, self.description.take());
        self.supports = meta.workload_supported_types.or(self.supports.take());
        if let Some((given, spec)) = spec {
            self.given = given;
            self.spec = spec.after(&self.spec);
        }
        self.updates += 1;
    }
}

/// An asset as it is shown.
fn shown<S: AssetSpec>(
    state: &Backend,
    view: &View,
    item: Item<Stored<S>>,
    usage: Option<&Usage>,
) -> Asset<S> {
    let (object, body) = (item.object, item.body);
    let ids = Ids::of(object.scope, state);
    let project = ids.project.and_then(|id| view.projects.get(&id));
    let meta = AssetMeta {
        id: object.id.clone(),
        name: object.name.clone(),
        description: body.description,
        kind: S::KIND,
        tenant_id: TENANT_ID,
        scope: scopes::kind_of(object.scope),
        cluster_id: ids.cluster,
        department_id: ids.department,
        project_id: ids.project,
        project_name: project.map(|project| project.unit.name.clone()),
        workload_supported_types: body.supports,
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_by: object.updated_by.clone(),
        updated_at: object.updated_at.into(),
        update_count: body.updates,
    };
    let used_by = usage.map(|usage| usage.of(&object.id));
    Asset { meta, spec: body.spec, used_by }
}

/// The workloads that may use an asset, if not all may.
pub(crate) fn restricts(
    supports: Option<&WorkloadSupportedTypes>,
) -> Option<&WorkloadSupportedTypes> {
    let any =
        |t: &&WorkloadSupportedTypes| t.training || t.workspace || t.inference || t.distributed;
    supports.filter(any)
}
