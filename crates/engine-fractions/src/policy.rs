//! What an administrator chooses about GPU fractions. Owns: the choices. Does not know about: how they
//! are kept.

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

/// What keeps fractions of GPUs.
#[derive(Debug, Clone)]
pub struct FractionOptions {
    /// Which limits are relied on.
    pub policy: FractionPolicy,
    /// The real GPUs of this machine, by UUID.
    pub gpus: Vec<String>,
    /// How long a look before a run may take, in milliseconds.
    pub look_ms_max: u64,
}

impl Default for FractionOptions {
    fn default() -> Self {
        let (policy, gpus) = (FractionPolicy::Best, Vec::new());
        Self { policy, gpus, look_ms_max: crate::fraction::LOOK_MS_MAX }
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
