//! Constraints on the nodes of pods: required labels of nodes, tolerations, and pod affinity. Also
//! the extended resources of a pod, which are the devices it needs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Required labels of a node: one of the terms holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeAffinityRequired {
    /// The terms.
    #[serde(default)]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Expressions that all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSelectorTerm {
    /// The expressions.
    #[serde(default)]
    pub match_expressions: Vec<MatchExpression>,
}

/// Requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchExpression {
    /// Name of the label.
    pub key: String,
    /// Operator of the comparison.
    pub operator: MatchExpressionOperator,
    /// With what; `Exists` and `DoesNotExist` take none, `Gt` and `Lt` one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

/// Operator that compares a label with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum MatchExpressionOperator {
    /// One of the values.
    In,
    /// None of them; a missing label is fine.
    NotIn,
    /// There.
    Exists,
    /// Not there.
    DoesNotExist,
    /// A number above the value.
    Gt,
    /// A number below it.
    Lt,
}

/// Affinity among the pods of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PodAffinity {
    /// Type of the affinity; `Required` if it is left out.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PodAffinityType>,
    /// The label of nodes whose value is the same for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Type of an affinity among pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum PodAffinityType {
    /// The pods must be together.
    Required,
    /// The pods are together if that is possible.
    Preferred,
}

/// A taint of nodes that does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// Name of the toleration, by which an inherited one is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Operator that compares the value; `Equal` if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// Name of the taint; none is every name, with `Exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Its effect; none is every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TolerationEffect>,
    /// Seconds that a pod stays; refused, because a pod that does not tolerate a taint is stopped
    /// at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Takes an inherited one away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<bool>,
}

/// Operator that compares a toleration with the value of a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum TolerationOperator {
    /// The value must be the same.
    Equal,
    /// The value does not matter.
    Exists,
}

/// The effect of a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum TolerationEffect {
    /// Pods are not placed there.
    NoSchedule,
    /// They are not placed there, nor left there.
    NoExecute,
    /// They are placed elsewhere if that is possible.
    PreferNoSchedule,
    /// All of these.
    Any,
}

/// A resource that nodes have beside CPU, memory and whole GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendedResource {
    /// Its name: `nvidia.com/mig-<profile>`.
    pub resource: String,
    /// Number of units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// Takes an inherited one away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<bool>,
}
