//! Values of credentials that pods get, between the types of this crate and the storage types, both
//! ways.

use engine::SecretPlace;
use store::SecretBody;

use crate::Error;
use crate::spec::{SecretTo, SecretUse};

pub(super) fn body(secret: &SecretUse) -> SecretBody {
    let mut body = SecretBody {
        object: secret.object.clone(),
        named: secret.named.clone(),
        key: secret.key.clone(),
        variable: None,
        path: None,
        mode: None,
        registry: None,
        repository: None,
        login_keys: None,
    };
    match &secret.to {
        SecretTo::Run(SecretPlace::Variable(name)) => body.variable = Some(name.clone()),
        SecretTo::Run(SecretPlace::File { path, mode }) => {
            (body.path, body.mode) = (Some(path.display().to_string()), Some(*mode));
        }
        SecretTo::Registry(registry) => body.registry = Some(registry.clone()),
        SecretTo::Copy { mount, user_key, password_key } => {
            body.repository = Some(mount.display().to_string());
            body.login_keys = Some((user_key.clone(), password_key.clone()));
        }
    }
    body
}

pub(super) fn from_body(body: SecretBody) -> Result<SecretUse, Error> {
    let repository = body.repository.zip(body.login_keys);
    let to = match (body.variable, body.path, body.registry, repository) {
        (Some(name), None, None, None) => SecretTo::Run(SecretPlace::Variable(name)),
        (None, Some(path), None, None) => {
            let mode = body.mode.unwrap_or(0o600);
            SecretTo::Run(SecretPlace::File { path: path.into(), mode })
        }
        (None, None, Some(registry), None) => SecretTo::Registry(registry),
        (None, None, None, Some((mount, (user_key, password_key)))) => {
            SecretTo::Copy { mount: mount.into(), user_key, password_key }
        }
        _ => {
            let message = "the database holds a secret that goes nowhere".to_owned();
            return Err(Error::Internal { message });
        }
    };
    Ok(SecretUse { object: body.object, named: body.named, key: body.key, to })
}
