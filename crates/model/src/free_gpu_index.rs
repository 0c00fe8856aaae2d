//! Which nodes have how many wholly free GPUs. Owns: the index that makes finding a node for
//! whole GPUs independent of the number of nodes.

use std::collections::BTreeSet;

use crate::{Node, NodeId};

/// Nodes by number of wholly free GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FreeGpuIndex {
    now: BTreeSet<(u32, NodeId)>,
    soon: BTreeSet<(u32, NodeId)>,
}

impl FreeGpuIndex {
    pub(crate) fn insert(&mut self, id: NodeId, node: &Node) {
        self.now.insert((node.whole_free_now, id));
        self.soon.insert((node.whole_free_soon, id));
    }

    pub(crate) fn remove(&mut self, id: NodeId, node: &Node) {
        self.now.remove(&(node.whole_free_now, id));
        self.soon.remove(&(node.whole_free_soon, id));
    }

    /// Moves a node whose counts were `before`.
    pub(crate) fn update(&mut self, id: NodeId, before: (u32, u32), node: &Node) {
        if before.0 != node.whole_free_now {
            self.now.remove(&(before.0, id));
            self.now.insert((node.whole_free_now, id));
        }
        if before.1 != node.whole_free_soon {
            self.soon.remove(&(before.1, id));
            self.soon.insert((node.whole_free_soon, id));
        }
    }

    /// Nodes with at least so many free GPUs, those with fewest first.
    pub(crate) fn at_least(
        &self,
        gpus: u32,
        now: bool,
    ) -> impl DoubleEndedIterator<Item = NodeId> + use<'_> {
        let set = if now { &self.now } else { &self.soon };
        set.range((gpus, NodeId::new(0))..).map(|&(_, id)| id)
    }
}
