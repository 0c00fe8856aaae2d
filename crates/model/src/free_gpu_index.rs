//! Free resources of the nodes. Owns: the index that finds nodes for whole GPUs independent of the
//! number of nodes, and the compact table that excludes full nodes.

use std::collections::BTreeSet;

use units::Resources;

use crate::{GpuRequest, Node, NodeId, PodRequest};

/// Nodes by number of wholly free GPUs, and the free resources of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FreeGpuIndex {
    now: BTreeSet<(u32, NodeId)>,
    soon: BTreeSet<(u32, NodeId)>,
    /// Free resources of each node after pending releases, and now. Trailing nodes without any are
    /// left out.
    free: Vec<[Free; 2]>,
}

/// Free resources of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Free {
    cpu_millis: u64,
    memory_bytes: u64,
    /// Free thousandths of the device with the largest free share.
    largest_millis: u64,
    whole: u32,
}

impl Free {
    fn of(node: &Node, now: bool) -> Self {
        let Resources { cpu_millis, memory_bytes, .. } = node.free(now);
        let (largest_millis, whole) = (node.largest_free_millis(now), node.whole_free(now));
        Self { cpu_millis, memory_bytes, largest_millis, whole }
    }
}

impl FreeGpuIndex {
    pub(crate) fn insert(&mut self, id: NodeId, node: &Node) {
        self.now.insert((node.whole_free_now, id));
        self.soon.insert((node.whole_free_soon, id));
        self.set(id, [Free::of(node, false), Free::of(node, true)]);
    }

    pub(crate) fn remove(&mut self, id: NodeId, node: &Node) {
        self.now.remove(&(node.whole_free_now, id));
        self.soon.remove(&(node.whole_free_soon, id));
        self.set(id, Default::default());
    }

    fn set(&mut self, id: NodeId, free: [Free; 2]) {
        let at = id.raw() as usize;
        self.free.resize(self.free.len().max(at + 1), Default::default());
        self.free[at] = free;
        while self.free.pop_if(|free| *free == <[Free; 2]>::default()).is_some() {}
    }

    /// True if a node may have room for a pod; if false, it has none.
    #[inline]
    pub(crate) fn may_fit(&self, id: NodeId, request: PodRequest, now: bool) -> bool {
        let free = self.free.get(id.raw() as usize).map_or(Free::default(), |at| at[now as usize]);
        request.cpu_millis <= free.cpu_millis
            && request.memory_bytes <= free.memory_bytes
            && match request.gpu {
                GpuRequest::Whole(gpus) => gpus <= free.whole,
                GpuRequest::Share { devices, millis } => {
                    devices == 0 || millis <= free.largest_millis
                }
                GpuRequest::Memory { .. } | GpuRequest::Mig(_) => true,
            }
    }

    /// Updates a node whose numbers of wholly free GPUs were `before`.
    pub(crate) fn update(&mut self, id: NodeId, before: (u32, u32), node: &Node) {
        if before.0 != node.whole_free_now {
            self.now.remove(&(before.0, id));
            self.now.insert((node.whole_free_now, id));
        }
        if before.1 != node.whole_free_soon {
            self.soon.remove(&(before.1, id));
            self.soon.insert((node.whole_free_soon, id));
        }
        self.set(id, [Free::of(node, false), Free::of(node, true)]);
    }

    /// Nodes with at least this number of free GPUs, those with the fewest first.
    pub(crate) fn at_least(
        &self,
        gpus: u32,
        now: bool,
    ) -> impl DoubleEndedIterator<Item = NodeId> + use<'_> {
        let set = if now { &self.now } else { &self.soon };
        set.range((gpus, NodeId::new(0))..).map(|&(_, id)| id)
    }
}
