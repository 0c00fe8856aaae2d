//! Choices in the environment of a program for the simulated driver: its version, and faults. Owns:
//! their syntax. Does not know about: the effect of a fault on the functions of the driver.

use alloc::vec::Vec;
use core::str::from_utf8;

use fraction_abi::sys;
use fraction_abi::wire::{FAULTS_VARIABLE, VERSION_VARIABLE};

use crate::client::variable;

/// A version of the driver.
#[derive(Clone, Copy)]
pub(crate) struct Version {
    /// How it is chosen: the first number of `driver`.
    branch: &'static [u8],
    /// The first release of it, and that this is no real one.
    pub(crate) driver: &'static str,
    /// As `cuDriverGetVersion` answers: 13000 is 13.0.
    pub(crate) cuda: u32,
}

const fn version(branch: &'static str, driver: &'static str, cuda: u32) -> Version {
    Version { branch: branch.as_bytes(), driver, cuda }
}

const VERSIONS: [Version; 7] = [
    version("470", "470.42.01-simulated", 11040),
    version("525", "525.60.13-simulated", 12000),
    version("535", "535.54.03-simulated", 12020),
    version("550", "550.54.14-simulated", 12040),
    version("570", "570.26-simulated", 12080),
    version("580", "580.65.06-simulated", 13000),
    version("590", "590.44.01-simulated", 13010),
];

/// The faults of a GPU that its driver reports by a number, and the error of CUDA that programs
/// get.
#[cfg_attr(elastane_library = "nvml", expect(dead_code, reason = "NVML launches nothing"))]
const XIDS: [(u64, i32); 4] = [(13, 719), (31, 700), (48, 214), (79, 999)];

/// Version and faults of the simulated driver.
#[derive(Default)]
pub(crate) struct Chosen {
    /// Version of the driver; `None` for the newest that the broker knows.
    pub(crate) version: Option<Version>,
    /// Functions that the driver does not have.
    #[cfg_attr(elastane_library = "nvml", expect(dead_code, reason = "it keeps all functions"))]
    pub(crate) missing: Vec<Vec<u8>>,
    /// Allocations of a process that succeed; all further ones fail.
    #[cfg_attr(elastane_library = "nvml", expect(dead_code, reason = "NVML allocates nothing"))]
    pub(crate) allocations: Option<u64>,
    /// Launches of a process that succeed, and the error of all functions after one more.
    #[cfg_attr(elastane_library = "nvml", expect(dead_code, reason = "NVML launches nothing"))]
    pub(crate) launches: Option<(u64, i32)>,
    /// No GPU answers.
    pub(crate) lost: bool,
    /// How long the driver takes to begin.
    slow_ms: u64,
}

impl Chosen {
    /// Choices of this process; `None` if one has an unknown value.
    pub(crate) fn read() -> Option<Self> {
        let value = |name| variable(name).unwrap_or_default();
        Self::parse(&value(VERSION_VARIABLE), &value(FAULTS_VARIABLE))
    }

    fn parse(version: &[u8], faults: &[u8]) -> Option<Self> {
        let mut chosen = Self::default();
        if !version.is_empty() {
            chosen.version = Some(*VERSIONS.iter().find(|known| known.branch == version)?);
        }
        for fault in faults.split(|byte| *byte == b',').filter(|fault| !fault.is_empty()) {
            chosen.add(fault)?;
        }
        Some(chosen)
    }

    fn add(&mut self, fault: &[u8]) -> Option<()> {
        if fault == b"lost" {
            self.lost = true;
            return Some(());
        }
        let at = fault.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (fault.get(..at)?, fault.get(at + 1..)?);
        match name {
            b"missing" if value.starts_with(b"cu") => self.missing.push(value.to_vec()),
            b"memory-after" => self.allocations = Some(number(value)?),
            b"slow-ms" => self.slow_ms = number(value)?,
            _ => {
                let code = number(name.strip_prefix(b"xid-")?)?;
                let (_, error) = XIDS.iter().find(|(known, _)| *known == code)?;
                self.launches = Some((number(value)?, *error));
            }
        }
        Some(())
    }

    /// Takes as long to begin as was chosen.
    pub(crate) fn wait(&self) {
        if self.slow_ms > 0 {
            sys::sleep_ns(self.slow_ms.saturating_mul(1_000_000));
        }
    }
}

fn number(text: &[u8]) -> Option<u64> {
    from_utf8(text).ok()?.parse().ok()
}
