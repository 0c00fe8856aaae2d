//! Every knob of a decision, with its default. Owns no behaviour.

use std::collections::BTreeMap;

use model::{Fill, GpuRequest, PoolId, Share};
use shares::OverQuota;
use units::Resources;

/// Which of the places that fit is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Nodes, for pods with GPUs.
    pub gpu: Fill,
    /// Nodes, for pods without.
    pub cpu: Fill,
    /// The GPUs of a node, for shares of them.
    pub devices: Fill,
}

impl Placement {
    /// The same everywhere.
    #[must_use]
    pub const fn all(fill: Fill) -> Self {
        Self { gpu: fill, cpu: fill, devices: fill }
    }

    /// True if some pods are spread over the nodes.
    #[cfg(feature = "kai")]
    pub(crate) fn spreads_nodes(self) -> bool {
        [self.gpu, self.cpu].contains(&Fill::Spread)
    }

    /// Nodes, for this request.
    pub(crate) fn nodes(self, request: GpuRequest) -> Fill {
        if request.devices() == 0 { self.cpu } else { self.gpu }
    }
}

/// Whose decisions are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// Our own.
    #[default]
    Default,
    /// Those of KAI-Scheduler, as the scheduling reference describes them. No value of it exists in a
    /// build without the feature `kai`.
    Kai(Kai),
}

/// Knobs that only profile `kai` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kai {
    /// How much further above its fair share than the taker a queue must be, in thousandths.
    pub saturation_millis: u64,
    /// True if reclaim may move workloads without counting them as taken.
    pub consolidating_reclaim: bool,
    /// Most workloads of one queue that an action looks at.
    pub queue_depth: usize,
    /// Which queue says how long a victim of reclaim runs at least.
    pub runtime_from: RuntimeFrom,
    /// The proof that this build has the profile.
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

/// Which queue says how long a victim of reclaim runs at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeFrom {
    /// The victim's ancestor just below the point where its path and the taker's part, or else
    /// the next above.
    Branch,
    /// The victim's own queue, or else the next above.
    Leaf,
}

/// One of the things a decision is made of; see the crate for what each does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Start what waited for a place that is free now.
    Promote,
    /// Give free resources to the neediest.
    Allocate,
    /// Shrink elastic pods that hold more than they asked for.
    GiveBack,
    /// Move pods so that free resources come together.
    Consolidate,
    /// Take from other queues what they hold above their share.
    Reclaim,
    /// Take from lower priorities of the same queue.
    Preempt,
    /// Stop what is left of gangs that lost too many pods.
    Stale,
    /// Start elastic pods with half of what they asked for, a quarter, ….
    Fit,
    /// Double elastic pods into idle GPUs.
    Grow,
}

impl Action {
    /// What profile `default` does, in order.
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
    /// What profile `kai` does, in order. Promotion is no part of it: places on what is being
    /// released are recomputed in each cycle.
    pub const KAI: [Self; 5] =
        [Self::Allocate, Self::Consolidate, Self::Reclaim, Self::Preempt, Self::Stale];
}

/// The knobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whose decisions are made.
    pub profile: Profile,
    /// What is done in each cycle, in order.
    pub actions: Vec<Action>,
    /// Which node is taken.
    pub placement: Placement,
    /// The same for nodes of these pools.
    pub pools: BTreeMap<PoolId, Placement>,
    /// How capacity that no quota claims is divided.
    pub over_quota: OverQuota,
    /// `true` if quotas that promise more than there is are honoured in proportion. If not, each
    /// keeps its promise on paper and the workloads that came first keep the GPUs.
    pub shrinks_promises: bool,
    /// True if a queue that takes beyond its own quota must leave the other its quota. If not, two
    /// queues with large gangs can take the same GPUs from each other for ever.
    pub protects_quota: bool,
    /// How strongly past use lowers a queue's weight, in thousandths (KAI's k; 0 = not at all).
    pub usage_weight_millis: u64,
    /// Which past counts as use; none: fair shares do not depend on the past. Who calls keeps the
    /// [`model::UsageLedger`].
    pub usage: Option<model::UsageWindow>,
    /// Most workloads moved to make room for one (0 = never move). KAI's default is 16 too.
    pub consolidation_moves_max: usize,
    /// Minimum time between two resizes of a workload if no other needs the difference, in
    /// milliseconds. Every resize is a restart from a checkpoint; without a floor a job beside a
    /// stream of short ones would do nothing but restart.
    pub grow_interval_ms_min: u64,
    /// How long a restart of an elastic workload takes, in milliseconds: after a shrink it waits as long
    /// before it grows beyond its request, after the next twice as long, and so on.
    pub restart_ms: u64,
    /// How long workloads run before another queue may take from them, in milliseconds, where no
    /// queue says anything.
    pub reclaim_min_runtime_ms: u64,
    /// The same before a higher priority of their own queue may stop them.
    pub preempt_min_runtime_ms: u64,
    /// How long a gang may run with fewer pods than its minimum before the rest is stopped, in
    /// milliseconds. KAI: 60 s.
    pub stale_grace_ms: u64,
    /// How long the first in line waits before room is kept for it, in milliseconds.
    pub reserve_after_ms: u64,
    /// How long work that is larger than its queue's share and started because the queue was behind
    /// is not stopped for another's share, in milliseconds.
    pub turn_ms: u64,
    /// Most workloads that room is kept for (0 = for none).
    pub reservations_max: usize,
    /// Most trial placements of one action in one cycle: the bound on its work.
    pub trials_max: u64,
}

impl Policy {
    /// How capacity is divided.
    #[must_use]
    pub const fn division(&self) -> shares::Rules {
        shares::Rules {
            over_quota: self.over_quota,
            shrinks_promises: self.shrinks_promises,
            usage_weight_millis: self.usage_weight_millis,
        }
    }

    /// KAI's decisions; none in a build without the feature `kai`.
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

    /// None: this build is without the feature `kai`.
    #[cfg(not(feature = "kai"))]
    #[must_use]
    pub const fn kai() -> Option<Self> {
        None
    }

    /// Which places of a pool are taken.
    pub(crate) fn placement_in(&self, pool: PoolId) -> Placement {
        self.pools.get(&pool).copied().unwrap_or(self.placement)
    }

    /// How places are taken, everywhere and in single pools.
    pub(crate) fn placements(&self) -> impl Iterator<Item = Placement> {
        self.pools.values().copied().chain([self.placement])
    }

    /// The run times guaranteed where no queue says anything.
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
