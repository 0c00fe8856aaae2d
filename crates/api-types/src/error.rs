//! The bodies of refusals, and of requests that are accepted and show no object.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error, in the form of the published interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// The HTTP status.
    pub code: u16,
    /// One sentence: the field, what is wrong with it and what is allowed.
    pub message: String,
    /// Further information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The value of the request that is wrong, where the refusal is about one.
    #[serde(default, rename = "fieldFault", skip_serializing_if = "Option::is_none")]
    pub field_fault: Option<FieldFault>,
    /// `true` where a value of the request names an object that does not exist.
    #[serde(default, rename = "unknownName", skip_serializing_if = "Option::is_none")]
    pub unknown_name: Option<bool>,
    /// The permission that the caller lacks, where the refusal is about one.
    #[serde(default, rename = "missingPermission", skip_serializing_if = "Option::is_none")]
    pub missing_permission: Option<MissingPermission>,
}

/// A permission that a caller lacks, as values beside the sentence of an [`Error`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingPermission {
    /// `create`, `read`, `update` or `delete`.
    pub action: String,
    /// Resource, as in [`Permission::resource_type`](crate::Permission::resource_type).
    pub resource_type: String,
    /// Names of the predefined roles that have the permission.
    pub roles: Vec<String>,
}

/// A wrong value of a request, as values beside the sentence of an [`Error`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldFault {
    /// Path of the value, such as `spec.compute.gpuDevicesRequest`.
    pub field: String,
    /// Description of the fault and of allowed values, without the path.
    pub message: String,
}

/// True if a path is that of a field, or of a value within it.
#[must_use]
pub fn is_within(path: &str, field: &str) -> bool {
    let rest = path.strip_prefix(field);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Outcome of a request whose answer shows no object, in the published form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HttpResponse {
    /// The HTTP status.
    pub code: u16,
    /// One sentence.
    pub message: String,
}

impl HttpResponse {
    /// An answer with the status 202.
    #[must_use]
    pub fn accepted(message: &str) -> Self {
        Self { code: 202, message: message.to_owned() }
    }
}
