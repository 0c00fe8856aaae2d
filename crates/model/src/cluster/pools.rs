//! Node pools. Owns: their names and capacities, and the queue of a project that is charged for
//! pods in a pool. Does not know about: the order in which the scheduler tries pools.
//!
//! Every node is in one pool, named by its label. As long as the queues are not divided, that only
//! restricts where a workload may run: one tree of queues accounts for all nodes. Once they are,
//! each pool has a tree: an added queue belongs to the pool `default`, and has a twin in every
//! other. The holdings of a pod are charged to the tree of its node's pool; its request to those in
//! which its workload may get it.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use units::{Kind, Resources};

use crate::cluster::sign::Sign;
use crate::{
    Cluster, ConstraintsId, Error, Node, NodeId, PodId, PodSetSpec, PoolId, Queue, QueueId,
    QueueSpec, Share, WorkloadId, pool_of,
};

/// Resources of the nodes of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pool {
    name: String,
    capacity: Resources,
    /// Not kept as long as the queues are not divided.
    free_soon: Resources,
    /// True if it was removed; its number is not used again.
    gone: bool,
}

/// All pools that were ever named; one without nodes has no resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pools {
    rows: Vec<Pool>,
    by_name: BTreeMap<String, PoolId>,
    /// True if each pool has queues of its own.
    divided: bool,
}

impl Default for Pools {
    fn default() -> Self {
        let mut pools = Self { rows: Vec::new(), by_name: BTreeMap::new(), divided: false };
        pools.intern(crate::POOL_DEFAULT);
        pools
    }
}

impl Pools {
    fn intern(&mut self, name: &str) -> PoolId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = PoolId(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        self.rows.push(Pool { name: name.to_owned(), ..Pool::default() });
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// Pools that were not removed.
    fn living(&self) -> impl DoubleEndedIterator<Item = PoolId> + use<'_> {
        self.ids().filter(|id| !self.rows[id.index()].gone)
    }

    fn ids(&self) -> impl DoubleEndedIterator<Item = PoolId> + use<> {
        (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).map(PoolId)
    }

    /// Replaces the free resources of a node of a pool, `before` by `after`.
    pub(crate) fn change(&mut self, pool: PoolId, before: Resources, after: Resources) {
        if self.divided {
            let free_soon = &mut self.rows[pool.index()].free_soon;
            *free_soon = *free_soon - before + after;
        }
    }

    pub(crate) fn add(&mut self, pool: PoolId, node: &Node) {
        self.rows[pool.index()].capacity += node.capacity;
        self.change(pool, Resources::ZERO, node.free(false));
    }

    pub(crate) fn take(&mut self, pool: PoolId, node: &Node) {
        self.rows[pool.index()].capacity -= node.capacity;
        self.change(pool, node.free(false), Resources::ZERO);
    }

    /// These pools without nodes.
    pub(crate) fn emptied(&self) -> Self {
        let mut pools = self.clone();
        for row in &mut pools.rows {
            (row.capacity, row.free_soon) = (Resources::ZERO, Resources::ZERO);
        }
        pools
    }
}

/// Reading.
impl Cluster {
    /// True if every pool has queues of its own.
    #[must_use]
    pub const fn is_divided(&self) -> bool {
        self.pools.divided
    }

