//! The audit log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Time;

/// An audited request. The published names of these fields have underscores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLog {
    /// Number, in order.
    pub id: String,
    /// Time of the request.
    pub timestamp: Time,
    /// The tenant, as text here.
    pub tenant_id: String,
    /// Caller.
    pub subject: String,
    /// `User` or `App`.
    pub subject_type: String,
    /// Address of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ip: Option<String>,
    /// `create`, `update`, `delete`, `sign-in` or `sign-out`; of a refused read `sign-in`.
    pub action: String,
    /// HTTP method, if it is one that is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_method: Option<String>,
    /// Path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Type of the entity: `project`, `user`, ….
    pub entity_type: String,
    /// Its name.
    pub entity_name: String,
    /// Its id, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    /// `Succeeded` or `Failed`.
    pub result: String,
    /// HTTP status, where the request was refused before it was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status_code: Option<u16>,
    /// The cluster.
    pub cluster_name: String,
    /// Its id.
    pub cluster_id: String,
    /// The id that the answer carried as `x-request-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// `operation`, and `reason` if it was refused.
    pub metadata: BTreeMap<String, String>,
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = GetAuditLogs200Response)]
pub struct AuditLogsPage {
    /// Number of entries that match.
    pub total: u64,
    /// Offset of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Entries of the page.
    pub audit_logs: Vec<AuditLog>,
}
