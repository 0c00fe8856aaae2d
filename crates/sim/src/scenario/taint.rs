//! Taints of nodes and what tolerates them, as written. Owns: names of keys and effects.

use serde::{Deserialize, Serialize};

/// A mark on a node that keeps pods away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Name.
    pub key: String,
    /// Value.
    #[serde(default)]
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// What a taint does; the words are those of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Pods are not placed here.
    NoSchedule,
    /// Pods are placed elsewhere if they can be.
    PreferNoSchedule,
    /// Pods are not placed here.
    NoExecute,
}

impl From<model::Effect> for Effect {
    fn from(effect: model::Effect) -> Self {
        match effect {
            model::Effect::NoSchedule => Self::NoSchedule,
            model::Effect::PreferNoSchedule => Self::PreferNoSchedule,
            model::Effect::NoExecute => Self::NoExecute,
        }
    }
}

/// What makes a pod ignore a taint; what is not given matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}