    /// The pools that have queues of their own, or the default pool for all nodes.
    pub fn divisions(&self) -> impl Iterator<Item = PoolId> + use<'_> {
        let count = if self.pools.divided { self.pools.rows.len() } else { 1 };
        self.pools.living().take(count)
    }

    /// Id of the pool of this name.
    #[must_use]
    pub fn pool_named(&self, name: &str) -> Option<PoolId> {
        self.pools.by_name.get(name).copied()
    }

    /// Name of a pool.
    #[must_use]
    pub fn pool_name(&self, pool: PoolId) -> &str {
        &self.pools.rows[pool.index()].name
    }

    /// Capacity of the nodes that a queue divides with its siblings.
    #[must_use]
    pub fn capacity_of(&self, pool: PoolId) -> Resources {
        if self.pools.divided { self.pools.rows[pool.index()].capacity } else { self.capacity }
    }

    /// Free resources of these nodes after pending releases.
    #[must_use]
    pub fn free_soon_of(&self, pool: PoolId) -> Resources {
        if self.pools.divided { self.pools.rows[pool.index()].free_soon } else { self.free_soon }
    }

    /// The queue that is charged in a pool for the holdings of a project there.
    #[must_use]
    pub fn queue_in(&self, project: QueueId, pool: PoolId) -> QueueId {
        self.queues[project].twins.get(pool.index()).copied().unwrap_or(project)
    }

    /// The queue as it was added: the twin in the pool `default`.
    #[must_use]
    pub fn project_of(&self, queue: QueueId) -> QueueId {
        self.queues[queue].twin_of.unwrap_or(queue)
    }

    /// A project's queues in all pools.
    pub fn queues_of(&self, project: QueueId) -> impl Iterator<Item = QueueId> + use<'_> {
        let twins = &self.queues[project].twins;
        let alone = twins.is_empty().then_some(project);
        alone.into_iter().chain(twins.iter().copied())
    }

    /// Queues without a parent, of one pool.
    pub fn roots(&self, pool: PoolId) -> impl Iterator<Item = QueueId> + use<'_> {
        self.roots.get(&pool).into_iter().flatten().copied()
    }

    /// Name of a queue for explanations: with its pool, if there are several.
    #[must_use]
    pub fn queue_name(&self, id: QueueId) -> String {
        let queue = &self.queues[id];
        if self.pools.divided && self.pools.living().nth(1).is_some() {
            format!("{} in pool {}", queue.name, self.pool_name(queue.pool))
        } else {
            queue.name.clone()
        }
    }

    /// The pools in which a workload may be placed, in this order; empty for any. Placed pods bind
    /// the others to their pool, if it is one of these.
    #[must_use]
    pub fn choices(&self, id: WorkloadId) -> &[PoolId] {
        let pools = self.workloads[id].pools.as_slice();
        if pools.len() < 2 {
            return pools;
        }
        let bound = self.pool_of(id).and_then(|pool| pools.iter().position(|&other| other == pool));
        bound.map_or(pools, |at| &pools[at..=at])
    }

    /// Pool of a workload that names pools; `None` while it has no place.
    #[must_use]
    pub fn pool_of(&self, id: WorkloadId) -> Option<PoolId> {
        let workload = &self.workloads[id];
        if workload.pools.is_empty() || workload.placed == 0 {
            return None;
        }
        let mut places = workload.pods.iter().filter_map(|&pod| self.pods[pod].binding.effective());
        places.next().map(|place| self.nodes[place.node].pool)
    }

    /// True if a node is in the pool to which the other pods of its workload bind a pod.
    #[must_use]
    pub fn in_its_pool(&self, pod: PodId, node: NodeId) -> bool {
        let pool = self.pool_of(self.pods[pod].workload);
        pool.is_none_or(|pool| pool == self.nodes[node].pool)
    }

    /// Constraints of a pod in a pool, or else in any pool that its workload may use.
    #[must_use]
    pub fn constraints_in(&self, pod: PodId, pool: Option<PoolId>) -> ConstraintsId {
        let set = self.set_of(pod);
        let pools = &self.workload_of(pod).pools;
        let at = pool.and_then(|pool| pools.iter().position(|&other| other == pool));
        at.and_then(|at| set.pools.get(at).copied()).unwrap_or(set.constraints)
    }
}

/// Changes.
impl Cluster {
    /// Gives every pool queues of its own, also pools added later. In the new trees a queue has no
    /// quota, no limit and the default weight until its share is set.
    pub fn divide_by_pool(&mut self) {
        if self.pools.divided {
            return;
        }
        self.pools.divided = true;
        for (_, node) in self.nodes.iter() {
            self.pools.change(node.pool, Resources::ZERO, node.free(false));
        }
        self.pools_changed();
    }

    /// Adds a pool without nodes.
    pub fn add_pool(&mut self, name: &str) -> PoolId {
        let before = self.pools.rows.len();
        let id = self.pools.intern(name);
        if self.pools.divided && self.pools.rows.len() > before {
            self.pools_changed();
        }
        id
    }

    /// Removes a pool without nodes that no workload names. Its queues stay, unused.
    ///
    /// # Errors
    /// The pool is `default`, or in use.
    pub fn remove_pool(&mut self, name: &str) -> Result<(), Error> {
        let Some(id) = self.pool_named(name) else { return Ok(()) };
        let named = |set: &PodSetSpec| set.constraints.pools.iter().any(|pool| pool == name);
        if id == PoolId::DEFAULT
            || self.nodes.iter().any(|(_, node)| node.pool == id)
            || self.workloads.iter().any(|(_, row)| row.spec.pod_sets.iter().any(named))
        {
            return Err(Error::PoolInUse(name.to_owned()));
        }
        self.pools.rows[id.index()].gone = true;
        self.tracker.division();
        self.pools.by_name.remove(name);
        if self.pools.divided {
            self.pools_changed();
        }
        Ok(())
    }

    /// Pool of a node with these labels.
    pub(crate) fn pool_by(&mut self, labels: &BTreeMap<String, String>) -> PoolId {
        let name = pool_of(labels);
        self.pools.by_name.get(name).copied().unwrap_or_else(|| self.add_pool(name))
    }

    /// The pools between which a workload chooses, in order.
    pub(crate) fn intern_choices(&mut self, sets: &[PodSetSpec]) -> SmallVec<[PoolId; 1]> {
        let listed = sets.iter().map(|set| &set.constraints.pools).find(|pools| !pools.is_empty());
        match listed {
            Some(pools) if self.pools.divided || pools.len() > 1 => {
                pools.iter().map(|pool| self.add_pool(pool)).collect()
            }
            None if self.pools.divided => self.pools.living().collect(),
            _ => SmallVec::new(),
        }
    }

