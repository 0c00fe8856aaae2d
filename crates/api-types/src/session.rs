//! Sessions of browsers and one-time links: requests and responses of `/elastane/v1/session`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::ScopeType;
use crate::scalar::Time;

/// Request for a session, with the name and password of a user or with a one-time link.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SessionRequest {
    /// Name of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The user's password.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password: String,
    /// One-time secret: the text after `#once=` in a link.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub once: String,
}

impl fmt::Debug for SessionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionRequest(for {})", self.username)
    }
}

/// The caller and its rights.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// The second half of a new session, for `X-Elastane-Page`; only when it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_secret: Option<String>,
    /// The caller.
    pub principal: SessionPrincipal,
    /// True if the password was given out: nothing but changing it is allowed.
    pub must_change_password: bool,
    /// True if the session began with a link: then the first password needs no earlier one.
    pub by_link: bool,
    /// End of the session, or of the token.
    pub expires_at: Time,
    /// Rights of the caller: an entry for each role and scope.
    pub rights: Vec<SessionRight>,
    /// Versions of the server and of its web interface.
    pub versions: SessionVersions,
}

impl fmt::Debug for SessionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionInfo({:?})", self.principal)
    }
}

/// A caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionPrincipal {
    /// Kind of the caller.
    pub kind: PrincipalKind,
    /// Its id; left out for those who come with the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// Creation of the account; omitted for the built-in administrators. Older objects with its
    /// name belong to an earlier account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// A kind of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrincipalKind {
    /// The user of the server's machine whose state directory it is.
    Local,
    /// The application every installation has.
    Admin,
    /// A person.
    User,
    /// A program.
    ServiceAccount,
}

/// A role in a scope, as what it allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRight {
    /// Kind of the scope.
    pub scope_type: ScopeType,
    /// Id of the scope.
    pub scope_id: String,
    /// Name of the scope.
    pub scope_name: String,
    /// True if update and delete are of what the caller made itself only.
    pub own_only: bool,
    /// Actions by resource, in the words of roles: `create`, `read`, `update`, `delete`.
    pub actions: BTreeMap<String, Vec<String>>,
}

/// Versions of what serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionVersions {
    /// Version of the server.
    pub server: String,
    /// Digest of the web interface; empty without one.
    pub interface: String,
}

/// Asks for a one-time link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LinkRequest {
    /// Id of the user who is to choose a first password; the caller itself if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// A one-time link.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginLink {
    /// Address to open in a browser.
    pub url: String,
    /// Until when.
    pub expires_at: Time,
}

impl fmt::Debug for LoginLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginLink(until {})", self.expires_at)
    }
}
