//! Parts of workloads, as written: pod sets, groups of them, and topologies. Owns: names of keys
//! and their defaults. Does not know about: the check that the parts form a tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::affinity::NodeAffinity;
use super::amount::{Count, Size};
use super::gpus::GpuAsk;
use super::is_default;
use super::pod_affinity::PodAffinity;
use super::taint::{Effect, Toleration};

/// A topology: labels of nodes from the widest level to the narrowest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Name, unique.
    pub name: String,
    /// Labels of the levels, from the widest to the narrowest.
    pub levels: Vec<String>,
}

/// A topology constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologyConstraint {
    /// Name of the topology.
    pub name: String,
    /// Level of which one domain must hold all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// Level of which one domain should hold all pods; otherwise a domain as narrow as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
}

/// A set of equal pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodSet {
    /// Name, unique in the workload.
    pub name: String,
    /// Number of pods.
    #[serde(default = "one")]
    pub pods: u32,
    /// Minimum number of pods; all of them if not given.
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
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Further required or preferred labels of nodes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub affinity: NodeAffinity,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Labels of its pods, to which pod affinity refers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Pods near which its pods are placed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_affinity: PodAffinity,
    /// Pods away from which its pods are placed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_anti_affinity: PodAffinity,
    /// Pods of a higher priority are placed before those of other sets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub task_priority: u32,
    /// The group it is in; `None` if it is directly in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Topology constraint on its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,
}

pub(super) const fn one() -> u32 {
    1
}

/// A group of pod sets and groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name, unique in the workload.
    pub name: String,
    /// The group it is in, listed before it; `None` if it is directly in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Minimum number of its groups and sets; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_min: Option<u32>,
    /// Topology constraint on its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,
}

impl PodSet {
    /// A set of one pod without GPUs and without constraints.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), pods: one(), ..Self::default() }
    }

    /// Sets the constraints of its pods except node pools, which belong to the workload.
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
