//! The ledger of GPUs: who held how many, from when to when. Owns: that every change of what a pod
//! holds ends one entry and begins another, in the transaction of that change. So what is held is
//! an exact sum at any time, a crash loses nothing, and nothing is counted twice. Refuses to know:
//! prices, and the shares that fairness over time reads (`usage`, which keeps means of a window).

use std::collections::BTreeSet;

use records::{AllocationRow, Change};
use uuid::Uuid;

use crate::state::{Pod, State, Workload};

impl State {
    /// Brings the entries in line with what the pods of this batch hold.
    pub(crate) fn book_allocations(&mut self) {
        let mut ids: BTreeSet<Uuid> = self.outbox.workloads.clone();
        let mut over: Vec<Uuid> = Vec::new();
        if self.outbox.everything {
            ids.extend(self.workloads.keys());
            // Whose pod is gone holds nothing.
            over.extend(self.allocations.keys().filter(|pod| !self.homes.contains_key(pod)));
        }
        let deleted = self.outbox.deleted.values().flat_map(|workload| &workload.pods);
        over.extend(deleted.map(|pod| pod.id));
        let mut held = Vec::new();
        for workload in ids.iter().filter_map(|id| self.workloads.get(id)) {
            held.extend(workload.pods.iter().map(|pod| (pod.id, self.allocation(workload, pod))));
        }
        for pod in over {
            self.book(pod, None);
        }
        for (pod, now) in held {
            self.book(pod, now);
        }
        debug_assert!(self.ledger_is_right());
    }

    /// What a pod holds from now on, if it holds any GPU.
    fn allocation(&self, workload: &Workload, pod: &Pod) -> Option<AllocationRow> {
        let place = self.occupancy(pod).current?;
        let node = self.nodes.get(place.node)?;
        let gpu_millis = self.cluster.amounts(pod.model?, &place).gpu_millis;
        let project = self.projects.get(&workload.project_id);
        let row = AllocationRow {
            pod_id: pod.id,
            started_at: self.now,
            ended_at: None,
            project_id: workload.project_id,
            project_name: project.map(|project| project.unit.name.clone()).unwrap_or_default(),
            owner: workload.spec.submitted_by.clone(),
            gpu_model: node.spec.gpu_type.clone(),
            gpu_millis,
        };
        Some(row).filter(|row| row.gpu_millis > 0)
    }

    fn book(&mut self, pod: Uuid, now: Option<AllocationRow>) {
        let same = |known: &AllocationRow| {
            now.as_ref().is_some_and(|now| {
                (&known.gpu_model, known.gpu_millis) == (&now.gpu_model, now.gpu_millis)
            })
        };
        if self.allocations.get(&pod).is_some_and(same) {
            return;
        }
        if let Some(known) = self.allocations.remove(&pod) {
            // Time may have been set back while the server was away.
            let ended_at = Some(self.now.max(known.started_at));
            self.outbox.changes.push(Change::Allocation(AllocationRow { ended_at, ..known }));
        }
        if let Some(row) = now {
            self.outbox.changes.push(Change::Allocation(row.clone()));
            self.allocations.insert(pod, row);
        }
    }

    /// Whether what the ledger says is held is what the nodes say is in use.
    fn ledger_is_right(&self) -> bool {
        let held: u64 = self.allocations.values().map(|row| row.gpu_millis).sum();
        let used: u64 = self.cluster.nodes().iter().map(|(_, node)| node.used.gpu_millis).sum();
        held == used
    }
}
