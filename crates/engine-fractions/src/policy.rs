//! What an administrator chooses about GPU fractions. Owns: the choices. Does not know about: how they
//! are kept.

use engine::TimeSlicing;

/// Which limits of GPU fractions are relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FractionPolicy {
    /// The best that is safe here.
    Best,
    /// None: fractions are counted.
    Counted,
    /// Only what its user cannot work around; other fractions do not start.
    HardOnly,
}

/// What is done about a run that holds memory beyond its limit which it was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOver {
    /// An event says so.
    Report,
    /// Its newest process on the GPU is ended as well.
    End,
}

/// What keeps fractions of GPUs.
#[derive(Debug, Clone)]
pub struct FractionOptions {
    /// Which limits are relied on.
    pub policy: FractionPolicy,
    /// The real GPUs of this machine, by UUID.
    pub gpus: Vec<String>,
    /// How long a look before a run may take, in milliseconds.
    pub look_ms_max: u64,
    /// What is done about memory that was not granted.
    pub over: MemoryOver,
    /// How runs divide compute time.
    pub time_slicing: TimeSlicing,
}

impl Default for FractionOptions {
    fn default() -> Self {
        let (policy, gpus) = (FractionPolicy::Best, Vec::new());
        let (look_ms_max, time_slicing) = (crate::fraction::LOOK_MS_MAX, TimeSlicing::None);
        Self { policy, gpus, look_ms_max, over: MemoryOver::Report, time_slicing }
    }
}

/// What the runs of an engine are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Processes of this machine.
    Processes {
        /// Whether they have a mount namespace that root made.
        mounts: bool,
    },
    /// Containers.
    Containers,
}
