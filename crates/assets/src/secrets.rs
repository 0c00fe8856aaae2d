//! Credentials in use. Owns: from the names in a specification to references that the dispatcher
//! keeps; the values themselves are looked up when a run starts. Config maps are handled likewise.

use std::sync::Arc;

use access::{Backend, scopes};
use api_types::{
    DockerRegistrySpec, EnvironmentVariable, GitInstance, ImagePullPolicy, ImagePullSecret,
    NgcApiKeySpec, S3Instance, SecretVolume, WorkloadSpec,
};
use axum::http::StatusCode;
use convert::SECRET_MODE_DEFAULT;
use http_kit::ApiError;
use spec::{SecretPlace, SecretTo, SecretUse};
use view::{Object, Scope};

use super::AssetSpec as _;
use super::checks::{absolute, bits};
use super::config_maps::ConfigMaps;
use super::credentials::ALL;

/// Takes what a specification wants of credentials and config maps out of it. Answers references to
/// the values.
pub fn take_secrets(
    state: &Backend,
    project: u64,
    spec: &mut WorkloadSpec,
) -> Result<Vec<SecretUse>, ApiError> {
    let near = scopes::around(Scope::Project(project), &state.control.view());
    let from = Credentials { state, near };
    let maps = ConfigMaps { state, project };
    let mut uses = Vec::new();
    let mut variables = spec.environment_variables.take().unwrap_or_default();
    for (at, variable) in variables.iter().enumerate() {
        let field = format!("spec.environmentVariables[{at}]");
        uses.extend(from.variable(&field, variable)?);
        uses.extend(maps.variable(&field, variable)?);
    }
    variables.retain(|variable| variable.secret.is_none() && variable.config_map.is_none());
    spec.environment_variables = Some(variables);
    let volumes = spec.storage.as_mut().and_then(|storage| storage.secret_volume.take());
    for (at, volume) in volumes.iter().flatten().enumerate() {
        uses.extend(from.volume(&format!("spec.storage.secretVolume[{at}]"), volume)?);
    }
    let volumes = spec.storage.as_mut().and_then(|storage| storage.config_map_volume.take());
    for (at, volume) in volumes.iter().flatten().enumerate() {
        uses.extend(maps.volume(&format!("spec.storage.configMapVolume[{at}]"), volume)?);
    }
    let repositories = spec.storage.iter().flat_map(|storage| &storage.git).flatten();
    for (at, one) in repositories.enumerate() {
        uses.extend(from.repository(&format!("spec.storage.git[{at}]"), one)?);
    }
    let buckets = spec.storage.iter().flat_map(|storage| &storage.s3).flatten();
    for (at, one) in buckets.enumerate() {
        uses.extend(from.bucket(&format!("spec.storage.s3[{at}]"), one)?);
    }
    let logins = spec.image_pull_secrets.take().unwrap_or_default();
    uses.extend(from.registry(spec, &logins)?);
    Ok(uses)
}

struct Credentials<'a> {
    state: &'a Backend,
    near: Vec<Scope>,
}

