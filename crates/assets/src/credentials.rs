//! The kinds of credentials: what each keeps, what of it is secret, and how its values are called
//! where they are used. Does not know who uses them.

use std::collections::BTreeMap;

use access::Family as _;
use api_types::{
    AccessKeySpec, AssetKind, DockerRegistrySpec, GenericSecretSpec, NgcApiKeySpec, PasswordSpec,
    SecretText,
};
use auth::{Resource, Vault, key_of};
use http_kit::ApiError;
use uuid::Uuid;

use super::checks::needs;
use super::{AssetSpec, Stored};

/// Most bytes of all values of a credential.
const VALUES_BYTES_MAX: usize = 256 * 1024;

/// A kind of asset whose values are secret.
pub(crate) trait Credential: AssetSpec {
    /// Its values by the names they are used by. Secret values are taken out.
    fn take(&mut self) -> BTreeMap<String, String>;
    /// Field that shows the number of the key.
    fn key_id(&mut self) -> &mut Option<u64>;
}

impl<S: Credential> Stored<S> {
    /// Seals the values for the object with this id; without them nothing secret is left.
    pub(crate) fn seal(&mut self, vault: &Vault, id: Uuid) -> Result<(), ApiError> {
        let values = self.spec.take();
        check_values(&values)?;
        self.keys = values.keys().cloned().collect();
        let text = serde_json::to_vec(&values).map_err(ApiError::internal)?;
        let of = format!("{}/{id}", Self::KIND);
        let sealed = vault.seal(&of, &text).map_err(ApiError::internal)?;
        *self.spec.key_id() = key_of(&sealed).map(u64::from);
        self.secrets = Some(sealed);
        Ok(())
    }
}

fn check_values(values: &BTreeMap<String, String>) -> Result<(), ApiError> {
    if values.values().any(|value| value.contains('\0')) {
        return Err(ApiError::field("spec", "a value holds a zero byte, which no variable can"));
    }
    let bytes: usize = values.values().map(String::len).sum();
    if bytes > VALUES_BYTES_MAX {
        let why = format!("the values have {bytes} bytes; at most {VALUES_BYTES_MAX} are allowed");
        return Err(ApiError::field("spec", why));
    }
    Ok(())
}

/// Refuses fields that no credential may have.
fn refuse(existing: Option<&String>, key_id: Option<u64>) -> Result<(), ApiError> {
    if key_id.is_some() {
        return Err(ApiError::field("spec.keyId", "is the server's; leave it out"));
    }
    match existing {
        Some(_) => Err(ApiError::not_yet("spec.existingSecretName")),
        None => Ok(()),
    }
}

