//! MIG instances: fixed parts of a GPU, each assigned whole or not at all. Owns: their profiles,
//! their value in quotas and shares, requests for several, and the part of a GPU that an instance
//! holds. Does not know about: how a GPU is divided; that is done before a node is added, and
//! stays.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use units::GPU_MILLIS;

/// Number of memory slices of all GPUs that can be divided; some have half as many.
const MEMORY_SLICES: u64 = 8;
/// Compute slices of a GPU.
pub const MIG_SLICES: u8 = 7;
/// Maximum number of different profiles in a request of one pod.
pub const MIG_PROFILES_MAX: usize = 4;

/// Error of a MIG profile or of a request for instances.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MigError {
    /// Not of the form `<slices>g.<memory>gb`.
    #[error(
        "`{0}` is not a MIG profile; write slices (1 to 7) and memory, such as 1g.10gb or 3g.40gb"
    )]
    NotAProfile(String),
    /// More profiles than a request can have.
    #[error("asks for more than {MIG_PROFILES_MAX} different MIG profiles; ask for fewer")]
    TooManyProfiles,
    /// A request without instances.
    #[error("asks for no MIG instance; ask for 1 or more of a profile")]
    NoInstance,
}

/// Value of a compute slice in quotas and shares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SliceValue {
    /// A seventh of a GPU, so that all slices of a GPU together never exceed it.
    #[default]
    Seventh,
    /// A whole GPU. Source: scheduling reference §12.
    Gpu,
}

/// A profile of instances: `3g.40gb` has three compute slices and 40 GB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MigProfile {
    slices: u8,
    memory_gb: u16,
    value: SliceValue,
}

impl MigProfile {
    /// This profile with another value of slices.
    #[must_use]
    pub const fn valued(self, value: SliceValue) -> Self {
        Self { value, ..self }
    }

    /// Number of compute slices.
    #[must_use]
    pub const fn slices(self) -> u8 {
        self.slices
    }

    /// Its memory in bytes.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        u64::from(self.memory_gb) << 30
    }

    /// Value of an instance, in thousandths of a GPU.
    #[must_use]
    pub fn millis(self) -> u64 {
        let slices_millis = u64::from(self.slices) * GPU_MILLIS;
        match self.value {
            SliceValue::Seventh => slices_millis / u64::from(MIG_SLICES),
            SliceValue::Gpu => slices_millis,
        }
    }
}

impl FromStr for MigProfile {
    type Err = MigError;

    fn from_str(text: &str) -> Result<Self, MigError> {
        let wrong = || MigError::NotAProfile(text.to_owned());
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (slices, memory) = text.split_once("g.").ok_or_else(wrong)?;
        let memory = memory.strip_suffix("gb").ok_or_else(wrong)?;
        if !plain(slices) || !plain(memory) {
            return Err(wrong());
        }
        let slices = slices.parse().ok().filter(|slices| (1..=MIG_SLICES).contains(slices));
        let memory_gb = memory.parse().ok().filter(|memory_gb| *memory_gb > 0);
        let (Some(slices), Some(memory_gb)) = (slices, memory_gb) else { return Err(wrong()) };
        Ok(Self { slices, memory_gb, value: SliceValue::default() })
    }
}

impl fmt::Display for MigProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}g.{}gb", self.slices, self.memory_gb)
    }
}

/// An instance on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MigInstance {
    /// Index of its GPU on the node.
    pub gpu: u32,
    /// Its profile.
    pub profile: MigProfile,
}

/// A MIG instance that is assigned to requests for a part of its GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuPart {
    /// Index of its GPU on the node.
    pub gpu: u32,
    /// Memory of that GPU in bytes.
    pub gpu_memory_bytes: u64,
    /// Maximum request for a part of that GPU, in thousandths.
    pub millis: u64,
}

impl GpuPart {
    /// An instance with `memory_bytes` of the memory of a GPU. Its thousandths are the nearest
    /// number of eighths: all instances together have slightly less than the memory of the GPU, so
    /// that half of a GPU has less than half of its bytes.
    #[must_use]
    pub fn new(gpu: u32, memory_bytes: u64, gpu_memory_bytes: u64) -> Self {
        let total = u128::from(gpu_memory_bytes.max(1));
        let sliced = u128::from(memory_bytes) * u128::from(MEMORY_SLICES);
        let slices = ((sliced + total / 2) / total).min(MEMORY_SLICES.into());
        let millis = u64::try_from(slices).unwrap_or(MEMORY_SLICES) * GPU_MILLIS / MEMORY_SLICES;
        Self { gpu, gpu_memory_bytes, millis }
    }
}

