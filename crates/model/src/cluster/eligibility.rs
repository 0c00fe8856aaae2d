//! Nodes that satisfy each set of constraints. Owns: one bit per node and set of constraints, so
//! that labels are compared once and not for every pod; the removal of sets no longer in use.

use std::collections::BTreeMap;

use crate::{Cluster, Constraints, ConstraintsId, Node, NodeId, PoolId};

/// Every set of constraints in use, and the nodes that satisfy it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Eligibility {
    ids: BTreeMap<Constraints, ConstraintsId>,
    sets: Vec<(Constraints, Vec<bool>)>,
    /// Sets of constraints restricted to one node pool, by the unrestricted set.
    in_pools: BTreeMap<(ConstraintsId, PoolId), ConstraintsId>,
    /// Number of sets when unused ones were last dropped.
    kept: usize,
}

/// Number of sets up to which unused ones are not dropped.
const SETS_MIN: usize = 256;

impl Eligibility {
    /// Id of these constraints.
    pub(crate) fn intern<'a>(
        &mut self,
        constraints: &Constraints,
        nodes: impl Iterator<Item = (NodeId, &'a Node)>,
    ) -> ConstraintsId {
        if let Some(&id) = self.ids.get(constraints) {
            return id;
        }
        let id = self.keep((constraints.clone(), Vec::new()));
        for (node, row) in nodes {
            set_bit(&mut self.sets[id.0 as usize], node, row);
        }
        id
    }

    /// Id of these constraints restricted to one node pool. The name of a pool never changes.
    pub(crate) fn intern_in<'a>(
        &mut self,
        (of, pool): (ConstraintsId, PoolId),
        name: &str,
        nodes: impl Iterator<Item = (NodeId, &'a Node)>,
    ) -> ConstraintsId {
        if let Some(&id) = self.in_pools.get(&(of, pool)) {
            return id;
        }
        let alone = Constraints { pools: vec![name.to_owned()], ..self.constraints(of).clone() };
        let id = self.intern(&alone, nodes);
        self.in_pools.insert((of, pool), id);
        id
    }

    /// True if most sets may be unused.
    fn is_due(&self) -> bool {
        self.sets.len() > SETS_MIN.max(2 * self.kept)
    }

    /// Adds a set with its bits.
    fn keep(&mut self, set: (Constraints, Vec<bool>)) -> ConstraintsId {
        let id = ConstraintsId(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        self.ids.insert(set.0.clone(), id);
        self.sets.push(set);
        id
    }

    /// Updates the bits of a node that was added or changed.
    pub(crate) fn update(&mut self, id: NodeId, node: &Node) {
        self.sets.iter_mut().for_each(|set| set_bit(set, id, node));
    }

    /// Clears the bits of a removed node; another may get its id.
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

/// Constraints of workloads on nodes.
impl Cluster {
    /// Constraints with this id.
    #[must_use]
    pub fn constraints(&self, id: ConstraintsId) -> &Constraints {
        self.eligibility.constraints(id)
    }

    /// Drops the constraints that no workload has, once they may be the majority: pods with
    /// affinity to each other have another set for each workload. Ids change.
    pub(crate) fn forget_constraints(&mut self) {
        if !self.eligibility.is_due() {
            return;
        }
        self.tracker.rename();
        let before = std::mem::take(&mut self.eligibility);
        let mut renamed = BTreeMap::new();
        for id in self.workloads.ids().collect::<Vec<_>>() {
            for set in &mut self.workloads[id].pod_sets {
                for id in std::iter::once(&mut set.constraints).chain(&mut set.pools) {
                    let keep = || self.eligibility.keep(before.sets[id.index()].clone());
                    *id = *renamed.entry(*id).or_insert_with(keep);
                }
            }
        }
        self.eligibility.kept = self.eligibility.len();
        self.requests.rename(&renamed);
        self.affinity.forget();
        self.affinity.learn(&self.eligibility);
        self.recount_affinity();
    }

    /// True if these constraints have preferences among nodes.
    #[must_use]
    pub fn has_preferences(&self, constraints: ConstraintsId) -> bool {
        let constraints = self.eligibility.constraints(constraints);
        self.soft_taints
            || !constraints.preferred.is_empty()
            || !constraints.pod_preferences.is_empty()
    }

    /// Score of a node by the preferences of these constraints; more is better.
    #[must_use]
    pub fn preference(&self, constraints: ConstraintsId, node: NodeId) -> i64 {
        let row = &self.nodes[node];
        self.eligibility.constraints(constraints).preference(&row.labels, &row.taints)
            + self.pod_preference(constraints, node)
    }

    /// True if a node satisfies these constraints, free resources aside.
    #[must_use]
    pub fn allows(&self, constraints: ConstraintsId, node: NodeId) -> bool {
        self.nodes[node].schedulable && self.eligibility.allows(constraints, node)
    }
}

#[cfg(test)]
mod tests {
    use units::Resources;

    use super::*;
    use crate::{
        GpuRequest, NodeSpec, Placement, PodBinding, PodMismatch, PodRequest, PodSetSpec, PodTerm,
        QueueId, QueueSpec, Share, WorkloadId, WorkloadSpec,
    };

    fn own(number: u64) -> PodTerm {
        let labels = BTreeMap::from([("own".to_owned(), number.to_string())]);
        PodTerm { labels, topology_key: "hostname".into() }
    }

    fn add(cluster: &mut Cluster, queue: QueueId, seq: u64, demands: Constraints) -> WorkloadId {
        let request = PodRequest { gpu: GpuRequest::Whole(0), cpu_millis: 1, memory_bytes: 1 };
        let set = PodSetSpec { constraints: demands, ..request.into() };
        cluster.add_workload(WorkloadSpec::new("w", queue, seq, set)).unwrap()
    }

    /// Pods with affinity to each other and anti-affinity to those of other workloads.
    fn together(number: u64) -> Constraints {
        let (labels, pod_affinity) = (own(number).labels, vec![own(number)]);
        Constraints { labels, pod_affinity, ..Constraints::default() }
    }

    #[test]
    fn constraints_that_are_no_longer_in_use_are_dropped() {
        let mut cluster = Cluster::new();
        let node = cluster.add_node(NodeSpec::new("n", vec![], 64_000, 1 << 40));
        let share = Share::new(Resources::UNLIMITED, Resources::UNLIMITED);
        let queue = QueueSpec { name: "q".into(), parent: None, share, seq: 1 };
        let queue = cluster.add_queue(queue).unwrap();
        let first = add(&mut cluster, queue, 0, together(0));
        let pod = cluster.workloads()[first].pods[0];
        let current = Some(Placement { node, devices: Default::default() });
        cluster.set_wants(pod, true);
        cluster.set_binding(pod, PodBinding { current, ..PodBinding::default() });
        for number in 1..1000 {
            let id = add(&mut cluster, queue, number, together(number));
            cluster.remove_workload(id).unwrap();
        }
        assert!(cluster.eligibility.len() <= SETS_MIN + 1, "{}", cluster.eligibility.len());
        assert_eq!(cluster.verify(), Ok(()));
        let apart = Constraints { pod_anti_affinity: vec![own(0)], ..Constraints::default() };
        let last = add(&mut cluster, queue, 1000, apart);
        let demands = cluster.workloads()[last].pod_sets[0].constraints;
        assert_eq!(cluster.check_pods(demands, node, false), Err(PodMismatch::AntiAffinity));
    }
}
