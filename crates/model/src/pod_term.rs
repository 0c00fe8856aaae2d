//! Pod affinity terms. Owns: the pods that a term selects, and its domains. Does not know about:
//! the pods that are in a domain.

use std::collections::BTreeMap;

/// Pods with these labels, in the same domain: nodes with the same value of a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTerm {
    /// Labels that a pod must have.
    pub labels: BTreeMap<String, String>,
    /// Node label of the domains. With `hostname` each node is a domain.
    pub topology_key: String,
}

impl PodTerm {
    /// True if each node is a domain of its own.
    pub(crate) fn is_on_one_node(&self) -> bool {
        is_host(&self.topology_key)
    }
}

/// A preference for domains with pods of a term; with a negative weight, against them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodPreference {
    /// Weight.
    pub weight: i64,
    /// Pods that it selects.
    pub term: PodTerm,
}

/// Conflict with placed pods that excludes a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodMismatch {
    /// No pod that its affinity requires is in the domain of the node.
    Affinity,
    /// A pod that its anti-affinity excludes is in the domain.
    AntiAffinity,
    /// A pod whose anti-affinity excludes it is in the domain.
    Repelled,
}

/// True for a label by which each node is a domain of its own; a node need not carry it.
#[must_use]
pub fn is_host(label: &str) -> bool {
    HOSTNAME.contains(&label)
}

/// Label by which pod affinity selects the pods of a workload.
pub const WORKLOAD_LABEL: &str = "elastane/workload";

/// The label with the name of a node.
pub const HOST_LABEL: &str = "kubernetes.io/hostname";

/// Labels with a different value on each node.
const HOSTNAME: [&str; 2] = ["hostname", HOST_LABEL];
