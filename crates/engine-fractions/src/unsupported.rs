//! Stand-in for `fractions` on processors without its libraries: other than x86-64. Owns: reporting
//! that. Does not know about anything else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{Error, FractionLimit, GpuOver, GpuUse, RunKey, RunSpec};
use gpu::Activity;
use units::GPU_MILLIS;

use crate::fraction::Fraction;
use crate::policy::{FractionOptions, FractionPolicy, Runs};

const WHY: &str = "fractions of GPUs are limited on x86-64 only";

/// Mounts and variables of a run.
#[derive(Debug, Default)]
pub struct Delivery {
    /// Files and folders, with the paths they are mounted over.
    pub mounts: Vec<(PathBuf, PathBuf)>,
    /// Files in folders that are read-only.
    pub writable: Vec<(PathBuf, PathBuf)>,
    /// Search paths.
    pub before: BTreeMap<String, String>,
}

impl Delivery {
    /// Adds nothing.
    pub fn complete(&self, _env: &mut BTreeMap<String, String>) {}
}

/// Additions to a run for its GPUs.
#[derive(Debug)]
pub struct Added {
    /// Limits and simulated GPUs of the run.
    pub fraction: Fraction,
    /// Mounts and variables that give them to the run.
    pub delivery: Delivery,
}

/// The fractions of this machine's runs: none.
#[derive(Debug)]
pub struct Fractions {
    policy: FractionPolicy,
}

impl Fractions {
    /// Nothing is limited.
    #[must_use]
    pub fn none(_why: &str) -> Self {
        Self { policy: FractionPolicy::Counted }
    }
    /// Nothing is limited.
    ///
    /// # Errors
    /// The administrator's choice cannot be used here.
    pub fn open(
        _: &Path,
        _program: &Path,
        _runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, Error> {
        match options.policy {
            FractionPolicy::Mps | FractionPolicy::Dmem | FractionPolicy::Mig => {
                Err(Error::Invalid(WHY.to_owned()))
            }
            FractionPolicy::Best | FractionPolicy::Counted | FractionPolicy::HardOnly => {
                Ok(Self { policy: options.policy })
            }
        }
    }
    /// None.
    #[must_use]
    pub fn limit(&self, _simulated: bool) -> FractionLimit {
        FractionLimit::none(WHY)
    }
    /// Nothing.
    ///
    /// # Errors
    /// Its part of a GPU would not be kept as the administrator or the workload wants it.
    pub fn of(&self, spec: &RunSpec, _pages: &Path) -> Result<Option<Added>, Error> {
        if spec.devices.iter().any(|device| device.millis < GPU_MILLIS) {
            self.policy.allow_soft(spec)?;
        }
        Ok(None)
    }
    /// None.
    #[must_use]
    pub fn folder(&self) -> &Path {
        Path::new("")
    }
    /// Makes nothing.
    ///
    /// # Errors
    /// Never.
    pub fn prepare(
        &self,
        _key: RunKey,
        _fraction: &Fraction,
        _pages: &Path,
        _account: Option<(u32, u32)>,
    ) -> Result<(), Error> {
        Ok(())
    }
    /// Follows nothing.
    ///
    /// # Errors
    /// Never.
    pub fn adopt(&self, _key: RunKey, _fraction: &Fraction, _pages: &Path) -> Result<(), Error> {
        Ok(())
    }
    /// Changes nothing.
    ///
    /// # Errors
    /// Never.
    pub fn set_most(&self, _key: RunKey, _most: &BTreeMap<String, u64>) -> Result<(), Error> {
        Ok(())
    }
    /// Nothing is forgotten.
    pub fn forget(&self, _key: RunKey) {}
    #[must_use]
    pub const fn is_keeper(&self, _pid: u32) -> bool {
        false
    }
    /// None.
    #[must_use]
    pub fn activities(&self) -> Vec<Activity> {
        Vec::new()
    }
    /// None.
    #[must_use]
    pub fn idle(&self, _key: RunKey, _used: &[GpuUse]) -> Vec<GpuUse> {
        Vec::new()
    }
    /// Never.
    #[must_use]
    pub fn is_urgent(&self, _sample: impl FnOnce() -> Vec<Activity>) -> bool {
        false
    }
    /// None.
    #[must_use]
    pub fn unreached(&self) -> Vec<(RunKey, String)> {
        Vec::new()
    }
    /// None.
    #[must_use]
    pub fn claims(&self) -> BTreeMap<RunKey, Vec<u64>> {
        BTreeMap::new()
    }
    /// Counts nothing.
    #[must_use]
    pub fn reconcile(&self, _: RunKey, _before: &[u64], _seen: &[GpuUse]) -> Vec<Over> {
        Vec::new()
    }
}

/// A GPU on which a run exceeds its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// Memory in use and its limit.
    pub seen: GpuOver,
    /// True if the newest process of the run on the GPU must be ended.
    pub ends: bool,
}

/// Connections to simulated GPUs: none.
#[derive(Debug)]
pub struct Held;

/// Connects to nothing.
///
/// # Errors
/// Never.
pub fn hold(_fraction: &Fraction) -> std::io::Result<Held> {
    Ok(Held)
}

/// Writes nothing down.
///
/// # Errors
/// Never.
pub fn note_unlimited(
    _program: &str,
    _search: Option<&OsStr>,
    _folder: &Path,
    _pages: &Path,
) -> std::io::Result<()> {
    Ok(())
}

/// A CDI specification.
#[derive(Debug)]
pub struct Specification {
    /// The specification as JSON.
    pub text: String,
    /// Arguments of each process that has to run.
    pub drivers: Vec<Vec<String>>,
}

/// Parts of GPUs for container runtimes.
///
/// # Errors
/// Always: the libraries exist for x86-64 only.
pub fn cdi(
    _folder: &Path,
    _parts: &[String],
    _reset: bool,
    _program: &Path,
) -> Result<Specification, Error> {
    Err(Error::Invalid("the libraries that keep parts of GPUs exist for x86-64 only".to_owned()))
}

/// Output of `gpu-check`.
///
/// # Errors
/// Always: it exists for x86-64 only.
pub fn gpu_check(
    _args: &[String],
    _variable: impl Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    Err(Error::Invalid("gpu-check exists for x86-64 only".to_owned()))
}

/// The process of a simulated GPU, which exists for x86-64 only.
#[must_use]
pub fn simulated_driver(_args: &[String]) -> ExitCode {
    ExitCode::FAILURE
}

/// Starts nothing: it exists for x86-64 only.
#[must_use]
pub fn start_checked(_args: &[String]) -> ExitCode {
    ExitCode::FAILURE
}
