//! Every parameter of a decision, with its default. Owns no behaviour.

use std::collections::BTreeMap;

use model::{Fill, GpuRequest, PoolId, Share};
use shares::OverQuota;
use units::Resources;

/// Strategy for the choice among the places that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Strategy for nodes, for pods with GPUs.
    pub gpu: Fill,
    /// Strategy for nodes, for pods without GPUs.
    pub cpu: Fill,
    /// Strategy for the GPUs of a node, for GPU fractions.
    pub devices: Fill,
}

impl Placement {
    /// One strategy for everything.
    #[must_use]
    pub const fn all(fill: Fill) -> Self {
        Self { gpu: fill, cpu: fill, devices: fill }
    }

    /// `true` if some pods are spread over the nodes.
    #[cfg(feature = "kai")]
    pub(crate) fn spreads_nodes(self) -> bool {
        [self.gpu, self.cpu].contains(&Fill::Spread)
    }

    /// Strategy for nodes, for this request.
    pub(crate) fn nodes(self, request: GpuRequest) -> Fill {
        if request.devices() == 0 { self.cpu } else { self.gpu }
    }
}

/// Scheduler whose decisions are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// The scheduler of Elastane.
    #[default]
    Default,
    /// KAI-Scheduler, as the scheduling reference describes it. No value of it exists in a build
    /// without the feature `kai`.
    Kai(Kai),
}

/// Parameters that only profile `kai` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kai {
    /// Factor by which the saturation of a queue must exceed that of the reclaimer, in thousandths.
    pub saturation_millis: u64,
    /// `true` if reclaim may move workloads without counting them as reclaimed.
    pub consolidating_reclaim: bool,
    /// Maximum number of workloads of one queue in an action.
    pub queue_depth: usize,
    /// Queue whose minimum run time protects a victim of reclaim.
    pub runtime_from: RuntimeFrom,
    /// Proof that this build has the profile.
    pub built: Built,
}

#[cfg(feature = "kai")]
impl Default for Kai {
    fn default() -> Self {
        Self {
            saturation_millis: 1000,
            consolidating_reclaim: true,
            queue_depth: usize::MAX,
            runtime_from: RuntimeFrom::Branch,
            built: Built(),
        }
    }
}

/// Exists only in a build with the feature `kai`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Built(#[cfg(not(feature = "kai"))] std::convert::Infallible);

/// Queue whose minimum run time protects a victim of reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeFrom {
    /// The victim's ancestor just below the lowest common ancestor of victim and reclaimer, or else
    /// the next above.
    Branch,
    /// The victim's own queue, or else the next above.
    Leaf,
}

/// An action of a cycle; see the crate for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Start workloads whose reserved place is free now.
    Promote,
    /// Give free resources to the neediest queues.
    Allocate,
    /// Shrink elastic pods that hold more than they requested.
    GiveBack,
    /// Move pods to reduce fragmentation.
    Consolidate,
    /// Reclaim resources that other queues use above their share.
    Reclaim,
    /// Preempt lower priorities of the queue.
    Preempt,
    /// Stop the rest of gangs that lost too many pods.
    Stale,
    /// Start elastic pods with half of their request, a quarter, ….
    Fit,
    /// Double elastic pods into idle GPUs.
    Grow,
}

impl Action {
    /// Actions of profile `default`, in order.
    pub const DEFAULT: [Self; 9] = [
        Self::Promote,
        Self::Allocate,
        Self::GiveBack,
        Self::Consolidate,
        Self::Reclaim,
        Self::Preempt,
        Self::Stale,
        Self::Fit,
        Self::Grow,
    ];
    /// Actions of profile `kai`, in order. Promotion is not one of them: places on releasing
    /// resources are recomputed in each cycle.
    pub const KAI: [Self; 5] =
        [Self::Allocate, Self::Consolidate, Self::Reclaim, Self::Preempt, Self::Stale];
}

