//! Settings of projects and departments: quota, limit, weight and rank in each node pool, time
//! limits, and types of nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::WorkloadKind;

/// Quota, limit and weight of a project or a department. `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Deserved GPUs, in thousandths.
    pub gpu_quota_millis: u64,
    /// Maximum of GPUs, in thousandths; `None` is unlimited.
    pub gpu_limit_millis: Option<u64>,
    /// Weight when unclaimed GPUs are divided; 0 for those that no project with a weight asks for.
    pub over_quota_weight: u64,
    /// Deserved CPU, in thousandths of a core; `None` is unlimited.
    pub cpu_quota_millis: Option<u64>,
    /// Deserved memory, in bytes; `None` is unlimited.
    pub memory_quota_bytes: Option<u64>,
    /// Maximum of CPU, in thousandths of a core; `None` is unlimited.
    pub cpu_limit_millis: Option<u64>,
    /// Maximum of memory, in bytes; `None` is unlimited.
    pub memory_limit_bytes: Option<u64>,
    /// Weight for CPU; `None` for that of the GPUs.
    pub cpu_weight: Option<u64>,
    /// Weight for memory; `None` for that of the GPUs.
    pub memory_weight: Option<u64>,
    /// Rank among siblings.
    pub rank: Rank,
    /// Minimum runtime of its work before a higher priority of the same project may preempt it, in
    /// milliseconds; `None` for the setting of the node pool.
    pub preempt_min_runtime_ms: Option<u64>,
    /// Minimum runtime of its work before another project may reclaim from it, in milliseconds;
    /// `None` for the setting of the node pool.
    pub reclaim_min_runtime_ms: Option<u64>,
}

impl Share {
    /// Share of a project in a node pool where none is set.
    pub const USUAL: Self = Self::none(2);

    /// A share without quota and without limits.
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

/// Rank of a project or department among its siblings: capacity that no quota claims goes to higher
/// ranks first, by weight among equals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The lowest.
    VeryLow,
    /// Below the default.
    Low,
    /// The default.
    #[default]
    MediumLow,
    /// Above the default.
    Medium,
    /// Higher.
    MediumHigh,
    /// Higher still.
    High,
    /// The highest.
    VeryHigh,
}

impl Rank {
    /// All ranks, the lowest first.
    pub const ALL: [Self; 7] = [
        Self::VeryLow,
        Self::Low,
        Self::MediumLow,
        Self::Medium,
        Self::MediumHigh,
        Self::High,
        Self::VeryHigh,
    ];

    /// Number of the rank; queues of a higher value go first.
    #[must_use]
    pub const fn value(self) -> u32 {
        match self {
            Self::VeryLow => 25,
            Self::Low => 50,
            // Default of a queue without a value.
            Self::MediumLow => 100,
            Self::Medium => 125,
            Self::MediumHigh => 150,
            Self::High => 175,
            Self::VeryHigh => 200,
        }
    }
}

/// A change of a share, or the explicitly set fields of one. An inner `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareChange {
    /// Deserved GPUs, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_quota_millis: Option<u64>,
    /// Maximum of GPUs, in thousandths.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub gpu_limit_millis: Option<Option<u64>>,
    /// Weight when unclaimed capacity is divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_quota_weight: Option<u64>,
    /// Deserved CPU, in thousandths of a core.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cpu_quota_millis: Option<Option<u64>>,
    /// Deserved memory, in bytes.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_quota_bytes: Option<Option<u64>>,
    /// Maximum of CPU, in thousandths of a core.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cpu_limit_millis: Option<Option<u64>>,
    /// Maximum of memory, in bytes.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<Option<u64>>,
    /// Weight for CPU; an inner `None` is that of the GPUs.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<Option<u64>>,
    /// Weight for memory; an inner `None` is that of the GPUs.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory_weight: Option<Option<u64>>,
    /// Rank among siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Minimum runtime before a higher priority of the same project may preempt it, in
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime_ms: Option<u64>,
    /// Minimum runtime before another project may reclaim from it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime_ms: Option<u64>,
    /// Quotas that are not set any more, in a change.
    #[serde(skip_serializing_if = "SummedQuotas::is_none")]
    pub summed: SummedQuotas,
}