/// Values by name, those that there are.
fn named<const N: usize>(all: [(&str, Option<String>); N]) -> BTreeMap<String, String> {
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn secret(of: &mut Option<SecretText>) -> Option<String> {
    of.take().map(|SecretText(text)| text)
}

macro_rules! credential {
    ($spec:ident, $kind:ident, $stored:literal) => {
        impl AssetSpec for $spec {
            const KIND: AssetKind = AssetKind::$kind;
            const RESOURCE: Resource = Resource::Credentials;
            const STORED: &'static str = $stored;

            fn check(&self) -> Result<(), ApiError> {
                self.refuse_wrong()
            }
        }
    };
}

/// The part of the check that differs.
trait CheckCredential {
    fn refuse_wrong(&self) -> Result<(), ApiError>;
}

credential!(PasswordSpec, Password, "password-asset");
credential!(AccessKeySpec, AccessKey, "access-key-asset");
credential!(DockerRegistrySpec, DockerRegistry, "docker-registry-asset");
credential!(GenericSecretSpec, GenericSecret, "generic-secret-asset");
credential!(NgcApiKeySpec, NgcApiKey, "ngc-api-key-asset");

/// Names of all kinds of credentials in the database.
pub(super) const ALL: [&str; 5] = [
    PasswordSpec::STORED,
    AccessKeySpec::STORED,
    DockerRegistrySpec::STORED,
    GenericSecretSpec::STORED,
    NgcApiKeySpec::STORED,
];

impl CheckCredential for PasswordSpec {
    fn refuse_wrong(&self) -> Result<(), ApiError> {
        refuse(self.existing_secret_name.as_ref(), self.key_id)?;
        needs([("user", self.user.is_some()), ("password", self.password.is_some())])
    }
}

impl Credential for PasswordSpec {
    fn take(&mut self) -> BTreeMap<String, String> {
        named([("username", self.user.clone()), ("password", secret(&mut self.password))])
    }

    fn key_id(&mut self) -> &mut Option<u64> {
        &mut self.key_id
    }
}

impl CheckCredential for AccessKeySpec {
    fn refuse_wrong(&self) -> Result<(), ApiError> {
        refuse(self.existing_secret_name.as_ref(), self.key_id)?;
        let secret = self.secret_access_key.is_some();
        needs([("accessKeyId", self.access_key_id.is_some()), ("secretAccessKey", secret)])
    }
}

impl Credential for AccessKeySpec {
    fn take(&mut self) -> BTreeMap<String, String> {
        let secret = secret(&mut self.secret_access_key);
        named([("AccessKeyId", self.access_key_id.clone()), ("SecretKey", secret)])
    }

    fn key_id(&mut self) -> &mut Option<u64> {
        &mut self.key_id
    }
}

impl CheckCredential for DockerRegistrySpec {
    fn refuse_wrong(&self) -> Result<(), ApiError> {
        refuse(self.existing_secret_name.as_ref(), self.key_id)?;
        let password = self.password.is_some();
        needs([("url", self.url.is_some()), ("user", self.user.is_some()), ("password", password)])
    }
}

impl Credential for DockerRegistrySpec {
    fn take(&mut self) -> BTreeMap<String, String> {
        let (url, user) = (self.url.clone(), self.user.clone());
        named([("url", url), ("username", user), ("password", secret(&mut self.password))])
    }

    fn key_id(&mut self) -> &mut Option<u64> {
        &mut self.key_id
    }
}

impl CheckCredential for NgcApiKeySpec {
    fn refuse_wrong(&self) -> Result<(), ApiError> {
        refuse(None, self.key_id)?;
        needs([("ngc_api_key", self.ngc_api_key.is_some())])?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        match &self.ngc_api_key {
            Some(SecretText(key)) if !key.chars().all(allowed) => {
                let why = "holds what no key has; letters, digits, `-`, `.` and `_` are allowed";
                Err(ApiError::field("spec.ngc_api_key", why))
            }
            _ => Ok(()),
        }
    }
}

impl Credential for NgcApiKeySpec {
    fn take(&mut self) -> BTreeMap<String, String> {
        named([("NGC_API_KEY", secret(&mut self.ngc_api_key))])
    }

    fn key_id(&mut self) -> &mut Option<u64> {
        &mut self.key_id
    }
}

impl CheckCredential for GenericSecretSpec {
    fn refuse_wrong(&self) -> Result<(), ApiError> {
        refuse(self.existing_secret_name.as_ref(), self.key_id)?;
        let pairs = self.key_value_pairs.as_deref().unwrap_or_default();
        needs([("keyValuePairs", !pairs.is_empty())])?;
        let mut seen = Vec::new();
        for (at, pair) in pairs.iter().enumerate() {
            let field = |name: &str| format!("spec.keyValuePairs[{at}].{name}");
            let key = pair.key.as_deref().unwrap_or_default();
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if !key.chars().all(allowed) || key.is_empty() || matches!(key, "." | "..") {
                let why = "is not a valid name; letters, digits, `-`, `.` and `_` are allowed";
                return Err(ApiError::field(&field("key"), why));
            }
            if seen.contains(&key) {
                return Err(ApiError::field(&field("key"), format!("`{key}` is there twice")));
            }
            if pair.value.is_none() {
                return Err(ApiError::field(&field("value"), "must be set"));
            }
            seen.push(key);
        }
        Ok(())
    }
}

impl Credential for GenericSecretSpec {
    fn take(&mut self) -> BTreeMap<String, String> {
        let pairs = self.key_value_pairs.iter_mut().flatten();
        pairs.filter_map(|pair| Some((pair.key.clone()?, secret(&mut pair.value)?))).collect()
    }

    fn key_id(&mut self) -> &mut Option<u64> {
        &mut self.key_id
    }
}