impl Credentials<'_> {
    fn variable(
        &self,
        field: &str,
        variable: &EnvironmentVariable,
    ) -> Result<Option<SecretUse>, ApiError> {
        let Some(secret) = &variable.secret else { return Ok(None) };
        if variable.exclude == Some(true) {
            return Ok(None);
        }
        let at = |name: &str| format!("{field}.{name}");
        let name = variable.name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| ApiError::field(&at("name"), "must be set"))?;
        if variable.value.is_some() {
            return Err(ApiError::field(field, "has a value and a secret; leave one of them out"));
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
                return Err(ApiError::field(&at("secret.key"), why));
            }
        };
        let (object, named) = (found.key(), wanted.to_owned());
        let to = SecretTo::Run(SecretPlace::Variable(name));
        Ok(Some(SecretUse { object, named, key: Some(key), to }))
    }

    fn volume(&self, field: &str, volume: &SecretVolume) -> Result<Option<SecretUse>, ApiError> {
        if volume.exclude == Some(true) {
            return Ok(None);
        }
        let at = |name: &str| format!("{field}.{name}");
        let path = volume.mount_path.as_deref();
        let path = path.ok_or_else(|| ApiError::field(&at("mountPath"), "must be set"))?;
        absolute(&at("mountPath"), Some(path))?;
        let mode = bits(&at("defaultMode"), volume.default_mode.as_deref())?;
        let mode = mode.unwrap_or(SECRET_MODE_DEFAULT);
        let to = SecretTo::Run(SecretPlace::File { path: path.into(), mode });
        let wanted = volume.secret.as_deref().unwrap_or_default();
        let found = self.find(&at("secret"), wanted)?;
        Ok(Some(SecretUse { object: found.key(), named: wanted.to_owned(), key: None, to }))
    }

    /// The login of a repository that is not open to all.
    fn repository(&self, field: &str, one: &GitInstance) -> Result<Option<SecretUse>, ApiError> {
        let (Some(wanted), Some(path)) = (&one.password_secret, &one.path) else { return Ok(None) };
        let keys = [
            ("secretKeyOfUser", &one.secret_key_of_user, "username"),
            ("secretKeyOfPassword", &one.secret_key_of_password, "password"),
        ];
        let kept = one.exclude != Some(true);
        kept.then(|| self.login(field, ("passwordSecret", wanted), path, keys)).transpose()
    }

    /// The access key of a bucket that is not open to all.
    fn bucket(&self, field: &str, one: &S3Instance) -> Result<Option<SecretUse>, ApiError> {
        let (Some(wanted), Some(path)) = (&one.access_key_secret, &one.path) else {
            return Ok(None);
        };
        let keys = [
            ("secretKeyOfAccessKeyId", &one.secret_key_of_access_key_id, "AccessKeyId"),
            ("secretKeyOfSecretKey", &one.secret_key_of_secret_key, "SecretKey"),
        ];
        let kept = one.exclude != Some(true);
        kept.then(|| self.login(field, ("accessKeySecret", wanted), path, keys)).transpose()
    }

    /// The login for copying a mounted source: a credential, and which of its values it is.
    fn login(
        &self,
        field: &str,
        (name, wanted): (&str, &str),
        path: &str,
        [user, password]: [(&str, &Option<String>, &str); 2],
    ) -> Result<SecretUse, ApiError> {
        let found = self.find(&format!("{field}.{name}"), wanted)?;
        let key = |(name, given, usual): (&str, &Option<String>, &str)| {
            let key = given.clone().unwrap_or_else(|| usual.to_owned());
            if keys(&found).contains(&key) {
                return Ok(key);
            }
            let (key, has) = (units::shown(&key), keys(&found).join(", "));
            let why = format!("`{key}` is none of the values of `{}`, which are {has}", found.name);
            Err(ApiError::field(&format!("{field}.{name}"), why))
        };
        let (user_key, password_key) = (key(user)?, key(password)?);
        let to = SecretTo::Copy { mount: path.into(), user_key, password_key };
        Ok(SecretUse { object: found.key(), named: wanted.to_owned(), key: None, to })
    }

    /// The login for the registry of an image: of those that are named, else the nearest there is
    /// if it is pulled at all.
    fn registry(
        &self,
        spec: &WorkloadSpec,
        named: &[ImagePullSecret],
    ) -> Result<Option<SecretUse>, ApiError> {
        let image = spec.image.as_deref().unwrap_or_default();
        let wanted = registry_of_image(image);
        for (at, one) in named.iter().filter(|one| one.exclude != Some(true)).enumerate() {
            let field = format!("spec.imagePullSecrets[{at}]");
            if one.user_credential == Some(true) {
                let why = "credentials belong to scopes; name one that the project can use";
                return Err(ApiError::field(&format!("{field}.userCredential"), why));
            }
            let name = one.name.as_deref().unwrap_or_default();
            let found = self.find(&format!("{field}.name"), name)?;
            let registry = registry_of(&found).ok_or_else(|| {
                let why = format!("`{}` is not a login of an image registry", found.name);
                ApiError::field(&format!("{field}.name"), why)
            })?;
            if host(&registry) == wanted {
                let to = SecretTo::Registry(registry);
                let use_ = SecretUse { object: found.key(), named: name.to_owned(), key: None, to };
                return Ok(Some(use_));
            }
        }
        if image.is_empty() || spec.image_pull_policy == Some(ImagePullPolicy::Never) {
            return Ok(None);
        }
        let view = self.state.control.view();
        let all = [DockerRegistrySpec::STORED, NgcApiKeySpec::STORED];
        let all =
            || all.iter().filter_map(|kind| view.objects.shelf(kind)).flat_map(|s| s.values());
        let fits = |scope: &Scope| {
            let mut here = all().filter(|object| object.scope == *scope);
            here.find_map(|object| {
                let registry = registry_of(object).filter(|registry| host(registry) == wanted)?;
                Some((object.key(), registry))
            })
        };
        // Not named explicitly, so it is looked up again when the workload is resubmitted.
        Ok(self.near.iter().find_map(fits).map(|(object, registry)| SecretUse {
            object,
            named: String::new(),
            key: None,
            to: SecretTo::Registry(registry),
        }))
    }

    /// The credential with this id or name; of those with the name, the nearest to the project.
    fn find(&self, field: &str, wanted: &str) -> Result<Arc<Object>, ApiError> {
        if wanted.is_empty() {
            return Err(ApiError::field(field, "must be the name or id of a credential"));
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
                    return Err(ApiError::field(field, why));
                }
            }
        }
        let why = format!(
            "credential {} was not found; `elastane credential set` makes one",
            units::shown(wanted)
        );
        Err(ApiError::new(StatusCode::NOT_FOUND, format!("{field}: {why}")))
    }
}

/// The names of a credential's values.
fn keys(object: &Object) -> Vec<String> {
    let keys = object.body["keys"].as_array().into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

/// The registry that a credential is the login of, if it is one.
fn registry_of(object: &Object) -> Option<String> {
    match &*object.kind {
        NgcApiKeySpec::STORED => Some("nvcr.io".to_owned()),
        DockerRegistrySpec::STORED => object.body["spec"]["url"].as_str().map(str::to_owned),
        _ => None,
    }
}

/// The registry of an image: what is before the first `/`, if that can be a host.
fn registry_of_image(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => host(first),
        _ => HUB,
    }
}

/// The registry of images that name none.
const HUB: &str = "docker.io";

/// The host of a registry, without scheme and path; those of the hub are one.
fn host(registry: &str) -> &str {
    let rest = registry.split_once("://").map_or(registry, |(_, rest)| rest);
    match rest.split('/').next().unwrap_or_default() {
        "index.docker.io" | "registry-1.docker.io" | "hub.docker.com" => HUB,
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_and_a_login_are_of_one_registry_whatever_it_is_written_like() {
        for (image, registry) in [
            ("ubuntu", "https://index.docker.io/v1/"),
            ("team/x:1", "docker.io"),
            ("ghcr.io/team/x", "https://ghcr.io"),
            ("localhost:5000/x", "http://localhost:5000"),
            ("nvcr.io/nvidia/x", "nvcr.io"),
        ] {
            assert_eq!(registry_of_image(image), host(registry), "{image}");
        }
        assert_ne!(registry_of_image("ghcr.io.evil.example/x"), host("ghcr.io"));
    }
}
