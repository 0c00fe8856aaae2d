//! Config maps in use. Owns: from the names in a specification to references that the dispatcher
//! keeps; the texts themselves are looked up when a run starts. Does not know who may change
//! one.

use access::Backend;
use api_types::{ConfigMapInstance, EnvironmentVariable};
use axum::http::StatusCode;
use convert::CONFIG_MAP_MODE_DEFAULT;
use http_kit::ApiError;
use orchestrator::texts_of;
use spec::{CONFIG_MAP, SecretPlace, SecretTo, SecretUse};
use view::Scope;

use super::checks::{absolute, bits};

/// The config maps of a project.
pub(super) struct ConfigMaps<'a> {
    pub(super) state: &'a Backend,
    pub(super) project: u64,
}

impl ConfigMaps<'_> {
    /// Use of a config map by a variable; `None` if it uses none.
    pub(super) fn variable(
        &self,
        field: &str,
        variable: &EnvironmentVariable,
    ) -> Result<Option<SecretUse>, ApiError> {
        let Some(from) = &variable.config_map else { return Ok(None) };
        if variable.exclude == Some(true) {
            return Ok(None);
        }
        let at = |name: &str| format!("{field}.{name}");
        if variable.value.is_some() || variable.secret.is_some() {
            let why = "has a configMap and another value; leave one of them out";
            return Err(ApiError::field(field, why));
        }
        let to = SecretPlace::Variable(needed(&at("name"), &variable.name)?);
        let name = needed(&at("configMap.name"), &from.name)?;
        let key = needed(&at("configMap.key"), &from.key)?;
        self.check(&at("configMap"), &name, ("key", Some(&key)))?;
        Ok(Some(use_of(name, Some(key), to)))
    }

    /// Use of a config map by a volume; `None` if the volume is excluded.
    pub(super) fn volume(
        &self,
        field: &str,
        volume: &ConfigMapInstance,
    ) -> Result<Option<SecretUse>, ApiError> {
        if volume.exclude == Some(true) {
            return Ok(None);
        }
        let at = |name: &str| format!("{field}.{name}");
        let path = needed(&at("mountPath"), &volume.mount_path)?;
        absolute(&at("mountPath"), Some(&path))?;
        let mode = bits(&at("defaultMode"), volume.default_mode.as_deref())?;
        let name = needed(&at("configMap"), &volume.config_map)?;
        let key = volume.sub_path.clone();
        self.check(field, &name, ("subPath", key.as_deref()))?;
        let to =
            SecretPlace::File { path: path.into(), mode: mode.unwrap_or(CONFIG_MAP_MODE_DEFAULT) };
        Ok(Some(use_of(name, key, to)))
    }

    /// Refuses what is not there now.
    fn check(
        &self,
        field: &str,
        name: &str,
        (key_field, key): (&str, Option<&str>),
    ) -> Result<(), ApiError> {
        let refused = |why| Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, why));
        let view = self.state.control.view();
        let project = view.projects.get(&self.project);
        let project = project.map_or("PROJECT", |project| &project.unit.name);
        let Some(found) = view.objects.named(CONFIG_MAP, Scope::Project(self.project), name) else {
            let name = units::shown(name);
            return refused(format!(
                "{field}: config map {name} is not in project {project}; make it with `elastane \
                 config-map set {name} --from-file FILE -p {project}`"
            ));
        };
        let keys: Vec<&str> = texts_of(found).map(|(key, _)| key).collect();
        match key.filter(|key| !keys.contains(key)) {
            Some(key) => refused(format!(
                "{field}.{key_field}: config map {name} has no key `{}`; it has {}",
                units::shown(key),
                keys.join(", ")
            )),
            None => Ok(()),
        }
    }
}

fn needed(field: &str, text: &Option<String>) -> Result<String, ApiError> {
    let text = text.clone().filter(|text| !text.is_empty());
    text.ok_or_else(|| ApiError::field(field, "must be set"))
}

fn use_of(name: String, key: Option<String>, to: SecretPlace) -> SecretUse {
    SecretUse { object: SecretUse::of_config_map(&name), named: name, key, to: SecretTo::Run(to) }
}
