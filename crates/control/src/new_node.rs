//! Nodes from the properties of their GPUs. Owns: how large a simulated node may be.

use std::collections::BTreeMap;

use gpu::{NODES_MAX, NodeGpus};
use spec::{NodeGpu, NodeSpec};

use orchestrator::Error;

/// Memory of a simulated GPU by default.
const GPU_MEMORY_DEFAULT: u64 = 16 << 30;

/// A node with these GPUs on this machine. Simulated nodes share the machine: each promises all of
/// its cores and memory, because only the GPUs are simulated.
#[must_use]
pub fn node_on_host(node: NodeGpus) -> NodeSpec {
    let capacity = gpu::host_capacity();
    let first = node.gpus.first();
    NodeSpec {
        gpu_type: first.map_or_else(|| "none".to_owned(), |gpu| gpu.product.clone()),
        simulated: first.is_some_and(|gpu| gpu.simulated),
        gpus: node
            .gpus
            .into_iter()
            .map(|gpu| NodeGpu {
                uuid: gpu.uuid,
                memory_bytes: gpu.memory_bytes,
                fault: gpu.fault,
                mig: None,
                instance: None,
            })
            .collect(),
        name: node.name,
        cpu_millis: node.host.cpu_millis.unwrap_or(capacity.cpu_millis),
        memory_bytes: node.host.memory_bytes.unwrap_or(capacity.memory_bytes),
        pods_max: None,
        labels: node.labels,
        taints: Vec::new(),
    }
}

/// A simulated node to add. Omitted values are as for `--nodes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewNode {
    /// Name, unique.
    pub name: String,
    /// Names of further nodes like it, which are added at once with it.
    pub more: Vec<String>,
    /// How many GPUs it has.
    pub gpus: u64,
    /// Memory of each GPU in bytes.
    pub gpu_memory_bytes: Option<u64>,
    /// Allocatable thousandths of cores.
    pub cpu_millis: Option<u64>,
    /// Allocatable bytes of main memory.
    pub memory_bytes: Option<u64>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

impl NewNode {
    /// The first node and the further ones, beside `others` existing ones.
    pub(crate) fn made(self, others: usize) -> Result<(NodeSpec, Vec<NodeSpec>), Error> {
        if others + self.more.len() >= NODES_MAX as usize {
            return Err(Error::conflict(format!(
                "there are {others} nodes, and no more than {NODES_MAX} can be simulated; remove some"
            )));
        }
        let more = self.more.iter().map(|name| self.named(name)).collect::<Result<_, _>>()?;
        Ok((self.named(&self.name)?, more))
    }

    fn named(&self, name: &str) -> Result<NodeSpec, Error> {
        let memory = self.gpu_memory_bytes.unwrap_or(GPU_MEMORY_DEFAULT);
        let node = gpu::simulate_node(name, self.gpus, memory)
            .map_err(|error| Error::invalid("gpus", error.to_string()))?;
        let node = node_on_host(NodeGpus { labels: self.labels.clone(), ..node });
        Ok(NodeSpec {
            cpu_millis: self.cpu_millis.unwrap_or(node.cpu_millis),
            memory_bytes: self.memory_bytes.unwrap_or(node.memory_bytes),
            ..node
        })
    }
}
