//! Recomputed accounts. Owns: the check that the incremental state equals the rebuilt one, for
//! tests, fault runs and start-up.

use units::{Resources, Table};

use crate::free_gpu_index::FreeGpuIndex;
use crate::request_histogram::RequestHistogram;
use crate::{Cluster, NodeId, PodBinding, PodId};

impl Cluster {
    /// Compares every account and index with one computed from the bindings alone.
    ///
    /// # Errors
    /// The name of the first account that differs.
    pub fn verify(&self) -> Result<(), String> {
        let mut fresh = self.clone();
        for id in fresh.nodes.ids().collect::<Vec<_>>() {
            let node = &mut fresh.nodes[id];
            (node.used, node.committed) = (Resources::ZERO, Resources::ZERO);
            node.pods.clear();
            (node.pods_used, node.pods_committed) = (0, 0);
            for gpu in &mut node.gpus {
                (gpu.used_millis, gpu.committed_millis) = (0, 0);
            }
            node.capacity.gpu_millis = crate::node::offered_millis(&node.gpus);
            node.impaired = node.gpus.iter().any(|gpu| !gpu.in_service);
            let count = crate::node::whole_count(&node.gpus);
            (node.whole_free_now, node.whole_free_soon) = (count, count);
        }
        fresh.pools = self.pools.emptied();
        for (_, node) in fresh.nodes.iter() {
            fresh.pools.add(node.pool, node);
        }
        fresh.soft_taints = fresh.nodes.iter().any(|(_, node)| node.has_soft_taint());
        fresh.capacity = fresh.nodes.iter().map(|(_, node)| node.capacity).sum();
        fresh.free = FreeGpuIndex::default();
        fresh.free_soon = Resources::ZERO;
        fresh.count_gpus_from_nodes();
        for (id, node) in fresh.nodes.iter() {
            fresh.free.insert(id, node);
            fresh.free_soon += node.free(false);
        }
        fresh.empty_queues();
        fresh.placed = 0;
        for id in fresh.workloads.ids().collect::<Vec<_>>() {
            let workload = &mut fresh.workloads[id];
            workload.placed = 0;
            workload.succeeded = 0;
            workload.pod_sets.iter_mut().for_each(|set| (set.placed, set.succeeded) = (0, 0));
        }
        fresh.partial.clear();
        fresh.elastic.clear();
        let marked = fresh.workloads.iter().filter(|(_, row)| row.stale_since.is_some());
        fresh.stale = marked.map(|(id, _)| id).collect();
        fresh.requests = RequestHistogram::default();
        fresh.affinity.clear();
        fresh.waiting.clear();
        fresh.reserved.clear();
        fresh.gated.clear();
        let pods: Vec<_> = fresh.pods.ids().collect();
        for &id in &pods {
            let pod = &mut fresh.pods[id];
            (pod.binding, pod.wants) = (PodBinding::default(), false);
            let succeeded = std::mem::take(&mut pod.succeeded);
            fresh.set_succeeded(id, succeeded);
        }
        for id in pods {
            fresh.set_binding(id, self.pods[id].binding.clone());
            if self.pods[id].wants {
                fresh.set_wants(id, true);
            }
        }
        self.same_as(&fresh)?;
        if !self.has_sound_members() {
            return Err("members of a workload are wrong".into());
        }
        if !self.topologies.iter().all(|topology| topology.is_sound(self.nodes.iter())) {
            return Err("index `topologies` is wrong".into());
        }
        self.within_capacity()
    }

    /// Counts GPUs, and revalues requests for GPU memory, from the nodes alone.
    fn count_gpus_from_nodes(&mut self) {
        self.gpu_nodes.clear();
        self.gpu_memories.clear();
        for (_, node) in self.nodes.iter() {
            if let Some(hardware) = node.hardware() {
                *self.gpu_nodes.entry(hardware).or_insert(0) += 1;
            }
            for memory_bytes in node.gpu_memories() {
                *self.gpu_memories.entry(memory_bytes).or_insert(0) += 1;
            }
        }
        for id in self.workloads.ids().collect::<Vec<_>>() {
            for set in 0..self.workloads[id].pod_sets.len() {
                let request = self.workloads[id].spec.pod_sets[set].request;
                self.workloads[id].pod_sets[set].demand = self.demand(request);
            }
        }
    }

    /// Clears the accounts of all queues and rebuilds the list of roots.
    fn empty_queues(&mut self) {
        for id in self.queues.ids().collect::<Vec<_>>() {
            self.queues[id].clear_accounts();
            self.queues[id].placed.clear();
        }
        self.roots.clear();
        for (id, queue) in self.queues.iter().filter(|(_, queue)| queue.parent.is_none()) {
            self.roots.entry(queue.pool).or_default().insert(id);
        }
    }

