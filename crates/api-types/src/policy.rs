//! Policies: defaults and rules for the workloads submitted in a scope.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::scoped_meta::with_scope;
use crate::{ScopeType, Unsupported};

/// Name and scope of a new policy (`PolicyCreationFields`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyCreationFields {
    /// The scope it belongs to; it applies to everything within.
    pub scope: ScopeType,
    /// The project, with scope `project`: a number, unlike elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<u64>,
    /// The department, with scope `department`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub department_id: Option<String>,
    /// The cluster; there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Name.
    pub name: String,
}

/// Defaults and rules. In a policy for distributed workloads each of the three has two parts,
/// `worker` and `master`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyBody {
    /// Values of what a submission leaves out, as in a specification. Items of a list stand under
    /// `instances`.
    #[serde(default, deserialize_with = "without_nulls", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub defaults: Option<Value>,
    /// Rules, nested as the fields are: `{"compute": {"gpuDevicesRequest": {"max": 4}}}`.
    #[serde(default, deserialize_with = "without_nulls", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub rules: Option<Value>,
    /// Ids of data sources that every workload gets.
    #[serde(default, deserialize_with = "without_nulls", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub imposed_assets: Option<Value>,
    /// Not for a request to say.
    #[serde(default, skip_serializing)]
    #[schema(value_type = Option<Value>)]
    pub status: Unsupported,
}

/// A value without the fields of it that are `null`: published clients send all that there are.
fn without_nulls<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    fn clear(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                fields.values_mut().for_each(clear);
            }
            Value::Array(items) => items.iter_mut().for_each(clear),
            _ => {}
        }
    }
    let mut value = Option::<Value>::deserialize(from)?;
    value.iter_mut().for_each(clear);
    Ok(value)
}

/// A policy to set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRequest {
    /// Name and scope.
    pub meta: PolicyCreationFields,
    /// Defaults and rules.
    #[serde(default)]
    pub policy: PolicyBody,
}

/// A change of a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyChangeRequest {
    /// Name and scope.
    pub meta: PolicyCreationFields,
    /// Values to add or replace; the rest stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyBody>,
    /// Fields whose default and rule are taken away before that: `compute.gpuDevicesRequest`, of
    /// distributed workloads `worker.compute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Vec<String>>,
}

with_scope! {
    /// Metadata of a policy.
    pub struct PolicyMeta {
        /// `training`, `workspace`, `distributed` or `inference`.
        pub workload_type: String,
        /// Kind of the scope it belongs to.
        pub scope: ScopeType,
    }
}

/// A policy; without `meta` if it was only validated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyV2 {
    /// Name and scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<PolicyMeta>,
    /// Defaults and rules.
    pub policy: PolicyBody,
}

/// A policy in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyListEntry {
    /// The type of workloads it is for.
    #[serde(rename = "type")]
    pub workload_type: String,
    /// Name and scope.
    pub meta: PolicyMeta,
    /// Defaults and rules.
    pub policy: PolicyBody,
}

/// Policies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Policies {
    /// The policies.
    pub policies: Vec<PolicyListEntry>,
}
