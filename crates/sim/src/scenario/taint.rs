//! Taints of nodes and tolerations of pods, as written. Owns: names of keys and effects.

use serde::{Deserialize, Serialize};

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Name.
    pub key: String,
    /// Value.
    #[serde(default)]
    pub value: String,
    /// Effect on pods that do not tolerate it.
    pub effect: Effect,
}

/// Effect of a taint; the words are those of Kubernetes.
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

/// A toleration of taints; a field that is not given matches everything.
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
