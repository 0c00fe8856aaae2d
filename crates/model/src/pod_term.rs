//! Pod affinity terms: which pods a term selects and what a domain is. Does not know about: the
//! pods that are in a domain.

use std::collections::BTreeMap;

/// Pods with these labels, in the same domain: nodes with the same value of a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTerm {
    /// Labels that a pod must have.
    pub labels: BTreeMap<String, String>,
    /// The label of nodes. `hostname` is each node on its own.
    pub topology_key: String,
}

impl PodTerm {
    /// True if each node is a domain of its own.
    pub(crate) fn is_on_one_node(&self) -> bool {
        is_host(&self.topology_key)
    }
}

/// A domain that is better, or with a negative weight worse, if pods of a term are in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodPreference {
    /// How much.
    pub weight: i64,
    /// Which pods.
    pub term: PodTerm,
}

/// Why the pods of other places keep a pod from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodMismatch {
    /// No pod that it must be with is in the domain of the node.
    Affinity,
    /// One that it must not be with is.
    AntiAffinity,
    /// One is that must not be with it.
    Repelled,
}

/// True if a label is that by which each node is a domain of its own; no node has to carry it.
#[must_use]
pub fn is_host(label: &str) -> bool {
    HOSTNAME.contains(&label)
}

/// The label with the name of a node.
pub const HOST_LABEL: &str = "kubernetes.io/hostname";

/// The label of which every node has a value of its own.
const HOSTNAME: [&str; 2] = ["hostname", HOST_LABEL];
