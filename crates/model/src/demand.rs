//! Demand of queues: only requests that could be placed if everything were free. Owns: the waiting
//! pods that could not, and the amounts that are left out of each queue's demand for them.
//!
//! Each workload is considered alone, and nothing is left out that could be placed: a part whose
//! pods fit one by one counts, even if they exclude each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;
use units::{GPU_MILLIS, Kind, Resources};

use crate::empty_nodes::{EmptyNodes, Shape};
use crate::{
    Child, Cluster, GpuRequest, PodId, PodRequest, PoolId, Queue, QueueId, TopologyId, Workload,
    WorkloadId, WorkloadSpec,
};

/// Amounts that are left out of a workload's demand, by the queue that is charged for it.
type Amounts = SmallVec<[(QueueId, Resources); 1]>;

/// Amounts that are left out of the demand of queues.
#[derive(Debug, Clone, Default)]
pub struct Demand {
    empty: EmptyNodes,
    /// Amounts by workload; a workload whose whole request counts has no entry.
    left_out: BTreeMap<WorkloadId, Amounts>,
    /// Sums of `left_out` by queue, descendants included.
    sums: BTreeMap<QueueId, Resources>,
    /// Demand, by queue, that its limit and those below it exclude from the queue above.
    over_limits: BTreeMap<QueueId, Resources>,
    /// Sum of `over_limits` of the children, by queue.
    cut: BTreeMap<QueueId, Resources>,
}

/// Pods of a workload that would fit if everything were free.
#[derive(Debug, Clone, Copy, Default)]
pub struct Room {
    /// Number of its present pods.
    pub pods: u32,
    /// Maximum number of these pods that fit: each set considered alone, and all by their amounts.
    pub fitting: u32,
    /// True if enough pods fit, and quotas and limits allow, for it to start.
    pub starts: bool,
    /// Part of its request that does not count as demand.
    pub left_out: Resources,
}

/// A queue and its demand.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The queue.
    pub queue: &'a Queue,
    /// Its demand.
    pub demand: Resources,
}

impl<'a> Claim<'a> {
    /// The demand of a queue.
    #[must_use]
    pub fn of(cluster: &'a Cluster, demand: &Demand, id: QueueId) -> Self {
        Self { queue: &cluster.queues()[id], demand: demand.of(cluster, id) }
    }

    /// Its demand for a resource, up to its limit.
    #[must_use]
    pub fn wanted(self, kind: Kind) -> u64 {
        self.demand[kind].min(self.queue.share.limit[kind])
    }

    /// The part of this demand within its quota.
    #[must_use]
    pub fn promised(self, kind: Kind) -> u64 {
        self.wanted(kind).min(self.queue.share.quota[kind])
    }
}

impl Room {
    const fn rank(&self) -> (u64, u64, u64) {
        let Resources { gpu_millis, cpu_millis, memory_bytes } = self.left_out;
        (gpu_millis, cpu_millis, memory_bytes)
    }
}

impl Demand {
    /// Considers every workload.
    #[must_use]
    pub fn all(cluster: &Cluster) -> Self {
        let mut demand = Self::default();
        let all = cluster.waiting().chain(cluster.elastic().iter().copied());
        demand.update(cluster, &all.collect());
        demand.limit_all(cluster);
        demand
    }

    /// Demand of a queue; the demand of its children counts up to their limits.
    #[must_use]
    pub fn of(&self, cluster: &Cluster, queue: QueueId) -> Resources {
        let cut = self.cut.get(&queue).copied().unwrap_or_default();
        self.could_be_placed(cluster, queue).saturating_sub(cut)
    }

    fn could_be_placed(&self, cluster: &Cluster, queue: QueueId) -> Resources {
        cluster.queues()[queue].requested.saturating_sub(self.left_out_of(queue))
    }

