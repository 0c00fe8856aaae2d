//! The accounts, computed anew. Owns: the check that the incremental state equals the rebuilt
//! one, for tests, fault runs and start-up.

use units::Resources;

use crate::free::FreeIndex;
use crate::requests::Requests;
use crate::{Cluster, Occupancy};

impl Cluster {
    /// Compares every account and index with one computed from the occupancies alone.
    ///
    /// # Errors
    /// Names the first account that is wrong.
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
            let count = crate::node::whole_count(&node.gpus);
            (node.whole_free_now, node.whole_free_soon) = (count, count);
        }
        fresh.pools = self.pools.emptied();
        for (_, node) in fresh.nodes.iter() {
            fresh.pools.add(node.pool, node);
        }
        fresh.capacity = fresh.nodes.iter().map(|(_, node)| node.capacity).sum();
        fresh.free = FreeIndex::default();
        fresh.free_soon = Resources::ZERO;
        fresh.gpu_nodes.clear();
        for hardware in self.nodes.iter().filter_map(|(_, node)| node.hardware()) {
            *fresh.gpu_nodes.entry(hardware).or_insert(0) += 1;
        }
        for (id, node) in fresh.nodes.iter() {
            fresh.free.insert(id, node);
            fresh.free_soon += node.free(false);
        }
        for id in fresh.queues.ids().collect::<Vec<_>>() {
            fresh.queues[id].clear_accounts();
        }
        for id in fresh.workloads.ids().collect::<Vec<_>>() {
            let workload = &mut fresh.workloads[id];
            workload.placed = 0;
            workload.succeeded = 0;
            workload.pod_sets.iter_mut().for_each(|set| set.placed = 0);
        }
        fresh.partial.clear();
        fresh.elastic.clear();
        let marked = fresh.workloads.iter().filter(|(_, row)| row.stale_since.is_some());
        fresh.stale = marked.map(|(id, _)| id).collect();
        fresh.requests = Requests::default();
        fresh.waiting.clear();
        fresh.reserved.clear();
        fresh.gated.clear();
        let pods: Vec<_> = fresh.pods.ids().collect();
        for &id in &pods {
            let pod = &mut fresh.pods[id];
            (pod.occupancy, pod.wants) = (Occupancy::default(), false);
            let succeeded = std::mem::take(&mut pod.succeeded);
            fresh.set_succeeded(id, succeeded);
        }
        for id in pods {
            fresh.set_occupancy(id, self.pods[id].occupancy.clone());
            if self.pods[id].wants {
                fresh.set_wants(id, true);
            }
        }
        self.same_as(&fresh)?;
        self.within_capacity()
    }

    fn same_as(&self, fresh: &Self) -> Result<(), String> {
        let differ = |what: &str, name: &str| Err(format!("account of {what} {name} is wrong"));
        for (id, node) in self.nodes.iter() {
            if *node != fresh.nodes[id] {
                return differ("node", &node.name);
            }
        }
        for (id, queue) in self.queues.iter() {
            if *queue != fresh.queues[id] {
                return differ("queue", &queue.name);
            }
        }
        for (id, workload) in self.workloads.iter() {
            if *workload != fresh.workloads[id] {
                return differ("workload", &workload.spec.name);
            }
        }
        let same = self.waiting == fresh.waiting
            && self.reserved == fresh.reserved
            && self.partial == fresh.partial
            && (&self.stale, &self.elastic) == (&fresh.stale, &fresh.elastic);
        if !self.topologies.iter().all(|topology| topology.is_sound(self.nodes.iter())) {
            return differ("index", "topologies");
        }
        if !same
            || self.requests != fresh.requests
            || self.free != fresh.free
            || self.free_soon != fresh.free_soon
            || (self.capacity, &self.pools) != (fresh.capacity, &fresh.pools)
        {
            return differ(
                "index",
                "waiting, reserved, partial, stale, elastic, requests, hardware, pools or free",
            );
        }
        Ok(())
    }

    fn within_capacity(&self) -> Result<(), String> {
        for (_, node) in self.nodes.iter() {
            let devices = node
                .gpus
                .iter()
                .all(|gpu| gpu.used_millis.max(gpu.committed_millis) <= gpu.capacity_millis());
            if !devices {
                return Err(format!("node {} is given out beyond its capacity", node.name));
            }
        }
        for (_, pod) in self.pods.iter() {
            let occupancy = &pod.occupancy;
            if occupancy.releasing && occupancy.current.is_none() {
                return Err("a pod releases a place it does not hold".into());
            }
            if occupancy.next.is_some() && occupancy.current.is_some() && !occupancy.releasing {
                return Err("a pod runs and has a second place reserved".into());
            }
        }
        Ok(())
    }
}
