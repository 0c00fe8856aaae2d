//! Pods that should run. Owns: the requests of a queue's workloads. Does not know about: the placed
//! pods.

use crate::cluster::keep;
use crate::cluster::sign::Sign;
use crate::{Cluster, Pod, PodBinding, PodId, PoolId};

impl Cluster {
    /// Sets whether a pod should run. A pod that no longer should loses its reserved place; one
    /// that should has not ended.
    pub fn set_wants(&mut self, pod: PodId, wants: bool) {
        if wants {
            self.set_succeeded(pod, false);
        }
        self.change_desired(pod, |pod| pod.wants = wants);
        if !wants && self.pods[pod].binding.next.is_some() {
            let mut binding = self.pods[pod].binding.clone();
            binding.next = None;
            self.set_binding(pod, binding);
        }
    }

    /// Records that a pod has succeeded.
    pub fn set_succeeded(&mut self, pod: PodId, succeeded: bool) {
        if self.pods[pod].succeeded == succeeded {
            return;
        }
        self.pods[pod].succeeded = succeeded;
        let id = self.pods[pod].workload;
        self.note(id);
        let set = self.pods[pod].set as usize;
        let row = &mut self.workloads[id];
        for count in [&mut row.succeeded, &mut row.pod_sets[set].succeeded] {
            *count = if succeeded { *count + 1 } else { *count - 1 };
        }
        keep(&mut self.partial, id, row.is_partial());
    }

    /// Gates a pod without a place, or removes its gate. A gated pod requests nothing.
    pub fn set_gated(&mut self, pod: PodId, gated: bool) {
        self.change_desired(pod, |pod| pod.gated = gated);
    }

    /// Changes a pod and updates the requests of its queue and all ancestors.
    fn change_desired(&mut self, pod: PodId, change: impl FnOnce(&mut Pod)) {
        let row = &mut self.pods[pod];
        let (asked, waited) = (row.asks(), row.waits());
        change(row);
        let (asks, at_all) = (row.asks(), row.binding != PodBinding::default());
        let id = row.workload;
        self.tracker.workload(id);
        if at_all || self.workloads[id].placed > 0 {
            self.tracker.touch();
        }
        if asked != asks {
            self.account_ask(pod, if asks { Sign::Plus } else { Sign::Minus });
            let set = self.pods[pod].set as usize;
            let request = self.workloads[id].spec.pod_sets[set].request;
            self.requests.change((request, self.set_of(pod).constraints), asks);
        }
        self.index(pod, waited);
    }

    /// Adds or subtracts the request of a pod in the pool of its workload, or while that has none,
    /// in each pool that it may use.
    pub(crate) fn account_ask(&mut self, pod: PodId, sign: Sign) {
        let (demand, workload) = (self.set_of(pod).demand, self.workload_of(pod));
        let mut queue = Some(workload.spec.queue);
        while let Some(id) = queue {
            let row = &mut self.queues[id];
            match sign {
                Sign::Plus => row.wanted += demand,
                Sign::Minus => row.wanted -= demand,
            }
            queue = row.parent;
        }
        self.account_ask_in(pod, self.asks_in(pod), sign);
    }

    fn account_ask_in(&mut self, pod: PodId, pool: Option<PoolId>, sign: Sign) {
        let (demand, workload) = (self.set_of(pod).demand, self.workload_of(pod));
        let (project, pools) = (workload.spec.queue, workload.pools.clone());
        let pools = if self.is_divided() && pool.is_none() { pools } else { Default::default() };
        let alone = pools.is_empty().then(|| pool.unwrap_or_default());
        for pool in alone.into_iter().chain(pools) {
            let mut queue = Some(self.queue_in(project, pool));
            while let Some(id) = queue {
                self.tracker.asks(id);
                let row = &mut self.queues[id];
                match sign {
                    Sign::Plus => row.requested += demand,
                    Sign::Minus => row.requested -= demand,
                }
                queue = row.parent;
            }
        }
    }

    /// The one pool in which a pod's workload makes its requests; `None` if it has no choice or no
    /// place.
    pub(crate) fn asks_in(&self, pod: PodId) -> Option<PoolId> {
        if self.is_divided() { self.pool_of(self.pods[pod].workload) } else { None }
    }

    /// Moves the requests of a workload whose pool was `before` to its present pool.
    pub(crate) fn asks_elsewhere(&mut self, pod: PodId, before: Option<PoolId>) {
        let after = self.asks_in(pod);
        if before == after {
            return;
        }
        for pod in self.workload_of(pod).pods.clone() {
            if self.pods[pod].asks() {
                self.account_ask_in(pod, before, Sign::Minus);
                self.account_ask_in(pod, after, Sign::Plus);
            }
        }
    }
}
