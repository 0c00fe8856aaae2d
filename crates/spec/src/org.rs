//! What projects and departments are given: quota, limit, weight and rank in each node pool, time limits,
//! and types of nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::WorkloadKind;

/// Quota, limit and weight of a project or a department. `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Deserved GPUs, in thousandths.
    pub gpu_quota_millis: u64,
    /// Most GPUs it may hold, in thousandths.
    pub gpu_limit_millis: Option<u64>,
    /// Weight when left-over GPUs are divided; 0 = none of them.
    pub over_quota_weight: u64,
    /// Deserved CPU thousandths; none = unlimited.
    pub cpu_quota_millis: Option<u64>,
    /// Deserved bytes of memory; none = unlimited.
    pub memory_quota_bytes: Option<u64>,
    /// Most CPU thousandths it may hold.
    pub cpu_limit_millis: Option<u64>,
    /// Most bytes of memory it may hold.
    pub memory_limit_bytes: Option<u64>,
    /// Weight for CPU; none = that of the GPUs.
    pub cpu_weight: Option<u64>,
    /// Weight for memory; none = that of the GPUs.
    pub memory_weight: Option<u64>,
    /// Who is served first among siblings.
    pub rank: Rank,
    /// How long its work runs before a higher priority of the same project may stop it; none: as the
    /// node pool says.
    pub preempt_min_runtime_ms: Option<u64>,
    /// The same before another project may take from it.
    pub reclaim_min_runtime_ms: Option<u64>,
}

impl Share {
    /// What a project has in a node pool without a share of its own there.
    pub const USUAL: Self = Self::none(2);

    /// Nothing deserved, nothing limited.
    #[must_use]
    pub const fn none(over_quota_weight: u64) -> Self {
        Self {
            gpu_quota_millis: 0,
            gpu_limit_millis: None,
            over_quota_weight,
            cpu_quota_millis: None,
            memory_quota_bytes: None,
            cpu_limit_millis: None,
            memory_limit_bytes: None,
            cpu_weight: None,
            memory_weight: None,
            rank: Rank::MediumLow,
            preempt_min_runtime_ms: None,
            reclaim_min_runtime_ms: None,
        }
    }
}

/// Rank of a project or department among its siblings: what no quota claims goes to higher
/// ranks first, by weight among equals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The last.
    VeryLow,
    /// Below the usual.
    Low,
    /// The usual.
    #[default]
    MediumLow,
    /// Above the usual.
    Medium,
    /// Higher.
    MediumHigh,
    /// Higher still.
    High,
    /// The first.
    VeryHigh,
}

impl Rank {
    /// All of them, the last first.
    pub const ALL: [Self; 7] = [
        Self::VeryLow,
        Self::Low,
        Self::MediumLow,
        Self::Medium,
        Self::MediumHigh,
        Self::High,
        Self::VeryHigh,
    ];

    /// Queues of a higher value go first.
    #[must_use]
    pub const fn value(self) -> u32 {
        match self {
            Self::VeryLow => 25,
            Self::Low => 50,
            // What a queue has that says nothing.
            Self::MediumLow => 100,
            Self::Medium => 125,
            Self::MediumHigh => 150,
            Self::High => 175,
            Self::VeryHigh => 200,
        }
    }
}

/// What to change of a share, or what of it was given. An inner `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareChange {
    /// Deserved GPUs, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_quota_millis: Option<u64>,
    /// Most GPUs it may hold, in thousandths.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub gpu_limit_millis: Option<Option<u64>>,
    /// Weight when left-over capacity is divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_quota_weight: Option<u64>,
    /// Deserved CPU thousandths.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cpu_quota_millis: Option<Option<u64>>,
    /// Deserved bytes of memory.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_quota_bytes: Option<Option<u64>>,
    /// Most CPU thousandths it may hold.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millis: Option<Option<u64>>,
    /// Most bytes of memory it may hold.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<Option<u64>>,
    /// Weight for CPU; an inner `None` is that of the GPUs.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<Option<u64>>,
    /// Weight for memory; an inner `None` is that of the GPUs.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_weight: Option<Option<u64>>,
    /// Who is served first among siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// How long its work runs before a higher priority of the same project may stop it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime_ms: Option<u64>,
    /// The same before another project may take from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime_ms: Option<u64>,
}

