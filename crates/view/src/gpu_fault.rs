//! Faults of GPUs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use reasons::Code;
use serde::{Deserialize, Serialize};
use spec::{ForeignProcess, RunKey};
use units::{format_bytes, format_millis};

/// Code of a GPU that does not work any more.
pub const GPU_LOST: Code = Code { code: "E207", name: "GpuLost" };
/// Code of a GPU with processes that belong to no run.
pub const GPU_TAKEN: Code = Code { code: "E208", name: "GpuTaken" };
/// Code of a GPU that is held by a run that should not exist.
pub const GPU_HELD: Code = Code { code: "E214", name: "GpuHeld" };

/// Fault of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuFault {
    /// It does not work, for this reason.
    Lost(String),
    /// Processes of no run hold memory of it; by process id.
    Taken(BTreeMap<u32, ForeignProcess>),
    /// Pods that this server does not charge hold it, or its node no longer reports it.
    Elsewhere,
    /// Runs that should not exist any more hold it.
    Held(Vec<Holder>),
}

/// A run that should not exist any more and holds a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Key of the run.
    pub run: RunKey,
    /// Process id of its main process, if known.
    pub pid: Option<u32>,
    /// Its share of the GPU in thousandths; `None` if its GPUs are not known.
    pub share_millis: Option<u64>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, pid, share_millis } = self;
        write!(f, "run {run} (")?;
        match share_millis {
            Some(millis) => write!(f, "{} of it", format_millis(*millis))?,
            None => write!(f, "its GPUs are not known")?,
        }
        pid.map_or(Ok(()), |pid| write!(f, ", process {pid}"))?;
        write!(f, ")")
    }
}

/// Faults of real GPUs, by the UUID that the driver gives them.
pub type GpuFaults = Arc<BTreeMap<String, GpuFault>>;

impl GpuFault {
    /// Its code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Lost(_) => GPU_LOST,
            Self::Taken(_) | Self::Elsewhere => GPU_TAKEN,
            Self::Held(_) => GPU_HELD,
        }
    }

    /// True if the GPU does not work any more.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// True if runs that should not exist any more hold it.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Held(_))
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
            Self::Elsewhere => f.write_str("held by pods of others, or no longer reported"),
            Self::Held(holders) => {
                let all: Vec<_> = holders.iter().map(ToString::to_string).collect();
                let pids = holders.iter().filter_map(|holder| holder.pid);
                let pids: Vec<_> = pids.map(|pid| pid.to_string()).collect();
                let look = match pids.as_slice() {
                    [] => String::new(),
                    pids => format!("look at it with `ps -fp {}`, ", pids.join(",")),
                };
                write!(
                    f,
                    "held by {}, which should not exist any more and is being stopped; if it stays, \
                     {look}end what holds it or restart the machine",
                    all.join(" and ")
                )
            }
        }
    }
}