    /// The constraints of a pod set for each of these pools alone.
    pub(crate) fn intern_alone(
        &mut self,
        constraints: ConstraintsId,
        pools: &[PoolId],
    ) -> Vec<ConstraintsId> {
        let alone = |pool: &PoolId| {
            let name = &self.pools.rows[pool.index()].name;
            self.eligibility.intern_in((constraints, *pool), name, self.nodes.iter())
        };
        pools.iter().map(alone).collect()
    }

    /// Gives every queue a twin in each new pool, and recomputes the choices of every workload.
    fn pools_changed(&mut self) {
        self.tracker.rename();
        for project in self.projects() {
            self.add_twins(project);
        }
        for id in self.workloads.ids().collect::<Vec<_>>() {
            let sets = self.workloads[id].spec.pod_sets.clone();
            let pools = self.intern_choices(&sets);
            for at in 0..sets.len() {
                let constraints = self.workloads[id].pod_sets[at].constraints;
                let alone = self.intern_alone(constraints, &pools);
                self.workloads[id].pod_sets[at].pools = alone;
            }
            self.workloads[id].pools = pools;
        }
        self.learn_affinity();
        self.recharge();
    }

    /// Queues as they were added, parents before their children.
    fn projects(&self) -> Vec<QueueId> {
        let mut projects: Vec<_> = self.roots(PoolId::DEFAULT).collect();
        let mut at = 0;
        while at < projects.len() {
            projects.extend(&self.queues[projects[at]].children);
            at += 1;
        }
        projects
    }

    pub(crate) fn add_twins(&mut self, project: QueueId) {
        if !self.pools.divided {
            return;
        }
        let first = self.queues[project].twins.len();
        for pool in self.pools.ids().skip(first) {
            if pool == PoolId::DEFAULT {
                self.queues[project].twins.push(project);
                continue;
            }
            let Queue { name, parent, share, seq, .. } = &self.queues[project];
            let parent = parent.map(|parent| self.queue_in(parent, pool));
            let spec = QueueSpec { name: name.clone(), parent, share: elsewhere(share), seq: *seq };
            let twin =
                self.queues.insert(Queue { pool, twin_of: Some(project), ..Queue::new(spec) });
            match parent {
                Some(parent) => self.queues[parent].children.insert(twin),
                None => self.roots.entry(pool).or_default().insert(twin),
            };
            self.tracker.division();
            self.queues[project].twins.push(twin);
        }
    }

    pub(crate) fn remove_twins(&mut self, project: QueueId) {
        for twin in std::mem::take(&mut self.queues[project].twins) {
            if twin == project {
                continue;
            }
            self.uproot(twin);
            self.queues.remove(twin);
        }
    }

    /// Adds or subtracts the holdings and requests of a workload.
    pub(crate) fn charge(&mut self, id: WorkloadId, sign: Sign) {
        if sign == Sign::Minus {
            self.account_spare(id, sign);
        }
        for pod in self.workloads[id].pods.clone() {
            if let Some(place) = self.pods[pod].binding.effective().cloned() {
                self.account_queues(pod, &place, sign);
            }
            if self.pods[pod].asks() {
                self.account_ask(pod, sign);
            }
        }
        if sign == Sign::Plus {
            self.account_spare(id, sign);
        }
    }

    /// Recomputes the accounts of all queues from the bindings and requests of pods.
    pub(crate) fn recharge(&mut self) {
        self.tracker.rename();
        for id in self.queues.ids().collect::<Vec<_>>() {
            self.queues[id].clear_accounts();
        }
        for id in self.workloads.ids().collect::<Vec<_>>() {
            self.charge(id, Sign::Plus);
        }
    }

    /// Sets the share of a queue in one pool.
    ///
    /// # Errors
    /// The queue does not exist.
    pub fn set_share_in(
        &mut self,
        project: QueueId,
        pool: PoolId,
        share: Share,
    ) -> Result<(), Error> {
        self.queues.get(project).ok_or(Error::NoSuchQueue)?;
        self.set_share(self.queue_in(project, pool), share)
    }
}

/// Share of a queue in a pool where none was set: no quota, and the default weight for unclaimed
/// capacity. A resource without a quota limit stays unlimited there.
fn elsewhere(share: &Share) -> Share {
    let mut quota = Resources::ZERO;
    for kind in Kind::ALL.into_iter().filter(|&kind| share.quota[kind] == u64::MAX) {
        quota[kind] = u64::MAX;
    }
    Share {
        preempt_min_runtime_ms: share.preempt_min_runtime_ms,
        reclaim_min_runtime_ms: share.reclaim_min_runtime_ms,
        ..Share::new(quota, Resources::UNLIMITED)
    }
}
