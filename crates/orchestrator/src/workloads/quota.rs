//! Workloads above the quota of their project.

use std::collections::{BTreeMap, BTreeSet};

use units::{Kind, Resources};
use uuid::Uuid;

use crate::state::State;

impl State {
    /// Determines the workloads with holdings, after a start.
    pub(crate) fn note_holders(&mut self) {
        for id in self.workloads.in_model().collect::<Vec<_>>() {
            let workload = &self.workloads[&id];
            let (project, holds) = (workload.project_id, self.allocated(workload));
            self.workloads.note_holding(project, id, holds != Resources::ZERO);
        }
    }

    /// Marks the workloads of changed projects that are above the quota, when their holdings are
    /// summed in the order of their protection.
    pub(crate) fn flag_over_quota(&mut self) {
        let mut of_project: BTreeMap<u64, BTreeSet<Uuid>> =
            self.outbox.touched().projects.iter().map(|id| (*id, BTreeSet::new())).collect();
        for id in &self.outbox.touched().workloads {
            let Some(workload) = self.workloads.get(id) else { continue };
            let (project, holds) = (workload.project_id, self.allocated(workload));
            self.workloads.note_holding(project, *id, holds != Resources::ZERO);
            // A workload without holdings was touched when it gave them back.
            of_project.entry(project).or_default().insert(*id);
        }
        for (project, mut ids) in of_project {
            ids.extend(self.workloads.holders_in(project));
            let over = self.over_quota(project, &ids);
            for id in ids {
                let Some(workload) = self.workloads.get_mut(&id) else { continue };
                let now_over = over.contains(&id);
                if workload.over_quota != now_over {
                    workload.over_quota = now_over;
                    self.outbox.show([id]);
                }
            }
        }
    }

    /// The workloads among these that are above the quota of their project.
    fn over_quota(&self, project_id: u64, ids: &BTreeSet<Uuid>) -> BTreeSet<Uuid> {
        let mut over = BTreeSet::new();
        let Ok(project) = self.org.project(project_id).map(|project| project.queue) else {
            return over;
        };
        let mut holders: Vec<_> = ids
            .iter()
            .filter_map(|id| self.workloads.get(id))
            .map(|w| (w, self.allocated(w)))
            .filter(|(_, holds)| *holds != Resources::ZERO)
            .collect();
        holders.sort_by_key(|(w, _)| {
            (w.spec.preemptible, w.pods.iter().filter_map(|pod| pod.placed_at).min(), w.seq)
        });
        // Each pool has its own account.
        let mut sums = BTreeMap::new();
        for (workload, holds) in holders {
            let pool = workload.model.and_then(|id| self.cluster.pool_of(id)).unwrap_or_default();
            let quota = self.cluster.queues()[self.cluster.queue_in(project, pool)].share.quota;
            let sum = sums.entry(pool).or_insert(Resources::ZERO);
            *sum += holds;
            if Kind::ALL.iter().any(|&kind| holds[kind] > 0 && sum[kind] > quota[kind]) {
                over.insert(workload.id);
            }
        }
        over
    }
}