/// Numbers of instances of some profiles, all on one node. At least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MigRequest([Option<(MigProfile, u16)>; MIG_PROFILES_MAX]);

impl MigRequest {
    /// Requests these numbers of instances.
    ///
    /// # Errors
    /// No instance, or too many profiles.
    pub fn new(wanted: impl IntoIterator<Item = (MigProfile, u16)>) -> Result<Self, MigError> {
        let mut parts: Vec<(MigProfile, u16)> = Vec::new();
        for (profile, count) in wanted.into_iter().filter(|(_, count)| *count > 0) {
            match parts.iter_mut().find(|(known, _)| *known == profile) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => parts.push((profile, count)),
            }
        }
        if parts.is_empty() {
            return Err(MigError::NoInstance);
        }
        if parts.len() > MIG_PROFILES_MAX {
            return Err(MigError::TooManyProfiles);
        }
        parts.sort_unstable();
        let mut request = [None; MIG_PROFILES_MAX];
        for (at, part) in request.iter_mut().zip(parts) {
            *at = Some(part);
        }
        Ok(Self(request))
    }

    /// Number of instances of each profile.
    pub fn iter(&self) -> impl Iterator<Item = (MigProfile, u16)> + use<'_> {
        self.0.iter().copied().flatten()
    }

    /// This request with another value of slices.
    #[must_use]
    pub fn valued(self, value: SliceValue) -> Self {
        Self(self.0.map(|part| part.map(|(profile, count)| (profile.valued(value), count))))
    }

    /// Number of different profiles.
    pub(crate) fn profiles(&self) -> usize {
        self.iter().count()
    }

    /// One profile of the request as a request of its own.
    pub(crate) const fn part(&self, at: usize) -> Self {
        Self([self.0[at], None, None, None])
    }

    /// Number of instances.
    #[must_use]
    pub fn instances(&self) -> u32 {
        self.iter().map(|(_, count)| u32::from(count)).sum()
    }

    /// Total value, in thousandths of a GPU.
    #[must_use]
    pub fn millis(&self) -> u64 {
        self.iter().map(|(profile, count)| profile.millis() * u64::from(count)).sum()
    }

    pub(crate) fn has(&self, profile: MigProfile) -> bool {
        self.iter().any(|(wanted, _)| wanted == profile)
    }
}

/// `2 × 1g.10gb and 1 × 3g.40gb`.
impl fmt::Display for MigRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (profile, count)) in self.iter().enumerate() {
            let and = if at > 0 { " and " } else { "" };
            write!(f, "{and}{count} × {profile}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> MigProfile {
        text.parse().expect("a profile")
    }

    #[test]
    fn profiles_read_and_write_the_same() {
        for text in ["1g.5gb", "2g.20gb", "7g.80gb"] {
            assert_eq!(profile(text).to_string(), text);
        }
        for text in ["", "1g", "0g.5gb", "8g.80gb", "1g.0gb", "+1g.5gb", "1g.5gb+me", "1g.99999gb"]
        {
            assert!(text.parse::<MigProfile>().is_err(), "{text}");
        }
    }

    #[test]
    fn all_slices_of_a_gpu_are_never_more_than_it() {
        for slices in 1..=7_u8 {
            let one = profile(&format!("{slices}g.10gb"));
            assert!(one.millis() * u64::from(7 / slices) <= GPU_MILLIS);
        }
        assert_eq!(profile("7g.80gb").millis(), 1000);
        assert_eq!(profile("2g.10gb").valued(SliceValue::Gpu).millis(), 2000);
    }

    #[test]
    fn a_request_is_the_same_however_it_is_written() {
        let of = |parts: &[(&str, u16)]| {
            MigRequest::new(parts.iter().map(|&(text, count)| (profile(text), count)))
        };
        let one = of(&[("3g.40gb", 1), ("1g.10gb", 1), ("1g.10gb", 1)]).expect("sound");
        assert_eq!(Ok(one), of(&[("1g.10gb", 2), ("3g.40gb", 1), ("2g.20gb", 0)]));
        assert_eq!((one.instances(), one.millis()), (3, 142 * 2 + 428));
        assert_eq!(one.to_string(), "2 × 1g.10gb and 1 × 3g.40gb");
        assert_eq!(of(&[("1g.10gb", 0)]), Err(MigError::NoInstance));
        let five = ["1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "7g.40gb"].map(|text| (text, 1));
        assert_eq!(of(&five), Err(MigError::TooManyProfiles));
    }
}
