//! Credentials in use. Owns: from the names in a specification to references that the dispatcher
//! keeps; the values themselves are looked up when a run starts.

use std::sync::Arc;

use api_types::{EnvironmentVariable, SecretVolume, WorkloadSpec};
use axum::http::StatusCode;
use control::{Object, Scope, SecretPlace, SecretUse};

use super::credentials::ALL;
use super::kinds::{absolute, mode};
use crate::State;
use crate::edge::Fault;
use crate::scopes;

/// Permissions of secret files when it is not said.
pub(crate) const MODE_DEFAULT: u32 = 0o600;

/// Takes what a specification wants of credentials out of it. Answers references to the values.
pub(crate) fn take_secrets(
    state: &State,
    project: u64,
    spec: &mut WorkloadSpec,
) -> Result<Vec<SecretUse>, Fault> {
    let near = scopes::around(Scope::Project(project), &state.control.view());
    let from = Credentials { state, near };
    let mut uses = Vec::new();
    let mut variables = spec.environment_variables.take().unwrap_or_default();
    for (at, variable) in variables.iter().enumerate() {
        uses.extend(from.variable(&format!("spec.environmentVariables[{at}]"), variable)?);
    }
    variables.retain(|variable| variable.secret.is_none());
    spec.environment_variables = Some(variables);
    let volumes = spec.storage.as_mut().and_then(|storage| storage.secret_volume.take());
    for (at, volume) in volumes.iter().flatten().enumerate() {
        uses.extend(from.volume(&format!("spec.storage.secretVolume[{at}]"), volume)?);
    }
    Ok(uses)
}

struct Credentials<'a> {
    state: &'a State,
    near: Vec<Scope>,
}

impl Credentials<'_> {
    fn variable(
        &self,
        field: &str,
        variable: &EnvironmentVariable,
    ) -> Result<Option<SecretUse>, Fault> {
        let Some(secret) = &variable.secret else { return Ok(None) };
        if variable.exclude == Some(true) {
            return Ok(None);
        }
        let at = |name: &str| format!("{field}.{name}");
        let name = variable.name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Fault::field(&at("name"), "must be set"))?;
        if variable.value.is_some() {
            return Err(Fault::field(field, "has a value and a secret; leave one of them out"));
        }
        let wanted = secret.name.as_deref().unwrap_or_default();
        let found = self.find(&at("secret.name"), wanted)?;
        let keys = keys(&found);
        let key = match (&secret.key, keys.as_slice()) {
            (Some(key), keys) if keys.contains(key) => key.clone(),
            (None, [only]) => only.clone(),
            (given, keys) => {
                let given = given.as_ref().map_or("must be set".to_owned(), |key| {
                    format!("`{}` is none of its values", units::shown(key))
                });
                let why = format!("{given}; `{}` has {}", found.name, keys.join(", "));
                return Err(Fault::field(&at("secret.key"), why));
            }
        };
        let (object, named) = (found.key(), wanted.to_owned());
        Ok(Some(SecretUse { object, named, key: Some(key), to: SecretPlace::Variable(name) }))
    }

    fn volume(&self, field: &str, volume: &SecretVolume) -> Result<Option<SecretUse>, Fault> {
        if volume.exclude == Some(true) {
            return Ok(None);
        }
        let at = |name: &str| format!("{field}.{name}");
        let path = volume.mount_path.as_deref();
        let path = path.ok_or_else(|| Fault::field(&at("mountPath"), "must be set"))?;
        absolute(&at("mountPath"), Some(path))?;
        mode(&at("defaultMode"), volume.default_mode.as_deref())?;
        let bits = volume.default_mode.as_ref().and_then(|text| u32::from_str_radix(text, 8).ok());
        let to = SecretPlace::File { path: path.into(), mode: bits.unwrap_or(MODE_DEFAULT) };
        let wanted = volume.secret.as_deref().unwrap_or_default();
        let found = self.find(&at("secret"), wanted)?;
        Ok(Some(SecretUse { object: found.key(), named: wanted.to_owned(), key: None, to }))
    }

    /// The credential with this id or name; of those with the name, the nearest to the project.
    fn find(&self, field: &str, wanted: &str) -> Result<Arc<Object>, Fault> {
        if wanted.is_empty() {
            return Err(Fault::field(field, "must be the name or id of a credential"));
        }
        let view = self.state.control.view();
        let all =
            || ALL.iter().filter_map(|kind| view.objects.shelf(kind)).flat_map(|s| s.values());
        let usable = |object: &&Arc<Object>| self.near.contains(&object.scope);
        if let Some(found) = all().filter(usable).find(|object| object.id == wanted) {
            return Ok(found.clone());
        }
        for scope in &self.near {
            let here = |o: &&Arc<Object>| o.scope == *scope && o.name == wanted;
            let named: Vec<_> = all().filter(here).collect();
            match named.as_slice() {
                [] => {}
                [one] => return Ok(Arc::clone(one)),
                many => {
                    let kinds = many.iter().map(|object| format!("{} {}", object.kind, object.id));
                    let kinds = kinds.collect::<Vec<_>>().join(", ");
                    let why = format!("`{wanted}` is the name of several; give an id: {kinds}");
                    return Err(Fault::field(field, why));
                }
            }
        }
        let why = format!("credential {} was not found", units::shown(wanted));
        Err(Fault::new(StatusCode::NOT_FOUND, format!("{field}: {why}")))
    }
}

/// The names of a credential's values.
fn keys(object: &Object) -> Vec<String> {
    let keys = object.body["keys"].as_array().into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()
}
