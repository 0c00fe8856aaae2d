//! Parameters of the scheduler in a scenario. Owns: their names and values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::amount::{Count, Span};
use super::list::OneOrMany;
use super::placement::Placement;

/// Parameters of the scheduler; a value that is not given has the scheduler's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Scheduler whose decisions are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Actions of each cycle, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<OneOrMany<Action>>,
    /// Factor by which the saturation of a queue must exceed that of the reclaimer; profile `kai`
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation_multiplier: Option<Count>,
    /// `true` if reclaim may move workloads without counting them as reclaimed; profile `kai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidating_reclaim: Option<bool>,
    /// Maximum number of workloads of one queue in an action; profile `kai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<usize>,
    /// Queue whose minimum run time protects a victim of reclaim; profile `kai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_runtime: Option<RuntimeFrom>,
    /// Placement strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Placement strategy of single node pools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pool_placement: BTreeMap<String, Placement>,
    /// Division of capacity that no quota claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_quota: Option<OverQuota>,
    /// Factor by which past usage lowers a queue's weight; 1 is full strength.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_weight: Option<Count>,
    /// Window of past usage; past usage does not count if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageWindow>,
    /// Maximum number of workloads moved to make room for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation_moves_max: Option<usize>,
    /// Minimum time between two resizes of a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grow_interval: Option<Span>,
    /// Duration of a restart: growth beyond a request waits this long, and twice as long after each
    /// shrink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Span>,
    /// Time in which work that started on its queue's lag is not stopped for another's share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Span>,
    /// Minimum run time of workloads before reclaim by another queue, where no queue sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime: Option<Span>,
    /// Minimum run time of workloads before preemption by a higher priority of their queue, where
    /// no queue sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime: Option<Span>,
    /// Maximum time for which a gang may run with fewer pods than its minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_grace: Option<Span>,
    /// Time that the first workload in the queue waits before room is reserved for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve_after: Option<Span>,
    /// Maximum number of workloads with a reservation; 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations_max: Option<usize>,
    /// Maximum number of trial placements of one action in one cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_max: Option<u64>,
}

/// A scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The scheduler of Elastane.
    Default,
    /// KAI-Scheduler.
    Kai,
}

/// An action of a cycle; the names of KAI are accepted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Start workloads whose reserved place is free now; profile `default` only.
    Promote,
    /// Give free resources to the queues furthest below their share.
    Allocate,
    /// Shrink elastic pods that hold more than they requested.
    GiveBack,
    /// Move pods to reduce fragmentation.
    #[serde(alias = "consolidation")]
    Consolidate,
    /// Reclaim resources that other queues use above their share.
    Reclaim,
    /// Preempt lower priorities of the queue.
    Preempt,
    /// Stop the rest of gangs that lost too many pods.
    #[serde(alias = "stalegangeviction")]
    Stale,
    /// Start elastic pods smaller than requested.
    Fit,
    /// Double elastic pods into resources that no other workload wants.
    Grow,
}

/// Queue whose minimum run time protects a victim of reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeFrom {
    /// The victim's ancestor just below the lowest common ancestor of victim and reclaimer.
    Lca,
    /// The victim's own queue.
    Queue,
}

/// A window of past usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageWindow {
    /// Length of the window.
    pub window: Span,
    /// Kind of the window.
    #[serde(default)]
    pub kind: WindowKind,
    /// Age at which usage counts half; all usage counts fully if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life: Option<Span>,
    /// Time since the start of the present window, for tumbling windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Span>,
}

/// Kind of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowKind {
    /// The window always ends now.
    #[default]
    Sliding,
    /// Windows follow one another; each begins with no usage.
    Tumbling,
}

/// Division of capacity that no quota claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverQuota {
    /// By the weights of the queues.
    ByWeight,
    /// In proportion to the quotas.
    ByQuota,
}
