//! Rows of the ledger: who held GPUs from when to when, and how much of it was used. Does not know
//! about: what that costs.

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

/// An allocation: an amount of GPUs that a pod held for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationRow {
    /// Pod that held it.
    pub pod_id: Uuid,
    /// When it began.
    pub started_at: Instant,
    /// When it ended; `None` while it is held.
    pub ended_at: Option<Instant>,
    /// Project of the workload.
    pub project_id: u64,
    /// Name of the project at the time.
    pub project_name: String,
    /// User who owns the workload.
    pub owner: String,
    /// Model of the GPUs.
    pub gpu_model: String,
    /// Thousandths of GPUs.
    pub gpu_millis: u64,
}

/// Measured use of held GPUs in an hour, which is added to the stored row. Time is in thousandths
/// of a GPU times milliseconds, memory in MiB times milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuUseRow {
    /// Start of the hour.
    pub hour: Instant,
    /// Id of the project.
    pub project_id: u64,
    /// User who owns the workloads.
    pub owner: String,
    /// Model of the GPUs.
    pub gpu_model: String,
    /// GPU time held while it was measured.
    pub measured: u64,
    /// Part of `measured` that was used.
    pub used: u64,
    /// Memory held while it was measured.
    #[serde(default)]
    pub memory_measured: u64,
    /// Part of `memory_measured` that was in use.
    #[serde(default)]
    pub memory_used: u64,
}

/// GPUs of a model that the workloads of one user in a project held and used. Amounts of time are
/// in thousandths of a GPU times milliseconds, of memory in MiB times milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerRow {
    /// Id of the project.
    pub project_id: u64,
    /// A name of the project in that time; empty if nothing was held.
    pub project_name: String,
    /// User who owns the workloads.
    pub owner: String,
    /// Model of the GPUs.
    pub gpu_model: String,
    /// GPU time held.
    pub allocated: u64,
    /// GPU time held while it was measured.
    pub measured: u64,
    /// Part of `measured` that was used.
    pub used: u64,
    /// Memory held while it was measured.
    pub memory_measured: u64,
    /// Part of `memory_measured` that was in use.
    pub memory_used: u64,
}

/// Department or project that a row of lags belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LagUnit {
    /// The department of this id.
    Department(u64),
    /// The project of this id.
    Project(u64),
}

/// How far a department or a project is behind its fair share of the GPUs in a node pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagRow {
    /// The department or project.
    pub unit: LagUnit,
    /// Id of the node pool; empty for `default`.
    pub pool: String,
    /// GPU thousandths × milliseconds at `since`; negative where it has had more than its share.
    pub value: i64,
    /// Time of the last change of its share or of what it holds.
    pub since: Instant,
    /// Its fair share since then, in GPU thousandths.
    pub fair_millis: u64,
    /// Held since then, in GPU thousandths.
    pub held_millis: u64,
    /// Start of its turn; `None` if it has none.
    pub turn_since: Option<Instant>,
}
