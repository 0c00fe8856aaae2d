//! Which nodes satisfy which constraints. Owns: one bit per node and set of constraints, so that
//! labels are compared once and not for every pod.

use std::collections::BTreeMap;

use crate::{Cluster, Constraints, Node, NodeId};

/// A set of constraints that some workload has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ConstraintsId(u32);

impl ConstraintsId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every set of constraints in use, and the nodes that satisfy it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Eligibility {
    ids: BTreeMap<Constraints, ConstraintsId>,
    sets: Vec<(Constraints, Vec<bool>)>,
}

impl Eligibility {
    /// The id of these constraints.
    pub(crate) fn intern<'a>(
        &mut self,
        constraints: &Constraints,
        nodes: impl Iterator<Item = (NodeId, &'a Node)>,
    ) -> ConstraintsId {
        if let Some(&id) = self.ids.get(constraints) {
            return id;
        }
        let id = ConstraintsId(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        self.ids.insert(constraints.clone(), id);
        self.sets.push((constraints.clone(), Vec::new()));
        for (node, row) in nodes {
            set_bit(&mut self.sets[id.0 as usize], node, row);
        }
        id
    }

    /// Looks at a node again, after it came or changed.
    pub(crate) fn update(&mut self, id: NodeId, node: &Node) {
        self.sets.iter_mut().for_each(|set| set_bit(set, id, node));
    }

    /// Forgets a node that is gone; another may get its id.
    pub(crate) fn forget(&mut self, id: NodeId) {
        for (_, nodes) in &mut self.sets {
            if let Some(bit) = nodes.get_mut(id.raw() as usize) {
                *bit = false;
            }
        }
    }

    pub(crate) fn constraints(&self, id: ConstraintsId) -> &Constraints {
        self.constraints_at(id.index())
    }

    /// Number of sets of constraints.
    pub(crate) const fn len(&self) -> usize {
        self.sets.len()
    }

    pub(crate) fn constraints_at(&self, at: usize) -> &Constraints {
        &self.sets[at].0
    }

    pub(crate) fn allows(&self, id: ConstraintsId, node: NodeId) -> bool {
        self.sets[id.0 as usize].1.get(node.raw() as usize).copied().unwrap_or(false)
    }
}

fn set_bit(set: &mut (Constraints, Vec<bool>), id: NodeId, node: &Node) {
    let at = id.raw() as usize;
    if set.1.len() <= at {
        set.1.resize(at + 1, false);
    }
    set.1[at] = set.0.check(&node.labels, &node.taints).is_ok();
}

/// What constraints mean for nodes.
impl Cluster {
    /// The constraints with this id.
    #[must_use]
    pub fn constraints(&self, id: ConstraintsId) -> &Constraints {
        self.eligibility.constraints(id)
    }

    /// Whether some nodes suit these constraints better than others.
    #[must_use]
    pub fn has_preferences(&self, constraints: ConstraintsId) -> bool {
        let constraints = self.eligibility.constraints(constraints);
        self.soft_taints
            || !constraints.preferred.is_empty()
            || !constraints.pod_preferences.is_empty()
    }

    /// How well a node suits these constraints; more is better.
    #[must_use]
    pub fn preference(&self, constraints: ConstraintsId, node: NodeId) -> i64 {
        let row = &self.nodes[node];
        self.eligibility.constraints(constraints).preference(&row.labels, &row.taints)
            + self.pod_preference(constraints, node)
    }

    /// Whether a pod with these constraints may go to a node at all, room aside.
    #[must_use]
    pub fn allows(&self, constraints: ConstraintsId, node: NodeId) -> bool {
        self.nodes[node].schedulable && self.eligibility.allows(constraints, node)
    }
}
