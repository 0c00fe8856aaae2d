//! Members of a workload, which join and leave while it runs. Owns: the members of pod sets.

use crate::{Cluster, Error, Pod, PodBinding, PodId, WorkloadId};

impl Cluster {
    /// Adds the pod with this number to a workload; it should not run yet. An existing member stays
    /// as it is. `None` if the workload has no such number.
    pub fn join(&mut self, workload: WorkloadId, index: u32) -> Option<PodId> {
        let row = &self.workloads[workload];
        let mut end = 0;
        let set = row.spec.pod_sets.iter().position(|set| {
            end += set.pods;
            index < end
        })?;
        let at = match row.pods.binary_search_by_key(&index, |&pod| self.pods[pod].index) {
            Ok(at) => return row.pods.get(at).copied(),
            Err(at) => at,
        };
        let id = self.pods.insert(Pod {
            workload,
            set: u32::try_from(set).ok()?,
            index,
            wants: false,
            gated: false,
            succeeded: false,
            binding: PodBinding::default(),
        });
        self.workloads[workload].pods.insert(at, id);
        self.count_members(workload, set, |members| members + 1);
        Some(id)
    }

    /// Removes a pod without a place from its workload.
    ///
    /// # Errors
    /// The pod still holds or has reserved a place.
    pub fn leave(&mut self, pod: PodId) -> Result<(), Error> {
        let Some(row) = self.pods.get(pod) else { return Ok(()) };
        let (workload, set) = (row.workload, row.set as usize);
        if row.binding != PodBinding::default() {
            return Err(Error::StillPlaced(self.workloads[workload].spec.name.clone()));
        }
        self.set_wants(pod, false);
        self.set_succeeded(pod, false);
        self.pods.remove(pod);
        self.workloads[workload].pods.retain(|&member| member != pod);
        self.count_members(workload, set, |members| members - 1);
        Ok(())
    }

    fn count_members(&mut self, id: WorkloadId, set: usize, change: impl Fn(u32) -> u32) {
        self.tracker.workload(id);
        let workload = &mut self.workloads[id];
        if workload.placed > 0 {
            self.tracker.touch();
        }
        workload.pod_sets[set].members = change(workload.pod_sets[set].members);
        let mut first = 0;
        for set in &mut workload.pod_sets {
            set.first = first;
            first += set.members;
        }
    }

    /// True if the members of each workload are its pods, in order.
    pub(crate) fn has_sound_members(&self) -> bool {
        let sound = |(id, workload): (WorkloadId, &crate::Workload)| {
            let of_set = |set: usize| {
                let of = |pod: &PodId| {
                    let pod = self.pods.get(*pod);
                    pod.is_some_and(|pod| (pod.workload, pod.set as usize) == (id, set))
                };
                workload.pods_of(set).iter().all(of)
            };
            let members: u32 = workload.pod_sets.iter().map(|set| set.members).sum();
            members as usize == workload.pods.len()
                && workload.pods.is_sorted_by_key(|&pod| self.pods[pod].index)
                && (0..workload.pod_sets.len()).all(of_set)
        };
        let members: usize = self.workloads.iter().map(|(_, workload)| workload.pods.len()).sum();
        members == self.pods.len() && self.workloads.iter().all(sound)
    }
}