    /// Workloads whose request does not count in full: the amounts left out, by the queue that is
    /// charged.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (WorkloadId, &[(QueueId, Resources)])> {
        self.left_out.iter().map(|(&id, amounts)| (id, amounts.as_slice()))
    }

    /// Amount left out of the demand of a queue because it could not be placed.
    #[must_use]
    pub fn left_out_of(&self, queue: QueueId) -> Resources {
        self.sums.get(&queue).copied().unwrap_or_default()
    }

    /// Recomputes the demand that limits pass on to the ancestors of these queues, whose requests
    /// changed.
    pub fn limit(&mut self, cluster: &Cluster, asks: &BTreeSet<QueueId>) {
        let there = asks.iter().filter(|&&id| cluster.queues().get(id).is_some());
        let deepest_first = there.map(|&id| (Reverse(cluster.lineage(id).count()), id));
        let mut work: BTreeSet<_> = deepest_first.collect();
        while let Some((Reverse(depth), id)) = work.pop_first() {
            let queue = &cluster.queues()[id];
            let Some(above) = queue.parent else { continue };
            let beyond = self.of(cluster, id).saturating_sub(queue.share.limit);
            let over = beyond + self.cut.get(&id).copied().unwrap_or_default();
            let before = self.over_limits.get(&id).copied().unwrap_or_default();
            if over != before {
                self.over_limits.insert(id, over);
                let cut = self.cut.entry(above).or_default();
                *cut = *cut + over - before;
                work.insert((Reverse(depth - 1), above));
            }
        }
    }

    /// Recomputes this for all queues, when limits changed or at the first use.
    pub fn limit_all(&mut self, cluster: &Cluster) {
        self.over_limits.clear();
        self.cut.clear();
        self.limit(cluster, &cluster.queues().ids().collect());
    }

    /// Recomputes everything after a change of nodes, queues or limits. Of each list of equivalent
    /// workloads only the first is considered.
    pub fn renew(
        &mut self,
        cluster: &Cluster,
        alike: impl Iterator<Item: Iterator<Item = WorkloadId>>,
    ) {
        self.empty = EmptyNodes::default();
        self.left_out.retain(|&id, _| cluster.workloads().get(id).is_some());
        for all in alike {
            let mut all = all.peekable();
            let Some(&first) = all.peek() else { continue };
            let amounts = self.amounts(cluster, first);
            if amounts.is_empty() && !self.left_out.contains_key(&first) {
                continue;
            }
            for id in all {
                self.set(id, amounts.clone());
            }
        }
        self.sums.clear();
        let amounts = self.left_out.values().flatten().copied().collect::<Vec<_>>();
        for (queue, amount) in amounts {
            add(&mut self.sums, cluster, queue, |sum| *sum += amount);
        }
    }

    /// Recomputes these workloads; returns the queues whose demand changed.
    pub fn update(
        &mut self,
        cluster: &Cluster,
        changed: &BTreeSet<WorkloadId>,
    ) -> BTreeSet<QueueId> {
        let mut queues = BTreeSet::new();
        for &id in changed {
            let there = cluster.workloads().get(id).is_some();
            let now = if there { self.amounts(cluster, id) } else { Amounts::new() };
            let before = self.left_out.get(&id).cloned().unwrap_or_default();
            if now == before {
                continue;
            }
            for &(queue, amount) in &before {
                let sums = &mut self.sums;
                queues.extend(add(sums, cluster, queue, |sum| *sum = sum.saturating_sub(amount)));
            }
            for &(queue, amount) in &now {
                queues.extend(add(&mut self.sums, cluster, queue, |sum| *sum += amount));
            }
            self.set(id, now);
        }
        queues
    }

    fn set(&mut self, id: WorkloadId, amounts: Amounts) {
        match amounts.is_empty() {
            true => drop(self.left_out.remove(&id)),
            false => drop(self.left_out.insert(id, amounts)),
        }
    }

    /// Amounts left out in each of its node pools, if each has queues of its own; or else in the
    /// best of them.
    fn amounts(&mut self, cluster: &Cluster, id: WorkloadId) -> Amounts {
        let workload = &cluster.workloads()[id];
        if !cluster.is_waiting(id) && !workload.spec.elastic {
            return Amounts::new();
        }
        let project = workload.spec.queue;
        let of = |(pool, room): (Option<PoolId>, Room)| {
            let queue = pool.map_or(project, |pool| cluster.queue_in(project, pool));
            (queue, room.left_out)
        };
        let rooms = self.rooms(cluster, id);
        rooms.into_iter().map(of).filter(|(_, out)| *out != Resources::ZERO).collect()
    }

    /// Pods that fit in each pool in which a queue is charged for the workload.
    fn rooms(&mut self, cluster: &Cluster, id: WorkloadId) -> Vec<(Option<PoolId>, Room)> {
        let pools: Vec<_> = match cluster.pool_of(id) {
            Some(pool) => vec![Some(pool)],
            None if cluster.choices(id).is_empty() => vec![None],
            None => cluster.choices(id).iter().copied().map(Some).collect(),
        };
        let rooms = pools.into_iter().map(|pool| (pool, self.room(cluster, id, pool)));
        if cluster.is_divided() {
            return rooms.collect();
        }
        Vec::from_iter(rooms.min_by_key(|(_, room)| room.rank()))
    }

    /// Pods that fit where most of them do; `None` if its whole request counts somewhere.
    pub fn short(&mut self, cluster: &Cluster, id: WorkloadId) -> Option<(QueueId, Room)> {
        self.left_out.get(&id)?;
        let rooms = self.rooms(cluster, id).into_iter();
        let (pool, room) = rooms.min_by_key(|(_, room)| room.rank())?;
        let project = cluster.workloads()[id].spec.queue;
        let queue = pool.map_or(project, |pool| cluster.queue_in(project, pool));
        (room.left_out != Resources::ZERO).then_some((queue, room))
    }

    fn room(&mut self, cluster: &Cluster, id: WorkloadId, pool: Option<PoolId>) -> Room {
        let workload = &cluster.workloads()[id];
        let waits = |pod: &&PodId| cluster.pods()[**pod].waits();
        let (mut room, mut sets) = (Room::default(), SmallVec::<[(u32, u32, u64); 1]>::new());
        for (at, (spec, set)) in workload.sets().enumerate() {
            let waiting = workload.pods_of(at).iter().filter(waits).count();
            let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
            let wanted = set.placed.saturating_add(waiting);
            let level = level_of(&workload.spec, at);
            let shape = |request| Shape { request, constraints: set.constraints, pool, level };
            let request = self.size_that_fits(cluster, workload, spec.request, shape);
            let fitting = self.empty.fitting(cluster, shape(request), wanted).max(set.placed);
            room.pods += wanted;
            room.fitting += fitting;
            room.left_out.gpu_millis += grows_beyond(cluster, workload, spec.request, request);
            let beyond = spec.request.gpu.devices().saturating_sub(request.gpu.devices());
            // Fewer pods than the minimum do not count.
            let reaches = fitting.saturating_add(set.succeeded) >= spec.pods_min;
            let more = if reaches { fitting - set.placed } else { 0 };
            sets.push((waiting, more, u64::from(beyond) * GPU_MILLIS));
        }
        if sets.len() > 1 && !workload.spec.elastic {
            let asked = workload.sets().zip(&sets);
            let asked: SmallVec<[_; 4]> =
                asked.map(|((_, set), (waiting, ..))| (set.demand, set.placed + waiting)).collect();
            let there = cluster.capacity_of(pool.unwrap_or_default());
            room.fitting = room.fitting.min(fitting_at_most(there, &asked));
        }
        let counted = |at: usize| workload.pod_sets[at].counted();
        let with_more = |at: usize| counted(at).saturating_add(sets[at].1);
        let spec = &workload.spec;
        room.starts = spec.is_whole(&counted)
            || (spec.reaches_minimum(None, &with_more) && may_start(cluster, workload, pool));
        for (set, &(waiting, fitting, beyond)) in workload.pod_sets.iter().zip(&sets) {
            let starting = if room.starts { fitting } else { 0 };
            room.left_out += times(set.demand, waiting - starting);
            room.left_out.gpu_millis += beyond * u64::from(starting);
        }
        room
    }

    /// Largest size of an elastic pod that fits: the request, half of it, a quarter, and so on.
    fn size_that_fits(
        &mut self,
        cluster: &Cluster,
        workload: &Workload,
        request: PodRequest,
        shape: impl Fn(PodRequest) -> Shape,
    ) -> PodRequest {
        let GpuRequest::Whole(gpus @ 2..) = request.gpu else { return request };
        if !workload.spec.elastic {
            return request;
        }
        let sizes = (0..gpus.ilog2() + 1).map(|half| GpuRequest::Whole(gpus >> half));
        let mut sizes = sizes.map(|gpu| PodRequest { gpu, ..request });
        sizes.find(|&size| self.empty.fitting(cluster, shape(size), 1) > 0).unwrap_or(request)
    }
}

