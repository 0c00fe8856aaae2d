//! Which pods are to run. Owns: what a queue's workloads ask for. Refuses to know: who gets it.

use crate::cluster::keep;
use crate::{Cluster, Pod, PodId};

impl Cluster {
    /// Says whether a pod should run. A pod that no longer should loses its reserved place; one that
    /// should has not ended.
    pub fn set_wants(&mut self, pod: PodId, wants: bool) {
        if wants {
            self.set_succeeded(pod, false);
        }
        self.change_wish(pod, |pod| pod.wants = wants);
        if !wants && self.pods[pod].occupancy.next.is_some() {
            let mut occupancy = self.pods[pod].occupancy.clone();
            occupancy.next = None;
            self.set_occupancy(pod, occupancy);
        }
    }

    /// Says that a pod has ended well.
    pub fn set_succeeded(&mut self, pod: PodId, succeeded: bool) {
        if self.pods[pod].succeeded == succeeded {
            return;
        }
        self.pods[pod].succeeded = succeeded;
        let id = self.pods[pod].workload;
        let row = &mut self.workloads[id];
        row.succeeded = if succeeded { row.succeeded + 1 } else { row.succeeded - 1 };
        keep(&mut self.partial, id, row.is_partial());
    }

    /// Holds a pod that has no place back, or no longer. It asks for nothing meanwhile.
    pub fn set_gated(&mut self, pod: PodId, gated: bool) {
        self.change_wish(pod, |pod| pod.gated = gated);
    }

    /// What a pod asks for counts for its queue and all above, as long as it asks.
    fn change_wish(&mut self, pod: PodId, change: impl FnOnce(&mut Pod)) {
        let row = &mut self.pods[pod];
        let (asked, waited) = (row.asks(), row.waits());
        change(row);
        let asks = row.asks();
        if asked != asks {
            let workload = row.workload;
            let (request, leaf) = (self.set_of(pod).demand, self.workloads[workload].spec.queue);
            for queue in self.lineage(leaf).collect::<Vec<_>>() {
                let requested = &mut self.queues[queue].requested;
                *requested = if asks { *requested + request } else { *requested - request };
            }
            let set = self.pods[pod].set as usize;
            let request = self.workloads[workload].spec.pod_sets[set].request;
            self.requests.change((request, self.set_of(pod).constraints), asks);
        }
        self.index(pod, waited);
    }
}
