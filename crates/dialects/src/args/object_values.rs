//! Values that name other objects: credentials, data sources, taints of nodes. Owns their form.

use super::values::{Fields, key_value};
use crate::intent::{DataSource, Effect, SecretFiles, Toleration, Variable};

/// Reads `NAME=VALUE`, or `NAME=SECRET:CREDENTIAL,KEY`.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn variable(text: &str) -> Result<(String, Variable), String> {
    let (name, value) = key_value(text)?;
    let Some(secret) = value.strip_prefix("SECRET:") else {
        return Ok((name, Variable::Text(value)));
    };
    let (credential, key) = match secret.split_once(',') {
        Some((credential, key)) => (credential, Some(key.to_owned())),
        None => (secret, None),
    };
    if credential.is_empty() || key.as_ref().is_some_and(String::is_empty) {
        return Err("write NAME=SECRET:CREDENTIAL,KEY".to_owned());
    }
    Ok((name, Variable::Secret { credential: credential.to_owned(), key }))
}

/// Reads `name=VARIABLE,secret=CREDENTIAL,key=KEY`.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn secret_variable(text: &str) -> Result<(String, Variable), String> {
    let fields = Fields::read(text, &["name", "secret", "key"])?;
    let (name, credential) = (fields.needed("name")?, fields.needed("secret")?);
    Ok((name, Variable::Secret { credential, key: fields.get("key") }))
}

/// Reads `name=CREDENTIAL,path=DIR`.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn secret_files(text: &str) -> Result<SecretFiles, String> {
    let fields = Fields::read(text, &["name", "path"])?;
    Ok(SecretFiles { credential: fields.needed("name")?, path: fields.needed("path")? })
}

/// Reads `type=TYPE,name=NAME`.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn data_source(text: &str) -> Result<DataSource, String> {
    let fields = Fields::read(text, &["type", "name"])?;
    Ok(DataSource { kind: fields.get("type"), name: fields.needed("name")? })
}

/// Reads `operator=Equal,key=KEY,value=VALUE,effect=EFFECT`.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn toleration(text: &str) -> Result<Toleration, String> {
    if text.split(',').any(|field| field.split('=').next() == Some("seconds")) {
        return Err("leave out seconds: a taint NoExecute stops what does not tolerate it at once"
            .to_owned());
    }
    let fields = Fields::read(text, &["operator", "key", "value", "effect"])?;
    let exists = match fields.get("operator").as_deref() {
        None | Some("Equal") => false,
        Some("Exists") => true,
        Some(other) => return Err(format!("operator `{other}`; allowed are Equal and Exists")),
    };
    let effect = match fields.get("effect").as_deref() {
        None => None,
        Some("NoSchedule") => Some(Effect::NoSchedule),
        Some("NoExecute") => Some(Effect::NoExecute),
        Some("PreferNoSchedule") => Some(Effect::PreferNoSchedule),
        Some(other) => {
            return Err(format!(
                "effect `{other}` is not known; allowed are NoSchedule, NoExecute and PreferNoSchedule"
            ));
        }
    };
    let (key, value) = (fields.get("key"), fields.get("value"));
    match (exists, &key, value) {
        (true, _, Some(_)) => Err("a value goes with operator=Equal only".to_owned()),
        (false, None, _) => {
            Err("write key=KEY; only with operator=Exists it may be left out".to_owned())
        }
        (true, _, None) => Ok(Toleration { key, value: None, effect }),
        (false, _, value) => Ok(Toleration { key, value: Some(value.unwrap_or_default()), effect }),
    }
}
