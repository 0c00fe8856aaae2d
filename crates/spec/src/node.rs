//! A node: what it is made of, and what it is given while it is there.

use std::collections::BTreeMap;

use model::{HOST_LABEL, Taint};
use serde::{Deserialize, Serialize};

use crate::pods::wire::EffectWire;

/// A node as it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Name, unique.
    pub name: String,
    /// Product name of its GPUs, or `simulated`.
    pub gpu_type: String,
    /// Whether its GPUs exist only in the books.
    pub simulated: bool,
    /// Its GPUs, in their order.
    pub gpus: Vec<NodeGpu>,
    /// Allocatable thousandths of cores.
    pub cpu_millis: u64,
    /// Allocatable bytes of main memory.
    pub memory_bytes: u64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(with = "taints", default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl NodeSpec {
    /// Its labels, those that were given to it, and the one that every node has in Kubernetes: its name.
    #[must_use]
    pub fn labels_with(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.extend(given.clone());
        labels.insert(HOST_LABEL.to_owned(), self.name.clone());
        labels
    }

    /// Whether it has GPUs that a driver found.
    #[must_use]
    pub const fn has_real_gpus(&self) -> bool {
        !self.simulated && !self.gpus.is_empty()
    }
}

/// A GPU of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGpu {
    /// What the driver calls it.
    pub uuid: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Why it does not work, if that was so when the node was seen. It is not looked at again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Whether new pods may come to a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// They may.
    #[default]
    Enabled,
    /// They may not: it is cordoned.
    Disabled,
    /// They may not, and those that are there are moved or stopped.
    Draining,
}

impl Scheduling {
    /// Whether new pods may come.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        matches!(self, Self::Enabled)
    }
}

/// What people gave a node beside what it came with. Kept as long as anything is given, also while
/// the node is away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGiven {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(with = "taints", default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Whether new pods may come.
    #[serde(default, skip_serializing_if = "Scheduling::is_enabled")]
    pub scheduling: Scheduling,
}

/// The scheduler's type as a document.
mod taints {
    use model::Taint;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::EffectWire;

    #[derive(Serialize, Deserialize)]
    struct TaintWire {
        key: String,
        value: String,
        effect: EffectWire,
    }

    pub(super) fn serialize<S: Serializer>(taints: &[Taint], to: S) -> Result<S::Ok, S::Error> {
        let wire = |Taint { key, value, effect }: &Taint| TaintWire {
            key: key.clone(),
            value: value.clone(),
            effect: EffectWire(*effect),
        };
        to.collect_seq(taints.iter().map(wire))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Taint>, D::Error> {
        let all = Vec::<TaintWire>::deserialize(from)?.into_iter();
        let taint = |TaintWire { key, value, effect }| Taint { key, value, effect: effect.0 };
        Ok(all.map(taint).collect())
    }
}
