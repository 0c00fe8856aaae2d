//! A run's fraction of GPUs, as its folder stores it. Owns: the form. Does not know about: how
//! limits are enforced.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use engine::TimeSlicing;

use serde::{Deserialize, Serialize};

/// A run's fraction of GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// Limits; empty if there are none.
    pub limits: Vec<Limit>,
    /// GPUs of the simulated driver; empty if there are none.
    pub simulated: Vec<SimulatedGpu>,
    /// The folder of their sockets.
    pub sockets: PathBuf,
    /// The program that looks whether the limits hold.
    pub program: PathBuf,
    /// How long that may take, in milliseconds.
    #[serde(default = "look_ms_max")]
    pub look_ms_max: u64,
    /// Limit of MPS on the run's first GPU, in bytes; 0 for none.
    #[serde(default)]
    pub mps_bytes: u64,
    /// True if the limits are in a library that only some programs load.
    #[serde(default)]
    pub preloaded: bool,
    /// MIG instance of the run.
    #[serde(default)]
    pub instance: Option<Instance>,
    /// GPU memory limits of the control group, in bytes by region of the kernel; [`UNLIMITED`] for
    /// a whole region.
    #[serde(default)]
    pub regions: BTreeMap<String, u64>,
}

/// Limit of a region that belongs to a run alone.
pub const UNLIMITED: u64 = u64::MAX;

/// How long a look may take: a driver that nothing used before needs some seconds.
pub(crate) const LOOK_MS_MAX: u64 = 60_000;

const fn look_ms_max() -> u64 {
    LOOK_MS_MAX
}

/// A limit of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// By UUID, or by name where it is simulated.
    pub gpu: String,
    /// Bytes that it may hold at any time.
    pub bytes: u64,
    /// Bytes that it may hold while they are free; 0: no more.
    #[serde(default)]
    pub most: u64,
    /// Memory of the GPU; 0: not known.
    #[serde(default)]
    pub device: u64,
    /// Share of the GPU's compute time, in thousandths; 0 if unknown.
    #[serde(default)]
    pub millis: u64,
    /// Division of compute time; `None` for that of the server.
    #[serde(default)]
    pub time_slicing: Option<TimeSlicing>,
}

impl Limit {
    /// Most that it may hold.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.max(self.bytes)
    }
}

/// A MIG instance that a run has as its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// UUID that the driver gives the instance.
    pub uuid: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// A simulated GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedGpu {
    /// Name of the GPU.
    pub gpu: String,
    /// Size of its memory, in bytes.
    pub bytes: u64,
}

impl Fraction {
    /// Arguments for the server's program to check the limits inside a run; `None` if there are
    /// none.
    #[must_use]
    pub fn check(&self) -> Option<[String; 3]> {
        let instance = self.instance.as_ref().map(|instance| instance.bytes);
        let most = self.limits.iter().map(Limit::most).chain(instance).max();
        let most = match (most, self.mps_bytes) {
            (Some(most), _) => format!("--most={most}B"),
            (None, 0) => return None,
            // It shows the whole GPU as the total.
            (None, most) => format!("--most-free={most}B"),
        };
        let within = format!("{WITHIN}{}", self.look_ms_max);
        Some(["gpu-check".to_owned(), most, within])
    }

    /// [`Self::check`] for a command line that continues with the run's command after `--`.
    #[must_use]
    pub fn check_before_command(&self) -> Option<Vec<String>> {
        let mut words = self.check()?.to_vec();
        words.extend(self.preloaded.then(|| PRELOADED.to_owned()));
        Some(words)
    }

    /// Time after which a check counts as unanswered, even if its program cannot report that
    /// itself.
    #[must_use]
    pub fn gives_up_after(&self) -> Duration {
        Duration::from_millis(self.look_ms_max.saturating_add(5000))
    }
}

/// The option with the time that a driver has for its answer, in milliseconds.
pub(crate) const WITHIN: &str = "--within=";

/// The word for a run whose limits are in a library that only some programs load.
pub(crate) const PRELOADED: &str = "--preloaded";