/// Maximum number of pods of several sets that amounts suffice for, counted by one resource at a
/// time. The sets have the requests of a pod, and their numbers of pods.
#[must_use]
pub fn fitting_at_most(there: Resources, sets: &[(Resources, u32)]) -> u32 {
    let by = |kind: Kind| {
        let mut each: SmallVec<[(u64, u32); 4]> =
            sets.iter().map(|(demand, pods)| (demand[kind], *pods)).collect();
        each.sort_unstable();
        let mut left = there[kind];
        let fits = each.into_iter().map(|(each, pods)| {
            let most = left
                .checked_div(each)
                .map_or(pods, |most| pods.min(u32::try_from(most).unwrap_or(u32::MAX)));
            left -= each * u64::from(most);
            most
        });
        fits.sum::<u32>()
    };
    Kind::ALL.into_iter().map(by).min().unwrap_or_default()
}

/// GPU thousandths that placed elastic pods request beyond the largest size that fits anywhere.
fn grows_beyond(
    cluster: &Cluster,
    workload: &Workload,
    asked: PodRequest,
    fits: PodRequest,
) -> u64 {
    if asked == fits {
        return 0;
    }
    let pods = workload.pods.iter().map(|&pod| &cluster.pods()[pod]).filter(|pod| pod.asks());
    let places = pods.filter_map(|pod| pod.binding.effective());
    let beyond = |size: usize| {
        let most = u32::try_from(size).unwrap_or(u32::MAX).max(fits.gpu.devices());
        u64::from(asked.gpu.devices().saturating_sub(most))
    };
    places.map(|place| beyond(place.devices.len())).sum::<u64>() * GPU_MILLIS
}

