//! Accounts that follow from the places of pods. Owns: the accounts of nodes, queues and workloads,
//! updated by subtracting the amounts of the old binding and adding those of the new one.

use units::Resources;

use crate::cluster::keep;
use crate::cluster::pod_affinity::Horizon;
use crate::cluster::sign::Sign;
use crate::placement::amounts;
use crate::{
    Activity, Cluster, Node, NodeId, Placement, Pod, PodBinding, PodId, PodRequest, QueueId,
    Workload, WorkloadId,
};

impl Cluster {
    /// Number of workloads with a place.
    #[must_use]
    pub const fn placed(&self) -> u64 {
        self.placed
    }

    /// Replaces a binding and updates all accounts; returns the old binding.
    pub(crate) fn account_binding(&mut self, pod: PodId, binding: PodBinding) -> PodBinding {
        let workload = self.pods[pod].workload;
        self.account_spare(workload, Sign::Minus);
        let before = std::mem::take(&mut self.pods[pod].binding);
        self.account(pod, &before, Sign::Minus);
        self.account(pod, &binding, Sign::Plus);
        self.pods[pod].binding = binding;
        self.account_spare(workload, Sign::Plus);
        before
    }

    /// Adds or subtracts all amounts of one binding.
    fn account(&mut self, pod: PodId, binding: &PodBinding, sign: Sign) {
        let demand = self.set_of(pod).demand;
        if let Some(place) = &binding.current {
            self.change_node(place, |node| {
                sign.resources(&mut node.used, amounts(place, demand));
                sign.one(&mut node.pods_used);
                for share in &place.devices {
                    let change = |used: &mut u64| sign.amount(used, share.millis);
                    node.change_gpu(share.index(), |gpu| change(&mut gpu.used_millis));
                }
            });
            self.count_affinity(pod, place, Horizon::Present, sign);
        }
        if let Some(place) = binding.effective() {
            self.change_node(place, |node| {
                sign.resources(&mut node.committed, amounts(place, demand));
                sign.one(&mut node.pods_committed);
                for share in &place.devices {
                    let change = |committed: &mut u64| sign.amount(committed, share.millis);
                    node.change_gpu(share.index(), |gpu| change(&mut gpu.committed_millis));
                }
            });
            self.account_queues(pod, place, sign);
            self.account_workload(pod, sign);
            self.count_affinity(pod, place, Horizon::Soon, sign);
        }
        for place in binding.current.iter().chain(&binding.next) {
            let here = &mut self.nodes[place.node].pods;
            match sign {
                Sign::Plus => here.insert(pod),
                Sign::Minus => here.remove(&pod),
            };
        }
    }

    /// Counts a pod for the affinity terms that select it or that it has.
    fn count_affinity(&mut self, pod: PodId, place: &Placement, horizon: Horizon, sign: Sign) {
        if !self.affinity.is_unused() {
            let constraints = self.set_of(pod).constraints;
            self.affinity.count(constraints, &self.nodes[place.node], horizon, sign);
        }
    }

    /// Adds or subtracts the amounts of a placed pod for its queue in the pool of the node, and all
    /// ancestors.
    pub(crate) fn account_queues(&mut self, pod: PodId, place: &Placement, sign: Sign) {
        let demand = self.set_of(pod).demand;
        let part = amounts(place, demand);
        let workload = self.workload_of(pod);
        let (preemptible, elastic) = (workload.spec.preemptible, workload.spec.elastic);
        let gives_way = workload.gives_way();
        let (project, priority) = (workload.spec.queue, workload.spec.priority);
        let leaf = self.queue_in(project, self.nodes[place.node].pool);
        self.tracker.holds(leaf);
        let beyond = part.gpu_millis.saturating_sub(demand.gpu_millis);
        let lent_millis = if elastic { beyond } else { 0 };
        if gives_way {
            let own = part - Resources { gpu_millis: lent_millis, ..Resources::ZERO };
            let tiers = &mut self.queues[leaf].preemptible;
            let tier = tiers.entry(priority).or_default();
            sign.one(&mut tier.pods);
            sign.resources(&mut tier.held, own);
            if tier.pods == 0 {
                tiers.remove(&priority);
            }
        }
        let mut queue = Some(leaf);
        while let Some(id) = queue {
            let row = &mut self.queues[id];
            sign.resources(&mut row.allocated, part);
            if !preemptible {
                sign.resources(&mut row.allocated_non_preemptible, part);
            }
            if !preemptible && gives_way {
                sign.resources(&mut row.allocated_paused, part);
            }
            sign.amount(&mut row.lent_gpu_millis, lent_millis);
            queue = row.parent;
        }
    }

