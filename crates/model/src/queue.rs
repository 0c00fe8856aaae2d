//! The queue tree: departments and projects. Owns: what each is entitled to and what its
//! workloads hold and ask for, rolled up to the root.

use std::collections::{BTreeMap, BTreeSet};

use units::{Kind, Resources};

use crate::{Lag, PoolId, QueueId, WorkloadId};

/// Weights by which left-over capacity is divided among siblings; 0 = none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// For GPUs.
    pub gpu: u64,
    /// For CPU.
    pub cpu: u64,
    /// For memory.
    pub memory: u64,
}

impl Weights {
    /// The same weight for every resource.
    #[must_use]
    pub const fn all(weight: u64) -> Self {
        Self { gpu: weight, cpu: weight, memory: weight }
    }

    /// The weight for one resource.
    #[must_use]
    pub const fn of(self, kind: Kind) -> u64 {
        match kind {
            Kind::Gpu => self.gpu,
            Kind::Cpu => self.cpu,
            Kind::Memory => self.memory,
        }
    }
}

/// What a queue is entitled to. `u64::MAX` in a component is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Deserved: what it can always get back.
    pub quota: Resources,
    /// Most it may hold.
    pub limit: Resources,
    /// Its weight for left-over capacity.
    pub over_quota_weight: Weights,
    /// Queues of higher priority are served first.
    pub priority: u32,
    /// How long its workloads run, in milliseconds, before a higher priority of the same queue
    /// may stop them; as long as those of the queue above if not given.
    pub preempt_min_runtime_ms: Option<u64>,
    /// The same before another queue may take from them.
    pub reclaim_min_runtime_ms: Option<u64>,
}

impl Share {
    /// A share with the usual weight and priority, and no guaranteed run time.
    #[must_use]
    pub const fn new(quota: Resources, limit: Resources) -> Self {
        Self {
            quota,
            limit,
            over_quota_weight: Weights::all(1),
            priority: 100,
            preempt_min_runtime_ms: None,
            reclaim_min_runtime_ms: None,
        }
    }
}

/// Parts per million of the capacity its siblings and it share, for each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the GPUs.
    pub gpu_ppm: u64,
    /// Of the cores.
    pub cpu_ppm: u64,
    /// Of the memory.
    pub memory_ppm: u64,
}

impl Usage {
    /// Of one resource.
    #[must_use]
    pub const fn of(self, kind: Kind) -> u64 {
        match kind {
            Kind::Gpu => self.gpu_ppm,
            Kind::Cpu => self.cpu_ppm,
            Kind::Memory => self.memory_ppm,
        }
    }
}

/// What stands before the name of a department as a queue: queues have one namespace, and no project
/// can be called this.
pub const DEPARTMENT_PREFIX: &str = "department:";

/// A queue to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// Name, for explanations.
    pub name: String,
    /// Queue above; none for one directly under the root.
    pub parent: Option<QueueId>,
    /// What it is entitled to.
    pub share: Share,
    /// Order of creation: the last tie-breaker.
    pub seq: u64,
}

/// What workloads of one priority hold in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tier {
    /// Pods with a place.
    pub pods: u32,
    /// What they hold, without what is lent to elastic ones.
    pub held: Resources,
}

/// A queue and its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Queue above.
    pub parent: Option<QueueId>,
    /// What it is entitled to.
    pub share: Share,
    /// Order of creation.
    pub seq: u64,
    /// The node pool it is of, if every pool has queues of its own.
    pub pool: PoolId,
    /// The queue that was added, if this is its like for another pool.
    pub(crate) twin_of: Option<QueueId>,
    /// The queue for each pool, itself the first; none if one stands for all pools.
    pub(crate) twins: Vec<QueueId>,
    /// What it used in the window; zero when fairness does not depend on time.
    pub usage: Usage,
    /// How far it is behind its fair share of the GPUs.
    pub lag: Lag,
    /// Queues below.
    pub children: BTreeSet<QueueId>,
    /// Workloads directly in it.
    pub workloads: BTreeSet<WorkloadId>,
    /// Those of them with a pod that holds or has reserved a place.
    pub placed: BTreeSet<WorkloadId>,
    /// Held, or reserved, by workloads in or below it; pods being stopped no longer count.
    pub allocated: Resources,
    /// The part of `allocated` that cannot be preempted.
    pub allocated_non_preemptible: Resources,
    /// The part of `allocated` that elastic pods hold beyond their request, in GPU thousandths:
    /// lent, and given back to pods that may start.
    pub lent_gpu_millis: u64,
    /// What preemptible workloads directly in it hold, by priority; only those that hold any.
    pub preemptible: BTreeMap<u32, Tier>,
    /// Asked for by every pod that wants to run, running or not; growth of elastic pods beyond
    /// their request is not a demand.
    pub requested: Resources,
    /// The same whichever pools it may be got in: kept for the queue that was added, once.
    pub wanted: Resources,
}

impl Queue {
    pub(crate) fn new(spec: QueueSpec) -> Self {
        Self {
            name: spec.name,
            parent: spec.parent,
            share: spec.share,
            seq: spec.seq,
            pool: PoolId::DEFAULT,
            twin_of: None,
            twins: Vec::new(),
            usage: Usage::default(),
            lag: Lag::default(),
            children: BTreeSet::new(),
            workloads: BTreeSet::new(),
            placed: BTreeSet::new(),
            allocated: Resources::ZERO,
            allocated_non_preemptible: Resources::ZERO,
            lent_gpu_millis: 0,
            preemptible: BTreeMap::new(),
            requested: Resources::ZERO,
            wanted: Resources::ZERO,
        }
    }

    /// Forgets what is held and asked for.
    pub(crate) fn clear_accounts(&mut self) {
        self.allocated = Resources::ZERO;
        self.allocated_non_preemptible = Resources::ZERO;
        self.requested = Resources::ZERO;
        self.wanted = Resources::ZERO;
        self.lent_gpu_millis = 0;
        self.preemptible.clear();
    }

    /// The part of what it holds that can be preempted.
    #[must_use]
    pub fn preemptible_held(&self) -> Resources {
        self.allocated.saturating_sub(self.allocated_non_preemptible)
    }

    /// What it holds for itself: what is lent to its elastic pods not counted.
    #[must_use]
    pub fn held(&self) -> Resources {
        let lent = Resources { gpu_millis: self.lent_gpu_millis, ..Resources::ZERO };
        self.allocated - lent
    }
}
