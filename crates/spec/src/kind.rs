//! The kinds of workloads. Owns: which there are, and their names.

use serde::{Deserialize, Serialize};

/// Kind of a workload, which decides its default priority and preemptibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Unattended, preemptible.
    Training,
    /// Interactive, not preemptible unless requested.
    Workspace,
    /// A training of several pods that work together.
    Distributed,
    /// Answers requests; not preemptible.
    Inference,
}

impl WorkloadKind {
    /// All kinds.
    pub const ALL: [Self; 4] =
        [Self::Training, Self::Workspace, Self::Distributed, Self::Inference];

    /// Its name in documents and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Workspace => "workspace",
            Self::Distributed => "distributed",
            Self::Inference => "inference",
        }
    }
}