    /// Compares every account and index with those of another state, except for counters of changes
    /// and the open transaction.
    ///
    /// # Errors
    /// The name of the first one that differs.
    pub fn same_as(&self, other: &Self) -> Result<(), String> {
        // Naming all fields makes the compiler report a new one.
        let Self {
            nodes,
            queues,
            workloads,
            pods,
            capacity,
            free_soon,
            pools,
            free,
            eligibility,
            requests,
            revisions: _,
            newest_revision: _,
            gpu_nodes,
            gpu_memories,
            topologies,
            shapes,
            affinity,
            soft_taints,
            draining,
            partial,
            waiting,
            stale,
            elastic,
            reserved,
            gated,
            log: _,
            log_revisions: _,
            originals: _,
            recording: _,
            tracker: _,
            placed,
            roots,
        } = self;
        same_rows("node", nodes, &other.nodes, |node| &node.name)?;
        same_rows("queue", queues, &other.queues, |queue| &queue.name)?;
        same_rows("workload", workloads, &other.workloads, |workload| &workload.spec.name)?;
        same_rows("pod of", pods, &other.pods, |pod| &workloads[pod.workload].spec.name)?;
        let same = [
            ("capacity", *capacity == other.capacity),
            ("free_soon", *free_soon == other.free_soon),
            ("placed", *placed == other.placed),
            ("pools", *pools == other.pools),
            ("free", *free == other.free),
            ("eligibility", *eligibility == other.eligibility),
            ("requests", *requests == other.requests),
            ("gpu_nodes", *gpu_nodes == other.gpu_nodes),
            ("gpu_memories", *gpu_memories == other.gpu_memories),
            ("topologies", *topologies == other.topologies),
            ("shapes", *shapes == other.shapes),
            ("affinity", affinity.counts_as(&other.affinity)),
            ("soft_taints", *soft_taints == other.soft_taints),
            ("draining", *draining == other.draining),
            ("partial", *partial == other.partial),
            ("waiting", *waiting == other.waiting),
            ("stale", *stale == other.stale),
            ("elastic", *elastic == other.elastic),
            ("reserved", *reserved == other.reserved),
            ("gated", *gated == other.gated),
            ("roots", *roots == other.roots),
        ];
        match same.iter().find(|(_, same)| !same) {
            Some((what, _)) => Err(format!("index `{what}` is wrong")),
            None => Ok(()),
        }
    }

    /// A MIG instance for parts of a GPU that is assigned to several pods, now or after pending
    /// changes.
    fn instance_of_several(&self, id: NodeId) -> Option<usize> {
        let node = &self.nodes[id];
        let places = |soon: bool| {
            let place = move |pod: &PodId| {
                let binding = &self.pods[*pod].binding;
                let place = if soon { binding.effective() } else { binding.current.as_ref() };
                place.filter(|place| place.node == id)
            };
            node.pods.iter().filter_map(place).flat_map(|place| &place.devices)
        };
        let is_several = |&gpu: &usize| {
            let of = |soon| places(soon).filter(|share| share.index() == gpu).count();
            node.gpus[gpu].part.is_some() && (of(false) > 1 || of(true) > 1)
        };
        (0..node.gpus.len()).find(is_several)
    }

    fn within_capacity(&self) -> Result<(), String> {
        for (id, node) in self.nodes.iter() {
            if let Some(gpu) = self.instance_of_several(id) {
                return Err(format!("instance {gpu} of node {} is several pods'", node.name));
            }
            let devices = node
                .gpus
                .iter()
                .all(|gpu| gpu.used_millis.max(gpu.committed_millis) <= gpu.capacity_millis());
            if !devices {
                return Err(format!("node {} is given out beyond its capacity", node.name));
            }
        }
        for (_, pod) in self.pods.iter() {
            let binding = &pod.binding;
            if binding.releasing && binding.current.is_none() {
                return Err("a pod releases a place it does not hold".into());
            }
            if binding.next.is_some() && binding.current.is_some() && !binding.releasing {
                return Err("a pod runs and has a second place reserved".into());
            }
        }
        Ok(())
    }
}

fn same_rows<'a, T: PartialEq>(
    what: &str,
    left: &'a Table<T>,
    right: &'a Table<T>,
    name: impl Fn(&'a T) -> &'a String,
) -> Result<(), String> {
    if !left.ids().eq(right.ids()) {
        return Err(format!("there are other rows of a {what}"));
    }
    match left.iter().find(|(id, row)| **row != right[*id]) {
        Some((_, row)) => Err(format!("account of {what} {} is wrong", name(row))),
        None => Ok(()),
    }
}
