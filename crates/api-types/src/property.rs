//! Properties of workloads: types, priorities, categories.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Time;

/// A purpose of workloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadCategory {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Meaning of the category.
    pub description: String,
}

/// The purposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadCategories {
    /// All of them.
    pub categories: Vec<WorkloadCategory>,
}

/// A priority class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadPriority {
    /// Id; the name.
    pub id: String,
    /// Name.
    pub name: String,
    /// The higher goes first inside a project.
    pub value: u32,
    /// Origin of the class.
    pub source: String,
}

/// Value of an added priority class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityClassBody {
    /// The higher goes first inside a project.
    pub value: u32,
}

/// The priority classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadPriorities {
    /// All of them.
    pub priorities: Vec<WorkloadPriority>,
}

/// A new type of workloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadTypeCreateFields {
    /// Kind, such as `RayJob`.
    pub name: String,
    /// Group of the kind, such as `ray.io`.
    pub group: String,
    /// Category of these workloads, by id.
    pub category_id: String,
    /// Default priority.
    pub priority_id: String,
    /// Rules to read a manifest of this type, by version. Kept and shown, but not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, max_items = 4)]
    pub resource_interfaces: Option<Vec<Value>>,
}

/// Rules to read a manifest of a type, for one version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInterfaceOfVersion {
    /// The version, if it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// As it was given.
    #[schema(value_type = Object)]
    pub resource_interface: Value,
}

/// Change of a type of workloads. A field that is left out keeps its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadTypeUpdateFields {
    /// Category of these workloads, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category_id: Option<String>,
    /// Default priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_id: Option<String>,
    /// Rules to read a manifest of this type, by version; they replace those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, max_items = 4)]
    pub resource_interfaces: Option<Vec<Value>>,
}

/// A type of workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTypeConfig {
    /// Id.
    pub id: String,
    /// Kind.
    pub name: String,
    /// Group of the kind.
    pub group: String,
    /// Category of these workloads, by id.
    pub category_id: String,
    /// Its name.
    pub category_name: String,
    /// Default priority.
    pub priority_id: String,
    /// Its name.
    pub priority_name: String,
    /// Rules to read a manifest of this type, by version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_interfaces: Option<Vec<ResourceInterfaceOfVersion>>,
    /// Time of its creation; left out for the built-in types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// Its creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
    /// User of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// The types of workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadTypes {
    /// All of them.
    pub types: Vec<WorkloadTypeConfig>,
}
