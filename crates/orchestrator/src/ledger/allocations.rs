//! The ledger of GPU allocations. Owns: that every change of the GPUs of a pod ends one entry and
//! begins another, in the transaction of the change. So the allocation is an exact sum at any time,
//! a crash loses nothing, and nothing is counted twice. Does not know about: prices, and the shares
//! that fairness over time reads (`usage`, which keeps means of a window).

use std::collections::BTreeSet;

use records::AllocationRow;
use uuid::Uuid;

use crate::state::State;
use crate::workloads::{Pod, Workload};

impl State {
    /// Updates the entries from the holdings of the pods of this batch.
    pub(crate) fn book_allocations(&mut self) {
        let touched = self.outbox.touched();
        let mut ids: BTreeSet<Uuid> = touched.workloads.clone();
        let mut over: Vec<Uuid> = Vec::new();
        if touched.everything {
            ids.extend(self.workloads.ids());
            // A pod that no longer exists holds nothing.
            over.extend(
                self.ledger.allocations.keys().filter(|pod| self.workloads.home(**pod).is_none()),
            );
        }
        let deleted = touched.deleted.values().flat_map(|workload| workload.pods.iter());
        over.extend(deleted.map(|pod| pod.id));
        let mut held = Vec::new();
        for workload in ids.iter().filter_map(|id| self.workloads.get(id)) {
            held.extend(workload.pods.iter().map(|pod| (pod.id, self.allocation(workload, pod))));
        }
        for pod in over {
            self.ledger.book(pod, None, self.now, &mut self.outbox);
        }
        for (pod, now) in held {
            self.ledger.book(pod, now, self.now, &mut self.outbox);
        }
        debug_assert!(self.ledger_is_right());
    }

    /// Ends the entry of a pod that left its workload to another in this batch.
    pub(crate) fn end_allocation(&mut self, pod: Uuid) {
        self.ledger.book(pod, None, self.now, &mut self.outbox);
    }

    /// Allocation of a pod from now on; `None` if it holds no GPU.
    fn allocation(&self, workload: &Workload, pod: &Pod) -> Option<AllocationRow> {
        let place = self.binding(pod).current?;
        let node = self.nodes.get(place.node)?;
        let gpu_millis = self.cluster.amounts(pod.model?, &place).gpu_millis;
        let row = AllocationRow {
            pod_id: pod.id,
            started_at: self.now,
            ended_at: None,
            project_id: workload.project_id,
            project_name: self.org.project_name(workload.project_id),
            owner: workload.spec.submitted_by.clone(),
            gpu_model: node.spec.gpu_type.clone(),
            gpu_millis,
        };
        Some(row).filter(|row| row.gpu_millis > 0)
    }

    /// True if the sum of the ledger is that of the GPUs in use on nodes.
    fn ledger_is_right(&self) -> bool {
        let held: u64 = self.ledger.allocations.values().map(|row| row.gpu_millis).sum();
        let used: u64 = self.cluster.nodes().iter().map(|(_, node)| node.used.gpu_millis).sum();
        held == used
    }
}
