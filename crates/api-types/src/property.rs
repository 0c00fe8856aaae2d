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
    /// What is meant.
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
    /// Where it comes from.
    pub source: String,
}

/// What an added priority class is worth.
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
    /// What it is for.
    pub category_id: String,
    /// Default priority.
    pub priority_id: String,
    /// How a manifest of this type is read, by version. Kept and shown; nothing is done with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, max_items = 4)]
    pub resource_interfaces: Option<Vec<Value>>,
}

/// How a manifest of a type is read, for one version of it.
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

/// What to change of a type of workloads. What is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadTypeUpdateFields {
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category_id: Option<String>,
    /// Default priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_id: Option<String>,
    /// How a manifest of this type is read, by version; replaces those before.
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
    /// What it is for.
    pub category_id: String,
    /// Its name.
    pub category_name: String,
    /// Default priority.
    pub priority_id: String,
    /// Its name.
    pub priority_name: String,
    /// How a manifest of it is read, by version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_interfaces: Option<Vec<ResourceInterfaceOfVersion>>,
    /// When it was made; not said of the program's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// The types of workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadTypes {
    /// All of them.
    pub types: Vec<WorkloadTypeConfig>,
}
