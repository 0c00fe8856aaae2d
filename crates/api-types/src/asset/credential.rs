//! Credentials. One shape for both ways: on the way out the secret fields are missing.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::optional;

/// A secret value. It is shown to nobody, also not while something is searched for a fault.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
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
    }
}

optional! {
    /// Secret values by name.
    pub struct GenericSecretSpec {
        /// A secret that is there already.
        pub existing_secret_name: String,
        /// The values.
        pub key_value_pairs: Vec<KeyValuePair>,
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
}
