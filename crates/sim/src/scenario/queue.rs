//! Queues in a scenario file: departments and projects with their shares. Does not know about: the
//! model; `build` converts.

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
    /// Name of the parent queue; `None` for one directly under the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Quota.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quota: Amounts,
    /// Limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit: Amounts,
    /// Weights for the division of capacity above quotas.
    #[serde(default, skip_serializing_if = "is_default")]
    pub weight: Weights,
    /// Queues of higher priority are served first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Recent usage.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage_ppm: UsagePpm,
    /// Lag behind its fair share over time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lag: Lag,
    /// Minimum run time of its workloads before preemption by a higher priority of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime: Option<Span>,
    /// Minimum run time of its workloads before reclaim by another queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime: Option<Span>,
    /// Share in each node pool, if every pool has queues of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, QueueShare>,
}

/// Share of a queue in one node pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueShare {
    /// Quota.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quota: Amounts,
    /// Limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit: Amounts,
    /// Weights for the division of capacity above quotas.
    #[serde(default, skip_serializing_if = "is_default")]
    pub weight: Weights,
    /// Queues of higher priority are served first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Recent usage.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage_ppm: UsagePpm,
    /// Lag behind its fair share over time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lag: Lag,
    /// Minimum run time of its workloads before preemption by a higher priority of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime: Option<Span>,
    /// Minimum run time of its workloads before reclaim by another queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime: Option<Span>,
}

/// Usage in millionths of the cluster, per resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsagePpm {
    /// Usage of GPUs.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu: u32,
    /// Usage of cores.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu: u32,
    /// Usage of memory.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: u32,
}

/// Lag of a queue behind its fair share of the GPUs over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lag {
    /// Lag in GPU-milliseconds; negative if it has had more than its share.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_ms: i64,
    /// Time since its turn began; `None` if it has no turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Span>,
}

impl Queue {
    /// A queue under the root with default values.
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

    /// The share in the default node pool, and in the others unless given there.
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

    /// A queue with this share.
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
