//! Nodes. Owns: the fields that are read. Does not know about: what their quantities mean.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::pod::Condition;
use super::{ObjectMeta, Resource, or_default};

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
    /// The part that an administrator sets.
    #[serde(deserialize_with = "or_default")]
    pub spec: NodeSpec,
    /// The part that its kubelet reports.
    #[serde(deserialize_with = "or_default")]
    pub status: NodeStatus,
}

/// The part of a node that an administrator sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// `true` if it is cordoned.
    #[serde(deserialize_with = "or_default")]
    pub unschedulable: bool,
    /// Taints.
    #[serde(deserialize_with = "or_default")]
    pub taints: Vec<Taint>,
}

/// Keeps pods that do not tolerate it from a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Key.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// Value, may be empty.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    #[serde(deserialize_with = "or_default")]
    pub effect: String,
}

/// The part of a node that its kubelet reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Quantities by resource, those kept for the system included.
    #[serde(deserialize_with = "or_default")]
    pub capacity: BTreeMap<String, String>,
    /// Quantities by resource that pods may use.
    #[serde(deserialize_with = "or_default")]
    pub allocatable: BTreeMap<String, String>,
    /// Conditions, `Ready` among them.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

impl Resource for Node {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Node";
    const PLURAL: &'static str = "nodes";
    const NAMESPACED: bool = false;

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
