//! Selection of the changes to try. Owns: the candidates of each kind, and the range of the search
//! for the smallest.

use std::collections::BTreeSet;

use model::{Constraints, GpuRequest, PoolId, QueueId, Share, WorkloadId, priority_steps};
use units::{GPU_MILLIS, Instant, Kind, Resources};

use super::WhatIf;
use reasons::WorkloadRef;
use reasons::diagnosis::{Advice, Change, Obstacle, Part, Raise};

/// Maximum number of candidates of one kind.
const CANDIDATES_MAX: usize = 6;
/// Step of suggested GPU fractions.
const SHARE_STEP_MILLIS: u64 = 50;
const CORE_MILLIS: u64 = 1000;
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Rounds an amount up to whole cores or GiB.
const fn step_up(kind: Kind, amount: u64) -> u64 {
    match kind {
        Kind::Gpu => amount,
        Kind::Cpu => amount.next_multiple_of(CORE_MILLIS),
        Kind::Memory => amount.next_multiple_of(GIB),
    }
}

impl WhatIf<'_> {
    /// Tries changes of one kind up to the first that helps.
    fn first(&mut self, changes: impl Iterator<Item = Change>) {
        changes.take(CANDIDATES_MAX).any(|change| self.consider(&change));
    }

    /// Tries smaller requests.
    pub(super) fn smaller(&mut self) {
        let spec = &self.cluster.workloads()[self.id].spec;
        let alone = match spec.pod_sets.as_slice() {
            [set] => Some((set.request, spec.may_be_elastic && !spec.elastic && set.pods == 1)),
            _ => None,
        };
        if let Some((request, may_be_elastic)) = alone {
            self.less_gpu(request.gpu, may_be_elastic);
        }
        self.fewer_pods();
        if let Some((request, _)) = alone {
            if let Some(most) = request.cpu_millis.checked_sub(1) {
                self.most(1, most, |millis| Change::Cpu { millis });
            }
            self.fewer_bytes(request.memory_bytes, |bytes| Change::Memory { bytes });
        }
    }

    fn fewer_gpus(&mut self, asked: u32) {
        self.most(1, u64::from(asked).saturating_sub(1), |gpus| Change::Gpus {
            gpus: u32::try_from(gpus).unwrap_or(u32::MAX),
        });
    }

    fn less_gpu(&mut self, request: GpuRequest, may_be_elastic: bool) {
        match request {
            GpuRequest::Whole(gpus) => {
                self.fewer_gpus(gpus);
                if gpus > 1 && may_be_elastic {
                    self.consider(&Change::Elastic);
                }
            }
            GpuRequest::Share { devices, millis } => {
                self.fewer_gpus(devices);
                let steps = millis.saturating_sub(1) / SHARE_STEP_MILLIS;
                self.most(1, steps, |step| Change::Share { millis: step * SHARE_STEP_MILLIS });
            }
            GpuRequest::Memory { devices, bytes } => {
                self.fewer_gpus(devices);
                self.fewer_bytes(bytes, |bytes| Change::GpuMemory { bytes });
            }
            GpuRequest::Mig(wanted) => {
                let one = wanted.iter().filter(|_| wanted.instances() == 1);
                self.first(one.map(|(of, _)| Change::PartOfGpu { bytes: of.memory_bytes() }));
            }
        }
    }

    /// Tries fewer pods of each set that starts as a whole.
    fn fewer_pods(&mut self) {
        let spec = &self.cluster.workloads()[self.id].spec;
        if !spec.groups.is_empty() {
            return;
        }
        let sets: Vec<_> =
            spec.pod_sets.iter().map(|set| (set.name.clone(), set.pods, set.pods_min)).collect();
        let alone = sets.len() == 1;
        for (set, (name, pods, pods_min)) in sets.into_iter().enumerate() {
            if pods > 1 && pods_min > 1 {
                let role = if alone { String::new() } else { name };
                self.most(1, u64::from(pods_min) - 1, |pods| Change::Pods {
                    set,
                    role: role.clone(),
                    pods: u32::try_from(pods).unwrap_or(u32::MAX),
                });
            }
        }
    }

    /// The most GiB below an amount with which it starts; below one GiB, the most MiB.
    fn fewer_bytes(&mut self, asked: u64, change: impl Fn(u64) -> Change) {
        let Some(most) = asked.checked_sub(1) else { return };
        if !self.most(1, most / GIB, |gibs| change(gibs * GIB)) {
            self.most(1, most.min(GIB - 1) / MIB, |mibs| change(mibs * MIB));
        }
    }

    /// Tries another preemptibility or priority.
    pub(super) fn otherwise(&mut self) {
        let spec = &self.cluster.workloads()[self.id].spec;
        let (own, preemptible) = (spec.priority, spec.preemptible);
        let queue = &self.cluster.queues()[spec.queue];
        if !preemptible {
            self.consider(&Change::Preemptible);
        }
        let priorities = queue.workloads.iter().filter(|&&other| other != self.id).map(|&other| {
            let row = &self.cluster.workloads()[other];
            row.spec.priority
        });
        let as_important = priorities.filter(|&priority| priority >= own).count();
        let higher: Vec<_> = priority_steps().filter(|&(_, value)| value > own).collect();
        if as_important > 0 && !higher.is_empty() {
            self.least(0, higher.len() as u64 - 1, |at| {
                let (class, priority) = higher[usize::try_from(at).unwrap_or(0)];
                Change::Priority { class, priority }
            });
        }
    }

    /// Tries other node constraints.
    pub(super) fn elsewhere(&mut self, parts: &[Part]) {
        let failing = |obstacle: Obstacle| {
            let all = parts.iter().flat_map(|part| &part.classes).flat_map(|class| &class.failing);
            all.clone().any(|failing| failing.obstacle == obstacle)
        };
        let sets = &self.cluster.workloads()[self.id].spec.pod_sets;
        let constraints: Vec<_> = sets.iter().map(|set| set.constraints.clone()).collect();
        if failing(Obstacle::Selector) {
            let keys = constraints.iter().flat_map(|constraints| constraints.selector.keys());
            let keys: BTreeSet<_> = keys.cloned().collect();
            for key in keys.into_iter().take(CANDIDATES_MAX) {
                self.consider(&Change::WithoutSelector { key });
            }
        }
        if failing(Obstacle::Affinity) {
            let required = constraints.iter().flat_map(|constraints| &constraints.required);
            let terms = required
                .map(|term| term.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "));
            let terms: BTreeSet<String> = terms.collect();
            let demands = terms.into_iter().collect::<Vec<_>>().join(", or ");
            self.consider(&Change::WithoutAffinity { demands });
        }
        if failing(Obstacle::Pool) {
            self.another_pool(&constraints);
        }
        if failing(Obstacle::Selector) || failing(Obstacle::Affinity) {
            self.first(Change::missing_labels(self.cluster, &constraints).into_iter());
        }
        // The first pod of an affinity group may run anywhere, so no node fails for it.
        let minds_pods = constraints.iter().any(|constraints| {
            !constraints.pod_affinity.is_empty() || !constraints.pod_anti_affinity.is_empty()
        });
        if minds_pods {
            self.consider(&Change::WithoutPodAffinity);
        }
        if failing(Obstacle::Taint) || failing(Obstacle::Cordoned) {
            let [tolerate, untaint] = Change::of_taints(self.cluster, &constraints);
            for change in tolerate.iter().take(CANDIDATES_MAX) {
                self.consider(change);
            }
            self.first(untaint.into_iter());
        }
    }

    /// Tries a node pool that it does not name.
    fn another_pool(&mut self, constraints: &[Constraints]) {
        let named: BTreeSet<_> = constraints.iter().flat_map(|of| &of.pools).cloned().collect();
        let nodes = self.cluster.nodes().iter();
        let pools: BTreeSet<_> =
            nodes.map(|(_, node)| self.cluster.pool_name(node.pool).to_owned()).collect();
        let from: Vec<_> = named.iter().cloned().collect();
        let others = pools.into_iter().filter(|pool| !named.contains(pool));
        self.first(others.map(|to| Change::NodePool { from: from.clone(), to }));
    }

    /// Finds the first time at which it starts by itself.
    pub(super) fn later(&mut self, times: &[Instant]) {
        if !times.is_empty() {
            self.least(0, times.len() as u64 - 1, |at| Change::Wait {
                until: times[usize::try_from(at).unwrap_or(0)],
            });
        }
    }

    /// Tries a larger limit or quota.
    pub(super) fn more(&mut self) {
        let project = self.cluster.workloads()[self.id].spec.queue;
        let pools = self.cluster.choices(self.id).iter();
        let mut leaves: Vec<_> = pools.map(|&pool| self.cluster.queue_in(project, pool)).collect();
        if leaves.is_empty() {
            leaves.push(project);
        }
        leaves.dedup();
        for leaf in leaves {
            if self.more_of(leaf) {
                return;
            }
        }
    }

    /// Tries a larger limit or quota of one queue and those above it.
    fn more_of(&mut self, leaf: QueueId) -> bool {
        let asked = self.asked;
        let lineage: Vec<_> = self.cluster.lineage(leaf).collect();
        let raise = |&id: &QueueId, kind: Kind, from: u64, to: u64| {
            let row = &self.cluster.queues()[id];
            let pool =
                (row.pool != PoolId::DEFAULT).then(|| self.cluster.pool_name(row.pool).to_owned());
            let unit = row.name.clone();
            let (queue, to) = (self.cluster.queue_name(id), step_up(kind, to));
            let is_project = row.children.is_empty();
            Raise { queue, unit, pool, is_project, id, kind, from, to }
        };
        let raises = |of: fn(&Share) -> Resources| -> Vec<Raise> {
            let levels = lineage.iter().flat_map(|id| Kind::ALL.map(|kind| (id, kind)));
            let short = levels.filter_map(|(id, kind)| {
                let queue = &self.cluster.queues()[*id];
                let (from, to) = (of(&queue.share)[kind], queue.allocated[kind] + asked[kind]);
                (asked[kind] > 0 && from < to).then(|| raise(id, kind, from, to))
            });
            short.collect()
        };
        let (limits, mut quotas) = (raises(|share| share.limit), raises(|share| share.quota));
        // A quota that is a sum rises with that of the project.
        quotas.retain(|raise| !self.cluster.queues()[raise.id].share.summed.of(raise.kind));
        if !limits.is_empty() {
            return self.consider(&Change::Limit(limits)) && self.fewer(Change::Limit);
        }
        let mut own: Vec<_> = quotas.iter().filter(|raise| raise.id == leaf).cloned().collect();
        let quota = self.cluster.queues()[leaf].share.quota.gpu_millis;
        if asked.gpu_millis > 0 && quota < u64::MAX && own.iter().all(|one| one.kind != Kind::Gpu) {
            // Where quotas exceed the capacity, a quota above use and request is a larger part.
            own.push(raise(&leaf, Kind::Gpu, quota, quota));
        }
        let above = quotas.iter().any(|raise| raise.id != leaf);
        (self.quota(&own) && self.fewer(Change::Quota))
            || (above && self.quota(&quotas) && self.fewer(Change::Quota))
    }

    /// Removes raises without which it still starts, those of the highest queues first.
    fn fewer(&mut self, change: fn(Vec<Raise>) -> Change) -> bool {
        let Some(Advice { change: Change::Limit(all) | Change::Quota(all), .. }) =
            self.found.last()
        else {
            return true;
        };
        let mut left = all.clone();
        for at in (0..left.len()).rev().filter(|_| all.len() > 1).collect::<Vec<_>>() {
            let mut without = left.clone();
            without.remove(at);
            if without.is_empty() {
                break;
            }
            if let Some(advice) = self.starts(&change(without.clone())) {
                left = without;
                self.found.pop();
                self.found.push(advice);
            }
        }
        true
    }

    /// The smallest of these raises that helps, in whole GPUs; other resources are raised in full.
    fn quota(&mut self, raises: &[Raise]) -> bool {
        let Some(first) = raises.iter().find(|raise| raise.kind == Kind::Gpu) else {
            return !raises.is_empty() && self.consider(&Change::Quota(raises.to_vec()));
        };
        let pool = self.cluster.queues()[first.id].pool;
        // The API refuses a quota above the limit.
        let limit = self.cluster.queues()[first.id].share.limit.gpu_millis;
        let capacity = self.cluster.capacity_of(pool).gpu_millis.min(limit);
        let least = first.from / GPU_MILLIS + 1;
        let change = |gpus: u64| {
            let mut raises = raises.to_vec();
            // The shortage at the first level is a shortage at the levels above, up to their own.
            let less = first.to.saturating_sub(gpus * GPU_MILLIS);
            for raise in raises.iter_mut().filter(|raise| raise.kind == Kind::Gpu) {
                let to = raise.to.saturating_sub(less).max(gpus * GPU_MILLIS);
                raise.to =
                    if raise.id == first.id { gpus * GPU_MILLIS } else { to.max(raise.from) };
            }
            raises.retain(|raise| raise.to > raise.from);
            Change::Quota(raises)
        };
        let enough = first.to.div_ceil(GPU_MILLIS);
        // Where quotas exceed the capacity, a quota above use and request is needed.
        self.least(least, enough, change) || self.least(enough + 1, capacity / GPU_MILLIS, change)
    }

    /// Tries cordoned nodes, and additional nodes.
    pub(super) fn nodes(&mut self, parts: &[Part]) {
        let cordoned = self.cluster.nodes().iter().filter(|(_, node)| !node.schedulable);
        let cordoned: Vec<_> = cordoned.map(|(_, node)| node.name.clone()).collect();
        self.first(cordoned.into_iter().map(|node| Change::Uncordon { node }));
        let pods: u32 = parts.iter().map(|part| part.pods).sum();
        let classes = parts.iter().flat_map(|part| &part.classes);
        let suitable = classes.filter(|class| {
            let busy = |obstacle| {
                matches!(
                    obstacle,
                    Obstacle::FreeGpus
                        | Obstacle::FreeShare
                        | Obstacle::FreeCpu
                        | Obstacle::FreeMemory
                        | Obstacle::Pods
                )
            };
            class.room > 0 || class.failing.iter().any(|failing| busy(failing.obstacle))
        });
        let like: Vec<_> = suitable.map(|class| class.like.clone()).take(2).collect();
        for like in like {
            if self.least(1, u64::from(pods), |count| Change::Nodes {
                like: like.clone(),
                count: u32::try_from(count).unwrap_or(u32::MAX),
            }) {
                break;
            }
        }
    }

    /// Tries to end another workload: another revision of its inference, else the smallest
    /// sufficient one of its own project, else of another.
    pub(super) fn without_others(&mut self) {
        let leaf = self.cluster.workloads()[self.id].spec.queue;
        let placed = self.cluster.workloads().iter().filter(|(_, row)| row.placed > 0);
        let mut holders: Vec<_> = placed
            .map(|(who, row)| {
                let places = row.pods.iter().filter_map(|&pod| {
                    let place = self.cluster.pods()[pod].binding.effective()?;
                    Some(self.cluster.amounts(pod, place))
                });
                let held: Resources = places.sum();
                (row.spec.queue != leaf, held.gpu_millis, std::cmp::Reverse(row.spec.seq), who)
            })
            .collect();
        holders.sort_unstable();
        let waiting = self.reference(self.id);
        let is_revision = |&(.., who): &(bool, u64, _, WorkloadId)| {
            self.reference(who).is_other_revision_of(&waiting)
        };
        let (revisions, holders): (Vec<_>, Vec<_>) = holders.into_iter().partition(is_revision);
        // A revision with places takes those of the one before as it gets ready.
        let is_new = self.cluster.workloads()[self.id].placed == 0;
        for (.., who) in revisions.into_iter().filter(|_| is_new) {
            let workload = self.reference(who);
            if self.consider(&Change::End { workload }) {
                return;
            }
        }
        for own in [true, false] {
            let asked = self.asked.gpu_millis;
            let mine = holders.iter().filter(|(foreign, ..)| *foreign != own);
            let (large, small): (Vec<_>, Vec<_>) = mine.partition(|(_, held, ..)| *held >= asked);
            for &(.., who) in large.into_iter().chain(small.into_iter().rev()).take(CANDIDATES_MAX)
            {
                let workload = self.reference(who);
                if self.consider(&Change::End { workload }) {
                    return;
                }
            }
        }
    }

    pub(super) fn reference(&self, id: WorkloadId) -> WorkloadRef {
        WorkloadRef::new(self.cluster, id)
    }
}
