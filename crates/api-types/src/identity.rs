//! Users, service accounts and access keys. Secrets are in an answer once: when they are made.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;

/// A person to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = UserCreationRequest1)]
pub struct UserCreationRequest {
    /// E-mail address; the user's name.
    pub email: String,
    /// True if the password given out has to be changed first; true if left out.
    #[serde(default)]
    pub reset_password: Option<bool>,
    /// True to tell the user by e-mail, which this server cannot; accepted and ignored.
    #[serde(default)]
    pub notify: Option<bool>,
}

/// A new user with the password to begin with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserPostResponse {
    /// Id.
    pub id: String,
    /// E-mail address.
    pub username: String,
    /// The password to begin with; not shown again.
    pub temp_password: String,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = User2)]
pub struct User {
    /// Id.
    pub id: String,
    /// E-mail address.
    pub username: String,
    /// Its creator.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Last token given out.
    pub last_login: Option<Time>,
    /// True if this server checks the password.
    pub is_local: bool,
    /// Groups, as the login provider said at the last login.
    pub groups: Vec<String>,
}

/// A password to begin with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ResetUserPassword200Response)]
pub struct TemporaryPassword {
    /// The password; not shown again.
    pub temp_password: String,
}

/// Answer to a change of the own password: no password is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChangeUserPassword200Response)]
pub struct PasswordChanged {}

/// A change of the own password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserChangePasswordRequest {
    /// The one so far; needed unless the session began with a one-time link.
    #[serde(default)]
    pub current_password: String,
    /// The one from now on.
    pub new_password: String,
}

/// A service account or an access key to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceAccountCreationRequest {
    /// Name: small letters, digits, `-` and `_`.
    pub name: String,
}

/// A new service account with its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountPostResponse {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Client id for requests of tokens.
    pub client_id: String,
    /// The secret; not shown again.
    pub client_secret: String,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccount {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Client id for requests of tokens.
    pub client_id: String,
    /// True if it may.
    pub enabled: bool,
    /// The tenant, as text here.
    pub tenant_id: String,
    /// Its creator.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Last token given out.
    pub last_login: Option<Time>,
}

/// Change of a service account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceAccountPatchRequest {
    /// True if it may ask for tokens; those it has end when it may not.
    pub enabled: bool,
}

/// A new access key with its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessKeyPostResponse {
    /// Id.
    pub id: String,
    /// Client id for requests of tokens.
    pub client_id: String,
    /// Name.
    pub name: String,
    /// The secret; not shown again.
    pub client_secret: String,
    /// Time of its creation.
    pub created_at: Time,
}

/// An access key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AccessKey1)]
pub struct AccessKey {
    /// Name.
    pub name: String,
    /// Client id for requests of tokens.
    pub client_id: String,
    /// Id.
    pub id: String,
    /// Owner, whose identity it has.
    pub created_by: String,
    /// Time of its creation.
    pub created_at: Time,
    /// Last token given out.
    pub last_login: Option<Time>,
}

/// Access keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessKeys {
    /// In order of creation.
    pub access_keys: Vec<AccessKey>,
}

/// A new secret in place of the old one, which has ended.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegeneratedSecret {
    /// The secret; not shown again.
    pub client_secret: String,
}

macro_rules! without_secrets {
    ($($name:ident),+) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        })+
    };
}
without_secrets!(
    UserPostResponse,
    TemporaryPassword,
    UserChangePasswordRequest,
    ServiceAccountPostResponse,
    AccessKeyPostResponse,
    RegeneratedSecret
);
