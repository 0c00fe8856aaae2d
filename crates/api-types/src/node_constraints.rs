//! Constraints on the nodes of pods: required labels of nodes, tolerations, and pod affinity. Also
//! the extended resources of a pod, which are the devices it needs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the labels of a node must be: one of the terms holds.
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

/// What one label must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchExpression {
    /// Name of the label.
    pub key: String,
    /// How it is compared.
    pub operator: MatchExpressionOperator,
    /// With what; `Exists` and `DoesNotExist` take none, `Gt` and `Lt` one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

/// How a label is compared.
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

/// How close together the pods of a workload belong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PodAffinity {
    /// Whether they must be, or are if that is possible; `Required` if it is not said.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PodAffinityType>,
    /// The label of nodes whose value is the same for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Whether pods must be together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum PodAffinityType {
    /// They must.
    Required,
    /// They are if that is possible.
    Preferred,
}

/// A taint of nodes that does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// Name of the toleration, by which an inherited one is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the value matters; it does if it is not said.
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
    /// How long a pod stays; refused, because a pod that does not tolerate a taint is stopped at
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Takes an inherited one away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<bool>,
}

/// Whether the value of a taint matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum TolerationOperator {
    /// It does.
    Equal,
    /// It does not.
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
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// Takes an inherited one away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<bool>,
}
