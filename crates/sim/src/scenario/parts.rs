//! Workloads with parts, as written: pod sets, groups of them, and topologies that say where nodes
//! are. Owns: names of keys and their defaults. Does not know about: whether the parts make a tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::affinity::NodeAffinity;
use super::amount::{Count, Size};
use super::gpus::GpuAsk;
use super::is_default;
use super::pod_affinity::PodAffinity;
use super::taint::{Effect, Toleration};

/// Where nodes are: labels of nodes from coarse to fine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Name, unique.
    pub name: String,
    /// Labels, coarse to fine.
    pub levels: Vec<String>,
}

/// How close together pods belong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologyConstraint {
    /// Of which topology.
    pub name: String,
    /// They start in one domain of this level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// They start in one domain of this level if they can, or else of one as fine as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
}

/// Pods of a workload that are alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodSet {
    /// Name, unique in the workload.
    pub name: String,
    /// Pods.
    #[serde(default = "one")]
    pub pods: u32,
    /// Fewest pods that make sense; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_min: Option<u32>,
    /// GPUs of each pod.
    #[serde(default)]
    pub gpu: GpuAsk,
    /// Cores of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Count>,
    /// Main memory of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// More that a node's labels must be, or should be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub affinity: NodeAffinity,
    /// Taints that do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Labels of its pods, by which others ask for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Pods that its pods belong with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_affinity: PodAffinity,
    /// Pods that its pods keep away from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_anti_affinity: PodAffinity,
    /// Pods of a higher one are placed before those of other sets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub task_priority: u32,
    /// The group it is in; none if it is directly in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How close together its pods belong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,
}

pub(super) const fn one() -> u32 {
    1
}

/// Pod sets and groups that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name, unique in the workload.
    pub name: String,
    /// The group it is in, listed before it; none if it is directly in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Fewest of its groups and sets that make sense together; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_min: Option<u32>,
    /// How close together its pods belong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,
}

impl PodSet {
    /// One pod without GPUs that may go anywhere.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), pods: one(), ..Self::default() }
    }

    /// Says where its pods may go, but for node pools, which are a matter of the workload.
    pub fn confine(&mut self, constraints: &model::Constraints) {
        let toleration = |toleration: &model::Toleration| Toleration {
            key: toleration.key.clone(),
            value: toleration.value.clone(),
            effect: toleration.effect.map(Effect::from),
        };
        let affinity =
            |required, anti| PodAffinity::of(required, &constraints.pod_preferences, anti);
        self.selector.clone_from(&constraints.selector);
        self.affinity = NodeAffinity::of(constraints);
        self.tolerations = constraints.tolerations.iter().map(toleration).collect();
        self.labels.clone_from(&constraints.labels);
        self.pod_affinity = affinity(&constraints.pod_affinity, false);
        self.pod_anti_affinity = affinity(&constraints.pod_anti_affinity, true);
    }
}
