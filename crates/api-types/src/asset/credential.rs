//! Credentials. One shape for both ways: on the way out the secret fields are missing.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::AssetUpdateMeta;
use crate::optional::optional;

/// A secret value. It is never shown, not even in debug output.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// The error for a value that is not a text does not repeat it.
impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("must be a string")),
        }
    }
}

optional! {
    /// User and password.
    pub struct PasswordSpec {
        /// A secret that is there already.
        pub existing_secret_name: String,
        /// User.
        pub user: String,
        /// Password; never shown.
        pub password: SecretText,
        /// Number of the key it is encrypted with; the server says it.
        pub key_id: u64,
    }
}

optional! {
    /// An access key and its secret.
    pub struct AccessKeySpec {
        /// A secret that is there already.
        pub existing_secret_name: String,
        /// The key.
        pub access_key_id: String,
        /// Its secret; never shown.
        pub secret_access_key: SecretText,
        /// Number of the key it is encrypted with; the server says it.
        pub key_id: u64,
    }
}

optional! {
    /// User and password of an image registry.
    pub struct DockerRegistrySpec {
        /// A secret that is there already.
        pub existing_secret_name: String,
        /// Registry.
        pub url: String,
        /// User.
        pub user: String,
        /// Password; never shown.
        pub password: SecretText,
        /// Number of the key it is encrypted with; the server says it.
        pub key_id: u64,
    }
}

optional! {
    /// Secret values by name.
    pub struct GenericSecretSpec {
        /// A secret that is there already.
        pub existing_secret_name: String,
        /// The values.
        pub key_value_pairs: Vec<KeyValuePair>,
        /// Number of the key it is encrypted with; the server says it.
        pub key_id: u64,
    }
}

optional! {
    /// A secret value.
    pub struct KeyValuePair {
        /// Name.
        pub key: String,
        /// Value; never shown.
        pub value: SecretText,
    }
}

/// A key of the NVIDIA registry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NgcApiKeySpec {
    /// The key; never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ngc_api_key: Option<SecretText>,
    /// Number of the key it is encrypted with; the server says it.
    #[serde(default, rename = "keyId", skip_serializing_if = "Option::is_none")]
    pub key_id: Option<u64>,
}

/// A changed credential.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CredentialUpdate<S> {
    /// Changes to the fields that all assets have; a field that is left out keeps its value.
    #[serde(default)]
    pub meta: AssetUpdateMeta,
    /// Our own: replaces all values; left out, they stay.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub spec: Option<S>,
}

const fn none<S>() -> Option<S> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_fault_nor_a_search_for_one_shows_a_secret() {
        let fault = serde_json::from_str::<PasswordSpec>(r#"{"password":4711}"#).unwrap_err();
        assert!(!fault.to_string().contains("4711"), "{fault}");
        let spec: PasswordSpec = serde_json::from_str(r#"{"password":"hush"}"#).unwrap();
        assert!(!format!("{spec:?}").contains("hush"));
    }
}
