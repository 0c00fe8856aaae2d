//! Every knob of a decision, with its default. Owns no behaviour.

/// Which of the nodes that fit is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The fullest, so that large requests find whole nodes.
    BinPack,
    /// The emptiest, so that pods disturb each other least.
    Spread,
}

/// How capacity that no quota claims is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverQuota {
    /// By the weights of the queues.
    ByWeight,
    /// In proportion to the quotas, as Run:ai did until 2021.
    ByQuota,
}

/// The knobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Which node is taken.
    pub placement: Placement,
    /// How capacity that no quota claims is divided.
    pub over_quota: OverQuota,
    /// Whether quotas that promise more than there is are honoured in proportion. If not, each
    /// keeps its promise on paper and whoever came first keeps the GPUs.
    pub shrinks_promises: bool,
    /// Whether a queue that takes beyond its own quota must leave the other its quota. If not, two
    /// queues with large gangs can take the same GPUs from each other for ever.
    pub protects_quota: bool,
    /// How strongly past use lowers a queue's weight, in thousandths (KAI's k; 0 = not at all).
    pub usage_weight_millis: u64,
    /// Most workloads moved to make room for one (0 = never move). KAI's default is 16 too.
    pub consolidation_moves_max: usize,
    /// Least time between two resizes of a workload if nobody needs the difference, in
    /// milliseconds. Every resize is a restart from a checkpoint; without a floor a job beside a
    /// stream of short ones would do nothing but restart.
    pub grow_interval_ms_min: u64,
    /// How long a gang may run with fewer pods than its minimum before the rest is stopped, in
    /// milliseconds. KAI: 60 s.
    pub stale_grace_ms: u64,
    /// Most trial placements of one action in one cycle: the bound on its work.
    pub trials_max: u64,
}

impl Policy {
    /// The rules of reclaim and fair share as KAI's are described (scheduling reference §7, §15).
    #[must_use]
    pub fn kai() -> Self {
        Self { shrinks_promises: false, protects_quota: false, ..Self::default() }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            placement: Placement::BinPack,
            over_quota: OverQuota::ByWeight,
            shrinks_promises: true,
            protects_quota: true,
            usage_weight_millis: 1000,
            consolidation_moves_max: 16,
            grow_interval_ms_min: 10_000,
            stale_grace_ms: 60_000,
            trials_max: 100_000,
        }
    }
}