fn times(each: Resources, count: u32) -> Resources {
    let mut all = each;
    Kind::ALL.into_iter().for_each(|kind| all[kind] = each[kind].saturating_mul(count.into()));
    all
}

/// Changes the sum of a queue and of all its ancestors; returns these queues.
fn add(
    sums: &mut BTreeMap<QueueId, Resources>,
    cluster: &Cluster,
    queue: QueueId,
    change: impl Fn(&mut Resources),
) -> Vec<QueueId> {
    let above = |&queue: &QueueId| cluster.queues().get(queue)?.parent;
    let lineage: Vec<_> = std::iter::successors(Some(queue), above).collect();
    lineage.iter().for_each(|&queue| change(sums.entry(queue).or_default()));
    lineage
}

/// The level at which one domain must hold all pods of a set.
fn level_of(spec: &WorkloadSpec, set: usize) -> Option<(TopologyId, usize)> {
    let set = &spec.pod_sets[set];
    let groups = std::iter::successors(set.group, |&at| spec.groups[at].parent);
    let groups = groups.map(|at| spec.groups[at].topology);
    let mut constraints = std::iter::once(set.topology).chain(groups).chain([spec.topology]);
    constraints.find_map(|constraint| Some((constraint?.topology, constraint?.required?)))
}

/// True if the minimum of a workload is within the capacity, within the limits of its queue and its
/// ancestors and, if it is not preemptible, within their quotas.
fn may_start(cluster: &Cluster, workload: &Workload, pool: Option<PoolId>) -> bool {
    let spec = &workload.spec;
    let least = least_of(workload, None);
    let leaf = pool.map_or(spec.queue, |pool| cluster.queue_in(spec.queue, pool));
    let allows = |queue: QueueId| {
        let share = &cluster.queues()[queue].share;
        let most = |kind| if spec.preemptible { u64::MAX } else { share.quota[kind] };
        let within = |kind| least[kind] <= share.limit[kind].min(most(kind));
        Kind::ALL.into_iter().all(|kind| least[kind] == 0 || within(kind))
    };
    let there = cluster.capacity_of(pool.unwrap_or_default());
    (spec.pod_sets.len() < 2 || least.fits_in(there)) && cluster.lineage(leaf).all(allows)
}

/// Minimum amounts of a group (`None`: the workload). For each resource, they are those of the
/// parts that need least of it, as many as the group needs.
fn least_of(workload: &Workload, group: Option<usize>) -> Resources {
    let spec = &workload.spec;
    let parts: Vec<_> = spec
        .children(group)
        .map(|child| match child {
            Child::Group(at) => least_of(workload, Some(at)),
            Child::Set(at) => least_of_set(workload, at),
        })
        .collect();
    let mut least = Resources::ZERO;
    for kind in Kind::ALL {
        let mut amounts: SmallVec<[u64; 4]> = parts.iter().map(|part| part[kind]).collect();
        amounts.sort_unstable();
        let needed = amounts.into_iter().take(spec.children_min_of(group));
        least[kind] = needed.fold(0, u64::saturating_add);
    }
    least
}

fn least_of_set(workload: &Workload, at: usize) -> Resources {
    let (set, mut each) = (&workload.spec.pod_sets[at], workload.pod_sets[at].demand);
    match set.request.gpu {
        // On a larger device this is a smaller part.
        GpuRequest::Memory { .. } => each.gpu_millis = 0,
        GpuRequest::Whole(1..) if workload.spec.elastic => each.gpu_millis = GPU_MILLIS,
        _ => {}
    }
    times(each, set.pods_min)
}
