//! Nodes added, changed and removed. Owns: the resulting changes of every index.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::sign::Sign;
use crate::{Cluster, Node, NodeId, NodeSpec, PodBinding, PodId, PoolId, Taint};

impl Cluster {
    /// Adds a node.
    pub fn add_node(&mut self, spec: NodeSpec) -> NodeId {
        let before = self.gpu_memories();
        let pool = self.pool_by(&spec.labels);
        let node = Node::new(spec, pool);
        self.pools.add(pool, &node);
        self.capacity += node.capacity;
        self.free_soon += node.free(false);
        self.soft_taints |= node.has_soft_taint();
        let id = self.nodes.insert(node);
        self.free.insert(id, &self.nodes[id]);
        self.eligibility.update(id, &self.nodes[id]);
        self.revise(id);
        self.count_hardware(id, 1);
        self.topologies.iter_mut().for_each(|topology| topology.update(id, &self.nodes[id]));
        self.value_again(&before);
        id
    }

    /// Records that a node changed.
    fn revise(&mut self, id: NodeId) {
        self.revise_node(id);
        self.tracker.division();
    }

    pub(crate) fn revise_node(&mut self, id: NodeId) {
        let at = id.raw() as usize;
        self.revisions.resize(self.revisions.len().max(at + 1), 0);
        self.newest_revision += 1;
        self.revisions[at] = self.newest_revision;
    }

    fn count_hardware(&mut self, id: NodeId, change: i32) {
        for memory_bytes in self.nodes[id].gpu_memories() {
            let count = self.gpu_memories.entry(memory_bytes).or_insert(0);
            *count = count.saturating_add_signed(change);
            if *count == 0 {
                self.gpu_memories.remove(&memory_bytes);
            }
        }
        let Some(hardware) = self.nodes[id].hardware() else { return };
        let count = self.gpu_nodes.entry(hardware.clone()).or_insert(0);
        *count = count.saturating_add_signed(change);
        if *count == 0 {
            self.gpu_nodes.remove(&hardware);
        }
    }

    /// Revalues the requests for GPU memory on the memory sizes that exist now, if these differ
    /// from `before`.
    fn value_again(&mut self, before: &[u64]) {
        if self.gpu_memories.keys().eq(before) {
            return;
        }
        for id in self.workloads.ids().collect::<Vec<_>>() {
            for set in 0..self.workloads[id].pod_sets.len() {
                let demand = self.demand(self.workloads[id].spec.pod_sets[set].request);
                if demand == self.workloads[id].pod_sets[set].demand {
                    continue;
                }
                let pods = self.workloads[id].pods_of(set);
                let asking = pods.iter().copied().filter(|&pod| self.pods[pod].asks());
                let asking: Vec<_> = asking.collect();
                let place = |&pod: &PodId| Some((pod, self.pods[pod].binding.effective()?.clone()));
                let held: Vec<_> = pods.iter().filter_map(place).collect();
                asking.iter().for_each(|&pod| self.account_ask(pod, Sign::Minus));
                self.account_spare(id, Sign::Minus);
                held.iter().for_each(|(pod, place)| self.account_queues(*pod, place, Sign::Minus));
                self.workloads[id].pod_sets[set].demand = demand;
                asking.iter().for_each(|&pod| self.account_ask(pod, Sign::Plus));
                held.iter().for_each(|(pod, place)| self.account_queues(*pod, place, Sign::Plus));
                self.account_spare(id, Sign::Plus);
                self.note(id);
            }
        }
    }

    /// Memory sizes in bytes of all GPUs that are not divided into instances, each once.
    #[must_use]
    pub fn gpu_memories(&self) -> Vec<u64> {
        self.gpu_memories.keys().copied().collect()
    }

    /// Opens a node for new pods, or closes it. An open node is no longer drained.
    pub fn set_schedulable(&mut self, node: NodeId, schedulable: bool) {
        self.nodes[node].schedulable = schedulable;
        self.revise(node);
        if schedulable {
            self.draining.remove(&node);
        }
    }

    /// Takes a GPU (or MIG instance) out of service, or back. Pods on it stay and are still
    /// charged; no new pod is placed on it, and it does not count as capacity. Returns the pods
    /// that lose a reservation there.
    pub fn set_in_service(&mut self, id: NodeId, gpu: u32, in_service: bool) -> Vec<PodId> {
        let at = gpu as usize;
        if self.nodes[id].gpus.get(at).is_none_or(|found| found.in_service == in_service) {
            return Vec::new();
        }
        let losers = if in_service { Vec::new() } else { self.give_up_reserved(id, gpu) };
        let row = &mut self.nodes[id];
        self.pools.take(row.pool, row);
        self.capacity -= row.capacity;
        self.free_soon -= row.free(false);
        self.free.remove(id, row);
        row.set_in_service(at, in_service);
        self.pools.add(row.pool, row);
        self.capacity += row.capacity;
        self.free_soon += row.free(false);
        self.free.insert(id, row);
        self.revise(id);
        losers
    }