impl ShareChange {
    /// The share with this change made.
    #[must_use]
    pub fn made_to(&self, share: Share) -> Share {
        Share {
            gpu_quota_millis: self.gpu_quota_millis.unwrap_or(share.gpu_quota_millis),
            gpu_limit_millis: self.gpu_limit_millis.unwrap_or(share.gpu_limit_millis),
            over_quota_weight: self.over_quota_weight.unwrap_or(share.over_quota_weight),
            cpu_quota_millis: self.cpu_quota_millis.unwrap_or(share.cpu_quota_millis),
            memory_quota_bytes: self.memory_quota_bytes.unwrap_or(share.memory_quota_bytes),
            cpu_limit_millis: self.cpu_limit_millis.unwrap_or(share.cpu_limit_millis),
            memory_limit_bytes: self.memory_limit_bytes.unwrap_or(share.memory_limit_bytes),
            cpu_weight: self.cpu_weight.unwrap_or(share.cpu_weight),
            memory_weight: self.memory_weight.unwrap_or(share.memory_weight),
            rank: self.rank.unwrap_or(share.rank),
            preempt_min_runtime_ms: self.preempt_min_runtime_ms.or(share.preempt_min_runtime_ms),
            reclaim_min_runtime_ms: self.reclaim_min_runtime_ms.or(share.reclaim_min_runtime_ms),
        }
    }

    /// This change, and then that one.
    #[must_use]
    pub fn and(self, then: Self) -> Self {
        Self {
            gpu_quota_millis: then.gpu_quota_millis.or(self.gpu_quota_millis),
            gpu_limit_millis: then.gpu_limit_millis.or(self.gpu_limit_millis),
            over_quota_weight: then.over_quota_weight.or(self.over_quota_weight),
            cpu_quota_millis: then.cpu_quota_millis.or(self.cpu_quota_millis),
            memory_quota_bytes: then.memory_quota_bytes.or(self.memory_quota_bytes),
            cpu_limit_millis: then.cpu_limit_millis.or(self.cpu_limit_millis),
            memory_limit_bytes: then.memory_limit_bytes.or(self.memory_limit_bytes),
            cpu_weight: then.cpu_weight.or(self.cpu_weight),
            memory_weight: then.memory_weight.or(self.memory_weight),
            rank: then.rank.or(self.rank),
            preempt_min_runtime_ms: then.preempt_min_runtime_ms.or(self.preempt_min_runtime_ms),
            reclaim_min_runtime_ms: then.reclaim_min_runtime_ms.or(self.reclaim_min_runtime_ms),
        }
    }
}

/// A value that is there, be it null: what was not given differs from unlimited.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

/// How long workloads may run, and leave their GPUs idle, at a time, in milliseconds; none = as long
/// as they want.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// How long trainings may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_run_ms_max: Option<u64>,
    /// How long workspaces may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_run_ms_max: Option<u64>,
    /// How long trainings may be idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_idle_ms_max: Option<u64>,
    /// How long workspaces that are not preemptible may be idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_idle_ms_max: Option<u64>,
    /// How long preemptible workspaces may be idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptible_workspace_idle_ms_max: Option<u64>,
}

impl Rules {
    /// The tighter of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let tighter = |of: fn(&Self) -> Option<u64>| of(&self).into_iter().chain(of(&other)).min();
        Self {
            training_run_ms_max: tighter(|rules| rules.training_run_ms_max),
            workspace_run_ms_max: tighter(|rules| rules.workspace_run_ms_max),
            training_idle_ms_max: tighter(|rules| rules.training_idle_ms_max),
            workspace_idle_ms_max: tighter(|rules| rules.workspace_idle_ms_max),
            preemptible_workspace_idle_ms_max: tighter(|rules| {
                rules.preemptible_workspace_idle_ms_max
            }),
        }
    }

    /// How long a workload of a kind may run.
    #[must_use]
    pub const fn run_ms_max(self, kind: WorkloadKind) -> Option<u64> {
        match kind {
            WorkloadKind::Training | WorkloadKind::Distributed => self.training_run_ms_max,
            WorkloadKind::Workspace => self.workspace_run_ms_max,
            WorkloadKind::Inference => None,
        }
    }

    /// How long a workload of a kind may leave its GPUs idle.
    #[must_use]
    pub const fn idle_ms_max(self, kind: WorkloadKind, preemptible: bool) -> Option<u64> {
        match kind {
            WorkloadKind::Training | WorkloadKind::Distributed => self.training_idle_ms_max,
            WorkloadKind::Workspace if preemptible => self.preemptible_workspace_idle_ms_max,
            WorkloadKind::Workspace => self.workspace_idle_ms_max,
            WorkloadKind::Inference => None,
        }
    }
}

/// Types of nodes, by the kinds of workloads that may go to them; empty = all. The type of a node is
/// its label `run.ai/type`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeTypes {
    /// For trainings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub training: Vec<String>,
    /// For workspaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace: Vec<String>,
    /// What people call them; kept and returned.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
}

impl NodeTypes {
    /// Those for a kind of workload.
    #[must_use]
    pub fn of(&self, kind: WorkloadKind) -> &[String] {
        match kind {
            WorkloadKind::Training | WorkloadKind::Distributed => &self.training,
            WorkloadKind::Workspace => &self.workspace,
            // Where models are served is not restricted.
            WorkloadKind::Inference => &[],
        }
    }
}
