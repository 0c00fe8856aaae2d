//! Settings of the installation, and the ranks of its units. Owns: their shapes as published.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// Name.
    pub key: String,
    /// Value; anything but text as JSON.
    pub value: String,
    /// `Boolean`, `Number`, `String` or `Object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Origin of the value.
    pub source: String,
    /// True if it applies.
    pub active: bool,
}

/// Body of `PUT /v1/k8s/setting`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantSettingCreationRequest {
    /// Name.
    pub key: String,
    /// Value.
    pub value: Value,
}

/// Answer of `PUT /v1/k8s/setting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantSettingCreationResponse {
    /// `done`.
    pub msg: String,
}

/// A rank of projects and departments among their siblings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Priority {
    /// Name, as shares have it.
    pub name: String,
    /// The higher goes first.
    pub value: u32,
    /// True if it is the usual one.
    pub is_default: bool,
}

/// The ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Priorities {
    /// All of them, in rising order.
    pub priorities: Vec<Priority>,
}