/// Parameters of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Scheduler whose decisions are made.
    pub profile: Profile,
    /// Actions of each cycle, in order.
    pub actions: Vec<Action>,
    /// Placement strategy.
    pub placement: Placement,
    /// Placement strategy of these pools.
    pub pools: BTreeMap<PoolId, Placement>,
    /// Division of capacity that no quota claims.
    pub over_quota: OverQuota,
    /// `true` if quotas that exceed the capacity are honoured in proportion. If `false`, each quota
    /// stays in force and the workloads that came first keep the GPUs.
    pub shrinks_promises: bool,
    /// `true` if a queue that takes beyond its own quota must leave the other its quota. If
    /// `false`, two queues with large gangs can take the same GPUs from each other for ever.
    pub protects_quota: bool,
    /// Factor by which past usage lowers a queue's weight, in thousandths (KAI's k; 0 for none).
    pub usage_weight_millis: u64,
    /// Window of past usage; `None` if fair shares do not depend on the past. The caller keeps the
    /// [`model::UsageLedger`].
    pub usage: Option<model::UsageWindow>,
    /// Maximum number of workloads moved to make room for one (0 = never). KAI's default: 16.
    pub consolidation_moves_max: usize,
    /// Minimum time between two resizes of a workload if no other needs the difference, in
    /// milliseconds. Every resize is a restart from a checkpoint; without a minimum a job beside a
    /// stream of short ones would restart all the time.
    pub grow_interval_ms_min: u64,
    /// Duration of a restart of an elastic workload, in milliseconds: growth beyond its request
    /// waits this long after a shrink, twice as long after the next, and so on.
    pub restart_ms: u64,
    /// Minimum run time of workloads before reclaim by another queue, in milliseconds, where no
    /// queue sets one.
    pub reclaim_min_runtime_ms: u64,
    /// Minimum run time before preemption in a queue, in milliseconds, where no queue sets one.
    pub preempt_min_runtime_ms: u64,
    /// Maximum time for which a gang may run with fewer pods than its minimum before the rest is
    /// stopped, in milliseconds. KAI: 60 s.
    pub stale_grace_ms: u64,
    /// Time that the first queued workload waits for a reservation, in milliseconds.
    pub reserve_after_ms: u64,
    /// Time in which work that is larger than its queue's share, and started because the queue was
    /// behind, is not stopped for another's share, in milliseconds.
    pub turn_ms: u64,
    /// Maximum number of workloads with a reservation (0 = none).
    pub reservations_max: usize,
    /// Maximum number of trial placements of one action in one cycle: the bound on its work.
    pub trials_max: u64,
}

impl Policy {
    /// Rules for the division of capacity.
    #[must_use]
    pub const fn division(&self) -> shares::Rules {
        shares::Rules {
            over_quota: self.over_quota,
            shrinks_promises: self.shrinks_promises,
            usage_weight_millis: self.usage_weight_millis,
        }
    }

    /// The parameters of profile `kai`; `None` in a build without the feature `kai`.
    #[cfg(feature = "kai")]
    #[must_use]
    pub fn kai() -> Option<Self> {
        Some(Self {
            profile: Profile::Kai(Kai::default()),
            actions: Action::KAI.to_vec(),
            reservations_max: 0,
            ..Self::default()
        })
    }

    /// `None`: this build is without the feature `kai`.
    #[cfg(not(feature = "kai"))]
    #[must_use]
    pub const fn kai() -> Option<Self> {
        None
    }

    /// The placement strategy in a pool.
    pub(crate) fn placement_in(&self, pool: PoolId) -> Placement {
        self.pools.get(&pool).copied().unwrap_or(self.placement)
    }

    /// All placement strategies, the general one and those of single pools.
    pub(crate) fn placements(&self) -> impl Iterator<Item = Placement> {
        self.pools.values().copied().chain([self.placement])
    }

    /// The run times guaranteed where no queue sets one.
    pub(crate) fn usual_share(&self) -> Share {
        Share {
            reclaim_min_runtime_ms: Some(self.reclaim_min_runtime_ms),
            preempt_min_runtime_ms: Some(self.preempt_min_runtime_ms),
            ..Share::new(Resources::ZERO, Resources::ZERO)
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            profile: Profile::Default,
            actions: Action::DEFAULT.to_vec(),
            placement: Placement::all(Fill::BinPack),
            pools: BTreeMap::new(),
            over_quota: OverQuota::ByWeight,
            shrinks_promises: true,
            protects_quota: true,
            usage_weight_millis: 1000,
            usage: None,
            consolidation_moves_max: 16,
            grow_interval_ms_min: 10_000,
            restart_ms: 30_000,
            reclaim_min_runtime_ms: 0,
            preempt_min_runtime_ms: 0,
            stale_grace_ms: 60_000,
            reserve_after_ms: 300_000,
            turn_ms: 3_600_000,
            reservations_max: 4,
            trials_max: 100_000,
        }
    }
}
