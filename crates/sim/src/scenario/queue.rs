//! Queues as a scenario file has them: a department or a project, and what it is entitled to.
//! Does not know about: the model; `build` converts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::amount::Span;
use super::is_default;
use super::types::{Amounts, Weights};

/// A department or a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Name, unique.
    pub name: String,
    /// The queue above; none for one directly under the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it is entitled to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quota: Amounts,
    /// Most it may hold.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit: Amounts,
    /// Its weights when left-over capacity is divided.
    #[serde(default, skip_serializing_if = "is_default")]
    pub weight: Weights,
    /// Queues of higher priority are served first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// What it used in the recent past.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage_ppm: UsagePpm,
    /// How far it is behind its fair share over time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lag: Lag,
    /// How long its workloads run before a higher priority of the same queue may stop them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime: Option<Span>,
    /// How long its workloads run before another queue may take from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime: Option<Span>,
    /// What it is entitled to in each node pool, if every pool has queues of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, QueueShare>,
}

/// What a queue is entitled to in one node pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueShare {
    /// What it is entitled to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quota: Amounts,
    /// Most it may hold.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit: Amounts,
    /// Its weights when left-over capacity is divided.
    #[serde(default, skip_serializing_if = "is_default")]
    pub weight: Weights,
    /// Queues of higher priority are served first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// What it used in the recent past.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage_ppm: UsagePpm,
    /// How far it is behind its fair share over time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lag: Lag,
    /// How long its workloads run before a higher priority of the same queue may stop them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime: Option<Span>,
    /// How long its workloads run before another queue may take from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime: Option<Span>,
}

/// Millionths of the cluster per resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsagePpm {
    /// Of its GPUs.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu: u32,
    /// Of its cores.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu: u32,
    /// Of its memory.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: u32,
}

/// How far a queue is behind its fair share of the GPUs over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lag {
    /// GPU-milliseconds; negative where it has had more than its share.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_ms: i64,
    /// How long ago its turn began; none while it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Span>,
}

impl Queue {
    /// A queue under the root with the usual numbers.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            parent: None,
            quota: Amounts::default(),
            limit: Amounts::default(),
            weight: Weights::default(),
            priority: None,
            usage_ppm: UsagePpm::default(),
            lag: Lag::default(),
            preempt_min_runtime: None,
            reclaim_min_runtime: None,
            pools: BTreeMap::new(),
        }
    }

    /// What it is entitled to, as far as that is not said for each pool.
    #[must_use]
    pub const fn share(&self) -> QueueShare {
        QueueShare {
            quota: self.quota,
            limit: self.limit,
            weight: self.weight,
            priority: self.priority,
            usage_ppm: self.usage_ppm,
            lag: self.lag,
            preempt_min_runtime: self.preempt_min_runtime,
            reclaim_min_runtime: self.reclaim_min_runtime,
        }
    }

    /// A queue that is entitled to this.
    #[must_use]
    pub fn with(name: &str, share: QueueShare) -> Self {
        Self {
            quota: share.quota,
            limit: share.limit,
            weight: share.weight,
            priority: share.priority,
            usage_ppm: share.usage_ppm,
            lag: share.lag,
            preempt_min_runtime: share.preempt_min_runtime,
            reclaim_min_runtime: share.reclaim_min_runtime,
            ..Self::named(name)
        }
    }
}
