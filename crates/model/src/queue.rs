//! The queue tree: departments and projects. Owns: the share of each, and the holdings and requests
//! of its workloads, summed up to the root.

use std::collections::{BTreeMap, BTreeSet};

use units::{Kind, Resources};

use crate::{Lag, PoolId, QueueId, WorkloadId};

/// Weights by which unclaimed capacity is divided among siblings; 0 for none of it.
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
    /// Equal weights for all resources.
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

/// Share of a queue. `u64::MAX` in a component is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Deserved amounts, which it can always reclaim.
    pub quota: Resources,
    /// Maximum that it may hold.
    pub limit: Resources,
    /// Weights for unclaimed capacity.
    pub over_quota_weight: Weights,
    /// Queues of higher priority are served first.
    pub priority: u32,
    /// Minimum runtime of its workloads, in milliseconds, before a higher priority of the same
    /// queue may preempt them; `None` for that of the parent.
    pub preempt_min_runtime_ms: Option<u64>,
    /// Minimum runtime of its workloads, in milliseconds, before another queue may reclaim from
    /// them; `None` for that of the parent.
    pub reclaim_min_runtime_ms: Option<u64>,
    /// Resources of which its quota is the sum of the quotas of its child queues, and changes with
    /// them.
    pub summed: SummedQuota,
}

/// Resources of which the quota of a queue is the sum of those of its child queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SummedQuota {
    /// GPUs.
    pub gpu: bool,
    /// Cores.
    pub cpu: bool,
    /// Main memory.
    pub memory: bool,
}

impl SummedQuota {
    /// True if the quota of this resource is a sum.
    #[must_use]
    pub const fn of(self, kind: Kind) -> bool {
        match kind {
            Kind::Gpu => self.gpu,
            Kind::Cpu => self.cpu,
            Kind::Memory => self.memory,
        }
    }
}

impl Share {
    /// A share with the default weight and priority, and no minimum runtime.
    #[must_use]
    pub const fn new(quota: Resources, limit: Resources) -> Self {
        Self {
            quota,
            limit,
            over_quota_weight: Weights::all(1),
            priority: 100,
            preempt_min_runtime_ms: None,
            reclaim_min_runtime_ms: None,
            summed: SummedQuota { gpu: false, cpu: false, memory: false },
        }
    }
}

/// Usage of each resource, in parts per million of the capacity that the siblings divide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Usage of GPUs.
    pub gpu_ppm: u64,
    /// Usage of CPU.
    pub cpu_ppm: u64,
    /// Usage of memory.
    pub memory_ppm: u64,
}

impl Usage {
    /// Usage of one resource.
    #[must_use]
    pub const fn of(self, kind: Kind) -> u64 {
        match kind {
            Kind::Gpu => self.gpu_ppm,
            Kind::Cpu => self.cpu_ppm,
            Kind::Memory => self.memory_ppm,
        }
    }
}

/// Prefix of the name of a department's queue: queues have one namespace, and no project can have
/// such a name.
pub const DEPARTMENT_PREFIX: &str = "department:";

/// A queue to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// Name, for explanations.
    pub name: String,
    /// Parent queue; `None` for one directly under the root.
    pub parent: Option<QueueId>,
    /// Its share.
    pub share: Share,
    /// Order of creation: the last tie-breaker.
    pub seq: u64,
}

/// Holdings of one priority in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tier {
    /// Number of pods with a place.
    pub pods: u32,
    /// Holdings of these pods, without the part lent to elastic ones.
    pub held: Resources,
}

/// A queue and its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Parent queue.
    pub parent: Option<QueueId>,
    /// Its share.
    pub share: Share,
    /// Order of creation.
    pub seq: u64,
    /// Its node pool, if every pool has queues of its own.
    pub pool: PoolId,
    /// The queue that was added, if this is its twin in another pool.
    pub(crate) twin_of: Option<QueueId>,
    /// The queue of each pool, itself the first; empty if one stands for all pools.
    pub(crate) twins: Vec<QueueId>,
    /// Its usage in the window; zero when fairness does not depend on time.
    pub usage: Usage,
    /// Its lag behind its fair share of the GPUs.
    pub lag: Lag,
    /// Child queues.
    pub children: BTreeSet<QueueId>,
    /// Workloads directly in it.
    pub workloads: BTreeSet<WorkloadId>,
    /// Workloads directly in it with a pod that holds or has reserved a place.
    pub placed: BTreeSet<WorkloadId>,
    /// Holdings and reservations of workloads in or below it, without pods being stopped.
    pub allocated: Resources,
    /// The part of `allocated` that is not preemptible.
    pub allocated_non_preemptible: Resources,
    /// The part of that which gives way all the same, since nothing runs there.
    pub allocated_paused: Resources,
    /// The part of `allocated` that elastic pods hold beyond their request, in GPU thousandths: it
    /// is given back to pods that may start.
    pub lent_gpu_millis: u64,
    /// Holdings of preemptible workloads directly in it, by priority; priorities without holdings
    /// have no entry.
    pub preemptible: BTreeMap<u32, Tier>,
    /// Requests of all pods that should run, running or not; growth of elastic pods beyond their
    /// request is not included.
    pub requested: Resources,
    /// Requests counted once in the queue that was added, independent of the pools in which they
    /// may be met.
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
            allocated_paused: Resources::ZERO,
            lent_gpu_millis: 0,
            preemptible: BTreeMap::new(),
            requested: Resources::ZERO,
            wanted: Resources::ZERO,
        }
    }

    /// Resets holdings and requests.
    pub(crate) fn clear_accounts(&mut self) {
        self.allocated = Resources::ZERO;
        self.allocated_non_preemptible = Resources::ZERO;
        self.allocated_paused = Resources::ZERO;
        self.requested = Resources::ZERO;
        self.wanted = Resources::ZERO;
        self.lent_gpu_millis = 0;
        self.preemptible.clear();
    }

    /// The part of its holdings that may be taken: preemptible, or paused.
    #[must_use]
    pub fn preemptible_held(&self) -> Resources {
        self.allocated.saturating_sub(self.allocated_non_preemptible) + self.allocated_paused
    }

    /// Its holdings without the part lent to its elastic pods.
    #[must_use]
    pub fn held(&self) -> Resources {
        let lent = Resources { gpu_millis: self.lent_gpu_millis, ..Resources::ZERO };
        self.allocated - lent
    }
}
