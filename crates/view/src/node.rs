//! Nodes, their GPUs and node pools, as readers see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Taint;
use spec::{Instance, NodeGpu, NodeSpec, PoolFractions, Scheduling, TimeSlicing};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::gpu_fault::GpuFault;

/// A node and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// As it came.
    pub spec: Arc<NodeSpec>,
    /// Name.
    pub name: String,
    /// What the GPUs are: product name, or `simulated`.
    pub gpu_type: String,
    /// True if its GPUs exist only in the books.
    pub simulated: bool,
    /// Memory of each GPU in bytes.
    pub gpu_memory_bytes: Vec<u64>,
    /// Thousandths in use per GPU.
    pub gpu_used_millis: Vec<u64>,
    /// The pods on each GPU, in the order of the model.
    pub gpu_pods: Vec<Vec<GpuPod>>,
    /// What is the matter with its GPUs, by their numbers: those are out of service, and no part of
    /// the capacity.
    pub gpu_faults: BTreeMap<u32, GpuFault>,
    /// Capacity.
    pub capacity: Resources,
    /// In use.
    pub used: Resources,
    /// Name of its pool.
    pub pool: String,
    /// How that divides the compute time of GPUs; none: as the server was started.
    pub time_slicing: Option<TimeSlicing>,
    /// How that keeps parts of GPUs; none: as the server was started.
    pub fractions: Option<PoolFractions>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether new pods may come.
    pub scheduling: Scheduling,
    /// When it was added.
    pub created_at: Instant,
}

/// A pod that holds a GPU or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuPod {
    /// Its workload; of a replica its revision.
    pub workload_id: Uuid,
    /// Its id.
    pub pod_id: Uuid,
    /// Thousandths of the GPU.
    pub millis: u64,
}

/// A GPU of a node and how it stands. Two are equal if they look the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuView<'a> {
    /// Name of its node.
    pub node: &'a str,
    /// Its number there.
    pub index: u32,
    /// What the driver calls it.
    pub uuid: &'a str,
    /// Product name, or `simulated`.
    pub gpu_type: &'a str,
    /// True if it exists only in the books.
    pub simulated: bool,
    /// Name of the pool of its node.
    pub pool: &'a str,
    /// How that divides the compute time of GPUs; none: as the server was started.
    pub time_slicing: Option<TimeSlicing>,
    /// How that keeps parts of GPUs; none: as the server was started.
    pub fractions: Option<PoolFractions>,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Thousandths in use.
    pub used_millis: u64,
    /// The MIG instance that it is, where those are given out for parts of GPUs.
    pub instance: Option<&'a Instance>,
    /// Why it is out of service, if it is.
    pub fault: Option<&'a GpuFault>,
    /// The pods on it.
    pub pods: &'a [GpuPod],
}

impl NodeView {
    /// Thousandths of a GPU that pods may have of each of its GPUs together.
    pub fn capacities(&self) -> impl Iterator<Item = u64> {
        self.spec.gpus.iter().map(NodeGpu::capacity_millis)
    }

    /// A GPU, by its number.
    #[must_use]
    pub fn gpu(&self, index: u32) -> Option<GpuView<'_>> {
        let at = index as usize;
        Some(GpuView {
            node: &self.name,
            index,
            uuid: self.spec.gpus.get(at).map_or("", |gpu| &gpu.uuid),
            gpu_type: &self.gpu_type,
            simulated: self.simulated,
            pool: &self.pool,
            time_slicing: self.time_slicing,
            fractions: self.fractions,
            memory_bytes: *self.gpu_memory_bytes.get(at)?,
            used_millis: self.gpu_used_millis.get(at).copied().unwrap_or(0),
            instance: self.spec.gpus.get(at).and_then(|gpu| gpu.instance.as_ref()),
            fault: self.gpu_faults.get(&index),
            pods: self.gpu_pods.get(at).map_or(&[], Vec::as_slice),
        })
    }

    /// Its GPUs, in their order.
    pub fn gpus(&self) -> impl Iterator<Item = GpuView<'_>> {
        (0..).map_while(|index| self.gpu(index))
    }
}

/// A node pool and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// What it is made of and how it is used.
    pub settings: spec::PoolSettings,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// What they have.
    pub capacity: Resources,
    /// When it was created.
    pub created_at: Instant,
    /// By whom.
    pub created_by: String,
    /// Last change.
    pub updated_at: Instant,
    /// By whom.
    pub updated_by: String,
}
