//! The flags of what can change of a training or a workspace while it exists, as typed.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::submit::Preemptibility;
use crate::args::values::{Pair, count, pair_or_name, portion, seconds, size};
use crate::complete::{priorities, workloads};

/// `training update`, `workspace update`.
#[derive(Debug, Args)]
pub(crate) struct Change {
    /// Name
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(workloads))]
    pub(crate) name: String,
    /// Priority inside the project: very-low, low, medium-low, medium, medium-high, high, very-high
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(priorities))]
    pub(crate) priority: Option<String>,
    /// Preemptibility; non-preemptible only while it is suspended or pending
    #[arg(long, value_enum, value_name = "WHETHER")]
    pub(crate) preemptibility: Option<Preemptibility>,
    /// Maximum restarts after a failure
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) backoff_limit: Option<u32>,
    /// Most of each GPU that may be used while it is free, of one submitted with a share
    #[arg(long, value_name = "SHARE", value_parser = portion)]
    #[arg(conflicts_with = "gpu_memory_limit")]
    pub(crate) gpu_portion_limit: Option<u64>,
    /// Most memory of each GPU that may be used while it is free, of one submitted with memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu_memory_limit: Option<String>,
    /// Delete it this long after its end, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) auto_deletion_time_after_completion: Option<u64>,
    /// Scheduling gate to keep, of those that it has; '' removes all
    #[arg(long, value_name = "NAME")]
    pub scheduling_gate: Vec<String>,
    /// Label to set, or KEY- to remove it
    #[arg(long, value_name = "KEY=VALUE|KEY-", value_parser = pair_or_name)]
    pub(crate) label: Vec<Pair>,
    /// Annotation to set, or KEY- to remove it
    #[arg(long, value_name = "KEY=VALUE|KEY-", value_parser = pair_or_name)]
    pub(crate) annotation: Vec<Pair>,
}