    fn give_up_reserved(&mut self, id: NodeId, gpu: u32) -> Vec<PodId> {
        let reserved = |pod: &PodId| {
            let next = self.pods[*pod].binding.next.as_ref();
            next.is_some_and(|to| to.node == id && to.uses(gpu))
        };
        let losers: Vec<_> = self.nodes[id].pods.iter().copied().filter(reserved).collect();
        for &pod in &losers {
            let binding = PodBinding { next: None, ..self.pods[pod].binding.clone() };
            self.set_binding(pod, binding);
        }
        losers
    }

    /// Drains a node: its pods leave and no new ones are placed, until it is schedulable again.
    pub fn drain(&mut self, node: NodeId) {
        self.set_schedulable(node, false);
        self.draining.insert(node);
    }

    /// Removes a node with all running and reserved pods on it. It no longer counts as capacity;
    /// pods that should run wait for another place.
    pub fn remove_node(&mut self, id: NodeId) {
        for pod in self.nodes[id].pods.clone() {
            let mut binding = self.pods[pod].binding.clone();
            if binding.current.as_ref().is_some_and(|place| place.node == id) {
                (binding.current, binding.releasing) = (None, false);
            }
            if binding.next.as_ref().is_some_and(|place| place.node == id) {
                binding.next = None;
            }
            self.set_binding(pod, binding);
        }
        self.revise(id);
        let before = self.gpu_memories();
        self.count_hardware(id, -1);
        let Some(node) = self.nodes.remove(id) else { return };
        self.pools.take(node.pool, &node);
        self.capacity -= node.capacity;
        self.free_soon -= node.free(false);
        self.free.remove(id, &node);
        self.eligibility.forget(id);
        self.topologies.iter_mut().for_each(|topology| topology.forget(id));
        self.draining.remove(&id);
        self.soft_taints = self.nodes.iter().any(|(_, node)| node.has_soft_taint());
        self.value_again(&before);
    }

    /// Replaces the GPUs (sizes in bytes), CPU and memory of a node. Pods there keep running when
    /// there is less CPU or memory than they hold.
    ///
    /// # Panics
    /// When a pod holds or has reserved a GPU that no longer exists, or when one is a MIG instance.
    pub fn set_hardware(
        &mut self,
        id: NodeId,
        gpu_memory_bytes: &[u64],
        cpu_millis: u64,
        memory_bytes: u64,
    ) {
        let before = self.gpu_memories();
        self.count_hardware(id, -1);
        let row = &mut self.nodes[id];
        self.pools.take(row.pool, row);
        self.capacity -= row.capacity;
        self.free_soon -= row.free(false);
        self.free.remove(id, row);
        row.set_hardware(gpu_memory_bytes, cpu_millis, memory_bytes);
        self.pools.add(row.pool, row);
        self.capacity += row.capacity;
        self.free_soon += row.free(false);
        self.free.insert(id, row);
        self.count_hardware(id, 1);
        self.revise(id);
        self.value_again(&before);
    }

    /// Moves a node, and the amounts charged for its pods, to another pool.
    fn move_to_pool(&mut self, node: NodeId, pool: PoolId) {
        let divided = self.is_divided();
        let here = self.nodes[node].pods.iter().filter(|_| divided);
        let ids: BTreeSet<_> = here.map(|&pod| self.pods[pod].workload).collect();
        ids.iter().for_each(|&id| self.charge(id, Sign::Minus));
        let row = &mut self.nodes[node];
        self.pools.take(row.pool, row);
        row.pool = pool;
        self.pools.add(pool, row);
        for id in ids {
            self.charge(id, Sign::Plus);
            self.note(id);
        }
    }

    /// Replaces the labels and taints of a node, which may change its pool. Pods on it stay; in
    /// another pool they are charged there.
    pub fn set_labels(
        &mut self,
        node: NodeId,
        labels: BTreeMap<String, String>,
        taints: Vec<Taint>,
    ) {
        let pool = self.pool_by(&labels);
        let row = &mut self.nodes[node];
        (row.labels, row.taints) = (labels, taints);
        if row.pool != pool {
            self.move_to_pool(node, pool);
        }
        self.revise(node);
        self.eligibility.update(node, &self.nodes[node]);
        self.topologies.iter_mut().for_each(|topology| topology.update(node, &self.nodes[node]));
        self.soft_taints = self.nodes.iter().any(|(_, node)| node.has_soft_taint());
        if !self.affinity.is_unused() {
            self.recount_affinity();
        }
    }
}
