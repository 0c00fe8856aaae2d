//! Number of pods of a shape that would fit if everything were free. Owns: this count, cached for
//! each shape until nodes change. Only one of several equal nodes is examined.

use std::collections::BTreeMap;

use units::Resources;

use crate::{
    Cluster, ConstraintsId, Gpu, GpuPart, MigProfile, Node, NodeId, PodRequest, PoolId, TopologyId,
    fitting,
};

/// Maximum number of cached shapes.
const SHAPES_MAX: usize = 1 << 14;

/// Shape of a pod, and the constraint on a common domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub(crate) request: PodRequest,
    pub(crate) constraints: ConstraintsId,
    /// Pool of the nodes; `None` for all nodes.
    pub(crate) pool: Option<PoolId>,
    /// Topology level of which one domain holds all pods; `None` for any nodes.
    pub(crate) level: Option<(TopologyId, usize)>,
}

/// Hardware of a node, as far as it decides how many pods fit.
pub(crate) type Make = (u64, u64, u32, Vec<(u64, Option<MigProfile>, Option<GpuPart>, bool)>);

/// The nodes in their empty state.
#[derive(Debug, Clone, Default)]
pub(crate) struct EmptyNodes {
    /// Nodes grouped by equal hardware; empty before the first use.
    alike: Vec<Vec<NodeId>>,
    /// Number of pods that fit, and the number that was requested, by shape.
    fitting: BTreeMap<Shape, (u32, u32)>,
}

impl EmptyNodes {
    /// Number of pods of this shape that would fit, at most `wanted`.
    pub(crate) fn fitting(&mut self, cluster: &Cluster, shape: Shape, wanted: u32) -> u32 {
        match self.fitting.get(&shape) {
            Some(&(fitting, of)) if fitting < of || wanted <= of => fitting.min(wanted),
            _ => {
                let fitting = self.count(cluster, shape, wanted);
                if self.fitting.len() == SHAPES_MAX {
                    self.fitting.clear();
                }
                self.fitting.insert(shape, (fitting, wanted));
                fitting
            }
        }
    }

    fn count(&mut self, cluster: &Cluster, shape: Shape, wanted: u32) -> u32 {
        if self.alike.is_empty() {
            let mut alike: BTreeMap<Make, Vec<NodeId>> = BTreeMap::new();
            for (id, node) in cluster.nodes().iter() {
                alike.entry(make(node)).or_default().push(id);
            }
            self.alike = alike.into_values().collect();
        }
        let mut domains = BTreeMap::new();
        let mut most = 0;
        for nodes in &self.alike {
            let each = nodes.first().map_or(0, |&node| room(cluster, node, shape));
            let open = |node: &&NodeId| {
                let pool = cluster.nodes()[**node].pool;
                cluster.allows(shape.constraints, **node)
                    && shape.pool.is_none_or(|own| own == pool)
            };
            for &node in nodes.iter().filter(|_| each > 0).filter(open) {
                let domain = shape.level.map(|(topology, level)| {
                    cluster.topology(topology).domains_of(node).get(level).copied()
                });
                if domain == Some(None) {
                    continue;
                }
                let fitting: &mut u32 = domains.entry(domain.flatten()).or_default();
                *fitting = fitting.saturating_add(each);
                most = most.max(*fitting);
                if most >= wanted {
                    return wanted;
                }
            }
        }
        most
    }
}

/// Number of pods of this shape that fit on an empty node.
fn room(cluster: &Cluster, id: NodeId, shape: Shape) -> u32 {
    let node = &cluster.nodes()[id];
    let pods = if cluster.keep_apart(shape.constraints) { 1 } else { node.pods_max };
    let gpus = node.gpus.iter().map(|gpu| (gpu, gpu.capacity_millis()));
    fitting(shape.request, node.capacity, pods.into(), gpus)
}

pub(crate) fn make(node: &Node) -> Make {
    let kind = |gpu: &Gpu| (gpu.memory_bytes, gpu.profile(), gpu.part, gpu.in_service);
    let gpus = node.gpus.iter().map(kind);
    let Resources { cpu_millis, memory_bytes, .. } = node.capacity;
    (cpu_millis, memory_bytes, node.pods_max, gpus.collect())
}
