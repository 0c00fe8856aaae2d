//! The knobs of the scheduler as a scenario says them. Owns: their words.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::amount::{Count, Span};
use super::list::OneOrMany;
use super::placement::Placement;

/// Knobs of the scheduler; what is not given has the scheduler's own default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Whose decisions are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// What is done in each cycle, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<OneOrMany<Action>>,
    /// How much further above its fair share than the taker a queue must be; profile `kai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation_multiplier: Option<Count>,
    /// True if reclaim may move workloads without counting them as taken; profile `kai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidating_reclaim: Option<bool>,
    /// Most workloads of one queue that an action looks at; profile `kai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<usize>,
    /// Which queue says how long a victim of reclaim runs at least; profile `kai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_runtime: Option<RuntimeFrom>,
    /// Which of the nodes that fit is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The same for the nodes of single pools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pool_placement: BTreeMap<String, Placement>,
    /// How capacity that no quota claims is divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_quota: Option<OverQuota>,
    /// How strongly past use lowers a queue's weight; 1 is full strength.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_weight: Option<Count>,
    /// Which past counts as use; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageWindow>,
    /// Most workloads moved to make room for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation_moves_max: Option<usize>,
    /// Least time between two resizes of a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grow_interval: Option<Span>,
    /// How long a restart takes: so long, and after each shrink twice as long, growth beyond a request waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Span>,
    /// How long work that started on its queue's lag is not stopped for another's share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Span>,
    /// How long workloads run before another queue may take from them, where no queue says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime: Option<Span>,
    /// The same before a higher priority of their own queue may stop them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime: Option<Span>,
    /// How long a gang may run with fewer pods than its minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_grace: Option<Span>,
    /// How long the first in line waits before room is kept for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve_after: Option<Span>,
    /// Most workloads that room is kept for; 0 is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations_max: Option<usize>,
    /// Most trial placements of one action in one cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_max: Option<u64>,
}

/// Whose decisions are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Our own.
    Default,
    /// Those of KAI-Scheduler.
    Kai,
}

/// What a decision is made of; the words of KAI are understood too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Start what waited for a place that is free now; profile `default` only.
    Promote,
    /// Give free resources to the neediest.
    Allocate,
    /// Shrink elastic pods that hold more than they asked for.
    GiveBack,
    /// Move pods so that free resources come together.
    #[serde(alias = "consolidation")]
    Consolidate,
    /// Take from other queues what they hold above their share.
    Reclaim,
    /// Take from lower priorities of the same queue.
    Preempt,
    /// Stop what is left of gangs that lost too many pods.
    #[serde(alias = "stalegangeviction")]
    Stale,
    /// Start elastic pods smaller than they asked for.
    Fit,
    /// Double elastic pods into what no other workload wants.
    Grow,
}

/// Which queue says how long a victim of reclaim runs at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeFrom {
    /// The victim's ancestor just below the point where its path and the taker's part.
    Lca,
    /// The victim's own.
    Queue,
}

/// The past that counts as use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageWindow {
    /// Its length.
    pub window: Span,
    /// How it moves.
    #[serde(default)]
    pub kind: WindowKind,
    /// What is that old counts half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life: Option<Span>,
    /// How long ago the present one began, if it tumbles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Span>,
}

/// How a window moves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowKind {
    /// It always ends now.
    #[default]
    Sliding,
    /// One follows the other; each begins with a clean sheet.
    Tumbling,
}

/// How capacity that no quota claims is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverQuota {
    /// By the weights of the queues.
    ByWeight,
    /// In proportion to the quotas.
    ByQuota,
}