    /// Counts pods above the minimum that have a priority of their own at that priority and not at
    /// the workload's, or reverts that (minus). The workload must not change in between.
    pub(crate) fn account_spare(&mut self, id: WorkloadId, sign: Sign) {
        let workload = &self.workloads[id];
        let (own, spare) = (workload.spec.priority, workload.spec.priority_of_spare());
        if own == spare || !workload.gives_way() {
            return;
        }
        for (leaf, held) in self.spare_held(id) {
            let tiers = &mut self.queues[leaf].preemptible;
            for (priority, sign) in [(spare, sign), (own, sign.other())] {
                let tier = tiers.entry(priority).or_default();
                sign.one(&mut tier.pods);
                sign.resources(&mut tier.held, held);
                if tier.pods == 0 {
                    tiers.remove(&priority);
                }
            }
        }
    }

    /// Amounts of each placed pod above the minimum, and the queue that is charged.
    fn spare_held(&self, id: WorkloadId) -> Vec<(QueueId, Resources)> {
        let workload = &self.workloads[id];
        let sets = workload.spec.pod_sets.iter().enumerate();
        let spare = sets.flat_map(|(at, set)| {
            let placed =
                workload.pods_of(at).iter().filter_map(|&pod| self.pods[pod].binding.effective());
            placed.skip(set.pods_min as usize).map(move |place| (at, place))
        });
        let one = |(at, place): (usize, &Placement)| {
            let leaf = self.queue_in(workload.spec.queue, self.nodes[place.node].pool);
            (leaf, amounts(place, workload.pod_sets[at].demand))
        };
        spare.map(one).collect()
    }

    /// Changes the priority of a workload, and whether it can be preempted. The accounts of its
    /// queue follow.
    pub fn set_precedence(&mut self, id: WorkloadId, priority: u32, preemptible: bool) {
        self.account_again(id, |workload| {
            (workload.spec.priority, workload.spec.preemptible) = (priority, preemptible);
        });
    }

    /// Records what the pods of a workload do: one that pauses gives way, even if it is not
    /// preemptible.
    pub fn set_activity(&mut self, id: WorkloadId, activity: Activity) {
        self.account_again(id, |workload| workload.activity = activity);
    }

    /// Changes what decides how the places of a workload are counted in its queues.
    fn account_again(&mut self, id: WorkloadId, change: impl FnOnce(&mut Workload)) {
        let place = |&pod: &PodId| Some((pod, self.pods[pod].binding.effective()?.clone()));
        let held: Vec<_> = self.workloads[id].pods.iter().filter_map(place).collect();
        self.account_spare(id, Sign::Minus);
        held.iter().for_each(|(pod, place)| self.account_queues(*pod, place, Sign::Minus));
        change(&mut self.workloads[id]);
        self.note(id);
        held.iter().for_each(|(pod, place)| self.account_queues(*pod, place, Sign::Plus));
        self.account_spare(id, Sign::Plus);
    }

    /// Counts one placed pod of a workload more, or less.
    fn account_workload(&mut self, pod: PodId, sign: Sign) {
        let Pod { workload: id, set, .. } = self.pods[pod];
        let row = &mut self.workloads[id];
        let had = row.placed > 0;
        sign.one(&mut row.placed);
        sign.one(&mut row.pod_sets[set as usize].placed);
        keep(&mut self.partial, id, row.is_partial());
        if had != (row.placed > 0) {
            sign.amount(&mut self.placed, 1);
            keep(&mut self.queues[row.spec.queue].placed, id, row.placed > 0);
        }
        if row.spec.elastic {
            keep(&mut self.elastic, id, row.placed > 0);
        }
    }

    fn change_node(&mut self, place: &Placement, change: impl FnOnce(&mut Node)) {
        let node = &mut self.nodes[place.node];
        let before = (node.whole_free_now, node.whole_free_soon);
        let before_soon = node.free(false);
        self.free_soon -= before_soon;
        change(node);
        let soon = node.free(false);
        self.free_soon += soon;
        self.pools.change(node.pool, before_soon, soon);
        self.free.update(place.node, before, node);
        self.revise_node(place.node);
    }
}

/// Free resources of nodes.
impl Cluster {
    /// Nodes with at least `gpus` wholly free GPUs, the fullest first, then in id order.
    pub fn nodes_with_free(
        &self,
        gpus: u32,
        now: bool,
    ) -> impl DoubleEndedIterator<Item = NodeId> + use<'_> {
        self.free.at_least(gpus, now)
    }

    /// True if a node may have room for a pod, by a few numbers; if false, it has none.
    #[must_use]
    #[inline]
    pub fn may_fit(&self, node: NodeId, request: PodRequest, now: bool) -> bool {
        self.free.may_fit(node, request, now)
    }
}
