//! Affinity of pods. Owns: the fields that are read of it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Present, or_default};

/// Affinity of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Nodes that it must, or should, be on.
    #[serde(deserialize_with = "or_default")]
    pub node_affinity: NodeAffinity,
    /// Its other fields, without their values.
    #[serde(flatten)]
    pub others: BTreeMap<String, Present>,
}

/// Nodes that a pod must, or should, be on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// Terms of which one must match the node.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// Terms that should match it.
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "or_default"
    )]
    pub preferred: Vec<PreferredTerm>,
}

/// Terms of which one must match a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The terms.
    #[serde(deserialize_with = "or_default")]
    pub node_selector_terms: Vec<NodeTerm>,
}

/// A term that should match a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PreferredTerm {
    /// Weight, 1 to 100.
    #[serde(deserialize_with = "or_default")]
    pub weight: u32,
    /// The term.
    #[serde(deserialize_with = "or_default")]
    pub preference: NodeTerm,
}

/// Conditions that all hold on a node that it matches; one without conditions matches none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeTerm {
    /// Conditions on labels.
    #[serde(deserialize_with = "or_default")]
    pub match_expressions: Vec<NodeCondition>,
    /// Conditions on fields, such as `metadata.name`.
    #[serde(deserialize_with = "or_default")]
    pub match_fields: Vec<NodeCondition>,
}

/// A condition on a label or a field of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeCondition {
    /// The label or field.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    #[serde(deserialize_with = "or_default")]
    pub operator: String,
    /// Values that the operator compares with.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
}
