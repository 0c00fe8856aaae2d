//! A vector of the three accounted resources. Owns: component-wise exact arithmetic.

use std::ops::{Add, AddAssign, Index, IndexMut, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// The accounted resources, in the order reports name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// GPU thousandths.
    Gpu,
    /// CPU thousandths.
    Cpu,
    /// Bytes of main memory.
    Memory,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Cpu, Self::Memory];

    /// The smallest amount in which unclaimed capacity is divided: one GPU (scheduling reference,
    /// fair share), one thousandth of a core, one byte.
    #[must_use]
    pub const fn share_unit(self) -> u64 {
        match self {
            Self::Gpu => crate::GPU_MILLIS,
            Self::Cpu | Self::Memory => 1,
        }
    }
}

/// Amounts of every accounted resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a GPU.
    pub gpu_millis: u64,
    /// Thousandths of a core.
    pub cpu_millis: u64,
    /// Bytes of main memory.
    pub memory_bytes: u64,
}

impl Resources {
    /// All zero.
    pub const ZERO: Self = Self { gpu_millis: 0, cpu_millis: 0, memory_bytes: 0 };
    /// Larger than any machine: stands for "no limit".
    pub const UNLIMITED: Self =
        Self { gpu_millis: u64::MAX, cpu_millis: u64::MAX, memory_bytes: u64::MAX };

    /// True if every component is at most the other's.
    #[must_use]
    #[inline]
    pub fn fits_in(self, other: Self) -> bool {
        Kind::ALL.iter().all(|&kind| self[kind] <= other[kind])
    }

    /// Component-wise difference, not below zero.
    #[must_use]
    #[inline]
    pub fn saturating_sub(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// Component-wise minimum.
    #[must_use]
    #[inline]
    pub fn min(self, other: Self) -> Self {
        self.zip(other, u64::min)
    }

    /// Component-wise maximum.
    #[must_use]
    #[inline]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    #[inline]
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            gpu_millis: f(self.gpu_millis, other.gpu_millis),
            cpu_millis: f(self.cpu_millis, other.cpu_millis),
            memory_bytes: f(self.memory_bytes, other.memory_bytes),
        }
    }
}

impl Index<Kind> for Resources {
    type Output = u64;
    #[inline]
    fn index(&self, kind: Kind) -> &u64 {
        match kind {
            Kind::Gpu => &self.gpu_millis,
            Kind::Cpu => &self.cpu_millis,
            Kind::Memory => &self.memory_bytes,
        }
    }
}

impl IndexMut<Kind> for Resources {
    #[inline]
    fn index_mut(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Gpu => &mut self.gpu_millis,
            Kind::Cpu => &mut self.cpu_millis,
            Kind::Memory => &mut self.memory_bytes,
        }
    }
}

/// Addition saturates: an amount that large is a limit, not a count.
impl Add for Resources {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }
}

impl AddAssign for Resources {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Subtracts an amount that was added before.
///
/// # Panics
/// When the result would be negative: an accounting bug must not go on unnoticed.
impl Sub for Resources {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a.checked_sub(b).expect("accounts never go below zero"))
    }
}

impl SubAssign for Resources {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Resources {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