/// Quotas of a department that are the sums of those of its projects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummedQuotas {
    /// GPUs.
    pub gpu: bool,
    /// CPU.
    pub cpu: bool,
    /// Memory.
    pub memory: bool,
}

impl SummedQuotas {
    /// True if there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl ShareChange {
    /// A share with the quotas that this change does not set any more as in `usual`.
    #[must_use]
    pub fn unset(&self, share: Share, usual: Share) -> Share {
        let SummedQuotas { gpu, cpu, memory } = self.summed;
        let of = |is_unset: bool| if is_unset { usual } else { share };
        Share {
            gpu_quota_millis: of(gpu).gpu_quota_millis,
            cpu_quota_millis: of(cpu).cpu_quota_millis,
            memory_quota_bytes: of(memory).memory_quota_bytes,
            ..share
        }
    }

    /// Applies this change to a share.
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

    /// This change followed by another, which wins where both set a field.
    #[must_use]
    pub fn and(self, then: Self) -> Self {
        let SummedQuotas { gpu, cpu, memory } = then.summed;
        Self {
            gpu_quota_millis: then.gpu_quota_millis.or(self.gpu_quota_millis.filter(|_| !gpu)),
            gpu_limit_millis: then.gpu_limit_millis.or(self.gpu_limit_millis),
            over_quota_weight: then.over_quota_weight.or(self.over_quota_weight),
            cpu_quota_millis: then.cpu_quota_millis.or(self.cpu_quota_millis.filter(|_| !cpu)),
            memory_quota_bytes: then
                .memory_quota_bytes
                .or(self.memory_quota_bytes.filter(|_| !memory)),
            cpu_limit_millis: then.cpu_limit_millis.or(self.cpu_limit_millis),
            memory_limit_bytes: then.memory_limit_bytes.or(self.memory_limit_bytes),
            cpu_weight: then.cpu_weight.or(self.cpu_weight),
            memory_weight: then.memory_weight.or(self.memory_weight),
            rank: then.rank.or(self.rank),
            preempt_min_runtime_ms: then.preempt_min_runtime_ms.or(self.preempt_min_runtime_ms),
            reclaim_min_runtime_ms: then.reclaim_min_runtime_ms.or(self.reclaim_min_runtime_ms),
            summed: SummedQuotas::default(),
        }
    }
}

/// Reads a field that is present, be it null: an absent field differs from unlimited.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

/// Maximum time that workloads may run, and leave their GPUs idle, at a time, in milliseconds;
/// `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Maximum runtime of trainings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_run_ms_max: Option<u64>,
    /// Maximum runtime of workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_run_ms_max: Option<u64>,
    /// Maximum idle time of trainings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_idle_ms_max: Option<u64>,
    /// Maximum idle time of workspaces that are not preemptible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_idle_ms_max: Option<u64>,
    /// Maximum idle time of preemptible workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptible_workspace_idle_ms_max: Option<u64>,
}

impl Rules {
    /// The tighter limit of both, for each field.
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

    /// Maximum runtime of a kind of workload.
    #[must_use]
    pub const fn run_ms_max(self, kind: WorkloadKind) -> Option<u64> {
        match kind {
            WorkloadKind::Training | WorkloadKind::Distributed => self.training_run_ms_max,
            WorkloadKind::Workspace => self.workspace_run_ms_max,
            WorkloadKind::Inference => None,
        }
    }

    /// Maximum idle time of a kind of workload.
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

/// Node types, by the kinds of workloads that may run on them; empty for all. The type of a node is
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
    /// Display names of the types; kept and returned.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
}

impl NodeTypes {
    /// Node types for a kind of workload; empty for all.
    #[must_use]
    pub fn of(&self, kind: WorkloadKind) -> &[String] {
        match kind {
            WorkloadKind::Training | WorkloadKind::Distributed => &self.training,
            WorkloadKind::Workspace => &self.workspace,
            // Inference is not restricted.
            WorkloadKind::Inference => &[],
        }
    }
}
