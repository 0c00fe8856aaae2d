//! Rows of the ledger: who held GPUs from when to when, and how much of it was used. Does not know
//! about: what that costs.

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

/// So much of GPUs, held by a pod from then to then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationRow {
    /// By which pod.
    pub pod_id: Uuid,
    /// Since when.
    pub started_at: Instant,
    /// Until when; none while it is held.
    pub ended_at: Option<Instant>,
    /// Project of the workload.
    pub project_id: u64,
    /// Its name at the time.
    pub project_name: String,
    /// Whose workload it is.
    pub owner: String,
    /// What the GPUs are.
    pub gpu_model: String,
    /// Thousandths of GPUs.
    pub gpu_millis: u64,
}

/// How much of what was held was measured and used; it is added to what there is. Time in thousandths
/// of a GPU times milliseconds, memory in MiB times milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuUseRow {
    /// Start of the hour.
    pub hour: Instant,
    /// Project.
    pub project_id: u64,
    /// Whose workloads.
    pub owner: String,
    /// What the GPUs are.
    pub gpu_model: String,
    /// Held while it was measured.
    pub measured: u64,
    /// Of it, used.
    pub used: u64,
    /// Memory held while it was measured.
    #[serde(default)]
    pub memory_measured: u64,
    /// Of it, in use.
    #[serde(default)]
    pub memory_used: u64,
}

/// What the workloads of one user in a project held of GPUs of a model, and used. Amounts of
/// time are in thousandths of a GPU times milliseconds, of memory in MiB times milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerRow {
    /// Project.
    pub project_id: u64,
    /// One of its names in that time; none where nothing was held.
    pub project_name: String,
    /// Whose workloads.
    pub owner: String,
    /// What the GPUs are.
    pub gpu_model: String,
    /// Held.
    pub allocated: u64,
    /// Held while it was measured.
    pub measured: u64,
    /// Of what was measured, used.
    pub used: u64,
    /// Memory held while it was measured.
    pub memory_measured: u64,
    /// Of it, in use.
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
    /// When its share or what it holds last changed.
    pub since: Instant,
    /// Its fair share since then, in GPU thousandths.
    pub fair_millis: u64,
    /// Held since then, in GPU thousandths.
    pub held_millis: u64,
    /// When its turn began; none while it has none.
    pub turn_since: Option<Instant>,
}
