//! Nodes, their GPUs and node pools, as readers see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Taint;
use spec::{Instance, NodeGpu, NodeSpec, PoolFractions, Scheduling, TimeSlicing};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::gpu_fault::GpuFault;

/// A node with its settings and usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Specification as reported.
    pub spec: Arc<NodeSpec>,
    /// Name.
    pub name: String,
    /// Product name of the GPUs, or `simulated`.
    pub gpu_type: String,
    /// True if its GPUs are simulated.
    pub simulated: bool,
    /// Memory of each GPU in bytes.
    pub gpu_memory_bytes: Vec<u64>,
    /// Thousandths in use per GPU.
    pub gpu_used_millis: Vec<u64>,
    /// The pods on each GPU, in the order of the model.
    pub gpu_pods: Vec<Vec<GpuPod>>,
    /// Faults of its GPUs, by index: these are out of service, and not part of the capacity.
    pub gpu_faults: BTreeMap<u32, GpuFault>,
    /// Capacity.
    pub capacity: Resources,
    /// In use.
    pub used: Resources,
    /// Name of its pool.
    pub pool: String,
    /// Time slicing of its pool; `None` = default of the server.
    pub time_slicing: Option<TimeSlicing>,
    /// Enforcement of GPU fractions in its pool; `None` = default of the server.
    pub fractions: Option<PoolFractions>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Admission of new pods: enabled, cordoned or draining.
    pub scheduling: Scheduling,
    /// Time of creation.
    pub created_at: Instant,
}

/// A pod that holds a GPU or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuPod {
    /// Its workload, or the revision of a replica.
    pub workload_id: Uuid,
    /// Its id.
    pub pod_id: Uuid,
    /// Thousandths of the GPU.
    pub millis: u64,
}

/// A GPU of a node with its usage. Two are equal if all visible values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuView<'a> {
    /// Name of its node.
    pub node: &'a str,
    /// Its index on the node.
    pub index: u32,
    /// UUID that the driver gives the GPU.
    pub uuid: &'a str,
    /// Product name, or `simulated`.
    pub gpu_type: &'a str,
    /// True if it is simulated.
    pub simulated: bool,
    /// Name of the pool of its node.
    pub pool: &'a str,
    /// Time slicing of that pool; `None` = default of the server.
    pub time_slicing: Option<TimeSlicing>,
    /// Enforcement of GPU fractions in that pool; `None` = default of the server.
    pub fractions: Option<PoolFractions>,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Thousandths in use.
    pub used_millis: u64,
    /// Its MIG instance, if instances are allocated for GPU fractions.
    pub instance: Option<&'a Instance>,
    /// Fault that puts it out of service.
    pub fault: Option<&'a GpuFault>,
    /// The pods on it.
    pub pods: &'a [GpuPod],
}

impl NodeView {
    /// Total share that pods may have of each of its GPUs, in thousandths.
    pub fn capacities(&self) -> impl Iterator<Item = u64> {
        self.spec.gpus.iter().map(NodeGpu::capacity_millis)
    }

    /// A GPU, by its index.
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

/// A node pool with its settings and nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Node label and placement settings.
    pub settings: spec::PoolSettings,
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// Capacity of its nodes.
    pub capacity: Resources,
    /// Time of creation.
    pub created_at: Instant,
    /// User who created it.
    pub created_by: String,
    /// Time of the last change.
    pub updated_at: Instant,
    /// User who made the last change.
    pub updated_by: String,
}
