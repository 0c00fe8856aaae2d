//! The description of a machine.

use std::collections::BTreeMap;

use model::HOST_LABEL;
use serde::{Deserialize, Serialize};

/// A machine.
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
}

impl NodeSpec {
    /// Its labels, those that were given to it, and the one that every node has in Kubernetes: its name.
    pub(crate) fn labels_with(&self, given: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.extend(given);
        labels.insert(HOST_LABEL.to_owned(), self.name.clone());
        labels
    }
}

/// A GPU of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGpu {
    /// What the driver calls it.
    pub uuid: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Why it does not work, if that was so when the server began. It is not looked at again.
    pub fault: Option<String>,
}
