//! What can be the matter with a GPU.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sched::Code;
use serde::{Deserialize, Serialize};
use spec::ForeignProcess;
use units::format_bytes;

use crate::reasons::{GPU_LOST, GPU_TAKEN};

/// What is the matter with a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuFault {
    /// It does not work, and why.
    Lost(String),
    /// Processes of no run hold memory of it, by process id.
    Taken(BTreeMap<u32, ForeignProcess>),
}

/// What is the matter with real GPUs, by what the driver calls them.
pub type GpuFaults = Arc<BTreeMap<String, GpuFault>>;

impl GpuFault {
    /// Its code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Lost(_) => GPU_LOST,
            Self::Taken(_) => GPU_TAKEN,
        }
    }

    /// Whether it does not work any more.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

impl fmt::Display for GpuFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::Taken(foreign) => {
                let one = |(pid, process): (&u32, &ForeignProcess)| {
                    let ForeignProcess { name, user, memory_bytes } = process;
                    format!("{name} of {user} (process {pid}, {})", format_bytes(*memory_bytes))
                };
                let all: Vec<_> = foreign.iter().map(one).collect();
                write!(f, "used by foreign processes: {}", all.join(", "))
            }
        }
    }
}
