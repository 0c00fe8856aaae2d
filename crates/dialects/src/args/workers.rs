//! The workers of distributed trainings, as typed in both dialects.

use api_types as wire;
use clap::{Args, ValueEnum};

use super::values::positive;

/// The workers, of every framework and in both dialects.
#[derive(Debug, Args)]
pub(crate) struct Workers {
    /// Number of workers besides the master [default: 1]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) workers: Option<u32>,
    /// Pods to stop when it has ended, of those that still run [default: Running]
    #[arg(long, value_enum, value_name = "POLICY", ignore_case = true)]
    pub(crate) clean_pod_policy: Option<CleanPodPolicy>,
}

/// Bounds on the number of workers of a PyTorch training.
#[derive(Debug, Args)]
pub(crate) struct Bounds {
    /// Minimum number of workers
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) min_replicas: Option<u32>,
    /// Maximum number of workers
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) max_replicas: Option<u32>,
}

/// The ranks of MPI.
#[derive(Debug, Args)]
pub(crate) struct Slots {
    /// Ranks in each worker [default: 1]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) slots_per_worker: Option<u32>,
}

/// Policy for pods when the workload has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum CleanPodPolicy {
    /// Running pods are stopped.
    Running,
    /// They are stopped and their output is deleted.
    All,
    /// They go on.
    None,
}

impl From<CleanPodPolicy> for wire::CleanPodPolicy {
    fn from(typed: CleanPodPolicy) -> Self {
        match typed {
            CleanPodPolicy::Running => Self::Running,
            CleanPodPolicy::All => Self::All,
            CleanPodPolicy::None => Self::None,
        }
    }
}
